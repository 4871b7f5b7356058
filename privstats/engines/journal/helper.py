"""A crash-safe helper: resumed, it continues its run, or repeats how the run ended."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Literal, NoReturn, TypeAlias

import msgspec

from privstats.encoding import RingVector
from privstats.engines.journal.base import held_briefly, require_member, require_panel, written
from privstats.engines.journal.expiry import UnconfirmedEndError
from privstats.engines.journal.panel_member import EARLIER, HpkeKey, PanelMember
from privstats.engines.records import RecordLog, read_sealed, write_sealed
from privstats.errors import LocalProtocolError, RemoteProtocolError, SessionEndedError
from privstats.files.decoding import from_msgpack
from privstats.secagg import Helper, Identity, Offer, Panel, Roster, UploadParameters, end_of
from privstats.secagg.exclusive import exclusive
from privstats.secagg.machines import ENDS
from privstats.secagg.protocols import protocol_of
from privstats.secagg.wire import HiddenRepr, view_of

HelperState: TypeAlias = Literal["offered", "bound", "revealed", "abandoned"]

_LOG, _END = "log", "end"
_SERVER = "server"


class _End(HiddenRepr, msgspec.Struct, frozen=True):
    """``count`` is the run's number of events."""

    state: HelperState
    place: int
    message: bytes
    question: bytes = b""
    count: int = 0
    earlier: bool = False  # an earlier version made the box key


