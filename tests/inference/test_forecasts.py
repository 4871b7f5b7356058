"""Forecasts: the reader's own rules on draws from public guesses, before anything is spent."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import privstats as ps
from privstats import inference as inf
from privstats.errors import PlanError, ReleaseError
from privstats.inference import forecasts
from privstats.inference.forecasts import Guesses, forecast_sentences, study_of
from tests import made
from tests.hazard.worlds import course_of, played, schema, world

FEW = 10  # draws, where the number says enough


def trial(epsilon=1.0, records=2_000, **changes):
    usual = {"treatment": {"arm": ("placebo", "drug")}, "outcome": {"well": ("no", "yes")}, "probability": 0.5}
    columns = {"age": (20, 90), "smoking": ("never", "former", "current")}
    effect = ps.EffectSchema.of(columns, **{**usual, **changes})
    return ps.Effect.start(effect, ps.Cohort(2, 2, 2 * records), made.promise(epsilon=epsilon, delta=1e-6))


def survival(events, epsilon, records=4_000, **changes):
    given = schema(times="continuous", expected_events=events, **changes)
    return ps.Hazard.start(given, ps.Cohort(2, 2, records), made.promise(epsilon=epsilon, delta=1e-6))


def test_what_no_draw_reports_is_said_with_the_reader_s_reason(few_draws):
    found = inf.forecast(survival(552, 0.5), records=4_000, draws=FEW)
    assert found.reports_nothing
    assert [row.half_width for row in found.rows] == [math.inf] * 3
    assert "noise hides it" in found.why
    (line,) = forecast_sentences(survival(552, 0.5))
    assert line.startswith("WARNING: no row ")
    assert "4,000 records: reported " in line
    assert f"in 0 of {few_draws} draws" in line


def test_hazards_of_many_events_are_reported_and_as_wide_as_the_reader_s():
    course = survival(8_000, 8.0, records=20_000)
    found = inf.forecast(course, records=20_000, draws=FEW)
    assert {row.reported for row in found.rows} == {FEW}
    table = inf.hazards(played(course_of(20_000, 8.0), world(20_000, 1), 2))
    low, high = table.conf_int()[2]
    assert 0.5 < found.worst.half_width / ((high - low) / 2) < 1.5


def test_a_rare_stratum_widens_every_ratio_and_hides_none():
    strata = ps.Categories("site", ("a", "b", "c", "d"))
    course = survival(2_000, 8.0, records=8_000, strata=strata)
    even, rare = (inf.forecast(course, records=8_000, draws=FEW, rarest=share) for share in (None, 0.02))
    assert even.worst.reported == rare.worst.reported == FEW
    assert even.worst.half_width < rare.worst.half_width


def test_a_rare_stratum_leaves_the_arm_of_a_hazard_as_guessed():
    """The share of the rarest stratum was also that of the arm, so forecasts hid what readers reported."""
    site = ps.Categories("site", ("a", "b", "c", "d"))
    course = ps.Hazard.start(
        schema(times="continuous", expected_events=2_000, strata=site),
        ps.Cohort(2, 2, 8_000),
        made.promise(epsilon=8.0, delta=1e-6),
        by="arm",
    )
    study = study_of(course)
    drawn, _ = study.draw(Guesses(4_000, rarest=0.02, treated=0.3), 4_000, np.random.default_rng(0))
    assert np.mean(drawn["arm"]) == pytest.approx(0.3, abs=0.03)
    assert np.mean(np.array(drawn["site"]) == "d") == pytest.approx(0.02, abs=0.01)


def test_the_names_are_those_of_the_plan_s_table():
    found = inf.forecast(trial(subgroups=(ps.Bins("age", (20, 55, 90)),)), records=2_000, draws=2)
    assert [row.name for row in found.rows] == ["well", "well age: under 55", "well age: 55 or more"]
    assert [row.reported for row in found.rows] == [2, 2, 2]
    several = replace(found, rows=(*found.rows[:2], replace(found.rows[2], reported=0, half_width=math.inf)))
    assert several.worst.name == "well age: 55 or more"
    assert all(fact in several.sentence for fact in ("under 55 in 2;", "55 or more in 0"))


def test_sites_with_probabilities_of_their_own_are_drawn_by_site():
    course = trial(probability=(0.3, 0.6))
    X, _ = study_of(course).draw(Guesses(4_000), 4_000, np.random.default_rng(0))
    arm = X[:, list(study_of(course).course.plan.schema.feature_names).index("arm")]
    assert [float(arm[k::2].mean()) for k in (0, 1)] == pytest.approx([0.3, 0.6], abs=0.02)
    assert inf.forecast(course, records=2_000, draws=2).worst.reported == 2


@pytest.mark.parametrize("variance", [0.05, 1 / 3, 0.7, 1.0])
def test_columns_have_the_guessed_variance_within_their_range(variance):
    drawn = forecasts._bounded(variance, (40_000,), np.random.default_rng(0))
    assert drawn.var() == pytest.approx(variance, rel=0.05)
    assert np.abs(drawn).max() <= 1


def test_texts_are_drawn_with_the_rarest_share_behind_their_maps():
    study = study_of(trial())
    X, y = study.draw(Guesses(4_000, rarest=0.1), 4_000, np.random.default_rng(0))
    names = study.course.plan.schema.feature_names
    column = X[:, names.index("smoking: current")]
    assert sorted(set(column.tolist())) == [0.0, 1.0]
    assert column.mean() == pytest.approx(0.1, abs=0.02)
    assert set(y.tolist()) == {0.0, 1.0}


def test_sums_of_many_records_are_multiples_of_few():
    """Noise of the plan's size, and sums of as many records as are guessed."""
    course = trial(records=50_000)
    study, chance = study_of(course), np.random.default_rng(0)
    (releases,) = [next(forecasts._drawn(study, Guesses(50_000), chance, 1))]
    assert pytest.approx(50_000, rel=0.01) == releases[-1].moments.N
    assert releases[-1].sigma == study.course.plan.noise.released_sigma(2)


