"""One liar in sessions whose reports are proved: what enters, what an admitted lie costs, and where the climb looks."""

from functools import cache

import numpy as np
import pytest

import privstats as ps
from privstats.randomness import seeded
from privstats.secagg.upload.leader import Leader
from tests.threat_models.conftest import PANEL
from threat_models.attack import attacks_named
from threat_models.attacks.admissible_lies import best_record, climbed, slopes, worst, worth
from threat_models.attacks.poisoned_sums import PoisonedSums, Stage, beyond, sent

pytestmark = pytest.mark.filterwarnings("ignore:validity is experimental")

CLASSES = ps.ClassSchema(3, 6, "NAB", clip_norm=1.0)
RIDGE = ps.RidgeSchema(5, clip_norm=1.0, target_bound=1.0)
MOMENTS, NORM = (ps.plan.Validity(level, most_records=12) for level in ("moments", "norm"))


def plan_of(validity, schema=CLASSES, **more):
    cohort = ps.Cohort(5, 4, 60, 1)
    return ps.Plan(schema=schema, cohort=cohort, privacy=ps.NoPrivacy(), validity=validity, **{**PANEL_OF_TWO, **more})


PANEL_OF_TWO = {**PANEL, "panel": PANEL["panel"][:2]}


@cache
def examined(plan, trials=8):
    return {row.metric: row for row in PoisonedSums().examine(plan, seeded(1), trials=trials, confidence=0.95)}


@pytest.mark.ci
@pytest.mark.parametrize(
    ("validity", "schema"),
    [
        (MOMENTS, CLASSES),
        *(pytest.param(*each, marks=pytest.mark.nightly) for each in ((NORM, CLASSES), (MOMENTS, RIDGE))),
    ],
)
def test_no_sum_beyond_the_statement_enters_and_invented_records_do(validity, schema):
    rows = examined(plan_of(validity, schema))
    taken, lost = rows["false sums taken"], rows["accuracy lost"]
    assert (taken.measured, taken.ceiling, taken.worlds) == (0.0, 0.0, 8)
    assert taken.verdict != "violates ceiling"
    assert 0.0 < lost.measured <= 1.0
    assert "12 invented records always pass" in lost.note


@pytest.mark.ci
def test_every_lie_enters_where_nothing_is_proved():
    rows = examined(plan_of(None))
    assert (rows["false sums taken"].measured, rows["false sums taken"].ceiling) == (1.0, None)
    assert rows["false sums taken"].verdict == "leaks"
    assert rows["accuracy lost"].measured > examined(plan_of(MOMENTS))["accuracy lost"].measured


def test_a_leader_that_ignores_its_verdict_violates_the_claim(monkeypatch):
    monkeypatch.setattr(Leader, "_proved", lambda leader, part, accepted: accepted)
    row = PoisonedSums()._entering(Stage.of(plan_of(MOMENTS), seeded(1)), seeded(1), 2, 0.95)
    assert (row.measured, row.verdict) == (1.0, "violates ceiling")


def test_what_a_level_admits_passes_its_plan_and_not_a_stricter_one():
    """Each lie is the worst of its level, and is sent as its liar proves it."""
    stage = Stage.of(plan_of(MOMENTS), seeded(1))
    scene, rng = stage.scene(), seeded(2)
    lies = {level: worst(scene, level, stage.records, 16, rng).vector(CLASSES) for level in ("records", "norm")}
    for level, validity, enters in (("records", MOMENTS, True), ("norm", NORM, True), ("norm", MOMENTS, False)):
        end = sent(plan_of(validity), stage.parts, {0: lies[level]}, rng)
        assert (0 in end.survivors) is enters
        assert end.unproved == (not enters)
    assert scene.accuracy(lies["records"]) <= scene.accuracy(scene.own)
    end = sent(plan_of(None), stage.parts, {0: lies["norm"]}, rng)
    assert np.array_equal(end.total, scene.others + lies["norm"])


def test_a_climb_never_ends_worse_than_it_began():
    scene = Stage.of(plan_of(MOMENTS), seeded(3)).scene()
    start = worst(scene, "records", 12, 8, seeded(4))
    found = climbed(scene, [start], lambda lie: lie, 1)
    assert scene.accuracy(found.vector(CLASSES)) == scene.accuracy(start.vector(CLASSES))
    assert start.weights[0].sum() == 12
    assert not (start.weights % 1).any()
    assert (np.linalg.norm(start.X, axis=1) <= 1 + 1e-9).all()
    assert set(beyond(CLASSES, ps.encoding.flatten(ps.measure(CLASSES, [[0.1] * 6], [0])))) >= {"sums times 100"}


def test_slopes_are_those_of_differences_and_the_best_record_beats_random_ones():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), np.arange(60) % 3
    X[:, 0] += y
    N, A, B = np.bincount(y).astype(float), np.eye(3)[y].T @ X, X.T @ X
    test = rng.normal(size=(30, 4)), np.arange(30) % 3
    _, slope = slopes(N, A, B, *test)
    for place, step in enumerate((np.array([1.0, -1.0, 0.0]), rng.normal(size=A.shape), np.eye(4))):
        sums = [N, A, B]
        more, less = (
            slopes(*sums[:place], sums[place] + sign * step, *sums[place + 1 :], *test)[0] for sign in (1e-5, -1e-5)
        )
        assert (more - less) / 2e-5 == pytest.approx(float((slope[place] * step).sum()), rel=1e-3, abs=1e-9)
    best, label = best_record(slope, 2.0)
    others = rng.normal(size=(3_000, 4))
    others *= 2 / np.linalg.norm(others, axis=1, keepdims=True)
    least = min(worth(slope, others, np.full(len(others), c)).min() for c in range(3))
    assert np.linalg.norm(best) <= 2 + 1e-9
    assert worth(slope, best[None], np.array([label]))[0] <= least


def test_plans_without_a_panel_and_sums_that_no_climb_reads_are_refused():
    (attack,) = attacks_named(["poisoned-sums"])
    assert "its panel" not in (attack.refusal(plan_of(None)) or "")
    assert "has none" in attack.refusal(plan_of(None, protocol="interactive", panel=()))
    assert "N, A and B of classes" in attack.refusal(plan_of(None, ps.ClassSchema(3, 6, "NAS", 1.0)))
    assert attack.refusal(plan_of(MOMENTS)) is None
