"""One walk for every kind of schema: plan, certificate, checker, searches, canary, course, file, page.

Each stop takes the kind or refuses it by its name in a sentence. A kind that is new and has sums and a sensitivity, and
no more, is refused by its name wherever somebody has yet to write its row.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import privstats as ps
from privstats import simulate
from privstats.dp import client_mu, joint_mu, sensitivity
from privstats.encoding import flatten, layout_of
from privstats.errors import PrivstatsError
from privstats.kinds import KINDS
from privstats.plan.feasibility import _remedy
from privstats.randomness import seeded
from privstats.review.certificate import certificate_text
from privstats.review.certificate_checker import KINDS as CHECKED
from privstats.review.certificate_checker import check
from privstats.schema import Schema
from privstats.schema.base import Adjacency, Statistic
from privstats.schema.public_values import Published, Values
from privstats.workflows.readers import possible, suggested
from privstats.workflows.report import Statement, ethics_page, page_of
from tests import made
from tests.lengths import first_by_day
from tests.moments.test_person_sums import rows_of, some
from tests.plan.every_kind import PLANS
from tests.plan.random_plans import PANEL
from tests.planted import plant
from tests.schema.made_up import MadeUpSchema
from tests.schema.samples import PROMISED, SCHEMAS, SCORED, TAKEN
from threat_models.attack import attacks
from threat_models.audits.budget import audit_budget
from threat_models.audits.canary import audit_canary
from threat_models.audits.course import canary_of, invented
from threat_models.audits.kinds import as_declared, columns_of, outcome_of
from threat_models.audits.noise import audit_noise
from threat_models.audits.searches import declared_mu, search_of
from threat_models.audits.target import target_of
from threat_models.data import bundled

COHORT = ps.Cohort(12, 12, 600)


@dataclass(frozen=True)
class StrangeSchema(MadeUpSchema):
    """The sum of rows: as a mean, which every table of rows tells from it."""

    task: ClassVar[str] = "strange"
    table: ClassVar[tuple[Statistic, ...]] = (
        Statistic("a", "pooled", ("feature",), (1, 0), meaning="the sum of rows", share=1.0),
    )
    proved: ClassVar[str] = "a"
    purpose: ClassVar[str] = "the average of every column"

    def summed(self, X: Any, _: Any) -> tuple[np.ndarray, int]:
        rows = np.asarray(X, np.float64).reshape(-1, self.features)
        short = rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True) / self.clip_norm)
        return np.trunc(short * self.scale).astype(np.int64).sum(axis=0), len(rows)

    def move(self, weights: Mapping[str, float], adjacency: Adjacency) -> float:
        return ps.MeanSchema(self.features, self.clip_norm).move({"x": weights["a"]}, adjacency)


@pytest.fixture
def strange(monkeypatch: pytest.MonkeyPatch) -> StrangeSchema:
    plant(monkeypatch, KINDS, "strange", StrangeSchema)
    return StrangeSchema(4)


def published(schema: Schema) -> Published | None:
    for scored in SCORED:
        if scored.schema == schema:
            return scored.published
    flat = {name: np.eye(*shape) if name == "S" else np.ones(shape) for name, shape in schema.needs.items()}
    values = {name: Values.rounded(0.01 * each) for name, each in flat.items()}
    if schema.task == "hazard" and "c" in values:  # a clock, all of whose bins pass in their first cell
        values["c"] = Values(np.full(schema.needs["c"], 1 << 16), 16)
    return Published.of(values) if flat else None


def plan_of(schema: Schema, model: str = "central", **changes: Any) -> ps.Plan:
    around = {name: changes.pop(name) for name in ("protocol", "panel", "validity") if name in changes}
    if schema.refusal("record"):
        clip = {"max_records_per_client": 4, "client_clip": 3.0}
        changes |= {"unit": "client", **({"max_records_per_client": 1} if "party" in schema.task else clip)}
    return made.plan(schema, COHORT, made.promise(model, **changes), published=published(schema), **around)


def through_a_file(plan: ps.Plan, folder: Path) -> ps.Release:
    path = folder / "plan.toml"
    path.write_text(plan.to_toml())
    assert ps.Plan.read(path) == plan
    release = invented(plan, seeded(0))
    release.save(folder / "sums.release")
    assert ps.Release.load(folder / "sums.release") == release
    return release


def run(plan: ps.Plan) -> object:
    X, y = np.full((3, columns_of(plan.schema)), 0.1), outcome_of(plan.schema).alike(3)
    return simulate(plan, [as_declared(plan.schema, X, y)] * COHORT.clients)


def proved(level: Any) -> Callable[[ps.Plan, Path], object]:
    around = {"protocol": "split", "panel": PANEL}
    return lambda plan, _: plan_of(plan.schema, **around, validity=ps.plan.Validity(level, 50))


def searched(plan: ps.Plan) -> object:
    audit = search_of(plan.schema)
    few = {"moves": 2} if "moves" in signature(audit).parameters else {}
    return audit(target_of(plan), seeded(0), starts=1, **few)


STOPS: dict[str, Callable[[ps.Plan, Path], object]] = {
    "certificate": lambda plan, _: certificate_text(plan),
    "checker": lambda plan, _: check(plan.to_toml(), certificate_text(plan)),
    "search": lambda plan, _: searched(plan),
    "declared mu": lambda plan, _: declared_mu(target_of(plan), seeded(0), 1),
    "budget": lambda plan, _: audit_budget(target_of(plan)),
    "canary": lambda plan, _: audit_canary(target_of(plan), seeded(0), trials=20),
    "noise": lambda plan, _: audit_noise(target_of(plan), seeded(0), trials=2),
    "planted record": lambda plan, _: canary_of(plan.schema, seeded(0)),
    "invented release": lambda plan, _: invented(plan, seeded(0)),
    "file": through_a_file,
    "simulation": lambda plan, _: run(plan),
    "bundled records": lambda plan, _: bundled(plan, seeded(0)),
    "page": lambda plan, _: page_of(Statement(plan)),
    "ethics": lambda plan, _: ethics_page(Statement(plan)),
    "attacks": lambda plan, _: [attack.refusal(plan) for attack in attacks()],
    "readers": lambda plan, _: (possible(plan), suggested(plan)),
    "too long": lambda plan, _: [_remedy(plan.schema, row.letter) for row in plan.schema.sent],
    "pure": lambda plan, _: plan_of(plan.schema, delta=0.0),
    "proof of moments": proved("moments"),
    "proof of norms": proved("norm"),
}
EVERYWHERE = {"certificate", "checker", "page", "ethics", "attacks", "readers", "too long"}
NOWHERE_YET = {  # what a new kind is refused at, by its name, until its row is written
    *("certificate", "checker", "search", "declared mu", "budget", "canary", "noise", "planted record"),
    *("invented release", "file", "simulation", "bundled records", "pure", "proof of moments", "proof of norms"),
}
SAMPLES = [schema for schema in PROMISED if getattr(schema, "module", None) is None]
"""A module's rounds are those of gradients, and need torch."""


