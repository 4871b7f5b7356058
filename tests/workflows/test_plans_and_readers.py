"""No reader refuses after a session what its plan could have refused: each is called on one, over units and clips."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.errors import PlanError, PrivstatsError, ReleaseError
from privstats.plug_ins import announced
from privstats.randomness import seeded
from privstats.transforms import CentreRows, ConstantFeature, UnitNorm
from privstats.workflows.readers import possible, unread_statistics
from privstats.workflows.tables import READERS
from privstats.workflows.tables.reading import table_of
from tests import made
from tests.lengths import checkered
from tests.moments.test_readable import published_of, records_of
from tests.schema.samples import SCORED
from tests.workflows.test_readers import PROMISES

COHORT = ps.Cohort(2, 2, 600)
ONE = (ConstantFeature(1.0),)
WARD = ps.Cells((ps.Numeric("age", (40, 60)), ps.Truth("smoker")))
CLOCK, DIED, SEX = ps.Bins("months", (0, 6, 12)), ps.Categories("died", (0, 1)), ps.Categories("sex", ("f", "m"))
ROOM = {"max_records_per_client": 300}
TERMS: dict[str, Any] = {
    "no promise": None,
    **{name: terms | (ROOM if terms.get("unit") == "client" else {}) for name, terms in PROMISES.items()},
}
OWN = tuple(name for name in READERS if name not in {entry.name for entry in announced(READERS.group)})
"""Readers of the library itself; those that rooms of contrib announce are walked by their own tests."""
HIDDEN = ("with noise of", "noise hides")
"""What a reader says of sums that their noise hides, which no plan could know."""


@dataclass(frozen=True)
class Study:
    """Something to plan, and records for it."""

    name: str
    start: Callable[[Any], Any]
    records: Callable[[int], tuple[Any, Any]]


def planned(name: str, schema: Any, records: Any = None) -> Study:
    def start(privacy: Any) -> ps.Plan:
        return made.plan(schema, COHORT, privacy, published=published_of(schema))

    return Study(name, start, records or (lambda count: records_of(schema, count)))


def counted(count: int) -> tuple[Any, None]:
    chance = np.random.default_rng(count)
    table = {
        "months": chance.integers(0, 12, count),
        "died": chance.integers(0, 2, count),
        "hours": chance.random(count),
    }
    return {**table, "sex": np.where(chance.random(count) < 0.5, "f", "m")}, None


def survived(count: int) -> tuple[Any, None]:
    table, _ = counted(count)
    return {**table, "months": table["months"] + 0.5, "arm": np.arange(count) % 2, "age": table["hours"]}, None


def treated(count: int) -> tuple[Any, Any]:
    chance = np.random.default_rng(count)
    return np.c_[chance.uniform(20, 90, count), np.arange(count) % 2], chance.integers(0, 2, count)


def wards(count: int) -> tuple[Any, Any]:
    chance = np.random.default_rng(count)
    return {"age": chance.integers(20, 90, count), "smoker": chance.integers(0, 2, count)}, chance.random(count)


def labelled(count: int) -> tuple[Any, Any]:
    chance = np.random.default_rng(count)
    return {"age": chance.integers(20, 90, count), "smoker": chance.integers(0, 2, count)}, np.arange(count) % 2


def _refined(privacy: Any) -> Any:
    whole = made.plan(ps.ClassSchema(2, WARD.width, "NAB", 1.0, transform=(WARD,)), COHORT, privacy)
    return ps.Rounds.within(whole, rounds=2, expected_records=600)


def binary(schema: Any) -> Callable[[int], tuple[Any, Any]]:
    def drawn(count: int) -> tuple[Any, Any]:
        X, _ = records_of(schema, count)
        return X, np.arange(count) % 2

    return drawn


def ridge(name: str, maps: Any, norm: float) -> Study:
    of_cells = maps[0] == WARD
    features = WARD.width + len(maps) - 1 if of_cells else 4
    schema = ps.RidgeSchema(features, clip_norm=norm, target_bound=3.0, transform=maps)
    return planned(name, schema, wards if of_cells else None)


def _newton(transform: Any) -> Study:
    schema = ps.ScoreSchema(4, 2.0, transform=transform)
    name = f"score {[step.kind for step in transform]}"
    return Study(name, lambda privacy: ps.Newton.start(schema, COHORT, privacy, 3), binary(schema))


HAZARD = ps.HazardSchema(
    3,
    2.0,
    bins=ps.Bins("months", (0, 6, 13)),
    event="died",
    feature_names=("arm", "age"),
    transform=ONE,
    times="discrete",
)
EFFECT = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome={"relapse": (0, 1)}, probability=0.5)
RIDGES = {"constant": ONE, "unit norm": (UnitNorm(), *ONE), "centred rows": (CentreRows(), *ONE)}
STUDIES = [
    planned("classes NAD", ps.ClassSchema(3, 4, "NAD", 1.0)),
    planned("classes NAD, unit norm", ps.ClassSchema(3, 4, "NAD", 1.0, transform=(UnitNorm(),))),
    planned("classes NAB", ps.ClassSchema(3, 4, "NAB", 1.0)),
    *(ridge(f"ridge {name}", maps, 2.0) for name, maps in RIDGES.items()),
    planned("ridge without a constant", ps.RidgeSchema(4, 2, clip_norm=1.0, target_bound=3.0)),
    ridge("ridge of cells", (WARD, *ONE), 1.5),
    ridge("ridge of cells, clipped", (WARD, *ONE), 1.0),
    ridge("ridge of cells alone", (WARD,), 1.0),
    planned("ridge by folds", ps.RidgeSchema(4, clip_norm=2.0, target_bound=3.0, transform=ONE, folds=4)),
    planned("classes of cells", ps.ClassSchema(2, WARD.width, "NAB", 1.0, transform=(WARD,)), labelled),
    planned("classes of cells, own moments", ps.ClassSchema(2, WARD.width, "NAS", 1.0, transform=(WARD,)), labelled),
    Study("rounds of cells", _refined, labelled),
    planned("counts", ps.CountSchema((SEX, CLOCK), (("sex", "months"),)), counted),
    planned("counts of events", ps.CountSchema((CLOCK, DIED), (("months", "died"),)), counted),
    planned("counts apart", ps.CountSchema((CLOCK, DIED), (("months",), ("died",))), counted),
    planned("numbers alone", ps.CountSchema((), (), numbers=(ps.Number("hours", 0, 1),)), counted),
    planned("numbers", ps.CountSchema((SEX,), (), numbers=(ps.Number("hours", 0, 1, by=("sex",)),)), counted),
    planned("sites", ps.SitesSchema(5, 1.0)),
    planned("sites, unit norm", ps.SitesSchema(5, 1.0, transform=(UnitNorm(),))),
    planned("sites by pulls", ps.SitesSchema(5, 4.0, pulls=(0.4, 4.0, 30.0), transform=ONE)),
    *(planned(f"scored {place}", scored.schema) for place, scored in enumerate(SCORED)),
    _newton(ONE),
    _newton((UnitNorm(), *ONE)),
    Study("hazard", lambda privacy: ps.Hazard.start(HAZARD, COHORT, privacy, by="arm", rounds=3), survived),
    Study("effect", lambda privacy: ps.Effect.start(EFFECT, COHORT, privacy), treated),
]  # fmt: skip


def shards(study: Study, privacy: Any) -> Iterator[tuple[Any, ...]]:
    """Two parties' records, of which each person has two where persons are promised."""
    X, y = study.records(600)
    for start in range(2):
        at = slice(start, None, 2)
        part = {name: values[at] for name, values in X.items()} if isinstance(X, dict) else X[at]
        ids = [np.arange(300) // 2] if privacy is not None and privacy.unit == "person" else []
        yield part, None if y is None else y[at], *ids


def asked(name: str, schema: Any) -> dict[str, Any]:
    """What a user must name of a plan, so that a reader can be called at all."""
    if name == "km":
        kinds = {type(schema.variable(each)): each for table in schema.tables for each in table}
        return {
            "time": kinds.get(ps.Bins, "months"),
            "event": kinds.get(ps.Categories, "died"),
            "times": "discrete",
        }
    if name == "proportions":
        return {"columns": [schema.variables[0].name]} if schema.variables else {"columns": ["hours"]}
    if name == "table-one" and schema.task == "counts":
        return {"by": max(schema.tables, key=len)[0]}
    if name == "ols" and not schema.transform:
        return {"target": 0, "records": 600}
    return {}


def walk(study: Study, terms: str, names: Sequence[str], options: Callable[[str, Any], dict[str, Any]]) -> set[str]:
    """Compare what readers refuse of a plan and of its releases; return the readers that were tried."""
    privacy = None if TERMS[terms] is None else made.promise(**{"epsilon": 40.0, **TERMS[terms]})
    try:
        what = study.start(ps.NoPrivacy() if privacy is None else privacy)
    except (PlanError, ReleaseError):
        return set()  # refused when it is planned
    last = what if isinstance(what, ps.Plan) else what.priced[-1]
    readers = {name: READERS[name] for name in names if READERS[name].fits(last.schema)}
    if not readers:
        return set()
    released = ps.simulate(what, list(shards(study, privacy)), rng=seeded(0))
    releases = [released] if isinstance(released, ps.Release) else [each for each in released if each is not None]
    for name, table in readers.items():
        try:
            table_of(name, releases, options(name, last.schema))
        except PrivstatsError as error:
            hidden = any(each in str(error) for each in HIDDEN)
            assert table.refusal(last) or hidden, f"{name} refuses after the session alone: {error}"
        else:
            assert not table.refusal(last), name
    if not possible(last) and any(table.proposed for table in readers.values()):
        assert "no table or head reads" in unread_statistics(last).sentences()[0]
    return set(readers)


@pytest.mark.parametrize(
    ("study", "terms"), checkered(STUDIES, list(TERMS)), ids=lambda each: getattr(each, "name", None)
)
def test_a_reader_takes_after_a_session_exactly_what_its_plan_lets_it(study: Study, terms: str) -> None:
    """Epsilon was spent on plans that passed every check, and no table could be read from their releases."""
    walk(study, terms, OWN, asked)
