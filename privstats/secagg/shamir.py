"""Shamir secret sharing over GF(2^8), byte by byte, for whole neighbourhoods at once.

Holds up to 255 holders, because 0 is where the secret lies. It does not check that shares are honest: the commitments
in the share message do. Between the field and the two protocol machines.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privstats.secagg.field import EXP, LOG, MUL, Bytes

__all__ = ["MAX_HOLDERS", "combine", "interpolate", "split"]

MAX_HOLDERS = 255


def split(secret: bytes, coefficients: bytes, *, threshold: int, holders: int) -> Bytes:
    """Shares of ``secret`` for the holders at x = 1 .. ``holders``, shape ``(holders, len(secret))``.

    Any ``threshold`` shares give the secret back; fewer are independent of it if ``coefficients`` are uniform.

    Args:
        secret: the bytes to share.
        coefficients: ``(threshold - 1) * len(secret)`` uniformly random bytes, used once.
        threshold: shares needed, at least 1.
        holders: shares made, at most 255.

    Raises:
        ValueError: more than 255 holders, no threshold, or the wrong amount of randomness.

    Source: Shamir 1979, evaluated by Horner's rule for all holders and bytes together.
    """
    width = len(secret)
    if not 1 <= holders <= MAX_HOLDERS or threshold < 1:
        raise ValueError(f"sharing needs 1 to {MAX_HOLDERS} holders and a threshold of at least 1")
    if len(coefficients) != (threshold - 1) * width:
        raise ValueError(f"sharing needs {(threshold - 1) * width} random bytes, got {len(coefficients)}")
    rows = 256 * np.arange(1, holders + 1, dtype=np.intp)[:, None]  # where multiplication by each holder's x begins
    products = MUL.ravel()
    polynomial = np.frombuffer(coefficients, np.uint8).reshape(threshold - 1, width)
    shares = np.zeros((holders, width), np.uint8)
    for coefficient in polynomial:
        shares = products[rows + (shares ^ coefficient)]
    return shares ^ np.frombuffer(secret, np.uint8)


def interpolate(xs: Bytes, shares: Bytes, at: int) -> Bytes:
    """The value at ``at`` of the polynomials through ``(xs, shares)``.

    Args:
        xs: distinct points, shape ``(..., t)``; none may equal ``at``.
        shares: values there, shape ``(..., t, width)``.
        at: where to evaluate, 0 to 255.

    Returns:
        shape ``(..., width)``.

    Source: Lagrange; products of differences become sums of logarithms.
    """
    points = np.asarray(xs, np.int64)
    to_target = LOG[points ^ at]
    between = LOG[points[..., :, None] ^ points[..., None, :]] * ~np.eye(points.shape[-1], dtype=bool)
    exponent: NDArray[np.int64] = to_target.sum(-1, keepdims=True) - to_target - between.sum(-1)
    weights = EXP[exponent % 255]
    result: Bytes = np.bitwise_xor.reduce(MUL[weights[..., None], shares], axis=-2)
    return result


def combine(xs: Bytes, shares: Bytes) -> Bytes:
    """The secrets behind ``(..., t)`` points and ``(..., t, width)`` shares: the value at 0."""
    return interpolate(xs, shares, 0)
