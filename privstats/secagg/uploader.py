"""What a client of any protocol does with its one upload: who is told before it leaves, and how it is kept.

The upload is released when it may leave, whether it arrives or not. What it is and when it is made is the protocol's.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from typing import Any

from privstats.encoding import RingVector
from privstats.errors import LedgerError
from privstats.secagg.exclusive import Exclusive, exclusive
from privstats.secagg.keys import Entropy
from privstats.secagg.machines import Masking, OnUpload
from privstats.secagg.sealing import seal_state

__all__ = ["Uploader"]


class Uploader(Exclusive):
    """A client as far as its upload goes; its state has ``vector``, ``answer``, ``upload``, ``uploaded``, ``charged``.

    In the state ``upload`` names what was made and ``uploaded`` what may leave; ``vector`` is filled in for sealing
    only.
    """

    parameters: Masking
    index: int
    _state: Any
    _vector: RingVector | None
    _on_upload: OnUpload | None

    @abstractmethod
    def _saved(self) -> tuple[str, bytes]:
        """The state made ready for sealing, as role and place that it is bound to; raises where none may be kept."""

    @property
    def answer(self) -> bytes:
        """The last answer, to be sent again where it may not have arrived; empty where there is none that may leave."""
        state = self._state
        answer: bytes = state.answer  # before the comparison: what may not leave is named before it is kept
        return answer if state.uploaded == state.upload else b""

    @property
    def upload(self) -> bytes:
        """A SHA-256 that names the upload; empty until it may leave, and the contribution counts as released."""
        uploaded: bytes = self._state.uploaded
        return uploaded

    @property
    def charged(self) -> bool:
        """Whether somebody keeps account of this client's upload and must be told before it leaves."""
        charged: bool = self._state.charged
        return charged

    def _release(self) -> None:
        """Let what was made leave: whoever keeps account is told first, and again where that failed."""
        state = self._state
        if state.uploaded != state.upload:
            self._leaving(state.upload)
            state.uploaded = state.upload

    def _leaving(self, upload: bytes) -> None:
        """Called before the upload leaves; what it raises keeps the vector here."""
        if self._on_upload is not None:
            self._on_upload(upload)
        elif self._state.charged:
            raise LedgerError(
                "this client is charged to a ledger, which must hear of its upload before that leaves: resume it with "
                "on_upload=session.on_upload(plan, roster, charge)"
            )

    @exclusive
    def export(self, key: bytes, *, entropy: Entropy = os.urandom) -> bytes:
        """This client's state, sealed under 32 bytes of ``key``; save it before sending an answer, and only the newest.

        Raises:
            LocalProtocolError: the client has ended: what has sent its last word must not come back.
        """
        state, (role, place) = self._state, self._saved()
        state.vector = self._vector.pack() if self._vector is not None else b""
        try:
            return seal_state(state, key, role=role, place=place, entropy=entropy)
        finally:
            state.vector = b""

    def _go_on(self, state: Any, on_upload: OnUpload | None) -> None:
        """Take up a saved state where it stood."""
        self._state, self._on_upload = state, on_upload
        self._vector = self.parameters.ring.unpack(state.vector) if state.vector else None
        state.vector = b""
