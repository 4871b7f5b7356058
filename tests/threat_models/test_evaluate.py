"""Runs are reproducible, can be stopped and continued, and never depend on which other attacks run."""

from dataclasses import replace

import pytest

from privstats.errors import DataError, PlanError
from privstats.randomness import seeded
from tests.made import refused
from threat_models.adversary import SIGHTS
from threat_models.attack import Attack, attacks, attacks_named
from threat_models.axes import AXES
from threat_models.data import synthetic_pool
from threat_models.evaluate import Effort, Results, evaluate, matrix, sweep, trial_count

from .conftest import plan_of, promise
from .test_adversary import planted
from .test_report import row

QUICK = Effort(trials=10, records=8, seed=4)
NAMES = ["mean-ratio", "quadratic", "informed", "differencing"]


def test_the_same_seed_gives_the_same_bytes(pool):
    plan, chosen = plan_of(promise()), attacks_named(NAMES)
    first, again = (evaluate(plan, chosen, pool, QUICK).to_json() for _ in range(2))
    assert first == again
    assert evaluate(plan, chosen, pool, replace(QUICK, seed=5)).to_json() != first


@pytest.mark.ci
def test_a_row_does_not_depend_on_what_else_runs(pool):
    plan = plan_of(promise())
    all_of_them = evaluate(plan, attacks_named(NAMES), pool, QUICK).rows
    for index, name in enumerate(NAMES):
        alone = evaluate(plan, attacks_named([name]), pool, QUICK).rows[0]
        assert (alone.measured, alone.baseline) == (all_of_them[index].measured, all_of_them[index].baseline)


def test_more_rows_widen_every_interval(pool):
    plan = plan_of(promise())
    alone = evaluate(plan, attacks_named(["mean-ratio"]), pool, QUICK).rows[0]
    together = evaluate(plan, attacks_named(NAMES), pool, QUICK).rows[0]
    assert together.interval[0] < alone.interval[0]
    assert together.interval[1] > alone.interval[1]


def test_without_a_seed_every_run_is_another(pool):
    plan, chosen, free = plan_of(), attacks_named(["mean-ratio"]), replace(QUICK, seed=None)
    assert evaluate(plan, chosen, pool, free).rows[0].roc != evaluate(plan, chosen, pool, free).rows[0].roc


def test_a_stopped_run_goes_on_where_it_was(pool, tmp_path):
    plan, chosen, path = plan_of(promise()), attacks_named(NAMES), tmp_path / "rows.jsonl"
    whole = evaluate(plan, chosen, pool, QUICK)
    ticks = []

    def stop(count):
        ticks.append(count)
        if len(ticks) == 25:
            raise KeyboardInterrupt

    refused(KeyboardInterrupt, "", evaluate, plan, chosen, pool, replace(QUICK, results=path, tick=stop))
    assert len(path.read_text().splitlines()) > 1
    path.write_bytes(path.read_bytes() + b'{"key": "cut o')
    ticks.clear()
    assert evaluate(plan, chosen, pool, replace(QUICK, results=path, tick=ticks.append)) == whole
    assert 0 < sum(ticks) < trial_count(plan, chosen, QUICK)
    ticks.clear()
    assert evaluate(plan, chosen, pool, replace(QUICK, results=path, tick=ticks.append)) == whole
    assert not ticks


def test_finished_rows_are_kept_once_and_by_their_key(tmp_path):
    path = tmp_path / "rows.jsonl"
    results = Results(path)
    results.put("a", (row(interval=(0.1, 0.2)),))
    results.put("a", (row(),))
    assert Results(path).get("a") == (row(interval=(0.1, 0.2)),)
    assert Results(path).get("b") is None


def test_a_results_file_that_cannot_be_used_is_one_sentence(tmp_path, monkeypatch):
    refused(DataError, "cannot write results", Results(tmp_path / "missing" / "rows.jsonl").put, "a", (row(),))
    refused(DataError, "cannot read .*: Is a directory", Results, tmp_path)
    big = tmp_path / "rows.jsonl"
    big.write_text("{}")
    monkeypatch.setattr("privstats.files.result_cache._MAX_BYTES", 1)
    refused(DataError, "has more than 1 bytes", Results, big)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"trials": 2}, "trials"), ({"records": 0}, "records"), ({"confidence": 1.0}, "confidence"),
     ({"seed": None, "results": "x"}, "needs a seed")],
)  # fmt: skip
def test_an_effort_that_says_nothing_is_refused(change, message):
    refused(DataError, message, replace, QUICK, **change)


@pytest.mark.ci
def test_a_sweep_names_its_value_in_every_row(pool):
    plan, chosen = plan_of(promise()), attacks_named(["mean-ratio"])
    for axis, values in (("epsilon", [1, 8]), ("records", [3, 12]), ("dropouts", [0, 1])):
        rows = sweep(plan, chosen, pool, axis, values, QUICK).rows
        assert [each.setting for each in rows] == [{axis: float(value)} for value in values]
        assert rows[0].measured != rows[1].measured
    ceilings = [each.ceiling for each in sweep(plan, chosen, pool, "epsilon", [1, 8], QUICK).rows]
    assert ceilings[0] < ceilings[1]


def test_an_adversary_of_one_release_is_swept_over_several_too(pool):
    rows = sweep(plan_of(promise()), attacks_named(["repeated-releases"]), pool, "releases", [1, 4], QUICK).rows
    assert [each.sees for each in rows] == ["release", "releases"]


