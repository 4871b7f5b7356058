"""Integrity between one client and the server: a GMAC tag on every message after the advertisement.

Both ends derive two keys, one per direction, from the client's signed box key and the server's session key. It protects
against the network, not against the server: what stops the server is in the client's checks. Confidentiality is TLS's.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privstats.secagg.keys import derive
from privstats.secagg.messages import HEADER_BYTES, TAG_BYTES, Refusal, session_of

__all__ = ["Channel"]


class Channel:
    """Seals what this end sends and opens what the other end sent; one message per step and direction."""

    def __init__(self, secret: bytes, *, session: bytes, client: int, at_client: bool) -> None:
        keys = derive(secret, f"channel/{client}", salt=session, size=64)
        upward, downward = AESGCM(keys[:32]), AESGCM(keys[32:])
        self._outgoing, self._incoming = (upward, downward) if at_client else (downward, upward)
        self._session = session

    def seal(self, message: bytearray) -> bytes:
        """Append the tag; the message's type is the nonce, because each type is sent once."""
        message += self._outgoing.encrypt(_nonce(message), b"", message)
        return bytes(message)

    def open(self, data: memoryview) -> memoryview:
        """Check and strip the tag.

        Raises:
            Refusal: another session, or the tag does not fit: damaged, forged, or another sender's.
        """
        if len(data) < HEADER_BYTES + TAG_BYTES:
            raise Refusal("malformed", "too short to carry a tag")
        if session_of(data) != self._session:
            raise Refusal("wrong_session")
        message, tag = data[:-TAG_BYTES], data[-TAG_BYTES:]
        try:
            self._incoming.decrypt(_nonce(message), tag, message)
        except InvalidTag:
            raise Refusal("bad_tag") from None
        return message


def _nonce(message: bytearray | memoryview) -> bytes:
    return bytes(11) + bytes(message[2:3])  # version, array header, type
