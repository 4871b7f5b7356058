"""Put tensors on the grid, and sum their products exactly, with the host's bits.

Most accelerators multiply 8-bit integers far faster than float64. With at most 13 grid bits an entry is x = 128 h + l,
with h and l in 8 bits, so

    X'X = 2^14 H'H + 2^7 (H'L + L'H) + L'L,

three products, summed in int32. Each is exact for up to 2^18 rows, since |h| and |l| are at most 64.

Some libraries computed wrong 8-bit products on some devices (pytorch/pytorch#106840). Each sum is therefore checked
with one vector v of ones and twos (Freivalds 1977): X'X v = X'(X v).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from privstats.errors import PrivstatsError
from privstats.moments.grid import Grid
from privstats.moments.record_sums import key_weights

if TYPE_CHECKING:
    from types import ModuleType

    import torch as _torch
    from torch import Tensor

# Largest grid_bits for which |h| <= 64.
_FINEST = 13
_ROWS = 1 << 18  # products of two limbs add up to at most 2^30
_FAST_FLOAT64 = {(6, 0), (7, 0), (8, 0), (9, 0), (10, 0)}  # P100, V100, A100, H100, H200, B200: half of float32's speed
_EIGHT_BIT = (7, 5)  # the first capability with products of 8-bit matrices
# Sizes that these products need: multiples of 8, and more than 16 rows.
_EIGHT, _MIN_ROWS = 8, 24


def quantize_tensor(torch: ModuleType, grid: Grid, rows: Tensor) -> tuple[Tensor, Tensor, int]:
    """Return grid vectors of float64 ``rows``, their norms before the clip in grid steps, and the number clipped.

    The bits equal those of :meth:`privstats.moments.grid.Grid.quantize`.
    """
    require_finite(torch, grid, rows)
    out = torch.round((rows.clamp(min=0.0) if grid.nonnegative else rows) * grid.scale)
    squares = torch.linalg.vecdot(out, out)
    norms = squares.sqrt()
    outside = torch.nonzero(squares > float(grid.radius) ** 2)[:, 0]
    if not len(outside):
        return out, norms, 0
    out[outside], _, norms[outside] = grid.clip(rows[outside])
    return out, norms, grid.longer(norms[outside])


def require_finite(torch: ModuleType, grid: Grid, rows: Tensor) -> None:
    """Raise RecordError where an entry is NaN or infinite."""
    if not torch.isfinite(rows).all():
        raise grid.not_finite()


def prefers_limbs(torch: ModuleType, device: _torch.device, grid_bits: int) -> bool:
    """Return whether products of limbs are exact on this grid and faster on this device."""
    if device.type != "cuda" or grid_bits > _FINEST or not hasattr(torch, "_int_mm"):
        return False
    capability = torch.cuda.get_device_capability(device)
    return bool(capability >= _EIGHT_BIT and capability not in _FAST_FLOAT64)


def gram(torch: ModuleType, rows: Tensor, *, limbs: bool) -> Tensor:
    """Sum x x' over rows, int64 ``(d, d)``, exact.

    Args:
        rows: integers as float64 ``(n, d)``; squared norms sum to at most 2**53; for limbs, entries of at most 2**13.
    """
    if not limbs:
        return (rows.T @ rows).to(torch.int64)
    d = rows.shape[1]
    total: Tensor = torch.zeros((d, d), dtype=torch.int64, device=rows.device)
    for part in torch.split(rows, _ROWS):
        high, low = _limbs(torch, part)
        mixed = torch._int_mm(high, low.T)[:d, :d].to(torch.int64)
        result = torch._int_mm(high, high.T)[:d, :d].to(torch.int64) << 14
        result += (mixed + mixed.T) << 7
        result += torch._int_mm(low, low.T)[:d, :d]
        _require_right(torch, part, result)
        total += result
    return total


def _require_right(torch: ModuleType, rows: Tensor, gram: Tensor) -> None:
    """Raise where (X'X) v differs from X'(X v), which float64 computes exactly for up to 2**16 columns."""
    # The vector is fixed, so this finds a device's faults, and not errors that an attacker builds around it.
    vector = torch.from_numpy(1 + (key_weights(rows.shape[1]) >> 40 & 1)).to(rows.device)
    expected = rows.T @ (rows @ vector.to(torch.float64))
    if not torch.equal((gram * vector).sum(dim=1), expected.to(torch.int64)):
        raise PrivstatsError(
            "this device gave a wrong product of 8-bit numbers, so nothing was measured; measure on the host, with "
            "X.cpu(), and report the device and torch's version"
        )


def _limbs(torch: ModuleType, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return h and l of ``x = 128 h + l`` as zero-padded int8 ``(columns, rows)``."""
    n, d = rows.shape
    size = max(_MIN_ROWS, -(-d // _EIGHT) * _EIGHT), max(_EIGHT, -(-n // _EIGHT) * _EIGHT)
    limbs = torch.zeros(size, dtype=torch.float32, device=rows.device)
    limbs[:d, :n] = rows.T  # float32 holds them exactly
    high = torch.round(limbs / 128)
    return high.to(torch.int8), (limbs - 128 * high).to(torch.int8)
