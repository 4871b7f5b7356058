"""Whatever another package's map returns, a record moves the sums within its bound; what is no row is refused."""

import warnings
from asyncio import CancelledError
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import privstats as ps
from privstats.errors import PlanError, RecordError, SchemaError, UnreadableRecordsWarning
from privstats.moments.grid import Grid
from privstats.moments.tensor_grid import RoundedRows
from privstats.transforms import Cells, Transform
from privstats.transforms.base import rows_to_sum

ROWS = np.array([[30.0, 1.0, 2.0], [0.1, 0.2, 0.3], [-40.0, 5.0, 6.0]])


@dataclass(frozen=True)
class Misshapen(Transform):
    """A map that states as many columns as it takes, and returns something else."""

    kind: ClassVar[str] = "misshapen-for-a-test"
    what: str = "one column"

    def apply(self, rows: Any) -> Any:
        made = {
            "one column": lambda: rows[:, :1],
            "one row": lambda: rows[:1],
            "a vector": lambda: rows[:, 0],
            "two rows each": lambda: rows.repeat(2, *([1] if isinstance(rows, torch.Tensor) else [0])),
            "lists": rows.tolist,
        }
        return made[self.what]()

    def outputs(self, inputs: int | None) -> int | None:
        return inputs


@dataclass(frozen=True)
class LongCells(Cells):
    """Declared columns whose cells have entries of full length each, so that a row is longer than 1."""

    kind: ClassVar[str] = "long-cells-for-a-test"

    @cached_property
    def tables(self) -> Any:
        return tuple(np.where(table == 0, 0, 2**self.bits) for table in super().tables)


SCHEMAS: dict[str, Callable[..., Any]] = {
    "classes": lambda maps: ps.ClassSchema(2, 3, "NAB", clip_norm=1.0, transform=maps),
    "ridge": lambda maps: ps.RidgeSchema(3, clip_norm=1.0, target_bound=1.0, transform=maps),
    "mean": lambda maps: ps.MeanSchema(3, clip_norm=1.0, transform=maps),
}
HOW: dict[str, Callable[[Any], Any]] = {"array": np.asarray, "float32": lambda X: X.astype(np.float32), "lists": list}


@pytest.mark.parametrize("unreadable", ["refuse", "leave out"])
@pytest.mark.parametrize("how", [*HOW, "tensor"])
@pytest.mark.parametrize("what", ["one column", "a vector", "lists"])
@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_map_that_returns_no_row_for_a_record_is_refused(kind: str, what: str, how: str, unreadable: str) -> None:
    X = torch.tensor(ROWS) if how == "tensor" else HOW[how](ROWS)
    with pytest.raises(
        SchemaError, match=r"Misshapen\.apply returned no array of 3 columns with a row for each record"
    ):
        ps.measure(SCHEMAS[kind]((Misshapen(what),)), X, [0, 1, 0], unreadable=unreadable)


@dataclass(frozen=True)
class Fails(Transform):
    """A map that fails at a record whose first entry is below 0, in one of these ways."""

    kind: ClassVar[str] = "fails-for-a-test"
    how: str = "raises"

    def apply(self, rows: Any) -> Any:
        fine = rows[:, 0] >= 0
        if fine.all():
            return 2.0 * rows
        match self.how:
            case "raises":
                raise ValueError(f"math domain error at {rows.tolist()}")
            case "exits":
                raise SystemExit(3)
            case "is cancelled":
                raise CancelledError
            case "is complex":
                return rows * 2j
        return rows[fine]

    def outputs(self, inputs: int | None) -> int | None:
        return inputs


FAILS = ["raises", "exits", "is cancelled", "is complex", "drops the row"]


@pytest.mark.parametrize("how", FAILS)
@pytest.mark.parametrize("container", [*HOW, "tensor"])
@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_record_at_which_a_map_fails_is_excluded_alone(kind: str, how: str, container: str) -> None:
    schema = SCHEMAS[kind]((Fails(how),))
    X, y = (torch.tensor(ROWS) if container == "tensor" else HOW[container](ROWS)), np.array([0, 1, 0])
    with pytest.warns(UnreadableRecordsWarning, match="1 of the records cannot be read"):
        sums = ps.measure(schema, X, y, unreadable="leave out")
    assert sums == ps.measure(schema, ROWS[:2], y[:2])
    with pytest.raises(RecordError) as refused:
        ps.measure(schema, X, y)
    assert "-40" not in str(refused.value)


@pytest.mark.parametrize("what", ["one row", "two rows each"])
def test_a_map_of_another_number_of_rows_is_asked_for_each_row(what: str) -> None:
    schema = ps.MeanSchema(3, clip_norm=1.0, transform=(Misshapen(what),))
    with warnings.catch_warnings(action="ignore"):
        sums = ps.measure(schema, ROWS, np.zeros(3), unreadable="leave out")
    assert sums.records == {"one row": 3, "two rows each": 0}[what]


def test_a_map_reaches_neither_the_rows_that_it_reads_nor_those_that_it_returned() -> None:
    @dataclass(frozen=True)
    class Reuses(Transform):
        kind: ClassVar[str] = "reuses-for-a-test"
        own: ClassVar[Any] = np.zeros((1, 3))

        def apply(self, rows: Any) -> Any:
            self.own[:] = rows
            rows[:] = 7.0
            return self.own

        def outputs(self, inputs: int | None) -> int | None:
            return inputs

    first, second = ROWS[:1].copy(), ROWS[1:2].copy()
    mapped = rows_to_sum((Reuses(),), first)
    rows_to_sum((Reuses(),), second)
    assert (mapped == ROWS[:1]).all()
    assert (first == ROWS[:1]).all()


