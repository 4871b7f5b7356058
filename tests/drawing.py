"""Noise that a test draws, named after the test: the same in every run, so that none fails once in a thousand.

Loaded by ``conftest``, for the profiles ``dev`` and ``ci``; ``nightly`` draws anew, as every release does. Keys and
names of runs come from the operating system as ever, and so does what another process draws.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from types import SimpleNamespace

from privstats import randomness

_names = [""]
_draws: dict[str, count[int]] = {}


def _drawn(size: int) -> bytes:
    """The next bytes of whoever draws."""
    number = next(_draws.setdefault(_names[-1], count()))
    return hashlib.shake_256(f"{_names[-1]} {number}".encode()).digest(size)


@contextmanager
def named(name: str) -> Iterator[None]:
    """What ``randomness.secure`` is seeded with inside follows from ``name`` and the number of the call."""
    real, _draws[name] = randomness.os, count()
    _names.append(name)
    randomness.os = SimpleNamespace(urandom=_drawn, getpid=lambda: os.getpid())
    try:
        yield
    finally:
        randomness.os = real
        _names.pop()
