"""The one source of random bits: AES-256 in counter mode over a 32-byte seed.

It knows nothing of distributions; the samplers and the protocol turn its bits into what they need. Below everything
but the errors. The same seed gives the same stream on every platform.
"""

from __future__ import annotations

import hashlib
import os
from typing import TypeAlias

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

__all__ = ["SEED_BYTES", "Generator", "secure", "seeded"]

SEED_BYTES = 32
Bytes: TypeAlias = bytes  # inside the class, ``bytes`` is the method
_TILE = 1 << 16
_ZEROS = bytes(_TILE)
_MAX_SUBSTREAM = (1 << 64) - 2


class Generator:
    """A cryptographic stream of bits: the AES-256-CTR keystream of one seed.

    The counter block is 128 bits, big-endian. The main stream starts at block 0; substream i starts at block
    (i + 1) 2**64, so the streams of one seed never meet.

    Args:
        seed: 32 secret bytes; whoever knows them knows every bit. Use :func:`secure` outside tests.

    Raises:
        ValueError: the seed is not 32 bytes long.
    """

    def __init__(self, seed: Bytes) -> None:
        if not isinstance(seed, bytes) or len(seed) != SEED_BYTES:
            raise ValueError(f"a seed has exactly {SEED_BYTES} bytes; take one from os.urandom({SEED_BYTES})")
        self._seed = seed
        self._stream = _keystream(seed, 0)

    def bytes(self, n: int) -> Bytes:
        """The next ``n`` bytes of the stream."""
        return _take(self._stream, n)

    def uint64(self, size: int) -> NDArray[np.uint64]:
        """The next ``size`` uniform words, shape ``(size,)``, read little-endian from the stream."""
        return np.frombuffer(self.bytes(8 * size), "<u8").astype(np.uint64, copy=False)

    def spawn(self) -> Generator:
        """A fresh generator whose seed is the next 32 bytes of this stream."""
        return Generator(self.bytes(SEED_BYTES))

    def substream_bytes(self, index: int, n: int) -> Bytes:
        """The first ``n`` bytes of substream ``index``: random access that leaves the main stream where it is."""
        if not 0 <= index <= _MAX_SUBSTREAM:
            raise ValueError(f"a substream index lies in 0..2**64-2, got {index}")
        return _take(_keystream(self._seed, (index + 1) << 64), n)


def secure() -> Generator:
    """A generator seeded by the operating system: what every release must use."""
    return Generator(os.urandom(SEED_BYTES))


def seeded(seed: int) -> Generator:
    """A REPRODUCIBLE generator, for tests and demos only: anyone who knows ``seed`` can remove the noise.

    Args:
        seed: any integer; its decimal digits are hashed, so nearby seeds give unrelated streams.
    """
    return Generator(hashlib.sha256(b"privstats: reproducible, not private: %d" % seed).digest())


def _keystream(seed: bytes, block: int) -> CipherContext:
    return Cipher(algorithms.AES(seed), modes.CTR(block.to_bytes(16, "big"))).encryptor()


def _take(stream: CipherContext, n: int) -> bytes:
    if n <= _TILE:
        return stream.update(_ZEROS[:n])
    return b"".join(stream.update(_ZEROS[: min(_TILE, n - start)]) for start in range(0, n, _TILE))
