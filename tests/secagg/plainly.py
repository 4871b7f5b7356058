"""What both second implementations stand on, in the plainest way: msgpack, packed tiles, a Merkle tree, keystreams.

Written from the pages of ``docs/wire`` alone; it shares no code with ``privstats``,
and stands on the primitives of ``cryptography`` and ``hashlib``.
"""

import hashlib
import struct

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes


def sha(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def u8(number: int) -> bytes:
    return bytes([number])


def u32(number: int) -> bytes:
    return struct.pack(">I", number)


def ctr(key: bytes, lane: int, tile: int, size: int) -> bytes:
    start = struct.pack(">IQI", lane, tile, 2)
    return Cipher(algorithms.AES256(key), modes.CTR(start)).encryptor().update(bytes(size))


def public_of(private: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def exchange(private: bytes, public: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(public))


def pack(item: object) -> bytes:
    """The subset of msgpack that the protocols use, always the shortest form."""
    if isinstance(item, int):
        return u8(item) if item < 128 else b"\xcc" + u8(item) if item < 256 else b"\xcd" + item.to_bytes(2, "big")
    if isinstance(item, str):
        return u8(0xA0 | len(item)) + item.encode()
    if isinstance(item, bytes):
        return (b"\xc4" + u8(len(item)) if len(item) < 256 else b"\xc5" + struct.pack(">H", len(item))) + item
    head = u8(0x90 | len(item)) if len(item) < 16 else b"\xdc" + struct.pack(">H", len(item))
    return head + b"".join(map(pack, item))


def unpack(data: bytes) -> list:
    item, rest = _unpack(data)
    assert rest == b""
    return item


def _unpack(data: bytes) -> tuple:
    kind, data = data[0], data[1:]
    if kind < 0x80:
        return kind, data
    if kind in (0xCC, 0xCD):
        width = kind - 0xCB
        return int.from_bytes(data[:width], "big"), data[width:]
    if kind in (0xC4, 0xC5, 0xC6):
        width = {0xC4: 1, 0xC5: 2, 0xC6: 4}[kind]
        size, data = int.from_bytes(data[:width], "big"), data[width:]
        return data[:size], data[size:]
    assert 0x90 <= kind < 0xA0 or kind == 0xDC
    count = kind & 15 if kind < 0xA0 else int.from_bytes(data[:2], "big")
    data = data if kind < 0xA0 else data[2:]
    items = []
    for _ in range(count):
        item, data = _unpack(data)
        items.append(item)
    return items, data


def pack_tile(entries: list[int], bits: int) -> bytes:
    """One tile of a segment: pieces of whole bytes, widest first, then the top bits in groups of eight."""
    packed, low, top = b"", 0, bits % 8
    for width in (8, 4, 2, 1):
        if bits // 8 & width:
            packed += b"".join((entry >> low & (1 << 8 * width) - 1).to_bytes(width, "little") for entry in entries)
            low += 8 * width
    if top:
        tops = [entry >> low for entry in entries]
        words = [sum(value << top * i for i, value in enumerate(tops[at : at + 8])) for at in range(0, len(tops), 8)]
        full, rest = words[: len(tops) // 8], words[len(tops) // 8 :]
        packed += b"".join(bytes(word >> 8 * plane & 255 for word in full) for plane in range(top))
        packed += b"".join(word.to_bytes((len(tops) % 8 * top + 7) // 8, "little") for word in rest)
    return packed


def node(left: bytes, right: bytes) -> bytes:
    return sha(b"privstats/secagg/2/node\0", left, right)


def width_of(leaves: int) -> int:
    """The smallest power of two that has room for them."""
    return 1 << (leaves - 1).bit_length()


def tree(leaves: list[bytes]) -> list[list[bytes]]:
    """All levels from the leaves, filled up with zeros, to the root."""
    levels = [leaves + [bytes(32)] * (width_of(len(leaves)) - len(leaves))]
    while len(low := levels[-1]) > 1:
        levels.append([node(low[at], low[at + 1]) for at in range(0, len(low), 2)])
    return levels


def proof_of(levels: list[list[bytes]], place: int) -> bytes:
    """The siblings of one leaf, from below."""
    return b"".join(level[place >> height ^ 1] for height, level in enumerate(levels[:-1]))


def root_of(leaves: dict[int, bytes], count: int, proof: bytes) -> bytes:
    """The root over some leaves of ``count``, by place, and the nodes beside them, from below and from the left."""
    level, width = dict(leaves), width_of(count)
    while width > 1:
        for place in sorted(level):
            if place ^ 1 not in level:
                level[place ^ 1], proof = proof[:32], proof[32:]
        level = {place // 2: node(level[place], level[place + 1]) for place in sorted(level)[::2]}
        width //= 2
    return level[0]
