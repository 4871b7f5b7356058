"""The secure channel between one client and the server, after the advertisement: one key per message.

Both ends derive the keys from the client's signed box key and the server's signed session key, so no third party can
read, change or forge a message. The masked vector alone is only authenticated, not encrypted: it is uniform to any
party without the masks. The channel does not restrict the server; the client's checks do.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privstats.secagg.interactive.messages import Mask
from privstats.secagg.keys import derive
from privstats.secagg.wire import HEADER_BYTES, TAG_BYTES, Refusal, session_of, type_of

__all__ = ["Channel"]

# A key serves one message, so a constant nonce is used once per key. The key is derived from a secret to which both
# sides bring a fresh part in every session, for one client, one session and one type of message; a type has one
# direction and one place in the protocol, and each machine makes it once. A repeat is the same bytes: answers are a
# function of the root and of the messages received, and only the newest state may be resumed (``Client.export``).
_NONCE = bytes(12)
_MASK = Mask.__struct_config__.tag


class Channel:
    """Seals what this end sends and opens what the other end sent; one message per type."""

    def __init__(self, secret: bytes, *, session: bytes, client: int) -> None:
        self._secret, self._session, self._client = secret, session, client

    def seal(self, message: bytearray) -> bytes:
        """Encrypt all bytes after the header, and append the tag over the whole message."""
        key = self._key(type_of(message))
        if type_of(message) == _MASK:
            message += key.encrypt(_NONCE, b"", message)
            return bytes(message)
        header = bytes(message[:HEADER_BYTES])
        return header + key.encrypt(_NONCE, message[HEADER_BYTES:], header)

    def open(self, data: memoryview) -> memoryview:
        """Verify the tag and return the message as it was before it was sealed.

        Raises:
            Refusal: another session, or the tag does not fit: damaged, forged, or another sender's.
        """
        if len(data) < HEADER_BYTES + TAG_BYTES:
            raise Refusal("malformed", "too short to carry a tag")
        if session_of(data) != self._session:
            raise Refusal("wrong_session")
        key = self._key(type_of(data))
        try:
            if type_of(data) == _MASK:
                key.decrypt(_NONCE, data[-TAG_BYTES:], data[:-TAG_BYTES])
                return data[:-TAG_BYTES]
            header = bytes(data[:HEADER_BYTES])
            return memoryview(header + key.decrypt(_NONCE, data[HEADER_BYTES:], header))
        except InvalidTag:
            raise Refusal("bad_tag") from None

    def _key(self, kind: int) -> AESGCM:
        return AESGCM(derive(self._secret, f"channel/{self._client}/{kind}", salt=self._session))

    def __repr__(self) -> str:
        return f"Channel(client={self._client})"