class JournaledHelper(PanelMember):
    """A :class:`~privstats.secagg.Helper` that can be killed at any moment and resumed.

    The helper's home has a subdirectory per run; markers of ended runs stay, so a run is never offered twice.

    **Exclude the home from backups and machine snapshots.** Restoring or copying it during a run makes two helpers with
    one box key, and answers to two lists reveal single clients. Once the key is bound, a home restored alone, or
    copied, is refused; a completely restored machine is not detected. Disks may retain old blocks of the overwritten
    sealing key.

    Guarantee: an answer is made once, and sent only after box key and pieces are removed from disk; it is on disk
    before it is sent, so it is repeated and never made for another list. After the end stated in its offer it answers
    no list, and the first start, binding, message or resumption destroys the box key.

    Example:
        >>> from privstats.engines.journal import JournaledHelper
        >>> leader, helper, *people = (ps.secagg.Identity.generate(os.urandom) for _ in range(5))
        >>> panel = {"protocol": "split", "panel": [leader.public.hex(), helper.public.hex()]}
        >>> privacy, cohort = ps.NoPrivacy(), ps.Cohort(3, 3, 9)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=cohort, privacy=privacy, **panel)
        >>> roster = ps.secagg.Roster([each.public for each in people], server=leader.public, run=os.urandom(16))
        >>> run = {"identity": helper, "place": 1, "parameters": plan.masking, "roster": roster}
        >>> JournaledHelper.offer("helper", os.urandom(32), **run).offered.place
        1
    """

    _LASTS, _ROLE = (_END,), "helper"

    def __init__(
        self, path: Path, key: bytes, identity: Identity, parameters: UploadParameters, roster: Roster, lock: int
    ) -> None:
        super().__init__(path, key, identity, parameters, roster, lock)
        self._noise: Callable[[bytes], RingVector] | None = None
        self._machine: Helper | None = None
        self._log: RecordLog | None = None
        self._ended: _End | None = None
        self._threads, self._number = 1, 0

    @classmethod
    def offer(
        cls,
        home: str | os.PathLike[str],
        key: bytes,
        *,
        identity: Identity,
        parameters: UploadParameters,
        roster: Roster,
        place: int,
        until: int | None = None,
        noise: Callable[[bytes], RingVector] | None = None,
    ) -> JournaledHelper:
        """Make a fresh box key for one run, on disk before :attr:`offered` can be sent.

        Args:
            key: 32 bytes under which the home is sealed.
            identity: the signing key that the plan's panel names.
            parameters: the run's ``plan.masking``.
            roster: parties and run name, from the roster's owner.
            place: the helper's index on the panel, 1 to h.
            until: second since 1970 at which the box key is destroyed, in any state; default 30 days from now.
            noise: draws the one answer's noise: ``session.helper_noise(plan)``.

        Raises:
            LocalProtocolError: the run is known or in use; or bad input.
        """
        if not 1 <= place <= require_member(parameters, identity).helpers:
            raise LocalProtocolError(f"a helper's place on the panel is 1 to {parameters.helpers}, got {place}")
        Helper.check_noise(parameters, noise)
        end = end_of(until)
        with cls._offering(home, key, identity, parameters, roster) as offering:
            offering._noise = noise
            offering._enter(HpkeKey.make(offering._path, key, place, end))
        return offering

    @classmethod
    def resume(
        cls,
        home: str | os.PathLike[str],
        key: bytes,
        *,
        identity: Identity,
        parameters: UploadParameters,
        roster: Roster,
        threads: int = 1,
        restored: bool = False,
        noise: Callable[[bytes], RingVector] | None = None,
    ) -> JournaledHelper:
        """Return the helper at its last state; after its run's end it only repeats its last message.

        Args:
            home, key, identity, parameters, roster, noise: as for :meth:`offer`. An answer lost in a kill is remade
                identically, because its noise follows from box key and list.
            restored: the operator confirms that no copy of this helper has answered since: two answers to two lists
                reveal single clients.

        Raises:
            NothingToResumeError: this run was never offered here.
            RestoredError: the home was restored or copied after the box key was bound.
            SessionEndedError: an earlier version made the box key, which is destroyed.
            LocalProtocolError: bad input, damage, or in use.
        """
        with cls._resuming(home, key, identity, parameters, roster) as helper, helper._acting():
            helper._threads, helper._noise = threads, noise
            helper._take_up(restored=restored)
        return helper

    def _take_up(self, *, restored: bool) -> None:
        if (self._path / _END).exists():
            self._ended = from_msgpack(read_sealed(self._path / _END, self._key), _End)
            self._number = self._ended.place
            self._destroy()
            self._counter.catch_up(self._ended.count)
            self._require_current()
            return
        box_key = HpkeKey.read(self._path, self._key)
        if box_key.earlier:
            self._close_run(_End("abandoned", box_key.place, b"", earlier=True))
            self._require_current()
        self._enter(box_key)
        if restored and self._box_key is not None:
            self._vouch(self._box_key)
        with suppress(UnconfirmedEndError):  # no message is answered meanwhile
            self._expire()
        if self._ended is None:
            self._require_newest()

    def _require_current(self) -> None:
        if self._ended is not None and self._ended.earlier:
            raise SessionEndedError(f"the run at {self._path} {EARLIER}")

    def _expire(self) -> None:
        """Destroy an expired box key; for a run with a panel, sign that this helper never answers.

        Raises:
            UnconfirmedEndError: its end is not confirmed yet.
        """
        if self._ended is None and self._box_key is not None and not self._box_key.require_open():
            copied = self._counter.is_older(self._mark)  # another copy may have answered, so nothing is signed
            statements = [] if self._machine is None or copied else self._machine.abandon()
            self._close_run(_End("abandoned", self._number, statements[0][1] if statements else b""))

    @property
    def _happened(self) -> int:
        """Number of events: the binding, and each answered part."""
        return 0 if self._machine is None else 1 + self._machine.parts

    def _enter(self, box_key: HpkeKey) -> None:
        self._box_key, self._number, panel = box_key, box_key.place, box_key.panel
        self._offer = box_key.offer(self._identity, self.parameters, self.roster)
        if panel is not None:
            self._build(box_key, panel)

    def _build(self, box_key: HpkeKey, panel: Panel) -> None:
        keys = box_key.keys(self._identity, self.parameters, self.roster)
        self._machine = Helper(
            self.parameters, keys=keys, roster=self.roster, panel=panel, noise=self._noise, threads=self._threads
        )
        self._log = RecordLog(self._path / _LOG, box_key.sealing)
        if self._counter.stored:  # the binding and each part are counted before anything leaves
            self._log.mend(self._counter.stored - 1)
        for message in self._log.records():
            self._machine.take(message)

    @property
    def state(self) -> HelperState:
        """``"offered"``, ``"bound"``, ``"revealed"`` or ``"abandoned"``."""
        if self._ended is not None:
            return self._ended.state
        return "offered" if self._machine is None else "bound"

    @property
    def offered(self) -> Offer:
        """The signed offer of this run's box key; raises ``LocalProtocolError`` after the run's end."""
        if self._ended is not None:
            raise LocalProtocolError(f"the run at {self._path} is {self._ended.state}, and its box key is gone")
        return self._offer

    @exclusive
    def bind(self, panel: Panel) -> None:
        """Bind the box key to a panel, for good; raises ``LocalProtocolError`` for another panel. Idempotent."""
        require_panel(panel)
        with self._acting():
            with suppress(UnconfirmedEndError):  # a key that is bound answers nothing meanwhile
                self._expire()
            if self._box_key is None:
                raise LocalProtocolError(f"this box key is {self.state}: it serves one panel, once")
            panel.context(self.parameters, self.roster)
            self._box_key = self._box_key.bound(panel, self._offer)
            if self._machine is None:
                self._build(self._box_key, panel)
            self._counter.keep(self._happened)

    @property
    def index(self) -> int:
        """See :attr:`Helper.index <privstats.secagg.Helper.index>`."""
        return self.parameters.clients + self._number - 1

    @property
    def step(self) -> str:
        """``"check"`` until the one answer, then ``"done"``; ``"failed"`` if the run was abandoned."""
        return {"revealed": "done", "abandoned": "failed"}.get(self.state, "check")

    @property
    def is_over(self) -> bool:
        """Whether :attr:`step` is the end, with a result or without."""
        return self.step in ENDS

    @property
    def ended(self) -> str:
        """Always empty: only the operator ends a helper."""
        return ""

    @property
    def charged(self) -> bool:
        """Always False."""
        return False

    @property
    def upload(self) -> bytes:
        """Always empty."""
        return b""

    @property
    def answer(self) -> bytes:
        """The ended run's last message, to be sent again."""
        return b"" if self._ended is None or self._gone else self._ended.message

    @property
    def faults(self) -> tuple[RemoteProtocolError, ...]:
        """See :attr:`Helper.faults <privstats.secagg.Helper.faults>`; empty after the end."""
        return () if self._machine is None else self._machine.faults

    @exclusive
    def start(self) -> list[tuple[str, bytes]]:
        """Destroy an expired box key; return an empty list."""
        with self._acting(), suppress(UnconfirmedEndError):
            self._expire()
        return []

    @exclusive
    def receive(self, data: bytes | bytearray | memoryview) -> list[tuple[str, bytes]]:
        """Answer a message; first save the state, or remove an ended run's secrets.

        Raises:
            RemoteProtocolError: the message is refused and the state is unchanged.
            LocalProtocolError: the key is not bound, or a write failed; nothing may be sent.
        """
        with self._acting():
            self._expire()
            if self._ended is not None:
                return [(_SERVER, self._repeated(view_of(data)))]
            if self._machine is None or self._log is None:
                raise LocalProtocolError("this helper has offered its key and knows no panel yet: bind it to one")
            before = self._machine.parts
            answers = self._machine.receive(data)
            if self._machine.step == "done":
                self._close_run(_End("revealed", self._number, answers[0][1], sha256(bytes(data)).digest()))
            elif self._machine.parts > before:
                self._log.append(bytes(data))
                self._counter.keep(self._happened)
            return answers

    def _repeated(self, data: memoryview) -> bytes:
        ended, limit = self._ended, protocol_of(self.parameters).machines.largest_request(self.parameters)
        if ended is not None and len(data) <= limit and ended.question == sha256(data).digest():
            return ended.message
        raise RemoteProtocolError(_SERVER, self.step, "session_over", "this helper's box key is gone", proven=False)

    @exclusive
    def abandon(self) -> list[tuple[str, bytes]]:
        """Destroy the box key and return the signed statement of that, once it is on disk.

        Raises:
            LocalProtocolError: an answer was made; or the key is not bound.
        """
        with self._acting():
            if self._ended is not None and self._ended.state == "abandoned":
                return [(_SERVER, self._ended.message)]
            if self._ended is not None:
                raise LocalProtocolError("this helper has answered: the run is over and counts as a release")
            if self._machine is None:
                raise LocalProtocolError("this key is bound to no panel: there is no run to abandon, discard it")
            statements = self._machine.abandon()
            self._close_run(_End("abandoned", self._number, statements[0][1]))
            return statements

    @exclusive
    def discard(self) -> None:
        """Destroy the box key without a statement."""
        with self._acting():
            if self._ended is None:
                if self._machine is not None:
                    self._machine.discard()
                self._close_run(_End("abandoned", self._number, b""))

    @exclusive
    def export(self, key: bytes) -> NoReturn:  # noqa: ARG002
        """Refuse with a ``LocalProtocolError``: a copy could answer a second list."""
        raise LocalProtocolError("a helper is not exported: a copy of it could answer a second list")

    def _close_run(self, end: _End) -> None:
        """Write the end first, because it takes precedence; then destroy the key."""
        if self._machine is not None:
            end = msgspec.structs.replace(end, count=max(self._happened, self._counter.stored) + 1)
        write_sealed(self._path / _END, self._key, msgspec.msgpack.encode(end))
        self._counter.catch_up(end.count)
        self._ended = end
        self._destroy()

    def _destroy(self) -> None:
        if self._log is not None:
            self._log.close()
        self._machine = self._log = self._box_key = None
        HpkeKey.destroy(self._path)
        (self._path / _LOG).unlink(missing_ok=True)

    def _give_up(self, why: str) -> None:
        """Wipe the machine, which has sent nothing; the state on disk can be resumed."""
        super()._give_up(why)
        if self._machine is not None:
            self._machine.discard()

    def _let_go(self) -> None:
        if self._log is not None:
            self._log.close()
        super()._let_go()


def forget_ended(run: Path, key: bytes) -> str:
    """Destroy a run's box key if it has ended.

    Returns:
        Why the key was destroyed, for the operator; empty if none was.

    Raises:
        UnconfirmedEndError: the key's end is not confirmed yet.
    """
    with held_briefly(run), written(run):
        if not HpkeKey.there(run) or (run / _END).exists():
            return ""
        box_key = HpkeKey.read(run, key)
        if box_key.require_open():
            return ""
        end = _End("abandoned", box_key.place, b"", earlier=box_key.earlier)
        write_sealed(run / _END, key, msgspec.msgpack.encode(end))
        HpkeKey.destroy(run)
        (run / _LOG).unlink(missing_ok=True)
        return f"this run {EARLIER if box_key.earlier else 'is over: its box key has ended and is destroyed'}"