@pytest.mark.parametrize("stated", [None, 0, 3.0])
def test_a_map_states_an_integer_number_of_columns(stated: Any) -> None:
    map_ = type("Open", (Misshapen,), {"outputs": lambda *_: stated, "apply": lambda _, rows: rows[:, :1]})()
    with pytest.raises(SchemaError, match=r"Open\.(outputs must be an integer|apply returned no array of 0 columns)"):
        rows_to_sum((map_,), ROWS)


@pytest.mark.parametrize("columns", [1, 2, 4])
def test_rows_of_another_width_are_not_repeated_over_the_columns(columns: int) -> None:
    grid = Grid("X", 3, 16, 1.0)
    for put in (
        lambda: grid.quantize(np.ones((2, columns)), np.empty((2, 3))),
        lambda: RoundedRows.of(torch, grid, torch.ones((2, columns), dtype=torch.float64)),
    ):
        with pytest.raises(SchemaError, match=rf"X has rows of shape \({columns},\), and 3 are summed"):
            put()


class Fitted(Transform):
    """The habit of other libraries: no field, and a state that a fit stores."""

    kind = "fitted-for-a-test"

    def fit(self, X: Any) -> Any:
        self.mean = X.mean(axis=0)
        return self

    def apply(self, rows: Any) -> Any:
        return rows - getattr(self, "mean", 0.0)

    def outputs(self, inputs: int | None) -> int | None:
        return inputs


@dataclass(frozen=True)
class Derived(Transform):
    """Fields that no plan has: one is no argument, and == omits the other."""

    kind: ClassVar[str] = "derived-for-a-test"
    apart: float = field(default=0.0, compare=False)
    mean: float = field(default=0.0, init=False)

    def apply(self, rows: Any) -> Any:
        return rows - self.apart - self.mean

    def outputs(self, inputs: int | None) -> int | None:
        return inputs


@pytest.mark.parametrize(("map_", "held"), [(Fitted().fit(ROWS), "mean"), (Derived(), "apart, mean")])
def test_a_map_that_holds_more_than_its_fields_has_no_plan_and_is_not_measured(map_: Any, held: str) -> None:
    schema = ps.MeanSchema(3, clip_norm=1.0, transform=(map_,))
    with pytest.raises(PlanError, match=f"{type(map_).__name__} holds {held}, which no plan states"):
        ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 9), privacy=ps.NoPrivacy())
    with pytest.raises(SchemaError, match=f"{type(map_).__name__} holds {held}, which no plan states"):
        ps.measure(schema, ROWS)


def test_a_map_that_is_fitted_after_its_plan_is_not_measured() -> None:
    map_ = Fitted()
    plan = ps.Plan(
        schema=ps.MeanSchema(3, clip_norm=1.0, transform=(map_,)), cohort=ps.Cohort(2, 2, 9), privacy=ps.NoPrivacy()
    )
    assert ps.measure(plan.schema, ROWS, np.zeros(3)).records == 3
    map_.fit(ROWS)
    with pytest.raises(SchemaError, match="Fitted holds mean, which no plan states"):
        ps.measure(plan.schema, ROWS, np.zeros(3))


@dataclass(frozen=True, eq=False)
class Unlike(Transform):
    """A map whose == omits its field."""

    kind: ClassVar[str] = "unlike-for-a-test"
    shift: float = 0.0

    def plain_table(self) -> dict[str, Any]:
        return {}

    def apply(self, rows: Any) -> Any:
        return rows + self.shift

    def outputs(self, inputs: int | None) -> int | None:
        return inputs


def test_a_field_that_equality_and_file_omit_is_refused() -> None:
    plan = partial(ps.Plan, cohort=ps.Cohort(2, 2, 9), privacy=ps.NoPrivacy())
    with pytest.raises(PlanError, match="the file of a plan of this MeanSchema gives back another one"):
        plan(schema=ps.MeanSchema(3, clip_norm=1.0, transform=(Unlike(1.0),)))
    assert plan(schema=ps.MeanSchema(3, clip_norm=1.0, transform=(Unlike(),)))


class MyBins(ps.Bins):
    """Other cells under the digest of Bins."""


class MyNumeric(ps.Numeric):
    """Other codes under the digest of Numeric."""


def test_a_subclass_of_a_declaration_is_none() -> None:
    with pytest.raises(SchemaError, match="variables must hold Categories and Bins, got MyBins"):
        ps.CountSchema((MyBins("age", (0, 10, 20)), ps.Bins("time", (0, 1, 2))), (("age", "time"),))
    with pytest.raises(SchemaError, match="columns must hold Numeric, .*, got MyNumeric"):
        Cells((MyNumeric("age", (10,)),))


@pytest.mark.parametrize("columns", [1, 2, 5])
@pytest.mark.parametrize("bits", [12, 14])
def test_cells_of_another_package_are_clipped_as_any_rows(columns: int, bits: int) -> None:
    declared = tuple(ps.Numeric(f"x{place}", (10, 20)) for place in range(columns))
    table = {f"x{place}": [5, 15, 25, None] for place in range(columns)}
    for cells in (Cells(declared), LongCells(declared)):
        assert ("exactly and for any table" in ps.MeanSchema(cells.width, 1.0, transform=(cells,)).clipping) == (
            type(cells) is Cells
        )
        schema = ps.ClassSchema(2, cells.width, "NABD", clip_norm=1.0, transform=(cells,), grid_bits=bits)
        for row in range(4):
            sums = ps.measure(schema, {name: values[row : row + 1] for name, values in table.items()}, [1])
            assert int((sums.A.astype(object) ** 2).sum()) <= schema.grid_steps**2
            assert int(np.trace(sums.B)) <= schema.grid_steps**2
