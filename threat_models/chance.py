"""Draws for worlds and attacks, from the library's own generator, so that a seed reproduces every byte.

The samplers of ``privstats.dp`` draw noise; these do not.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privstats.randomness import Generator, secure, seeded, uniform


def named(seed: int | None, *names: object) -> Generator:
    """A generator for one purpose: reproducible with a seed, the operating system's without.

    The same seed and names give the same stream, independent of other draws and their order.
    """
    if seed is None:
        return secure()
    text = "\x1f".join(map(str, (seed, *names))).encode()
    return seeded(int.from_bytes(hashlib.sha256(text).digest()[:8], "big"))


def normal(size: int, rng: Generator) -> NDArray[np.float64]:
    """Standard normal doubles by inversion: for made-up records and starting points, never for privacy."""
    return np.asarray(ndtri(uniform(size, rng)), np.float64)


def permutation(size: int, rng: Generator) -> NDArray[np.int64]:
    """A random order of ``range(size)``."""
    return np.argsort(rng.uint64(size), kind="stable").astype(np.int64)


def integer_below(below: int, rng: Generator) -> int:
    """Return a uniform integer in ``range(below)``."""
    return int(rng.uint64(1)[0] % np.uint64(below))
