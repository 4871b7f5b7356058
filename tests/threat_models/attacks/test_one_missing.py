"""Attacks on sums of every kind: each statistic that a release may hold is read by both sorts, within its ceiling."""

from dataclasses import replace

import numpy as np
import pytest

import privstats as ps
from privstats.errors import PlanError
from privstats.randomness import seeded
from privstats.schema.public_values import Published, Values
from tests import made
from tests.made import promise, refused
from tests.schema import test_contract
from tests.schema.test_contract import SAMPLES
from tests.threat_models.conftest import examined
from threat_models.attack import Examination, attacks, attacks_named
from threat_models.ceilings import guaranteed
from threat_models.data import to_attack
from threat_models.evaluate import Effort, evaluate
from threat_models.one_missing import OneMissing, attacker_of, exact, known_of, rows_of, whole_client

TRIALS, GAINS = {"membership": 10, "reconstruction": 1000}, {"membership": 0.3, "reconstruction": 0.035}
"""Where a statistic has two values, it names one of sixteen units twice as often as chance."""
CLASSES = ps.ClassSchema(2, 4, "NAB", 1.0)
RIDGE = ps.RidgeSchema(4, clip_norm=1.0, target_bound=1.0)
COHORT = ps.Cohort(5, 4, 200, 1)
HAZARD = ps.HazardSchema(
    4,
    2.0,
    bins=ps.Bins("months", (0, 6, 12, 24)),
    event="died",
    feature_names=("arm", "age", "dose"),
    transform=(ps.transforms.ConstantFeature(1.0),),
)


def values_of(schema):
    """Published values at which records differ: a map that keeps directions, small hazards, weights of any sign."""
    values = {} if test_contract.published(schema) is None else test_contract.published(schema).read()
    chance = np.random.default_rng(0)
    far = 4.0 if schema.task == "effect" else 0.5  # some propensities lie beyond the trim
    drawn = {name: Values.rounded(far * chance.normal(size=schema.needs[name])) for name in values}
    drawn |= {name: values[name] for name in ("S", "c") if name in values}
    if schema.task == "gradients":
        drawn |= {"M": Values.rounded(np.eye(schema.features) / 2)}
        drawn |= {"c": Values.rounded(np.array(1.0))} if "c" in drawn else {}
    if schema.task == "hazard":
        drawn["w"] = Values.rounded(np.r_[np.zeros(schema.features - 1), np.full(schema.periods, -2.5)])
    return drawn


def plan_of(schema, **changes):
    plan = test_contract.plan_of(schema, **changes)
    if schema.task == "scoring" or not (values := values_of(schema)):
        return plan
    return replace(plan, published=Published.of(values))


def rows_by_letter(plan, goal):
    """Rows of every quick attack of this sort on any kind, by the letter that each row is about."""
    sent, found = plan.schema.statistics, {}
    quick = [each for each in attacks() if each.goal == goal and each.effort >= 1 and not each.kinds]
    on_sums = [each for each in quick if isinstance(each, Examination)]
    pool, _ = to_attack(plan, seeded(0))
    for row in evaluate(plan, on_sums, pool, Effort(trials=TRIALS[goal], seed=1)).rows:
        if row.measured is not None:
            alone = row.metric.partition(" by ")[2].removesuffix(" alone")
            found.setdefault(sent if len(sent) == 1 else alone, []).append(row)
    return found


@pytest.fixture
def noiseless(monkeypatch):
    """Sessions of plans that promise something release exact sums, as many kinds may not without a promise."""
    monkeypatch.setattr(OneMissing, "released", lambda world, moments, _: exact(world.plan, moments))


@pytest.mark.usefixtures("noiseless")
@pytest.mark.parametrize("goal", TRIALS)
@pytest.mark.parametrize("schema", SAMPLES, ids=lambda schema: f"{schema.task}-{schema.statistics}")
def test_every_statistic_is_read_by_an_attack_of_each_sort(schema, goal):
    """Without noise an attack of each sort distinguishes records by each statistic alone.

    A count of all records together says that there is one more, and not which.
    """
    rows, unread = rows_by_letter(plan_of(schema), goal), set[str]()
    for row in schema.sent:
        alone = row.degree == 0 and row.blocks(schema.sizes) * row.entries(schema.sizes) == 1
        if alone and goal == "reconstruction":
            continue
        gains = (each.measured - each.baseline for each in rows.get(row.letter, []))
        unread |= {row.letter} if max(gains, default=0.0) < GAINS[goal] else set()
    assert not unread


@pytest.mark.parametrize("schema", SAMPLES, ids=lambda schema: f"{schema.task}-{schema.statistics}")
def test_what_a_unit_shows_is_at_most_what_was_promised(schema):
    plan = plan_of(schema)
    world = OneMissing.drawn(plan, 16, seeded(1))
    (_, with_it), (_, without) = world.ends(world.most_visible())
    step = float(np.linalg.norm((with_it - without) / world.levels))
    assert 0.01 * plan.noise.mu < step <= plan.noise.mu * (1 + 1e-9)


UNITS = {
    "record": promise(epsilon=3.0),
    "exchanged record": promise(epsilon=3.0, adjacency="replace-one"),
    "distributed": promise("distributed", epsilon=3.0),
    "local": promise("local", epsilon=3.0),
    "person": promise(epsilon=3.0, unit="person", max_records_per_person=4, person_clip=2.0),
    "averaged person": promise(epsilon=3.0, unit="person", person_clip="average"),
    "client": promise(epsilon=3.0, unit="client", max_records_per_client=4),
    "clipped client": promise(epsilon=3.0, unit="client", max_records_per_client=4, client_clip=1.5),
    "pure": promise(epsilon=3.0, delta=0.0),
}