@pytest.mark.parametrize(
    ("wrong", "said"), [({"rarest": 0.0}, "rarest"), ({"treated": 1.0}, "treated"), ({"records": 0}, "records")]
)
def test_guesses_are_in_their_range(wrong, said):
    with pytest.raises(PlanError, match=said):
        inf.forecast(trial(), **{"records": 100, **wrong}, draws=1)


def test_plans_of_other_kinds_have_no_forecast():
    counts = ps.CountSchema(variables=(ps.Categories("x", ("a", "b")),), tables=(("x",),))
    plan = made.plan(counts, ps.Cohort(2, 2, 100))
    assert forecast_sentences(plan) == []
    with pytest.raises(PlanError, match="regressions, effects and hazards"):
        inf.forecast(plan, records=100)
    (line,) = forecast_sentences(course_of(2_000, 1.0))
    assert "set expected_events" in line


def hazards_of(epsilon=8.0, records=1_445, events=552):
    """Five columns, as a registry of some hundred events has."""
    maps = ps.transforms.Centre((0.5,) * 5), ps.transforms.Scale((0.5,) * 5), ps.transforms.ConstantFeature(1.0)
    given = ps.HazardSchema(
        6,
        clip_norm=6**0.5,
        bins=ps.Bins("months", tuple(range(0, 61, 12))),
        event="died",
        feature_names=("arm", "age", "size", "nodes", "hormones"),
        transform=maps,
        times="continuous",
        expected_events=events,
    )
    return ps.Hazard.start(given, ps.Cohort(2, 2, records), made.promise(epsilon=epsilon, delta=1e-6))


def test_a_forecast_states_what_narrower_columns_hide(few_draws):
    """Even columns are reported, and hardly a study has them: registries use a part of the declared ranges."""
    (line,) = forecast_sentences(hazards_of())
    words = tuple(f"with {each}, " for each in forecasts._NARROWER)
    assert [word in line for word in words] == [True] * 3
    assert line.index("for columns spread evenly") < line.index(words[0]) < line.index("if fewer come")
    tenth = line.partition(words[2])[2]
    assert f"in 0 of {few_draws} draws" in tenth.partition("; if fewer")[0]


def test_a_world_of_narrow_columns_is_given_no_advice_that_it_refutes():
    """Noise hides the ratios; six rounds hide more than four, and no table advises them."""
    rng = np.random.default_rng(0)
    course, u = hazards_of(), rng.uniform(0, 1, (1_445, 5))
    u[:, 2:4] = rng.beta(1.2, 2.5, (1_445, 2)) / 7
    passed = rng.exponential(1 / (0.0075 * np.exp((u - u.mean(axis=0)) @ [0.5, -0.4, 3.0, 4.0, -0.6])))
    left = np.minimum(rng.exponential(200, 1_445), 60)
    names = course.schema.feature_names
    table = dict(zip(names, u.T, strict=True)) | {"months": np.minimum(passed, left), "died": (passed <= left) * 1}
    reported = {}
    for rounds in (4, 6):
        found = inf.hazards(played(replace(course, rounds=rounds, promise=None), table, 1))
        reported[rounds] = int(found.reported.sum())
        assert "six rounds" not in " ".join(found.notes)
    assert reported[6] <= reported[4] <= 1


