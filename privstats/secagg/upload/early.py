"""Check a report by its first bytes, before its body is read: context, sender and signature.

A client signs the boxes and the body's beginning, which together identify the body; the signature is the report's last
64 bytes. A carrier that has the signature beforehand verifies it once the first bytes have arrived. The machine checks
the complete report again, and only its result counts; this check decides only whether a carrier reads on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from privstats.files.signing import verify
from privstats.secagg.upload import messages
from privstats.secagg.upload.checks import stated
from privstats.secagg.upload.parameters import UploadParameters
from privstats.secagg.wire import (
    HASH_BYTES,
    HEADER_BYTES,
    SIGNATURE_BYTES,
    Refusal,
    session_of,
    size_of_bytes,
    size_of_index,
)


@dataclass(frozen=True)
class EarlyCheck:
    """Public facts with which a carrier checks a run's reports.

    Attributes:
        parameters: the public parameters of the run.
        context: the 32 bytes that every message of the run carries.
        publics: the clients' public keys, by index.
    """

    parameters: UploadParameters
    context: bytes
    publics: Sequence[bytes]

    def report_bytes(self, sender: int) -> int:
        """Return the length of this sender's report, exactly."""
        return self._fixed + size_of_index(sender)

    def head_bytes(self, sender: int) -> int:
        """Return the length of the first bytes that :meth:`check` reads: up to what the client signs of the body."""
        tail = self.parameters.body_bytes + SIGNATURE_BYTES + 2
        return self.report_bytes(sender) - tail + self.parameters.suite.head_bytes

    def check(self, sender: int, head: bytes | bytearray | memoryview, signature: bytes) -> None:
        """Require that the client at this place signed what ``head`` begins.

        Raises:
            Refusal: another version, type, run or sender, or no such signature.
        """
        view = memoryview(head)[: self.head_bytes(sender)]
        kind = messages.kinds_of(self.parameters).report
        if view[:1] != bytes((messages.VERSION,)):
            raise Refusal("wrong_version", proven=False)
        if not messages.is_kind(view, kind):
            raise Refusal("wrong_type", proven=False)
        if session_of(view) != self.context:
            raise Refusal("wrong_session", proven=False)
        message = self._completed(view, kind)
        if message.sender != sender:
            raise Refusal("wrong_sender", proven=False)
        if sender >= len(self.publics):
            raise Refusal("stranger", proven=False)
        if not verify(self.publics[sender], signature, stated(message, self.parameters)):
            raise Refusal("bad_signature", proven=False)

    def _completed(
        self, view: memoryview, kind: type[messages.Report] | type[messages.ProvedReport]
    ) -> messages.Report | messages.ProvedReport:
        """Return the report with zeros in place of the bytes that have not arrived."""
        missing = self.parameters.body_bytes - self.parameters.suite.head_bytes
        seal = b"\xc4" + bytes((SIGNATURE_BYTES,)) + bytes(SIGNATURE_BYTES)
        message = memoryview(b"".join((view, bytes(missing), seal)))
        return messages.decode(message, kind, self.parameters, self.context)

    @cached_property
    def _fixed(self) -> int:
        """The bytes of a report without its sender."""
        parameters = self.parameters
        boxes = size_of_bytes(len(parameters.boxed) * parameters.suite.box_bytes)
        fixed = HEADER_BYTES + boxes + size_of_bytes(parameters.body_bytes)
        if messages.kinds_of(parameters).report is messages.ProvedReport:
            fixed += size_of_bytes(parameters.helpers * HASH_BYTES) + size_of_bytes(messages.PARTS_BYTES)
        return fixed + size_of_bytes(SIGNATURE_BYTES)