def by_name(schema: Schema) -> str:
    return f"{type(schema).__name__}|task={schema.task!r}|" + {
        "counts": "counts are proved",
        "scoring": "counts are proved",
        "party-update": "a PartySchema promises parties",
        "party-softmax": "a PartySchema promises parties",
        "gaussians": "an alignment|covariance root|client_clip clips",
    }.get(schema.task, type(schema).__name__)


@pytest.mark.parametrize(
    "schema",
    first_by_day([(schema,) for schema in SAMPLES], lambda schema: (schema.task, schema.statistics)),
    ids=lambda schema: f"{schema.task}-{schema.statistics}",
)
def test_a_kind_is_taken_or_refused_by_its_name_at_every_stop(schema, tmp_path, monkeypatch):
    # that audits search, not how far they come
    monkeypatch.setattr("threat_models.audits.effect._CORNERS", 2)
    monkeypatch.setattr("threat_models.audits.budget.declared_mu", lambda target, rng: declared_mu(target, rng, 1))
    plan, refused = plan_of(schema), dict[str, str]()
    for stop, visit in STOPS.items():
        try:
            found = visit(plan, tmp_path)
            assert not getattr(found, "violated", False), f"{stop} contradicts what is claimed of this kind: {found}"
        except PrivstatsError as refusal:
            refused[stop] = str(refusal)
    taken = set(STOPS) - set(refused)
    letters = {"proof of moments"} if schema.statistics == "NAS" else set()
    lacking = {"pure", "proof of moments"} if schema.statistics == "Txq" else set()
    assert taken == (EVERYWHERE | TAKEN[schema.task] | letters) - lacking, refused
    unnamed = {stop: said for stop, said in refused.items() if not re.search(by_name(schema), said)}
    assert not unnamed


