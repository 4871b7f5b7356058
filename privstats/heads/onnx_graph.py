"""Record an ONNX graph while row arithmetic runs on symbols."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Precision: TypeAlias = Literal["float64", "float32"]
Shape: TypeAlias = tuple[int | None, ...]

_LARGEST = np.iinfo(np.int64).max


@dataclass(eq=False)
class Graph:
    """Nodes and constants of a model, in order; ``precision`` is the type of all numbers."""

    onnx: ModuleType
    precision: Precision
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    @property
    def element(self) -> int:
        """ONNX's number for the precision."""
        return int(getattr(self.onnx.TensorProto, "DOUBLE" if self.precision == "float64" else "FLOAT"))

    def constant(self, value: Any, dtype: Any = None) -> str:
        """Add a constant, by default of the graph's precision, and return its name."""
        array = np.ascontiguousarray(np.asarray(value, dtype or self.precision))
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(array.reshape(np.shape(value)), name))
        return name

    def add(self, operation: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add an operation on these inputs and return its result's name."""
        name = output or f"value_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operation, list(inputs), [name], **attributes))
        return name


@dataclass(frozen=True, eq=False)
class Symbol:
    """An array of rows that records every operation.

    ``shape`` has None for the number of rows; ``truth`` marks boolean entries.
    """

    graph: Graph
    name: str
    shape: Shape
    truth: bool = False
    __array_ufunc__ = None  # so that numpy leaves its operators to this class

    @property
    def operations(self) -> _Operations:
        """Operations for ``transforms.exact``."""
        return _Operations(self.graph)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def numbers(self) -> Symbol:
        """Return booleans as 0 and 1, else the symbol itself."""
        if not self.truth:
            return self
        return self._node("Cast", self.shape, to=self.graph.element)

    def _node(self, operation: str, shape: Shape, *others: str, truth: bool = False, **attributes: Any) -> Symbol:
        return Symbol(self.graph, self.graph.add(operation, self.name, *others, **attributes), shape, truth)

    def _with(self, operation: str, other: Any, *, truth: bool = False, swapped: bool = False) -> Symbol:
        one, two = self.numbers(), self.symbol(other).numbers()
        left, right = (two, one) if swapped else (one, two)
        return left._node(operation, _broadcast(left.shape, right.shape), right.name, truth=truth)

    def symbol(self, value: Any) -> Symbol:
        """Convert a value to a symbol."""
        if isinstance(value, Symbol):
            return value
        return Symbol(self.graph, self.graph.constant(value), np.shape(value))

    def __add__(self, other: Any) -> Symbol:
        return self._with("Add", other)

    def __radd__(self, other: Any) -> Symbol:
        return self._with("Add", other, swapped=True)

    def __sub__(self, other: Any) -> Symbol:
        return self._with("Sub", other)

    def __rsub__(self, other: Any) -> Symbol:
        return self._with("Sub", other, swapped=True)

    def __mul__(self, other: Any) -> Symbol:
        return self._with("Mul", other)

    def __rmul__(self, other: Any) -> Symbol:
        return self._with("Mul", other, swapped=True)

    def __truediv__(self, other: Any) -> Symbol:
        return self._with("Div", other)

    def __rtruediv__(self, other: Any) -> Symbol:
        return self._with("Div", other, swapped=True)

    def __gt__(self, other: Any) -> Symbol:
        return self._with("Greater", other, truth=True)

    def __ge__(self, other: Any) -> Symbol:
        return self._with("GreaterOrEqual", other, truth=True)

    def __eq__(self, other: object) -> Symbol:  # type: ignore[override]  # as arrays have it
        return self._with("Equal", other, truth=True)

    __hash__ = None  # type: ignore[assignment]

    def __neg__(self) -> Symbol:
        return self._node("Neg", self.shape)

    def __abs__(self) -> Symbol:
        return self._node("Abs", self.shape)

    def __matmul__(self, other: Any) -> Symbol:
        right = self.symbol(other)
        return self._node("MatMul", (*self.shape[:-1], right.shape[-1]), right.name)

    def __getitem__(self, key: Any) -> Symbol:
        result, axis = self, 0
        for part in key if isinstance(key, tuple) else (key,):
            if isinstance(part, int):
                result = result._gathered(part, axis)
                continue
            result = result._unsqueezed(axis) if part is None else result._sliced(part, axis)
            axis += 1
        return result

    def _gathered(self, place: int, axis: int) -> Symbol:
        index = self.graph.constant(place, np.int64)
        return self._node("Gather", (*self.shape[:axis], *self.shape[axis + 1 :]), index, axis=axis)

    def _unsqueezed(self, axis: int) -> Symbol:
        axes = self.graph.constant([axis], np.int64)
        return self._node("Unsqueeze", (*self.shape[:axis], 1, *self.shape[axis:]), axes)

    def _sliced(self, part: slice, axis: int) -> Symbol:
        if part == slice(None):
            return self
        bounds = (part.start or 0, _LARGEST if part.stop is None else part.stop)
        size = self.shape[axis]
        length = None if size is None else len(range(size)[part])
        begin, end, axes = (self.graph.constant([each], np.int64) for each in (*bounds, axis))
        return self._node("Slice", (*self.shape[:axis], length, *self.shape[axis + 1 :]), begin, end, axes)

    def reshape(self, *shape: Any) -> Symbol:
        """Return the entries in another shape; -1 is the number of rows."""
        sizes = tuple(shape[0]) if isinstance(shape[0], tuple) else shape
        wanted = self.graph.constant(sizes, np.int64)
        return self._node("Reshape", tuple(None if size == -1 else size for size in sizes), wanted)

    def sum(self, axis: int) -> Symbol:
        """Return sums along an axis."""
        return self.reduced("ReduceSum", axis)

    def reduced(self, operation: str, axis: int) -> Symbol:
        """Reduce an axis to one number."""
        axes = self.graph.constant([axis], np.int64)
        return self._node(operation, (*self.shape[:axis], *self.shape[axis + 1 :]), axes, keepdims=0)

    def mapped(self, operation: str) -> Symbol:
        """Apply an operation entry by entry."""
        return self._node(operation, self.shape)

    def padded(self, value: float, columns: int) -> Symbol:
        """Append constant columns."""
        width = self.shape[1]
        pads, filled = self.graph.constant([0, 0, 0, columns], np.int64), self.graph.constant(value)
        return self._node("Pad", (self.shape[0], None if width is None else width + columns), pads, filled)

    def beside(self, other: Symbol) -> Symbol:
        """Append another symbol's columns."""
        widths = (self.shape[1], other.shape[1])
        width = None if None in widths else sum(size for size in widths if size is not None)
        return self._node("Concat", (self.shape[0], width), other.name, axis=1)

    def chosen(self, left: Any, right: Any) -> Symbol:
        """Choose left entries where this holds, else right ones."""
        one, two = self.symbol(left), self.symbol(right)
        shape = _broadcast(self.shape, _broadcast(one.shape, two.shape))
        return self._node("Where", shape, one.name, two.name)


@dataclass(frozen=True)
class _Operations:
    graph: Graph

    def rint(self, rows: Symbol) -> Symbol:
        return rows.mapped("Round")  # ties to even

    def row_max(self, rows: Symbol) -> Symbol:
        return abs(rows).reduced("ReduceMax", 1)

    def vecdot(self, left: Symbol, right: Symbol) -> Symbol:
        return (left * right).sum(1)

    integer_dots = vecdot

    def sqrt(self, values: Symbol) -> Symbol:
        return values.mapped("Sqrt")

    def log1p(self, values: Symbol) -> Symbol:
        return (values + 1.0).mapped("Log")

    def tanh(self, values: Symbol) -> Symbol:
        return values.mapped("Tanh")

    def where(self, condition: Symbol, left: Any, right: Any) -> Symbol:
        return condition.chosen(left, right)

    def relu(self, rows: Symbol) -> Symbol:
        return rows.mapped("Relu")

    def hstack(self, left: Symbol, right: Symbol) -> Symbol:
        return left.beside(right)

    def append(self, rows: Symbol, value: float, columns: int) -> Symbol:
        return rows.padded(value, columns)

    def some(self, mask: Symbol) -> bool:  # noqa: ARG002 - no entry is known yet
        return True

    def binary_exponent(self, values: Symbol) -> Symbol:
        """Compute the exponent by a logarithm; near a power of two it may be one off, which moves rounding by a bit."""
        least = 2.0 ** (-1074 if self.graph.precision == "float64" else -73)
        logs = self.where(values > least, values, least).mapped("Log") * (1 / math.log(2.0))
        return logs.mapped("Floor") + 1.0

    def power_of_two(self, exponents: Symbol) -> Symbol:
        return Symbol(self.graph, self.graph.add("Pow", self.graph.constant(2.0), exponents.name), exponents.shape)

    def like(self, constant: NDArray[Any], rows: Symbol) -> Symbol:
        return rows.symbol(constant)


def _broadcast(one: Shape, other: Shape) -> Shape:
    width = max(len(one), len(other))
    pairs = zip((1,) * (width - len(one)) + one, (1,) * (width - len(other)) + other, strict=True)
    return tuple(b if a == 1 else a if b == 1 else None if None in (a, b) else a for a, b in pairs)
