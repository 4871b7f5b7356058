"""Whatever another package's map returns, a record moves the sums within its bound; what is no row is refused."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import privstats as ps
from privstats.errors import SchemaError
from privstats.transforms import Cells, Transform

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
@pytest.mark.parametrize("what", ["one column", "one row", "a vector", "two rows each", "lists"])
@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_map_that_returns_no_row_for_a_record_is_refused(kind: str, what: str, how: str, unreadable: str) -> None:
    X = torch.tensor(ROWS) if how == "tensor" else HOW[how](ROWS)
    with pytest.raises(
        SchemaError, match=r"Misshapen\.apply returned no array of 3 columns with a row for each record"
    ):
        ps.measure(SCHEMAS[kind]((Misshapen(what),)), X, [0, 1, 0], unreadable=unreadable)


@pytest.mark.parametrize("columns", [1, 2, 5])
@pytest.mark.parametrize("bits", [12, 14])
def test_cells_of_another_package_are_clipped_as_any_rows(columns: int, bits: int) -> None:
    declared = tuple(ps.Numeric(f"x{place}", (10, 20)) for place in range(columns))
    table = {f"x{place}": [5, 15, 25, None] for place in range(columns)}
    for cells in (Cells(declared), LongCells(declared)):
        schema = ps.ClassSchema(2, cells.width, "NABD", clip_norm=1.0, transform=(cells,), grid_bits=bits)
        for row in range(4):
            sums = ps.measure(schema, {name: values[row : row + 1] for name, values in table.items()}, [1])
            assert int((sums.A.astype(object) ** 2).sum()) <= schema.steps**2
            assert int(np.trace(sums.B)) <= schema.steps**2
