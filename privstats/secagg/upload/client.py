"""The client machine of an upload.

It has no socket, reads the clock only for box keys' expiry, and trusts only its arguments. Its one global is OpenSSL's
generator, which ML-KEM's encapsulations use.
"""

from __future__ import annotations

import os
from hashlib import sha256
from typing import NoReturn, Self

import msgspec

from privstats.encoding import RingVector
from privstats.errors import LocalProtocolError, RandomnessError, RemoteProtocolError
from privstats.secagg import body_cipher, wire, xwing
from privstats.secagg.exclusive import exclusive
from privstats.secagg.keys import Entropy, Identity, draw, require_identity, unseal_state
from privstats.secagg.machines import OnUpload, give_back, session_id
from privstats.secagg.roster import Roster
from privstats.secagg.upload import checks, messages
from privstats.secagg.upload.helper_keys import reproducible
from privstats.secagg.upload.masking_scheme import Hidden, MaskingScheme, scheme_of
from privstats.secagg.upload.panel import Panel, digest_of
from privstats.secagg.upload.parameters import UploadParameters
from privstats.secagg.upload.signed_statements import box_info, derive
from privstats.secagg.upload.state import ClientState, StepName
from privstats.secagg.uploader import Uploader

_SERVER = "server"


class Client(Uploader):
    """One client in one run.

    Args:
        vector: the client's contribution; masking copies it.
        identity: the signing key of this index.
        roster: all parties' public identities, or the roster's 32-byte digest, agreed on outside the protocol.
        entropy: source of 32 uniform bytes, read once; encapsulations use the system's generator.
        on_upload: called with :attr:`upload` before the report is sent, and again if the process was killed in between.
            If the call raises, nothing is sent. With ``on_upload`` the client is :attr:`charged`.
        allow_reproducible: in tests, accept a reproducible ``entropy``, which otherwise raises ``RandomnessError``.

    Raises:
        LocalProtocolError: arguments do not fit the parameters.

    Guarantee: an adversary may control the leader, all helpers but one, and ``colluders`` clients of the roster. From
    this client's report it learns nothing but one sum over at least ``min_survivors`` clients. The condition: no copy
    of the honest helper's box key exists outside the machine that generated it. A report counts as released when it is
    sent: another run over the same data is another release.
    """

    parameters: UploadParameters
    _state: ClientState

    def __init__(
        self,
        parameters: UploadParameters,
        vector: RingVector,
        *,
        index: int,
        identity: Identity,
        roster: Roster | bytes,
        panel: Panel,
        entropy: Entropy = os.urandom,
        threads: int = 1,
        on_upload: OnUpload | None = None,
        allow_reproducible: bool = False,
    ) -> None:
        if reproducible(entropy) and not allow_reproducible:
            raise RandomnessError(
                "entropy is a reproducible generator's, so any party with its seed can unmask the vector; omit it, or "
                "pass allow_reproducible=True in a test"
            )
        if vector.ring != parameters.ring:
            raise LocalProtocolError("the vector's ring differs from the parameters': encode it with parameters.ring")
        self._bind(parameters, index, identity, roster, panel, threads)
        panel.require_open()
        self._vector, self._on_upload, self.reproducible = vector, on_upload, vector.reproducible
        offers = tuple(offer.encode() for offer in panel.offers)
        self._state = ClientState(bytearray(draw(entropy, 32)), offers, charged=on_upload is not None)

    @staticmethod
    def check_place(parameters: UploadParameters, *, index: int, identity: Identity, roster: Roster | bytes) -> None:
        """Raise ``LocalProtocolError`` unless the index fits and, if the full roster is given, has this identity."""
        require_identity(identity)
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < parameters.clients:
            got = index if isinstance(index, int) else type(index).__name__
            raise LocalProtocolError(f"index must be a roster index, 0 to {parameters.clients - 1}, got {got}")
        if isinstance(roster, Roster):
            roster.check_member(index, identity)

    def _bind(
        self,
        parameters: UploadParameters,
        index: int,
        identity: Identity,
        roster: Roster | bytes,
        panel: Panel,
        threads: int,
    ) -> None:
        self.check_place(parameters, index=index, identity=identity, roster=roster)
        self.parameters, self.index, self.panel = parameters, index, panel
        self._identity, self._context = identity, panel.context(parameters, roster)
        self._roster, self._session_id = digest_of(roster), session_id(parameters, roster)
        self._scheme: MaskingScheme = scheme_of(parameters, self._context, threads=threads)

    @property
    def step(self) -> StepName:
        """``"report"`` until :meth:`start`, then ``"done"``; ``"failed"`` once discarded."""
        return self._state.step

    @property
    def ended(self) -> str:
        """Always empty: no other party ends a client."""
        return ""

    @property
    def faults(self) -> tuple[RemoteProtocolError, ...]:
        """Always empty: a client receives no message."""
        return ()

    @property
    def session_id(self) -> bytes:
        """See :func:`~privstats.secagg.machines.session_id`."""
        return self._session_id

    @property
    def receipt(self) -> bytes:
        """The report's signed statement, for ``session.free``; empty until the report may be sent."""
        return self._state.stated if self._state.uploaded or self._state.step == "failed" else b""

    @exclusive
    def prepare(self) -> bool:
        """Build the report without sending it; return whether this call built it.

        Save the client before :meth:`start`: a lost report cannot always be rebuilt, and the ledger must never record a
        lost report.
        """
        self._require_startable()
        return self._prepared()

    @exclusive
    def start(self) -> list[tuple[str, bytes]]:
        """Return the report, ``[("server", bytes)]``: identical bytes until :meth:`discard`.

        Raises:
            LocalProtocolError: the client was discarded, or a box key expired before anything was sent.
            LedgerError: it is :attr:`charged` and resumed without ``on_upload``; nothing is sent.
        """
        self._require_startable()
        self._prepared()
        self._state.step = "done"  # before the callback: a client whose ledger refuses has ended
        self._release()
        return [(_SERVER, self._state.answer)]

    def _require_startable(self) -> None:
        if self._state.step == "failed":
            raise LocalProtocolError("this client was discarded: build a new one, in a new run, with new noise")
        if not self._state.uploaded:
            self.panel.require_open()

    def _prepared(self) -> bool:
        state = self._state
        if state.upload:
            return False
        state.answer, state.stated = self._report()
        state.upload = sha256(state.stated).digest()
        self._forget()
        return True

    @exclusive
    def receive(self, data: bytes | bytearray | memoryview) -> NoReturn:
        """Raise ``RemoteProtocolError``: an upload has no message for a client."""
        wire.view_of(data)
        raise RemoteProtocolError(_SERVER, self._state.step, "not_expected", "a client receives no message")

    @exclusive
    def discard(self) -> None:
        """Remove root, vector and report, so that nothing can be sent.

        Raises:
            LedgerError: the ledger could not record that nothing was sent; the client is wiped.
        """
        self._forget()
        uploaded = self._state.uploaded
        stated = self._state.stated if uploaded else b""
        self._state = ClientState(bytearray(), (), step="failed", stated=stated, upload=uploaded, uploaded=uploaded)
        give_back(self._on_upload, uploaded)

    def _saved(self) -> tuple[str, bytes]:
        if self._state.step == "failed":
            raise LocalProtocolError("this client was discarded: there is nothing to save")
        return _bound_to(self.parameters, self.index, self._roster)

    @classmethod
    def resume(
        cls,
        sealed: bytes,
        key: bytes,
        *,
        parameters: UploadParameters,
        index: int,
        identity: Identity,
        roster: Roster | bytes,
        threads: int = 1,
        on_upload: OnUpload | None = None,
    ) -> Self:
        """Return the client that :meth:`export` sealed.

        A report built before the export has identical bytes; one built later differs.

        Raises:
            LocalProtocolError: another key, index, plan or roster, or damage.
        """
        client = cls.__new__(cls)
        role, place = _bound_to(parameters, index, digest_of(roster))
        state = unseal_state(sealed, key, ClientState, role=role, place=place)
        client._bind(parameters, index, identity, roster, Panel.of(state.offers), threads)
        client._go_on(state, on_upload)
        return client

    def _report(self) -> tuple[bytes, bytes]:
        if self._vector is None:
            raise LocalProtocolError("the saved state holds no vector to send")
        hidden = self._scheme.cover(self._vector, self._state.root, self.index)
        key, panel = derive(hidden.secret, "body", self._context), self.panel
        boxes = (
            xwing.seal(panel.box_key(place), content, box_info(self._context, self.index, place))
            for place, content in enumerate((key, *hidden.pieces))
        )
        report = self._unsigned(b"".join(boxes), hidden)
        frame = messages.Frame(report, self.parameters.body_bytes)
        body_cipher.seal_into(frame.large, key, hidden.body)
        signed = msgspec.structs.replace(report, body=frame.large)
        statement = checks.stated(signed, self.parameters)
        return frame.signed(self._identity.sign(statement)), statement

    def _unsigned(self, boxes: bytes, hidden: Hidden) -> messages.Report | messages.ProvedReport:
        place, end = (self._context, self.index, boxes), (memoryview(b""), bytes(64))
        if self.parameters.claim is None:
            return messages.Report(*place, *end)
        return messages.ProvedReport(*place, hidden.commits, hidden.parts, *end)

    def _forget(self) -> None:
        self._state.root[:] = bytes(len(self._state.root))
        self._vector = None

    def __repr__(self) -> str:
        return f"Client(index={self.index}, step={self.step!r})"


def _bound_to(parameters: UploadParameters, index: int, roster: bytes) -> tuple[str, bytes]:
    return f"upload client {index}", parameters.digest + roster
