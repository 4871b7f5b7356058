"""Handle a client's one upload, for all protocols: the callback before it is sent, and its saved state.

The upload counts as released as soon as it may be sent, even if it never arrives.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from typing import Any

from privstats.encoding import RingVector
from privstats.errors import LedgerError
from privstats.secagg.exclusive import Exclusive, exclusive
from privstats.secagg.keys import Entropy, seal_state
from privstats.secagg.machines import Masking, OnUpload


class Uploader(Exclusive):
    """A client with one upload.

    The state's ``upload`` names the built upload, ``uploaded`` the one that may be sent.

    Attributes:
        reproducible: others may know the vector's noise; False after a resume.
    """

    parameters: Masking
    index: int
    reproducible: bool = False
    _state: Any
    _vector: RingVector | None
    _on_upload: OnUpload | None

    @abstractmethod
    def _saved(self) -> tuple[str, bytes]:
        """Return the role and digests that bind the sealed state; raise after the end."""

    @property
    def answer(self) -> bytes:
        """The last answer, to be sent again; may be empty."""
        state = self._state
        answer: bytes = state.answer  # read first: ``upload`` names an answer before ``answer`` holds it
        return answer if state.uploaded == state.upload else b""

    @property
    def upload(self) -> bytes:
        """A SHA-256 that names the upload; empty until it may be sent."""
        uploaded: bytes = self._state.uploaded
        return uploaded

    @property
    def charged(self) -> bool:
        """Whether ``on_upload`` must be called before the upload is sent."""
        charged: bool = self._state.charged
        return charged

    def _release(self) -> None:
        """Call ``on_upload`` unless an earlier call succeeded; then the upload may be sent."""
        state = self._state
        if state.uploaded != state.upload:
            self._leaving(state.upload)
            state.uploaded = state.upload

    def _leaving(self, upload: bytes) -> None:
        if self._on_upload is not None:
            self._on_upload(upload)
        elif self._state.charged:
            raise LedgerError(
                "this client is charged to a ledger, which must record its upload before it is sent: resume it with "
                "on_upload=session.on_upload(plan, roster, charge)"
            )

    @exclusive
    def export(self, key: bytes, *, entropy: Entropy = os.urandom) -> bytes:
        """Return this client's state, sealed under 32 bytes of ``key``.

        Save it before sending an answer, and resume only the newest.
        """
        state, (role, place) = self._state, self._saved()
        state.vector = self._vector.pack() if self._vector is not None else b""
        try:
            return seal_state(state, key, role=role, place=place, entropy=entropy)
        finally:
            state.vector = b""

    def _go_on(self, state: Any, on_upload: OnUpload | None) -> None:
        self._state, self._on_upload = state, on_upload
        self._vector = self.parameters.ring.unpack(state.vector) if state.vector else None
        state.vector = b""