def records_of(schema: Any, n: int, chance: np.random.Generator) -> tuple[Any, Any]:
    """Return records within the bounds and far beyond; some cannot be read."""
    if schema.task == "hazard":
        columns = {name: chance.normal(size=n) * chance.choice([0.3, 30.0]) for name in schema.feature_names}
        columns |= {schema.bins.name: chance.uniform(-1, 30, n), schema.event: chance.integers(0, 2, n)}
        return columns | ({} if schema.entry is None else {schema.entry: chance.uniform(-1, 30, n)}), None
    if schema.task == "counts":
        listed = {each.name: [*getattr(each, "values", (-9.0, 30.0, 50.0, 99.0)), "?"] for each in schema.variables}
        columns: dict[str, Any] = {name: chance.choice(np.array(of, object), n) for name, of in listed.items()}
        return columns | {each.name: chance.uniform(-9, 99, n) for each in schema.numbers or ()}, None
    X, y = rows_of(schema, n, int(chance.integers(1 << 32)))
    if chance.random() < 0.3:
        X[-1, 0] = math.nan
    y = y * chance.choice([1.0, -50.0]) if np.asarray(y).dtype.kind == "f" else y
    if getattr(schema, "exposure", None):  # some beyond the bound, or below 0
        y = np.column_stack([y, schema.exposure_bound * chance.uniform(-0.2, 1.2, n)])
    return X, y


def moved(schema: Any, seed: int) -> list[tuple[Any, int, np.ndarray]]:
    """Return how far one more record, one exchanged, or all of a client move the sums; for a kind of parties, a party.

    Each with its adjacency and the number of records.
    """
    chance = np.random.default_rng(seed)
    rest = 0 if schema.party_is_record else int(chance.integers(5))
    X, y = records_of(schema, rest + 2, chance)

    def summed(*places: int) -> np.ndarray:
        at, how = np.array([*range(rest), *places], int), {"published": published(schema), "unreadable": "leave out"}
        return np.asarray(flatten(ps.moments.exact_moments(schema, some(X, at), some(y, at), **how)), np.float64)

    one, other = (summed(place) for place in (rest, rest + 1))
    without = np.zeros_like(one) if schema.party_is_record else summed()
    moves = [("add-remove", 1, one - without), ("add-remove", 1, other - without), ("replace-one", 1, one - other)]
    return moves if schema.party_is_record else [*moves, ("add-remove", rest + 2, summed(rest, rest + 1))]


_OF_COLUMNS = {"cells", "levels", "transport", "by-arm"}
WITH_EVERY_KEY = [
    plan.schema
    for plan in PLANS.values()
    if plan.schema.task != "scoring" and not _OF_COLUMNS & {step.kind for step in plan.schema.transform}
    if getattr(plan.schema, "module", None) is None
]
MEASURED = {str(schema): schema for schema in (*SAMPLES, *WITH_EVERY_KEY)}
"""The samples, and schemas of numbers with every key that a plan can have."""


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "schema",
    [schema for schema in MEASURED.values() if schema.party_is_record or not schema.refusal("record")],
    ids=lambda schema: f"{schema.task}-{schema.statistics}",
)
def test_no_neighbour_moves_the_measured_sums_beyond_the_sensitivity(schema):
    """Certificates and searches have definitions of their own, so neither sees a clip that the library's sums lack."""
    layout, alone = layout_of(schema), {s: sensitivity(schema, s, "add-remove") for s in schema.statistics}
    for seed in range(20):
        for adjacency, records, move in moved(schema, seed):
            for sigma in (alone, *({s: alone[s]} for s in alone)):
                steps = [sigma.get(row.statistic, math.inf) * row.scale * row.noise_factor for row in layout.segments]
                parts = zip(steps, layout.slices, strict=True)
                far = math.sqrt(math.fsum(float(((move[at] / step) ** 2).sum()) for step, at in parts))
                most = (joint_mu if records == 1 else partial(client_mu, records=records))(schema, sigma, adjacency)
                assert far <= most * (1 + 1e-9), (seed, adjacency, records, [*sigma])


def test_every_bound_of_a_promise_is_searched() -> None:
    """A bound that no search tried to beat is only a claim. An alignment's bound is the clip of a client."""
    assert {task for task, taken in TAKEN.items() if "search" not in taken} == {"gaussians"}


@pytest.mark.parametrize("stop", STOPS)
def test_a_kind_that_nobody_has_written_a_row_for_is_refused_by_its_name(stop, strange, tmp_path):
    """It took the records, letters or pairs of another kind, or fell with a KeyError."""
    plan = plan_of(strange)
    if stop not in NOWHERE_YET:
        assert STOPS[stop](plan, tmp_path) is not None
        return
    with pytest.raises(PrivstatsError, match="StrangeSchema|task='strange'"):
        STOPS[stop](plan, tmp_path)


def test_the_checker_refuses_a_kind_that_it_has_no_row_for(strange: StrangeSchema) -> None:
    assert "strange" not in CHECKED
    honest = certificate_text(plan_of(ps.MeanSchema(4, 1.0)))
    with pytest.raises(Exception, match="^plan: "):
        check(plan_of(strange).to_toml(), honest)


def test_every_kind_has_a_sample_and_stands_in_the_list() -> None:
    assert {schema.task for schema in SCHEMAS} == set(TAKEN) == set(KINDS)
