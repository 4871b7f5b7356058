"""Report how this Python's TLS agrees on keys: by the group that it offers first.

Python's ``ssl`` names no group before 3.15, so the first key share is read from a ClientHello in memory (RFC 8446,
4.2.8). A hybrid group needs both ends.
"""

from __future__ import annotations

import ssl
import struct
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

_KEY_SHARE = 51
_HYBRID = {0x11EB: "SecP256r1MLKEM768", 0x11EC: "X25519MLKEM768", 0x11ED: "SecP384r1MLKEM1024"}
_GROUPS = {0x17: "secp256r1", 0x18: "secp384r1", 0x19: "secp521r1", 0x1D: "X25519", 0x1E: "X448", **_HYBRID}
"""Names of IANA's registry of TLS supported groups."""


@dataclass(frozen=True)
class KeyAgreement:
    """Group and library with which TLS agrees on keys.

    Attributes:
        group: IANA's name or number of the group offered first; ``none of TLS 1.3`` where that version is forbidden.
    """

    group: str
    library: str

    @property
    def hybrid(self) -> bool:
        """Whether recordings stay secret if elliptic curves are broken later."""
        return self.group in _HYBRID.values()

    def __str__(self) -> str:
        if self.hybrid:
            return f"{self.group} ({self.library}), where the other end offers it too"
        return f"{self.group} ({self.library}): not hybrid, which needs OpenSSL 3.5 or newer at both ends"


@cache
def key_agreement() -> KeyAgreement:
    """Return this Python's key agreement, under the system's settings.

    Example:
        >>> from privstats.engines.carriers import key_agreement
        >>> key_agreement().hybrid == ("not hybrid" not in str(key_agreement()))
        True
    """
    sent = ssl.MemoryBIO()
    end = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost")
    with suppress(ssl.SSLError):  # it waits for an answer, or may send nothing
        end.do_handshake()
    hello = sent.read()
    group = first_share(hello) if hello else None
    name = "none of TLS 1.3" if group is None else _GROUPS.get(group, f"group {group:#06x}")
    return KeyAgreement(name, ssl.OPENSSL_VERSION)


def first_share(hello: bytes) -> int | None:
    """Return the group of a ClientHello's first key share (RFC 8446, 4.1.2), in one record."""
    at = 5 + 4 + 2 + 32  # the record's header, the handshake's, the version, the random number
    for length in (">B", ">H", ">B"):  # session, cipher suites, compression methods
        at += struct.calcsize(length) + struct.unpack_from(length, hello, at)[0]
    at += 2  # the size of all extensions
    while at < len(hello):
        kind, size = struct.unpack_from(">HH", hello, at)
        if kind == _KEY_SHARE:
            return int(struct.unpack_from(">H", hello, at + 6)[0])
        at += 4 + size
    return None