def test_an_adjusted_effect_is_forecast_wider_where_columns_are_narrower():
    """Along a narrow column noise hides who is treated, and the interval allows for any propensity there."""
    schema = ps.EffectSchema.of(
        {"age": (25, 75), "dose": (1, 80), "years": (1, 65)}, treatment="quit", outcome={"gain": (-50, 50)}, trim=0.1
    )
    course = ps.Effect.start(schema, ps.Cohort(2, 2, 1_566), made.promise(epsilon=1.0, delta=1e-6))
    even, fifth = (inf.forecast(course, records=1_566, variance=v, draws=FEW).worst for v in (1 / 3, 1 / 15))
    assert fifth.half_width > 2 * even.half_width


def test_a_forecast_that_a_usual_world_refutes_is_a_warning(monkeypatch):
    """Even columns report the row, and a fifth of their variance hides it."""

    def drawn(*_, variance=1 / 3, **__):
        known = variance > 0.1
        rows = (forecasts.ForecastRow("age", 97 if known else 12, 0.2 if known else math.inf),)
        return forecasts.Forecast(400, 100, rows, "noise hides it")

    monkeypatch.setattr(forecasts, "forecast", drawn)
    (line,) = forecast_sentences(trial())
    half, fifth, _ = forecasts._NARROWER
    warning, _, facts = line.partition("forecast for 400 records")
    assert warning.startswith("WARNING: do not rely on")
    assert f"with {fifth}, at least half" in warning
    assert "97 of 100 draws" in facts
    assert f"with {half}, reported in 97" in facts
    monkeypatch.setattr(forecasts, "_USUAL", 1)
    assert forecast_sentences(trial())[0].startswith("forecast for 400 records")


def test_a_draw_that_the_reader_refuses_reports_no_row(monkeypatch):
    """The forecast of such a plan was empty, as if nothing were to say."""
    monkeypatch.setattr(forecasts, "effects", lambda _: (_ for _ in ()).throw(ReleaseError("noise hides both arms")))
    found = inf.forecast(trial(), records=500, draws=2)
    assert (found.reports_nothing, found.why) == (True, "noise hides both arms")
    (line,) = forecast_sentences(trial())
    assert "no row will be reported" in line


def test_rows_that_no_draw_reports_are_a_warning_next_to_others_that_are(monkeypatch):
    rows = (forecasts.ForecastRow("age", 97, 0.2), forecasts.ForecastRow("arm", 0, math.inf))
    monkeypatch.setattr(forecasts, "forecast", lambda *_, **__: forecasts.Forecast(400, 100, rows, "noise hides it"))
    (line,) = forecast_sentences(trial())
    assert line.startswith("WARNING: arm ")
    assert all(fact in line for fact in ("400 records", "age in 97", "arm in 0", "noise hides it"))


def test_checks_of_a_plan_and_a_course_print_the_forecast(privstats, tmp_path, few_draws):
    course = survival(552, 0.5)
    whole = replace(course.plan, privacy=made.promise(epsilon=0.5, delta=1e-6))
    (tmp_path / "plan.toml").write_text(whole.to_toml())
    text = " ".join(privstats("plan", "check", "plan.toml", cwd=tmp_path, code=0).stdout.split())
    assert all(fact in text for fact in ("WARNING: no row ", "(forecast for 4,000 records"))
    ps.course.write(tmp_path / "course.toml", trial())
    text = " ".join(privstats("course", "check", "course.toml", cwd=tmp_path, code=0).stdout.split())
    reported = f"reported in {few_draws} of {few_draws} draws, for columns spread evenly"
    assert f"forecast for 4,000 records: {reported}" in text
    facts = json.loads(privstats("course", "check", "course.toml", "--json", cwd=tmp_path, code=0).stdout)
    assert len(facts["forecast"]) == 1


def test_a_forecast_is_the_reader_s_verdict_on_the_same_releases(monkeypatch):
    """Whatever the reader hides, the forecast counts as hidden: no rule stands twice."""
    monkeypatch.setattr(forecasts, "effects", lambda releases: _hiding(inf.effects(releases)))
    assert inf.forecast(trial(epsilon=8.0), records=2_000, draws=2).reports_nothing


def _hiding(table):
    return replace(table, tables=tuple(replace(each, hidden="for a test") for each in table.tables))


def test_the_seed_is_fixed_so_that_two_checks_print_one_number():
    first, second = (inf.forecast(trial(), records=500, draws=3) for _ in range(2))
    assert first == second
