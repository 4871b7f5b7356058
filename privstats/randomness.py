"""Generate random bits: AES-256 in counter mode over a 32-byte seed.

Equal seeds yield equal streams on every platform. A generator works in one process only.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
from typing import NoReturn, SupportsIndex, TypeAlias

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from privstats import domains
from privstats.errors import DataError, RandomnessError

SEED_BYTES = 32
Bytes: TypeAlias = bytes  # inside the class, ``bytes`` is the method
_TILE = 1 << 16
_ZEROS = bytes(_TILE)
_MAX_SUBSTREAM = (1 << 64) - 2


class Generator:
    """A cryptographic stream of bits: the AES-256-CTR keystream of one seed.

    The counter block is 128 bits, big-endian. The main stream starts at block 0; substream i starts at block (i + 1)
    2**64, so the streams of one seed never meet.

    A generator belongs to its process. After a fork, parent and child would sample the same noise and keys, and the
    difference of two sums with equal noise is exact. So a generator raises in the child, and cannot be copied or
    pickled. Threads take turns.

    Args:
        seed: 32 secret bytes; anyone who knows them knows every bit.
        reproducible: the seed may be known, so nothing derived from it is secret.

    Raises:
        ValueError: the seed is not 32 bytes long.
        RandomnessError: from every method, in a process forked since.
    """

    def __init__(self, seed: Bytes, *, reproducible: bool = False) -> None:
        if not isinstance(seed, bytes) or len(seed) != SEED_BYTES:
            raise ValueError(f"a seed has exactly {SEED_BYTES} bytes; take one from os.urandom({SEED_BYTES})")
        self._seed = seed
        self._stream = _keystream(seed, 0)
        self._turn, self._process = threading.Lock(), os.getpid()
        self._reproducible = reproducible

    @property
    def reproducible(self) -> bool:
        """Whether others may know the stream; its noise then protects no record."""
        return self._reproducible

    def bytes(self, n: int) -> Bytes:
        """Return the next ``n`` bytes."""
        self._refuse_after_fork()
        with self._turn:
            return _take(self._stream, n)

    def uint64(self, size: int) -> NDArray[np.uint64]:
        """Return the next ``size`` uniform words, shape ``(size,)``, little-endian."""
        return np.frombuffer(self.bytes(8 * size), "<u8").astype(np.uint64, copy=False)

    def spawn(self) -> Generator:
        """Return a generator seeded with the next 32 bytes; as reproducible as this one."""
        return Generator(self.bytes(SEED_BYTES), reproducible=self._reproducible)

    def substream_bytes(self, index: int, n: int) -> Bytes:
        """Return the first ``n`` bytes of substream ``index``, without moving the main stream."""
        if not 0 <= index <= _MAX_SUBSTREAM:
            raise ValueError(f"a substream index lies in 0..2**64-2, got {index}")
        self._refuse_after_fork()
        return _take(_keystream(self._seed, (index + 1) << 64), n)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise RandomnessError(
            "a copy of a generator would draw the same noise and keys as this one: call spawn() for another one, or "
            "privstats.randomness.secure() in the process that draws"
        )

    def _refuse_after_fork(self) -> None:
        if os.getpid() != self._process:
            raise RandomnessError(
                "this generator was made before a fork, and every process would draw the same noise and keys from it; "
                "call privstats.randomness.secure() in the process that draws"
            )


def checked(rng: Generator | None, *, allow_reproducible: bool) -> Generator:
    """Return the given generator, or a fresh :func:`secure` one for None.

    Raises:
        DataError: another kind of generator, with predictable output.
        RandomnessError: a reproducible one, without ``allow_reproducible``.
    """
    if rng is None:
        return secure()
    if not isinstance(rng, Generator):
        kind = f"{type(rng).__module__}.{type(rng).__name__}".removeprefix("builtins.")
        raise DataError(
            f"rng must be a privstats.randomness.Generator or None, got {kind}; "
            "use privstats.randomness.seeded(...) in tests and None otherwise"
        )
    if rng.reproducible and not allow_reproducible:
        raise RandomnessError(
            "rng is reproducible, so anyone who knows its seed can remove the noise and the masks; leave rng out, or "
            "pass allow_reproducible=True in a test"
        )
    return rng


def bound_to(seed: bytes, label: bytes, *context: bytes) -> Generator:
    """Derive the stream of a stored seed for one use: equal for equal arguments, unrelated for different ones.

    The derivation is HMAC-SHA256, under the seed, of the label and of each part after its length. Stored noise is bound
    to the sum it hides: the same seed with another sum yields different noise. Every use needs its own ``label``.
    """
    parts = b"".join(len(part).to_bytes(8, "big") + part for part in (label, *context))
    return Generator(hmac.digest(seed, parts, "sha256"))


def secure() -> Generator:
    """Return a generator seeded by the operating system."""
    return Generator(os.urandom(SEED_BYTES))


def seeded(seed: int) -> Generator:
    """Return a REPRODUCIBLE generator, for tests and demos only: anyone who knows ``seed`` can remove the noise.

    The seed is hashed, so nearby seeds yield unrelated streams.
    """
    seed_bytes = hashlib.sha256(domains.REPRODUCIBLE % seed).digest()
    return Generator(seed_bytes, reproducible=True)


def uniform(size: int, rng: Generator) -> NDArray[np.float64]:
    """Return uniform doubles strictly between 0 and 1: for partitions and synthetic data, never for noise."""
    return ((rng.uint64(size) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def _keystream(seed: bytes, block: int) -> CipherContext:
    return Cipher(algorithms.AES(seed), modes.CTR(block.to_bytes(16, "big"))).encryptor()


def _take(stream: CipherContext, n: int) -> bytes:
    if n <= _TILE:
        return stream.update(_ZEROS[:n])
    return b"".join(stream.update(_ZEROS[: min(_TILE, n - start)]) for start in range(0, n, _TILE))
