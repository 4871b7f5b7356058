"""Predicted widths against the widths that releases really have."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import privstats as ps
from benchmarks.inference.hazards import SCHEMA as WORLD
from benchmarks.measuring import RESULTS
from privstats import inference as inf
from privstats import session
from privstats.errors import PlanError
from privstats.randomness import seeded
from privstats.transforms import ConstantFeature
from tests.hazard.worlds import course_of, played, promise, world
from tests.lengths import first_by_day, sized

DRAWS = 40


def plan_of(epsilon, records=4_000):
    return ps.Plan(
        schema=ps.RidgeSchema(4, clip_norm=2.0, target_bound=2.0, transform=(ConstantFeature(1.0),)),
        cohort=ps.Cohort(2, 2, records),
        privacy=ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6),
    )


@pytest.mark.parametrize("epsilon", [2.0, 8.0])
def test_the_prediction_is_near_what_releases_have(epsilon):
    plan, rng = plan_of(epsilon), np.random.default_rng(0)
    X = rng.uniform(-1, 1, (4_000, 3))
    y = X @ np.array([0.3, -0.3, 0.3]) + rng.normal(size=4_000) * 0.3
    parts = [ps.measure(plan.schema, X[k::2], y[k::2]) for k in range(2)]
    widths = [
        np.diff(inf.ols(session.aggregate_unmasked(plan, parts, seeded(s))).conf_int()[1:]) / 2 for s in range(15)
    ]
    predicted = inf.predicted_half_width(plan, 4_000, variance=1 / 3, residual=0.3)
    assert np.median(widths) == pytest.approx(predicted.noisy, rel=0.2)
    assert predicted.exact < predicted.noisy


def test_a_slope_that_will_not_be_told_has_no_width():
    assert math.isinf(inf.predicted_half_width(plan_of(0.1), 50, variance=0.1).noisy)


def test_without_noise_both_widths_are_near():
    plan = ps.Plan(schema=plan_of(1.0).schema, cohort=ps.Cohort(2, 2, 9), privacy=ps.NoPrivacy())
    found = inf.predicted_half_width(plan, 100, variance=0.5, residual=1.0)
    assert found.exact == pytest.approx(1.96 / math.sqrt(50), rel=1e-3)
    assert found.noisy == pytest.approx(found.exact, rel=0.2)


@pytest.mark.parametrize("wrong", [{"variance": 0.0}, {"variance": 1.0, "residual": -1.0}])
def test_guesses_are_above_zero(wrong):
    with pytest.raises(PlanError, match="above 0"):
        inf.predicted_half_width(plan_of(1.0), 100, **wrong)


def test_the_command_prints_widths(privstats, tmp_path):
    (tmp_path / "plan.toml").write_text(plan_of(3.0).to_toml())
    done = privstats("plan", "suggest", "--plan", "plan.toml", "--half-width", "0.33", cwd=tmp_path, code=0)
    assert "100 of 100" in done.stdout
    done = privstats("plan", "suggest", "--plan", "plan.toml", "--half-width", "0.33", "--json", cwd=tmp_path)
    rows = json.loads(done.stdout)["half_widths"]
    assert [row["records"] for row in rows] == [4_000, 1_333, 400]
    assert [(row["reported"], row["draws"]) for row in rows[:1]] == [(100, 100)]
    assert privstats("plan", "suggest", "--half-width", "0.33", cwd=tmp_path).returncode == 2
    assert privstats("plan", "suggest", cwd=tmp_path).returncode == 2


def test_a_log_hazard_ratio_is_predicted_from_expected_events():
    course = course_of(20_000, 1.0)
    schema = replace(course.schema, expected_events=14_000)  # among the cohort's 40,000
    whole = replace(course.plan, schema=schema, privacy=promise(1.0))
    found = ps.inference.predicted_half_width(whole, 20_000, variance=0.22, draws=DRAWS)
    assert found.exact == pytest.approx(1.96 / math.sqrt(7_000 * 0.22), rel=1e-3)
    table = ps.inference.hazards(played(course, world(20_000, 1), 2))
    low, high = table.conf_int()[2]  # of a column that is centred
    assert 0.7 < found.noisy / ((high - low) / 2) < 1.1
    assert ps.inference.predicted_half_width(whole, 200, variance=0.22, draws=DRAWS).noisy == math.inf
    with pytest.raises(PlanError, match="set expected_events in the schema"):
        ps.inference.predicted_half_width(replace(whole, schema=course.schema), 200, variance=0.25)


COMMITTED = json.loads((RESULTS / "inference.effects.json").read_text())
GUESSED = {  # residual, share treated and spread of its log odds in the worlds of the audit
    "trial": (0.22, 0.5, 0.0),
    "trial, rare events": (0.357, 0.5, 0.0),
    "confounded": (0.08, 0.5, 0.89),
    "differing": (0.15, 0.29, 0.44),
}
CELLS = [
    (name, row)
    for name, rows in COMMITTED.items()
    if name not in ("machine", "beyond the trim")  # the world beyond it breaks what the prediction assumes
    for row in rows
    if row["reported"] > 0.8
]


@pytest.mark.parametrize(
    ("name", "row"),
    first_by_day(CELLS, lambda name, row: (name, row["world"], row.get("estimand"))),
    ids=[f"{row['world']}-{row['records']}-{row['epsilon']:g}" for _, row in CELLS],
)
def test_half_widths_of_effects_are_near_those_of_the_committed_tables(name, row):
    names = "abcdef" if "six columns" in name else "abcd"
    residual, treated, separation = GUESSED[row["world"]]
    trial = "probability" in row
    design = {"probability": row["probability"]} if trial else {"estimand": row["estimand"], "trim": 0.1}
    outcome = (0, 1) if "events" in row["world"] else (-1, 1)
    schema = ps.EffectSchema.of(dict.fromkeys(names, (-1.0, 1.0)), treatment="arm", outcome=outcome, **design)
    whole = ps.Effect.full_plan(
        schema=schema, cohort=ps.Cohort(2, 2, 2 * row["records"]), privacy=promise(row["epsilon"])
    )
    found = inf.predicted_half_width(
        whole, row["records"], variance=0.156, residual=residual, treated=treated, separation=separation, draws=DRAWS
    )
    assert found.noisy == pytest.approx(row["half width"], rel=0.15)
    assert found.exact < 1.05 * found.noisy


@pytest.mark.parametrize(("records", "lines_help"), [(300, False), (2_000, True)])
def test_outcome_lines_make_an_effect_narrower_from_some_five_hundred_records_on(records, lines_help):
    schema = ps.EffectSchema.of(dict.fromkeys("abcd", (-1.0, 1.0)), treatment="arm", outcome=(-1, 1), probability=0.5)
    lines, none = (
        inf.predicted_half_width(
            ps.Effect.start(schema, ps.Cohort(2, 2, 2 * records), promise(1.0), adjust=adjust),
            records,
            variance=0.156,
            draws=sized(40, 100),
        )
        for adjust in (True, False)
    )
    assert (lines.noisy < none.noisy) == lines_help


def test_an_effect_whose_propensity_noise_hides_has_no_width():
    schema = ps.EffectSchema.of({"a": (-1, 1)}, treatment="arm", outcome=(-1, 1), estimand="overlap", trim=0.1)
    whole = ps.Effect.full_plan(schema=schema, cohort=ps.Cohort(2, 2, 1_000), privacy=promise(0.1))
    assert inf.predicted_half_width(whole, 500, variance=0.2, draws=8).noisy == math.inf


@pytest.mark.parametrize("wrong", [{"treated": 1.0}, {"separation": -1.0}])
def test_guesses_of_an_effect_are_in_their_range(wrong):
    with pytest.raises(PlanError, match=next(iter(wrong))):
        inf.predicted_half_width(plan_of(1.0), 100, variance=0.5, **wrong)


HAZARDS = json.loads((RESULTS / "inference.hazards.json").read_text())
FOUR, SIX = HAZARDS["a third has the event, four rounds"], HAZARDS["4 % have the event, six rounds"]
HAZARD_CELLS = [(row, rounds, events) for rows, rounds, events in ((FOUR, 4, 0.277), (SIX, 6, 0.034)) for row in rows]


@pytest.mark.parametrize(
    ("row", "rounds", "events"),
    first_by_day(HAZARD_CELLS, lambda row, *_: math.ceil(row["reported"]) + math.floor(row["reported"])),
    ids=lambda value: f"{value['records']}-{value['epsilon']:g}" if isinstance(value, dict) else "",
)
def test_half_widths_of_hazards_are_near_those_of_the_committed_tables(row, rounds, events):
    """Nearest where every row is reported; none where none is."""
    schema = replace(WORLD, expected_events=round(2 * row["records"] * events))
    course = ps.Hazard.start(schema, ps.Cohort(4, 4, 2 * row["records"]), promise(row["epsilon"]), rounds=rounds)
    found = inf.predicted_half_width(course, row["records"], variance=1 / 3, draws=DRAWS)
    if row["reported"] in (0, 1):
        assert found.reported == DRAWS * row["reported"]
        assert found.noisy == (pytest.approx(row["half width"], rel=0.08) if row["reported"] else math.inf)
    else:  # the committed widths are of what is reported alone
        assert 0.4 * DRAWS < found.reported < DRAWS
        assert found.noisy > 0.9 * row["half width"]


def test_the_command_compares_a_trial_with_and_without_outcome_lines(privstats, tmp_path, few_draws):
    schema = ps.EffectSchema.of(dict.fromkeys("abcd", (20, 90)), treatment="arm", outcome=(-1, 1), probability=0.5)
    whole = ps.Effect.full_plan(schema=schema, cohort=ps.Cohort(2, 2, 3_000), privacy=promise(1.0))
    (tmp_path / "plan.toml").write_text(whole.to_toml())
    words = ("plan", "suggest", "--plan", "plan.toml", "--half-width", "0.33", "--residual", "0.22")
    done = privstats(*words, cwd=tmp_path, code=0)
    assert done.stdout.count("course init --share 0") == 3
    assert "in units of the outcome" in done.stdout
    rows = json.loads(privstats(*words, "--json", cwd=tmp_path).stdout)["half_widths"]
    assert [(row["records"], row["shares"][:4]) for row in rows[-2:]] == [(300, "outc"), (300, "none")]
    assert rows[-1]["noisy"] < rows[-2]["noisy"]
