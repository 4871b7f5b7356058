"""Copy sums from a device once: of a symmetric array its lower triangle, in strips.

A strip has the entries of some rows from the first column to the diagonal's block, so d columns need at most
d (d + 64) / 2 entries.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from types import ModuleType

    from torch import Tensor

_SIDE = 64  # rows of a strip, whose corner of the upper triangle stays in the cache
# Pinned memory stays with the process, so larger sums are copied to plain memory.
_PINNED_BYTES = 1 << 30


def copied(torch: ModuleType, totals: Mapping[str, Tensor], symmetric: frozenset[str]) -> dict[str, NDArray[np.int64]]:
    """Return int64 arrays on the host, copied from the device at once.

    Args:
        totals: int64 tensors of one device.
        symmetric: names of those that equal their transpose over the last two axes.
    """
    packed = [part for name, total in totals.items() for part in _parts(total, symmetric=name in symmetric)]
    size = sum(part.numel() for part in packed)
    flat = torch.empty(size, dtype=torch.int64, device=packed[0].device)
    for part, place in zip(packed, flat.split([part.numel() for part in packed]), strict=True):
        place.view(part.shape).copy_(part)
    pinned = flat.is_cuda and flat.nbytes <= _PINNED_BYTES
    host = torch.empty(size, dtype=torch.int64, device="cpu", pin_memory=pinned).copy_(flat).numpy()
    result, start = {}, 0
    for name, total in totals.items():
        result[name], start = _restored(host, start, tuple(total.shape), symmetric=name in symmetric)
    return result


def _parts(total: Tensor, *, symmetric: bool) -> list[Tensor]:
    return [total[..., start:end, :end] for start, end in _strips(total.shape[-1])] if symmetric else [total]


def _strips(columns: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + _SIDE, columns)) for start in range(0, columns, _SIDE))


def _restored(
    flat: NDArray[np.int64], start: int, shape: tuple[int, ...], *, symmetric: bool
) -> tuple[NDArray[np.int64], int]:
    """Return an array of this shape from its parts in ``flat`` at ``start``, and the index behind them."""
    result = np.empty(shape, np.int64)
    if not symmetric:
        end = start + result.size
        result[...] = flat[start:end].reshape(shape)
        return result, end
    for first, last in _strips(shape[-1]):
        part = (*shape[:-2], last - first, last)
        end = start + math.prod(part)
        strip = flat[start:end].reshape(part)
        result[..., first:last, :last] = strip
        result[..., :first, first:last] = strip[..., :first].swapaxes(-1, -2)
        start = end
    return result, start
