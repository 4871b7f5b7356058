"""The search for records beyond a stated bound: own kinds keep theirs, and a broken contract is caught."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import privstats as ps
from privstats.errors import SchemaError
from privstats.kinds import KINDS, ClippedRows
from privstats.testing import check_kind
from tests.brought import brought, install, points
from tests.moments.test_person_sums import rows_of
from tests.planted import plant
from tests.schema.samples import PROMISED
from tests.schema.test_contract import published

GROUP = KINDS.group
BROUGHT = points("stranger", GROUP)
BOUNDED = [schema for schema in PROMISED if schema.task != "gaussians"]
"""Of an alignment no bound of a record is proved."""

REACHED = {"mean": 0.999, "classes": 0.9, "ridge": 0.9, "sites": 0.99, "scoring": 0.999, "counts": 0.9}
"""The least part of the bound that a few trials reach."""


def drawn(schema: Any) -> Any:
    """Return what draws records, or None where rows of numbers are read."""
    reading = schema.reading
    if schema.task == "hazard":
        return lambda rng, n: (
            {name: 9 * rng.normal(size=n) for name in schema.feature_names}
            | {schema.bins.name: rng.uniform(0, 24, n), schema.event: rng.integers(0, 2, n)},
            None,
        )
    if reading.columns or reading.levels is not None or schema.task in ("effect", "hazard", "scoring", "score"):
        return lambda rng, n: rows_of(schema, n, int(rng.integers(1 << 30)))
    return None


@pytest.mark.parametrize("schema", BOUNDED, ids=lambda schema: f"{schema.task}-{schema.statistics}")
def test_own_kinds_keep_their_bound(schema: Any) -> None:
    if getattr(schema, "module", None):
        pytest.importorskip("opacus")
    nearest = check_kind(schema, drawn(schema), published=published(schema), trials=2)
    assert REACHED.get(schema.task, 0.0) <= nearest <= 1 + 1e-9


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[None]:
    with brought(install("stranger", tmp_path)):
        yield


@pytest.mark.usefixtures("stranger")
@pytest.mark.parametrize("task", BROUGHT)
def test_a_strangers_kinds_keep_theirs(task: str) -> None:
    assert {"tukey": 0.5, "abs": 0.99}[task] < check_kind(KINDS[task](3, 2.0), trials=4) <= 1 + 1e-9


@dataclass(frozen=True)
class Broken(ps.MeanSchema):
    """A mean that breaks its contract in one way."""

    task: ClassVar[str] = "broken"
    purpose: ClassVar[str] = "nothing"
    how: str = ""

    def move(self, weights: Any, adjacency: Any) -> float:
        return super().move(weights, adjacency) * (0.4 if self.how == "bound" else 1.0)

    def moments_of(self, records: Any, values: Any) -> Any:
        if self.how == "negative":
            return self.containers()[0](self, -abs(super().moments_of(records, values).x), 0)
        if self.how == "no clip":
            rows = np.concatenate([np.zeros((0, self.features)), *(rows for rows, _ in records.pieces())])
            rows = np.clip(rows, -1e4, 1e4)[np.isfinite(rows).all(axis=1)]
            return self.containers()[0](self, (rows * self.scale).astype(np.int64).sum(axis=0), len(rows))
        found = super().moments_of(records, values)
        if self.how == "company" and (found.records or 0) > 10:
            return self.containers()[0](self, found.x // 2, found.records)
        if self.how == "container" and isinstance(records.X, np.ndarray) and not records.X.flags.c_contiguous:
            return self.containers()[0](self, found.x * 0, found.records)
        return found

    @property
    def unsigned(self) -> str:
        return "x" if self.how == "negative" else ""

    def terms_of(self, records: Any, values: Any) -> Any:
        found = super().terms_of(records, values)
        if self.how == "persons":
            found.terms[0].products["x"][0][...] *= 0
        return found


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("no clip", r"Broken under add-remove states 2, and one record moves the sums by 1\d,\d{3} \(x\)"),
        ("bound", r"states 1\.26, and one record moves the sums by (2|1\.9)"),
        ("company", "Broken sums records each alone to other numbers|moves the sums by"),
        ("negative", "Broken states x as unsigned, and an entry is negative"),
        ("container", "Broken sums the same records otherwise in an array in column order"),
        ("persons", "Broken sums records as persons of two equal rows to other numbers"),
    ],
)
def test_a_broken_contract_is_caught(how: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, KINDS, "broken", Broken)
    check_kind(Broken(3, 2.0), trials=2)
    with pytest.raises(AssertionError, match=said):
        check_kind(Broken(3, 2.0, how=how))


@dataclass(frozen=True)
class Remembers(ClippedRows):
    """A vector that follows from earlier records: nothing can prevent it, so a claim names the package."""

    task: ClassVar[str] = "remembers"
    purpose: ClassVar[str] = "nothing"
    outputs: ClassVar[int] = 2  # type: ignore[assignment]
    seen: ClassVar[list[float]] = [0.0]

    def vector(self, record: Any) -> Any:
        self.seen.append(float(record[0]))
        return np.array([self.seen[-2], 0.0])


def test_a_vector_with_a_memory_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, KINDS, "remembers", Remembers)
    with pytest.raises(AssertionError, match="Remembers"):
        check_kind(Remembers(3, 2.0))


def test_a_map_that_reads_its_neighbours_is_caught(tmp_path: Path) -> None:
    with brought(install("stranger", tmp_path)):
        from stranger_map import BatchCentre

        with pytest.raises(AssertionError, match="MeanSchema .*moves|MeanSchema sums records"):
            check_kind(ps.MeanSchema(3, 2.0, transform=(BatchCentre(),)))


def test_what_cannot_be_checked_is_refused_by_name() -> None:
    with pytest.raises(SchemaError, match="records of a CountSchema are named columns; give draw="):
        check_kind(ps.CountSchema.example())
    with pytest.raises(SchemaError, match="no code forms the sums of a Broken"):
        check_kind(Broken(3, 2.0))
