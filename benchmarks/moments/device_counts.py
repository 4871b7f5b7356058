"""Count what sums on a device request of it, without a device: tensors in host memory pass for tensors there.

Counted are operations of torch, which on a device are at least one kernel each, and every read of a tensor's values,
for which the host would wait. A wait that is no operation of torch, such as a full queue of kernels, is not counted.
Work is counted as multiplications of matrix products, and as bytes of the tensors that operations read and write.

    PYTHONPATH=CHECKOUT python benchmarks/moments/device_counts.py

prints all counts of an older checkout as JSON: this file imports nothing of the benchmarks.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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
from privstats.records.row_cache import RowCache
from privstats.schema.public_values import Published, Values

# Records of a batch, features, classes (0: targets in five folds) and statistics.
BATCHES = ((512, 512, 10, "NAB"), (512, 512, 100, "NAS"), (256, 128, 0, "Ghq"))
# Records of a batch, features and classes of a round: of a softmax; 0: of a ridge regression; None: of a logistic one.
ROUNDS = ((512, 512, 10), (512, 512, 1_000), (512, 512, 0), (512, 40, None))
_MANY = 9

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


@contextmanager
def _elsewhere() -> Iterator[None]:
    """Have tensors in host memory pass for tensors elsewhere, in every module that reads records."""
    with ExitStack() as patches:
        for name, module in list(sys.modules.items()):
            if name.startswith("privstats.records.") and hasattr(module, "on_device"):
                patches.enter_context(patch.object(module, "on_device", is_tensor))
        yield


def of_batches(schema: Any, rows: torch.Tensor, targets: torch.Tensor, batches: int, **given: Any) -> Requests:
    """Return the requests of measuring ``rows`` in equal batches as a device's tensors.

    Args:
        given: further arguments of ``privstats.measure``.
    """
    pairs = list(zip(rows.chunk(batches), targets.chunk(batches), strict=True))
    with _elsewhere(), requests() as found:
        ps.measure(schema, pairs, **given)
    return found


def of_rounds(schema: Any, rows: torch.Tensor, targets: torch.Tensor, count: int, **given: Any) -> list[Requests]:
    """Return the requests of each of ``count`` rounds over a device's tensors, whose mapped rows are cached.

    Args:
        given: further arguments of ``privstats.measure``.
    """
    cache, rounds = RowCache(), []
    for _ in range(count):
        with _elsewhere(), requests() as found:
            exact_moments(schema, rows, targets, cache=cache, **given)
        rounds.append(found)
    return rounds


def batch_row(n: int, d: int, classes: int, statistics: str) -> dict[str, Any]:
    """Count what one more batch requests, and what one tile and the end request."""
    X = torch.as_tensor(np.random.default_rng(0).standard_normal((_MANY * n, d)))
    if classes:
        schema: Any = ps.ClassSchema(classes, d, statistics, clip_norm=float(d**0.5))
        y = torch.arange(len(X)) % classes
    else:
        schema, y = ps.RidgeSchema(d, clip_norm=float(d**0.5), target_bound=4.0, folds=5), X[:, 0]
    one, many = of_batches(schema, X[:n], y[:n], 1), of_batches(schema, X, y, _MANY)
    return {
        "rows of a batch": n,
        "features": d,
        "classes": classes or None,
        "statistics": statistics,
        "waits per batch": (many.waits.total() - one.waits.total()) / (_MANY - 1),
        "waits per batch, others left out": _waits_left_out(schema, X, y, n),
        "launches per batch": (many.launches.total() - one.launches.total()) / (_MANY - 1),
        "waits of a tile and the end": one.waits.total(),
        "launches of a tile and the end": one.launches.total(),
        "bytes copied to the host": one.bytes_read,
        "bytes of the sums": sum(
            each.nbytes for each in ps.measure(schema, X[:1].numpy(), y[:1].numpy()).wire().values()
        ),
        "torch": torch.__version__,
    }


def _waits_left_out(schema: Any, X: torch.Tensor, y: torch.Tensor, n: int) -> float:
    one, many = (
        of_batches(schema, X[: count * n], y[: count * n], count, unreadable="leave out") for count in (1, _MANY)
    )
    return (many.waits.total() - one.waits.total()) / (_MANY - 1)


def round_row(n: int, d: int, classes: int | None) -> dict[str, Any]:
    """Count what one more batch requests in a round's session, what one tile and the end request, and a record's work.

    Work is of nine batches as one tensor: of a round alone, then of the first and a later round of a course.
    """
    schema = _round(d, classes, _MANY * n)
    rng = np.random.default_rng(0)
    values = {name: Values.rounded(np.abs(rng.standard_normal(shape))) for name, shape in schema.needs.items()}
    X = torch.as_tensor(rng.standard_normal((_MANY * n, d)), dtype=torch.float32)
    y = X[:, 0] if classes == 0 else torch.arange(len(X)) % (classes or 2)
    published = Published.of(values)
    one, many = (of_batches(schema, X[: count * n], y[: count * n], count, published=published) for count in (1, _MANY))
    return {
        "records of a batch": n,
        "features": d,
        "classes": classes,
        "round": schema.task,
        "waits per batch": (many.waits.total() - one.waits.total()) / (_MANY - 1),
        "launches per batch": (many.launches.total() - one.launches.total()) / (_MANY - 1),
        "waits of a tile and the end": one.waits.total(),
        "launches of a tile and the end": one.launches.total(),
        "bytes copied to the host": many.bytes_read,
        "bytes of the sums": sum(8 * math.prod(row.shape(schema.sizes)) for row in schema.sent),
        "bytes of the records": X.nbytes + y.nbytes,
        "arrays of the host that are copied": one.loads,
        "torch": torch.__version__,
        **_work(schema, X, y, n, published),
    }


def _work(schema: Any, X: torch.Tensor, y: torch.Tensor, n: int, published: Published) -> dict[str, Any]:
    """Count what one more record costs in a first and in a later round, beside the two products that none avoids."""
    few, many = (of_rounds(schema, X[:count], y[:count], 2, published=published) for count in (n, len(X)))
    row: dict[str, Any] = {
        "waits of a later round": many[1].waits.total(),
        "multiplications of the two products": 2 * math.prod(schema.sizes.values()) if "M" in schema.needs else None,
    }
    for which, less, more in zip(("first", "later"), few, many, strict=True):
        row[f"multiplications, {which} round"] = (more.multiplied - less.multiplied) / (len(X) - n)
        row[f"bytes, {which} round"] = (more.touched - less.touched) / (len(X) - n)
    return row


def _round(d: int, classes: int | None, records: int) -> Any:
    if classes is None:
        return ps.ScoreSchema(d, clip_norm=float(d**0.5))
    course: Any = {"expected_records": records, "course_mu": 1.0}
    if classes == 0:
        return ps.GradientSchema(d, residual_norm=1.0, clip_norm=float(d**0.5), target_bound=4.0, **course)
    return ps.GradientSchema(d, classes, residual_norm=0.5, transform=(ps.transforms.UnitNorm(),), **course)


if __name__ == "__main__":
    print(
        json.dumps({"batches": [batch_row(*each) for each in BATCHES], "rounds": [round_row(*each) for each in ROUNDS]})
    )
