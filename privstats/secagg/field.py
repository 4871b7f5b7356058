"""Arithmetic in GF(2^8) with the AES polynomial x^8 + x^4 + x^3 + x + 1, as numpy tables.

Not constant-time: a look-up's address depends on the secret, so an attacker who shares the processor's cache is outside
the promise. Under Shamir sharing; knows nothing of secrets or parties.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["EXP", "LOG", "MUL", "Bytes"]

Bytes = NDArray[np.uint8]

_POLYNOMIAL = 0x11B


def _powers_of_three() -> tuple[Bytes, NDArray[np.int64]]:
    """``EXP[i] = 3**i`` (3 generates the group) for i < 255, and its inverse ``LOG``; ``LOG[0]`` is never read."""
    exp = np.zeros(255, np.uint8)
    log = np.zeros(256, np.int64)
    element = 1
    for power in range(255):
        exp[power], log[element] = element, power
        doubled = element << 1
        element ^= doubled ^ (_POLYNOMIAL if doubled & 0x100 else 0)
    return exp, log


def _products() -> Bytes:
    table = np.zeros((256, 256), np.uint8)
    table[1:, 1:] = EXP[(LOG[1:, None] + LOG[None, 1:]) % 255]
    return table


EXP, LOG = _powers_of_three()
MUL = _products()
for _table in (EXP, LOG, MUL):
    _table.setflags(write=False)
