"""Sum products of integer tensors exactly, without waiting for the device.

Most accelerators multiply 8-bit integers far faster than float64. With at most 13 grid bits an entry is x = 128 h + l,
with h and l in 8 bits, so

    X'X = 2^14 H'H + 2^7 (H'L + L'H) + L'L,

three products, summed in int32. Each is exact for up to 2^18 rows, since |h| and |l| are at most 64.

Some libraries computed wrong 8-bit products on some devices (pytorch/pytorch#106840). Each sum is therefore checked
with one vector v of ones and twos (Freivalds 1977): X'X v = X'(X v).

Sums by class are batched products of blocks. A block has records of one class, and is padded by rows of zeros. The
number of blocks and their size follow from the numbers of records and classes alone, so no label decides a shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from privstats.errors import PrivstatsError
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

# A product of integers in float64 with a known result, just below 2**53.
_KNOWN_ROWS, _KNOWN_COLUMNS, _KNOWN_ENTRY = (1 << 13) - 1, 512, (1 << 20) - 1

# Blocks of this many rows keep a product's cost above that of adding its result to a class's sum.
_BLOCK_ROWS = 512
_FEW_BLOCKS = 4  # blocks per class where classes are large, so that padding is at most a quarter
_BLOCK_BYTES = 1 << 28  # results of one batched product


def prefers_limbs(torch: ModuleType, device: _torch.device, grid_bits: int) -> bool:
    """Return whether products of limbs are exact on this grid and faster on this device."""
    if device.type != "cuda" or grid_bits > _FINEST or not hasattr(torch, "_int_mm"):
        return False
    capability = torch.cuda.get_device_capability(device)
    return bool(capability >= _EIGHT_BIT and capability not in _FAST_FLOAT64)


class Products:
    """Exact products of grid vectors on a device.

    Args:
        limbs: multiply 8-bit limbs; entries are then at most 2**13 in absolute value.

    Attributes:
        torch: the library.
        wrong: number of entries in which products of limbs failed their check, int64 ``()``, on the device. Pass it to
            :func:`require_right` before the sums are used.
    """

    def __init__(self, torch: ModuleType, device: _torch.device, *, limbs: bool) -> None:
        self.torch, self._device, self._limbs = torch, device, limbs
        self._weights: dict[int, Tensor] = {}
        self.wrong: Tensor = torch.zeros((), dtype=torch.int64, device=device)

    def gram(self, rows: Tensor) -> Tensor:
        """Sum x x' over rows, int64 ``(d, d)``.

        Args:
            rows: integers as float64 ``(n, d)``; squared norms sum to at most 2**53.
        """
        torch = self.torch
        if not self._limbs:
            return (rows.T @ rows).to(torch.int64)
        d = rows.shape[1]
        total: Tensor = torch.zeros((d, d), dtype=torch.int64, device=rows.device)
        for part in torch.split(rows, _ROWS):
            high, low = _limbs(torch, part)
            mixed = torch._int_mm(high, low.T)[:d, :d].to(torch.int64)
            result = torch._int_mm(high, high.T)[:d, :d].to(torch.int64) << 14
            result += (mixed + mixed.T) << 7
            result += torch._int_mm(low, low.T)[:d, :d]
            self._check(part, result)
            total += result
        return total

    def add_grams(self, total: Tensor, labels: Tensor, blocks: Tensor) -> None:
        """Add each block's sum of x x' to its class's.

        Args:
            total: int64 ``(C, d, d)``.
            labels: class of each block, ``(b,)``.
            blocks: integers as float64 ``(b, rows, d)``.
        """
        at_once = max(1, _BLOCK_BYTES // (8 * blocks.shape[2] ** 2))
        for some, part in zip(self.torch.split(labels, at_once), self.torch.split(blocks, at_once), strict=True):
            grams = [self.gram(block) for block in part] if self._limbs else None
            products = (part.mT @ part).to(self.torch.int64) if grams is None else self.torch.stack(grams)
            total.index_add_(0, some, products)

    def key_weights(self, entries: int) -> Tensor:
        """Return :func:`~privstats.moments.record_sums.key_weights` on the device, copied there once."""
        if entries not in self._weights:
            self._weights[entries] = self.torch.as_tensor(key_weights(entries).copy(), device=self._device)
        return self._weights[entries]

    def _check(self, rows: Tensor, gram: Tensor) -> None:
        """Count where (X'X) v differs from X'(X v), which float64 computes exactly for up to 2**16 columns."""
        # The vector is fixed, so this finds a device's faults, and not errors that an attacker builds around it.
        vector = 1 + (self.key_weights(rows.shape[1]) >> 40 & 1)
        expected = rows.T @ (rows @ vector.to(rows.dtype))
        self.wrong += ((gram * vector).sum(dim=1) != expected.to(gram.dtype)).sum()


def wrong_floats(torch: ModuleType, device: _torch.device, columns: int) -> Tensor:
    """Count the wrong entries of a float64 product whose result is known, int64 ``()``, on the device.

    Entries are the largest of any grid, 2**20 - 1. Each result is odd and takes all 53 bits, so it is wrong where
    float64 is emulated with fewer bits, or where float32 or TF32 multiplies or adds.

    Args:
        columns: of the records; the product has at most 512, since a library may choose another kernel for small ones.
    """
    rows = torch.full((_KNOWN_ROWS, min(columns, _KNOWN_COLUMNS)), _KNOWN_ENTRY, dtype=torch.float64, device=device)
    wrong: Tensor = (rows.T @ rows != float(_KNOWN_ROWS * _KNOWN_ENTRY**2)).sum()
    return wrong


def require_right(wrong: int) -> None:
    """Raise if a product of limbs failed its check, or :func:`wrong_floats` counted any."""
    if wrong:
        raise PrivstatsError(
            "this device gave a wrong product of integers, so nothing was measured; where the environment has cuBLAS "
            "emulate float64, switch that off, or measure on the host, with X.cpu(), and report the device and "
            "torch's version"
        )


def in_blocks(torch: ModuleType, labels: Tensor, classes: int, *arrays: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Return each block's class ``(b,)``, and arrays ``(n, columns)`` as blocks ``(b, rows, columns)``.

    A class of n_c records fills ceil(n_c / rows) blocks, so all classes fill at most n // rows + C = b. Surplus blocks
    are zeros, and count as the last class's.

    Args:
        labels: int64 ``(n,)`` in 0..C-1, n at least 1.
    """
    n = len(labels)
    if classes == 1:
        return labels[:1], [each[None] for each in arrays]
    rows = block_rows(n, classes)
    blocks = n // rows + classes
    records = torch.zeros(classes, dtype=torch.int64, device=labels.device)
    records.index_add_(0, labels, torch.ones_like(labels))
    own = (records + (rows - 1)) // rows
    ends = own.cumsum(0)
    # Records in order of class move from the class's first record to its first block's first row.
    shift = rows * (ends - own) - (records.cumsum(0) - records)
    order = torch.argsort(labels, stable=True)
    places = torch.arange(n, device=labels.device) + shift[labels[order]]
    placed = []
    for each in arrays:
        padded = each.new_zeros(blocks * rows, each.shape[1])
        padded.index_copy_(0, places, each[order])
        placed.append(padded.view(blocks, rows, -1))
    of_blocks = torch.searchsorted(ends, torch.arange(blocks, device=labels.device), right=True)
    return of_blocks.clamp(max=classes - 1), placed


def block_rows(records: int, classes: int) -> int:
    """Return the rows of a block: a class's mean number of records, or a fraction of it where classes are large."""
    return max(-(-records // (_FEW_BLOCKS * classes)), min(_BLOCK_ROWS, -(-records // classes)))


def _limbs(torch: ModuleType, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return h and l of ``x = 128 h + l`` as zero-padded int8 ``(columns, rows)``."""
    n, d = rows.shape
    size = max(_MIN_ROWS, -(-d // _EIGHT) * _EIGHT), max(_EIGHT, -(-n // _EIGHT) * _EIGHT)
    limbs = torch.zeros(size, dtype=torch.float32, device=rows.device)
    limbs[:d, :n] = rows.T  # float32 holds them exactly
    high = torch.round(limbs / 128)
    return high.to(torch.int8), (limbs - 128 * high).to(torch.int8)