def test_a_sweep_that_cannot_be_is_one_sentence(pool):
    chosen = attacks_named(["mean-ratio"])
    refused(DataError, "values over one of", sweep, plan_of(), chosen, pool, "size", [1], QUICK)
    refused(DataError, "values over one of", sweep, plan_of(), chosen, pool, "records", [], QUICK)
    impossible = {"records": (0, 2.5, float("nan")), "dropouts": (-1, 2), "releases": (0, 1.5)}
    for axis, values in impossible.items():
        for value in values:
            with pytest.raises(DataError, match=f"a sweep over {axis} needs integers"):
                sweep(plan_of(), chosen, pool, axis, [value], QUICK)
    refused(PlanError, "no epsilon to vary", sweep, plan_of(), chosen, pool, "epsilon", [1], QUICK)


@pytest.mark.ci
def test_the_matrix_has_every_attack_by_everybody(pool):
    chosen = attacks_named(["mean-ratio", "informed", "differencing", "canary-audit"])
    report = matrix(plan_of(promise("distributed")), chosen, pool, QUICK)
    found = {(each.attack, each.sees): each for each in report.rows if each.measured is not None}
    assert {sees for name, sees in found if name == "mean-ratio"} == set(SIGHTS) - {"heads"}
    assert {sees for name, sees in found if name == "differencing"} == {"releases"}
    assert found["mean-ratio", "cohort"].ceiling is None
    assert found["informed", "transcript"].ceiling is not None
    notes = {each.note for each in report.rows if each.measured is None}
    assert "needs sums; models are turned back into sums first" in notes
    assert "is written for several releases of the same records" in notes


def test_what_does_not_apply_has_a_verdict_of_its_own_and_says_why(pool):
    few = evaluate(plan_of(statistics="NA"), attacks_named(["quadratic", "canary-audit"]), pool, QUICK).rows
    assert [each.verdict for each in few] == ["does not apply"] * 2
    assert few[0].note == "needs one of the statistics S, B, G, and the plan sends NA"
    assert few[1].note == "the plan claims nothing, so there is no claim to audit"
    crowded = evaluate(plan_of(), attacks_named(["mean-ratio"]), pool, replace(QUICK, records=5000)).rows[0]
    assert "fewer records per class" in crowded.note
    assert crowded.verdict == "underpowered"  # other records would let it be played


@pytest.mark.ci
def test_the_audits_report_through_the_same_rows(pool):
    report = evaluate(plan_of(promise(epsilon=8.0)), attacks_named(["canary-audit"]), pool, Effort(trials=100, seed=1))
    assert [each.metric for each in report.rows[:4]] == ["mu of N", "mu of A", "mu of S", "mu of joint"]
    for each in report.rows[:4]:
        assert 0 < each.measured <= each.ceiling
        assert each.verdict == "leaks"


@pytest.mark.ci
def test_a_violated_audit_is_a_violated_report(pool, monkeypatch):
    from threat_models.attacks import audits
    from threat_models.audits.canary import audit_canary

    def exaggerate(target, rng, **how):
        found = audit_canary(target, rng, **how)
        place = found.columns.index("mu claimed")
        return replace(found, rows=tuple((*r[:place], r[place] / 3, *r[place + 1 :]) for r in found.rows))

    monkeypatch.setattr(audits, "audit_canary", exaggerate)
    plan = plan_of(promise(epsilon=8.0))
    assert evaluate(plan, attacks_named(["canary-audit"]), pool, Effort(trials=100, seed=1)).violated


def test_every_attack_is_listed_with_its_place():
    listed = attacks()
    assert [attack.number for attack in listed] == sorted(attack.number for attack in listed)
    assert len({attack.name for attack in listed}) == len(listed)
    for attack in listed:
        assert 1 <= attack.number <= 16
        assert attack.title.startswith(("an attacker", "an auditor"))
        assert attack.name == attack.name.lower()
    assert attacks_named([]) == listed
    of_any_plan = {each.name for each in listed if isinstance(each, Attack) and not each.reads}
    assert of_any_plan == {"informed", "repeated-releases", "published-model"}, "set `reads` in the attack's file"
    refused(DataError, "no attack 'bogus'", attacks_named, ["bogus"])


OF_OTHER_PLANS = {"rotation", "rotation-on-the-grid", "random-cohorts", "decoded-image", "float-digits"}
"""Attacks that get nothing of two records per class without noise; their tests run them where they succeed."""


def test_an_attack_succeeds_where_nothing_hides_the_records():
    """An attack that always guessed the same was listed, and its row read "no evidence"."""
    plan, idle = plan_of(), set()
    for attack in (each for each in attacks() if isinstance(each, Attack)):
        effort = Effort(trials=24, records=attack.records or 2, seed=1)
        (found,) = evaluate(plan, [attack], synthetic_pool(plan, seeded(0)), effort).rows
        idle |= {attack.name} if not found.measured or found.measured < found.baseline + 0.2 else set()
    assert idle == OF_OTHER_PLANS, "run the attack where it succeeds, in its own test, and list it here"


def test_an_attack_is_one_class_that_registers_itself():
    from threat_models.attack import _ATTACKS

    assert isinstance(planted(lambda self, view, rng: rng), Attack)
    assert "cheat" not in _ATTACKS
    assert AXES == ("epsilon", "records", "dropouts", "releases")


def test_a_plan_with_names_is_attacked_like_one_without(pool):
    """Worlds number their classes: with names in the plan every attack said that its labels were no texts."""
    plan = plan_of(promise())
    schema = replace(plan.schema, class_names=("ash", "elm"), feature_names=tuple("abcdef"))
    chosen, effort = attacks_named(["mean-ratio"]), Effort(trials=8, records=8, seed=1)
    named, bare = (evaluate(each, chosen, pool, effort) for each in (replace(plan, schema=schema), plan))
    assert named.rows == bare.rows
    assert named.rows[0].measured is not None
    assert named.plan != bare.plan
