"""A kind of schema is a subclass and rows: nothing else has to know it, and what lacks a row is refused."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import privstats as ps
from privstats.dp import joint_mu
from privstats.encoding import layout_of
from privstats.errors import PlanError, SchemaError
from privstats.kinds import KINDS, kind_of
from privstats.schema.base import Statistic
from privstats.schema.public_values import Published, Values, values_path
from tests.planted import plant
from tests.schema.made_up import MadeUpSchema

ROW = Statistic("L", "pooled", ("feature",), (1, 0), meaning="the sum of shifted vectors", share=1.0)
COHORT = ps.Cohort(clients=4, min_survivors=3, max_records=50)
PROMISE = ps.Privacy(model="local", unit="record", adjacency="add-remove", epsilon=1, delta=1e-5)
SHIFT = Published.of({"S": Values(np.array([3, -4]), 0)}, b"\5" * 32)


@dataclass(frozen=True)
class ShiftedSchema(MadeUpSchema):
    """A function of one party's records and of a published shift."""

    task: ClassVar[str] = "shifted"
    purpose: ClassVar[str] = "a sum of rows"
    statistics: ClassVar[str] = "L"
    table: ClassVar[tuple[Statistic, ...]] = (ROW,)
    proved: ClassVar[str] = ""

    @property
    def needs(self) -> Mapping[str, tuple[int, ...]]:
        return {"S": (self.features,)}

    def refusal(self, unit: str | None) -> str:
        return "" if unit is None else f"no {unit} can be promised of a shift; give NoPrivacy()"

    def summed(self, X: Any, values: Mapping[str, Values]) -> tuple[Any, int]:
        return values["S"].integers + len(X), len(X)


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, KINDS, "shifted", ShiftedSchema)


@pytest.fixture
def plan(kind: None) -> ps.Plan:
    return ps.Plan(schema=ShiftedSchema(), cohort=COHORT, privacy=ps.NoPrivacy(), published=SHIFT)


def test_a_made_up_kind_goes_all_the_way(plan: ps.Plan, tmp_path: Path) -> None:
    release = ps.simulate(plan, [(np.ones((3, 2)), None)] * 4, {"mask": {1}})
    assert release.moments.tolist() == [3 * (3 + 3), 3 * (3 - 4)]
    release.save(tmp_path / "shift.release")
    again = ps.Release.load(tmp_path / "shift.release")  # the values are not in it, their digest is
    assert again == release
    assert again.plan.digest == plan.digest
    with pytest.raises(PlanError, match="missing"):
        again.plan.published.read()


def test_a_plan_file_finds_its_values_beside_it(plan: ps.Plan, tmp_path: Path) -> None:
    path = tmp_path / "round.toml"
    path.write_text(plan.to_toml())
    assert ps.Plan.read(path).published == plan.published
    with pytest.raises(PlanError, match="missing"):
        ps.measure(plan.schema, np.ones((1, 2)), published=ps.Plan.read(path).published)
    plan.published.save(values_path(path))
    assert ps.Plan.read(path).published.read() == plan.published.read()
    Published.of({"S": Values(np.array([3, -5]), 0)}).save(values_path(path))
    with pytest.raises(PlanError, match="these values do not match"):
        ps.Plan.read(path)


def test_other_values_or_another_history_are_another_plan(plan: ps.Plan) -> None:
    others = [Published.of({"S": Values(np.array([3, -5]), 0)}, b"\5" * 32), Published.of(SHIFT.read())]
    assert len({plan.digest, *(replace(plan, published=each).digest for each in others)}) == 3


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"published": None}, r"reads published values \(S\)"),
        ({"published": "S"}, "must be Published"),
        ({"published": Published.of({"T": SHIFT.read()["S"]})}, "S of shape"),
        ({"published": Published.of({"S": Values(np.ones(3, np.int64), 0)})}, "S of shape"),
        ({"schema": ps.ClassSchema(2, 2, "NA", 1.0)}, "reads no published values"),
        ({"privacy": PROMISE}, "record"),
        ({"min_count": 3}, "a shifted plan has none"),
    ],
)
def test_a_plan_says_what_its_kind_lacks(plan: ps.Plan, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(PlanError, match=said):
        replace(plan, **changed)


def test_values_are_for_plans_that_publish_some(plan: ps.Plan) -> None:
    plain = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=COHORT, privacy=ps.NoPrivacy())
    with pytest.raises(PlanError, match="publishes no values"):
        plain.with_values(SHIFT.read())
    for text, said in (("[published]", "lacks sha256"), ("published = 3", "must be a table")):
        body = plain.to_toml() if text.startswith("[") else ""
        with pytest.raises(PlanError, match=said):
            ps.Plan.from_toml(f"{'' if body else text}\n{body or plain.to_toml()}\n{text if body else ''}")


def test_a_kind_without_rows_is_refused_everywhere() -> None:
    schema = ShiftedSchema()
    assert layout_of(schema).size == 2
    with pytest.raises(SchemaError, match="ShiftedSchema is no registered kind of schema; a package announces it"):
        ps.measure(schema, np.ones((1, 2)))
    with pytest.raises(PlanError, match="ShiftedSchema is no registered kind of schema"):
        ps.Plan(schema=schema, cohort=COHORT, privacy=ps.NoPrivacy(), published=SHIFT)
    with pytest.raises(SchemaError, match="no code forms the sums"):
        kind_of(schema)


def test_a_kind_without_a_proof_has_no_sensitivity(kind: None) -> None:
    with pytest.raises(PlanError, match="no sensitivity is proved for a ShiftedSchema"):
        joint_mu(ShiftedSchema(), {"L": 1.0}, "add-remove")
