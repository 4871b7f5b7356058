"""Count what sums on a device request of it, without a device: tensors in host memory pass for tensors there.

Counted are operations of torch, which on a device are at least one kernel each, and every read of a tensor's values,
for which the host would wait. A wait that is no operation of torch, such as a full queue of kernels, is not counted.
Work is counted as multiplications of matrix products, and as bytes of the tensors that operations read and write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import privstats as ps
from privstats.intake.arrays import is_tensor
from privstats.moments import exact_moments
from privstats.records import input_validation
from privstats.records.row_cache import RowCache

# Operations whose result has a shape, or a value on the host, that the device's values decide.
_WAITING = {
    "_local_scalar_dense",
    "_unique2",
    "bincount",
    "equal",
    "is_nonzero",
    "item",
    "masked_select",
    "nonzero",
    "repeat_interleave",
    "unique_consecutive",
    "unique_dim",
}
_ALLOCATING = ("empty", "new_empty", "_unsafe_view")
_INDEXING = {"index", "index_put", "index_put_"}
_PRODUCTS = {"bmm", "dot", "matmul", "mm", "mv"}
_BOOLEANS = (torch.bool, torch.uint8)
# Functions of torch that copy a tensor's values to the host, which no operation shows where the device is the host.
_READING = {"numpy", "tolist"}
_SCALARS = {"_local_scalar_dense", "item"}  # the second in torch's inference mode
_LOADING = {"as_tensor", "from_numpy", "tensor"}


@dataclass
class Requests:
    """What a device was requested to do.

    Attributes:
        waits: reads of values by the host, by the function or operation that reads.
        launches: operations other than views and allocations, by name.
        bytes_read: bytes of the values that were read.
        loads: arrays of the host that became tensors.
        multiplied: multiplications of matrix products.
        touched: bytes of the operations' arguments and results, which grow with the number of clipped rows.
    """

    waits: Counter[str] = field(default_factory=Counter)
    launches: Counter[str] = field(default_factory=Counter)
    bytes_read: int = 0
    loads: int = 0
    multiplied: int = 0
    touched: int = field(default=0, compare=False)


@contextmanager
def requests() -> Iterator[Requests]:
    """Count the requests within the block."""
    found = Requests()
    with _Functions(found), _Operations(found):
        yield found


class _Functions(TorchFunctionMode):
    def __init__(self, found: Requests) -> None:
        super().__init__()
        self._found = found

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in _READING:
            self._found.waits[name] += 1
            self._found.bytes_read += args[0].nbytes
        self._found.loads += name in _LOADING and isinstance(args[0], np.ndarray)
        return func(*args, **(kwargs or {}))


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, found: Requests) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._found = found

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name.removeprefix("aten::")
        masked = name in _INDEXING and any(each is not None and each.dtype in _BOOLEANS for each in args[1])
        if name in _WAITING or masked:
            self._found.waits[name] += 1
        if name in _SCALARS:
            self._found.bytes_read += args[0].nbytes
        result = func(*args, **(kwargs or {}))
        if name not in _SCALARS and not (_is_view(func) or name.startswith(_ALLOCATING)):
            self._found.launches[name] += 1
            self._found.touched += sum(each.nbytes for each in tree_leaves((args, result)) if is_tensor(each))
        if name in _PRODUCTS:
            self._found.multiplied += result.numel() * args[0].shape[-1]
        return result


def _is_view(func: Any) -> bool:
    aliases = [each.alias_info for each in func._schema.returns]
    return any(each is not None and not each.is_write for each in aliases)


def of_batches(schema: Any, rows: torch.Tensor, targets: torch.Tensor, batches: int, **given: Any) -> Requests:
    """Return the requests of measuring ``rows`` in equal batches as a device's tensors.

    Args:
        given: further arguments of ``privstats.measure``.
    """
    pairs = list(zip(rows.chunk(batches), targets.chunk(batches), strict=True))
    with patch.object(input_validation, "on_device", is_tensor), requests() as found:
        ps.measure(schema, pairs, **given)
    return found


def of_rounds(schema: Any, rows: torch.Tensor, targets: torch.Tensor, count: int, **given: Any) -> list[Requests]:
    """Return the requests of each of ``count`` rounds over a device's tensors, whose mapped rows are cached.

    Args:
        given: further arguments of ``privstats.measure``.
    """
    cache, rounds = RowCache(), []
    for _ in range(count):
        with patch.object(input_validation, "on_device", is_tensor), requests() as found:
            exact_moments(schema, rows, targets, cache=cache, **given)
        rounds.append(found)
    return rounds