@pytest.mark.parametrize("name", ["likelihood-ratio", "likeliest-unit"])
@pytest.mark.parametrize("unit", UNITS)
def test_under_noise_it_learns_something_within_its_ceiling(unit, name):
    schema = ps.CountSchema((ps.Bins("age", (0, 40, 60)),), (("age",),)) if unit == "pure" else CLASSES
    rows = examined(name, made.plan(schema, COHORT, UNITS[unit]), trials=100)
    assert all(row.verdict != "violates ceiling" for row in rows)
    assert rows[0].baseline < rows[0].ceiling < 1
    assert rows[0].measured <= rows[0].ceiling + 0.12
    letters = {row.metric.partition(" by ")[2] for row in rows[1:]}
    assert letters == ({f"{letter} alone" for letter in "NAB"} if schema is CLASSES else set())
    assert all(row.ceiling <= rows[0].ceiling for row in rows)


@pytest.mark.ci
@pytest.mark.parametrize("model", ["central", "distributed"])
def test_the_ratio_lands_on_its_ceiling(model):
    row = examined("likelihood-ratio", made.plan(CLASSES, COHORT, promise(model, epsilon=3.0)), trials=600)[0]
    assert row.interval[0] <= row.ceiling <= row.interval[1]
    assert row.interval[1] - row.interval[0] < 0.13


@pytest.mark.parametrize("name", ["likelihood-ratio", "likeliest-unit"])
def test_too_little_noise_violates_the_ceiling(name, monkeypatch):
    from threat_models.audits import target

    honest = target.session.release

    def weak(plan, total, survivors, *given, **named):
        noisy, exact = honest(plan, total, survivors, *given, **named), total.lift()
        return type(noisy)(plan, exact + (noisy.vector - exact) // 4, survivors)

    monkeypatch.setattr(target.session, "release", weak)
    rows = examined(name, made.plan(CLASSES, COHORT, promise(epsilon=2.0)), trials=200)
    assert rows[0].verdict == "violates ceiling"


@pytest.mark.parametrize("name", ["likelihood-ratio", "likeliest-unit"])
@pytest.mark.parametrize("schema", [CLASSES, RIDGE, ps.SitesSchema(4, 1.0)])
def test_without_noise_it_is_always_right(schema, name):
    row = examined(name, made.plan(schema, COHORT), trials=20)[0]
    assert (row.measured, row.ceiling, row.verdict) == (1.0, None, "leaks")


def test_a_unit_is_what_the_plan_promises_about():
    shapes = {
        unit: (rows_of(plan), known_of(plan), whole_client(plan), attacker_of(plan).unit)
        for unit, privacy in UNITS.items()
        if unit != "pure"
        for plan in [made.plan(CLASSES, COHORT, privacy)]
    }
    assert shapes["record"] == shapes["local"] == (1, 3, False, "record")
    assert shapes["averaged person"] == shapes["person"] == (2, 3, False, "record")
    assert shapes["client"] == shapes["clipped client"] == (2, 0, True, "client")
    assert attacker_of(made.plan(CLASSES, COHORT, UNITS["distributed"])).colluders == 1


def test_a_client_is_one_unit_of_a_promise_to_clients_and_a_record_is_two():
    plan = made.plan(CLASSES, COHORT, UNITS["client"])
    client = attacker_of(plan)
    assert guaranteed(plan, client) == plan.noise.guarantee
    assert guaranteed(plan, replace(client, unit="record")) == plan.noise.guarantee.of_group(2)


def test_one_statistic_alone_has_the_ceiling_of_its_row():
    plan = made.plan(CLASSES, COHORT, UNITS["record"])
    alone = {row.statistic: guaranteed(plan, attacker_of(plan), row.statistic).mu for row in plan.noise.rows}
    assert alone == {row.statistic: row.mu for row in plan.noise.rows}
    assert max(alone.values()) < plan.noise.mu


def test_a_minimum_count_is_left_out_and_the_row_says_so():
    plan = made.plan(CLASSES, COHORT, UNITS["record"], min_count=20)
    for name in ("likelihood-ratio", "likeliest-unit"):
        assert "minimum count is left out" in examined(name, plan, trials=8)[0].note


@pytest.mark.parametrize("times", ["discrete", "continuous"])
def test_the_time_of_an_event_is_read_without_noise(times, noiseless):
    row = examined("event-time", plan_of(replace(HAZARD, times=times)), trials=20)[0]
    assert row.measured == 1.0
    assert row.baseline < 0.25


def test_under_noise_the_time_of_an_event_stays_hidden():
    row = examined("event-time", plan_of(HAZARD), trials=100)[0]
    assert row.measured < 0.35
    assert row.verdict != "violates ceiling"


def test_a_plan_that_shows_no_time_says_so():
    """Weights at which every hazard passes the cap at once leave out every person."""
    plan = replace(plan_of(HAZARD), published=Published.of({"w": Values.rounded(np.full(6, 9.0))}))
    (attack,) = attacks_named(["event-time"])
    refused(PlanError, "move its sums differently", attack.examine, plan, seeded(1), trials=8, confidence=0.95)


def test_other_kinds_have_no_times_and_no_gradients():
    plan = made.plan(CLASSES, COHORT)
    for attack in attacks_named(["event-time", "gradient-inversion"]):
        assert "the plan measures a ClassSchema" in attack.refusal(plan)
