"""Second moments of whole-numbered tensors: by float64 products, or by products of 8-bit limbs where those are faster.

Most accelerators multiply float64 numbers thirty to sixty times slower than float32, and 8-bit whole numbers faster
than either. A grid entry is x = 128 h + l with h and l in 8 bits, so

    X'X = 2^14 H'H + 2^7 (H'L + L'H) + L'L,

three products, summed in int32. Each is exact for up to 2^18 rows, since |h| and |l| are at most 64.

Libraries have had releases whose 8-bit products were wrong for some shapes and devices (pytorch/pytorch#106840). So
each sum is held against the rows by one vector v of ones and twos, for two float64 products of a matrix with a vector
(Freivalds 1977): X'X v = X'(X v).
"""

from __future__ import annotations

from typing import Any

from privstats.errors import PrivstatsError
from privstats.moments.record_sums import key_weights

_FINEST = 13  # grid_bits: up to here |h| <= 64
_ROWS = 1 << 18  # whose products of two limbs stay below 2^30
_FAST_FLOAT64 = {(6, 0), (7, 0), (8, 0), (9, 0), (10, 0)}  # P100, V100, A100, H100 and H200, B200: half of float32
_EIGHT_BIT = (7, 5)  # the first capability with products of 8-bit matrices
_EIGHT, _LEAST = 8, 24  # sizes that these products take: multiples of 8, and more than 16 rows


def prefers_limbs(torch: Any, device: Any, grid_bits: int) -> bool:
    """Whether products of limbs are exact on this grid and faster on this device.

    Args:
        torch: the module.
        device: where the rows are.
        grid_bits: entries are at most 2**grid_bits.

    Example:
        >>> import torch
        >>> from privstats.moments.device_gram import prefers_limbs
        >>> prefers_limbs(torch, torch.device("cpu"), grid_bits=12)
        False
    """
    if device.type != "cuda" or grid_bits > _FINEST or not hasattr(torch, "_int_mm"):
        return False
    capability = torch.cuda.get_device_capability(device)
    return bool(capability >= _EIGHT_BIT and capability not in _FAST_FLOAT64)


def gram(torch: Any, rows: Any, *, limbs: bool) -> Any:
    """Sum of x x' over rows, int64 ``(d, d)``, exact.

    Args:
        torch: the module.
        rows: whole-numbered float64 ``(n, d)``, whose squared norms sum to 2**53 at most; for limbs, entries of at
            most 2**13.
        limbs: whether by products of 8-bit numbers.

    Raises:
        PrivstatsError: the device's products of 8-bit numbers are wrong.

    Example:
        >>> import torch
        >>> from privstats.moments.device_gram import gram
        >>> rows = torch.tensor([[1000.0, -3.0], [0.0, 200.0]], dtype=torch.float64)
        >>> gram(torch, rows, limbs=True).tolist() == gram(torch, rows, limbs=False).tolist()
        True
    """
    if not limbs:
        return (rows.T @ rows).to(torch.int64)
    d = rows.shape[1]
    total = torch.zeros((d, d), dtype=torch.int64, device=rows.device)
    for part in rows.split(_ROWS):
        high, low = _limbs(torch, part)
        mixed = torch._int_mm(high, low.T)[:d, :d].to(torch.int64)
        result = torch._int_mm(high, high.T)[:d, :d].to(torch.int64) << 14
        result += (mixed + mixed.T) << 7
        result += torch._int_mm(low, low.T)[:d, :d]
        _require_right(torch, part, result)
        total += result
    return total


def _require_right(torch: Any, rows: Any, gram: Any) -> None:
    """Raise where X'X v is not X'(X v); its entries are below 2**45 sqrt(d), exact in float64 up to 2**16 columns."""
    vector = torch.from_numpy(1 + (key_weights(rows.shape[1]) >> 40 & 1)).to(rows.device)
    expected = rows.T @ (rows @ vector.to(torch.float64))
    if not torch.equal((gram * vector).sum(dim=1), expected.to(torch.int64)):
        raise PrivstatsError(
            "this device gave a wrong product of 8-bit numbers, so nothing was measured; measure on the host, with "
            "X.cpu(), and report the device and torch's version"
        )


def _limbs(torch: Any, rows: Any) -> tuple[Any, Any]:
    """h and l of ``x = 128 h + l``, int8, turned to ``(columns, rows)`` and filled up with zeros as products ask."""
    n, d = rows.shape
    size = max(_LEAST, -(-d // _EIGHT) * _EIGHT), max(_EIGHT, -(-n // _EIGHT) * _EIGHT)
    limbs = torch.zeros(size, dtype=torch.float32, device=rows.device)
    limbs[:d, :n] = rows.T  # float32 holds them exactly
    high = torch.round(limbs / 128)
    return high.to(torch.int8), (limbs - 128 * high).to(torch.int8)
