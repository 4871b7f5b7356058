"""Handling of a client's one upload, common to all protocols: the callback before it is sent, and its saved state.

The upload counts as released as soon as it may be sent, even if it never arrives. The protocol defines its content
and when it is made.

The callback before a client sends its vector is an argument, ``on_upload``, not a subclass. A subclass per protocol
that can be charged would have to reach into each machine; a callback is kept across a resume by the machine that
needs it.
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
    """A client with one upload; its state has ``vector``, ``answer``, ``upload``, ``uploaded``, ``charged``.

    In the state ``upload`` names the upload that was made and ``uploaded`` the one that may be sent; ``vector`` is
    filled in for sealing only.

    Attributes:
        reproducible: the vector holds noise that others may know; no longer known of a client that was resumed.
    """

    parameters: Masking
    index: int
    reproducible: bool = False
    _state: Any
    _vector: RingVector | None
    _on_upload: OnUpload | None

    @abstractmethod
    def _saved(self) -> tuple[str, bytes]:
        """Prepare the state for sealing; return the role and place that it is bound to, or raise if it has ended."""

    @property
    def answer(self) -> bytes:
        """The last answer, to be sent again if it may not have arrived; empty if none may be sent."""
        state = self._state
        answer: bytes = state.answer  # read first: ``upload`` names an answer before ``answer`` holds it
        return answer if state.uploaded == state.upload else b""

    @property
    def upload(self) -> bytes:
        """A SHA-256 that names the upload; empty until it may be sent and counts as released."""
        uploaded: bytes = self._state.uploaded
        return uploaded

    @property
    def charged(self) -> bool:
        """Whether this client's upload is charged, so that ``on_upload`` must be called before it is sent."""
        charged: bool = self._state.charged
        return charged

    def _release(self) -> None:
        """Allow the upload to be sent, after ``on_upload``, which is called again if it failed before."""
        state = self._state
        if state.uploaded != state.upload:
            self._leaving(state.upload)
            state.uploaded = state.upload

    def _leaving(self, upload: bytes) -> None:
        """Called before the upload is sent. If it raises, nothing is sent."""
        if self._on_upload is not None:
            self._on_upload(upload)
        elif self._state.charged:
            raise LedgerError(
                "this client is charged to a ledger, which must record its upload before it is sent: resume it with "
                "on_upload=session.on_upload(plan, roster, charge)"
            )

    @exclusive
    def export(self, key: bytes, *, entropy: Entropy = os.urandom) -> bytes:
        """This client's state, sealed under 32 bytes of ``key``; save it before sending an answer, and only the newest.

        Raises:
            LocalProtocolError: the client has ended, and must not be resumed after its last message.
        """
        state, (role, place) = self._state, self._saved()
        state.vector = self._vector.pack() if self._vector is not None else b""
        try:
            return seal_state(state, key, role=role, place=place, entropy=entropy)
        finally:
            state.vector = b""

    def _go_on(self, state: Any, on_upload: OnUpload | None) -> None:
        """Continue from a saved state."""
        self._state, self._on_upload = state, on_upload
        self._vector = self.parameters.ring.unpack(state.vector) if state.vector else None
        state.vector = b""
