"""The search over records and published values comes to the claimed sensitivity and never beyond it."""

import re
from dataclasses import replace
from typing import Any

import pytest

import privstats as ps
from privstats.kinds import calibration as calibration_moments
from privstats.kinds import party as parties
from privstats.moments import gradient_map
from privstats.schema import modules
from privstats.schema.public_values import values_path
from tests.course.cases import OF_CLOSED, RIDGE, SOFTMAX, parties_plan, plan_of, rounds, shards
from tests.mutation import bugs
from tests.schema.changed import change_kind
from threat_models.audits.gradients import audit_gradients
from threat_models.audits.target import target_of


def found(course: ps.Rounds, seed: int = 1, plan: str = "template") -> dict[tuple[str, str], tuple[float, bool]]:
    return found_of(getattr(course, plan), seed)


def found_of(plan: ps.Plan, seed: int = 1) -> dict[tuple[str, str], tuple[float, bool]]:
    report = audit_gradients(target_of(plan), ps.randomness.seeded(seed), moves=25, starts=4)
    assert report.violated == any(row[-1] for row in report.rows)
    return {(row[0], row[1]): (row[4], row[5]) for row in report.rows}  # type: ignore[misc]


@pytest.mark.ci
@pytest.mark.parametrize("schema", [SOFTMAX, RIDGE])
def test_the_claim_is_nearly_attained_and_never_beaten(schema: Any) -> None:
    ratios = found(rounds(schema))
    assert not any(violated for _, violated in ratios.values())
    assert ratios["g", "add-remove"][0] > 0.95
    assert ratios["g", "replace-one"][0] > 0.6
    assert ratios["joint", "add-remove"][0] > 0.9
    assert all(ratio <= 1 for ratio, _ in ratios.values())


@pytest.mark.ci
def test_the_claim_of_a_module_is_nearly_attained_and_never_beaten() -> None:
    pytest.importorskip("opacus")
    ratios = found(rounds(module="mlp/3"))
    assert ratios["g", "add-remove"][0] > 0.95
    assert ratios["g", "replace-one"][0] > 0.6
    assert all(ratio <= 1 and not violated for ratio, violated in ratios.values())


@pytest.mark.ci
def test_the_claim_of_a_session_for_all_pairs_is_nearly_attained_and_never_beaten() -> None:
    """The search moves rows, which the declared columns would hide; no bound depends on them."""
    plan = replace(rounds(OF_CLOSED, 4), clip=1.0, pairs=True).search
    assert plan is not None
    schema: Any = plan.schema
    ratios = found_of(replace(plan, schema=replace(schema, transform=())))
    assert ratios["g", "add-remove"][0] > 0.95
    assert ratios["g", "replace-one"][0] > 0.6
    assert all(ratio <= 1 and not violated for ratio, violated in ratios.values())


@pytest.mark.nightly
def test_a_module_whose_gradients_are_not_shortened_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opacus")
    from hidden_layer import gradients

    monkeypatch.setattr(gradients, "shortened", bugs.gradients_not_shortened(gradients.shortened))
    monkeypatch.setattr(modules, "_module_within", bugs.gradients_not_checked)
    assert found(rounds(module="mlp/3"))["g", "add-remove"][1]


@pytest.mark.ci
def test_a_claim_that_forgets_that_two_records_oppose_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    change_kind(monkeypatch, "gradients", move=bugs.as_added)
    assert found(rounds())["g", "replace-one"][1]


def calibration() -> ps.Rounds:
    return rounds(calibrated=True)


def test_the_claim_of_a_calibration_is_never_beaten() -> None:
    """It is a bound, which a softmax of three classes does not reach."""
    ratios = found(calibration(), plan="calibration")
    assert not any(violated for _, violated in ratios.values())
    assert 0.4 < ratios["t", "add-remove"][0] <= 1
    assert 0.5 < ratios["t", "replace-one"][0] <= 1


@pytest.mark.ci
def test_a_calibration_that_sends_confidences_instead_of_gains_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = calibration_moments.calibration_map
    monkeypatch.setattr(calibration_moments, "calibration_map", lambda *given: right(*given).cumsum(axis=1))
    assert found(calibration(), plan="calibration")["t", "add-remove"][1]


@pytest.mark.ci
def test_a_claim_that_prices_two_records_of_a_calibration_as_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    change_kind(monkeypatch, "calibration", move=bugs.as_added)
    assert found(calibration(), plan="calibration")["t", "replace-one"][1]


def of_parties(seed: int = 1, *, updates: bool = False) -> dict[tuple[str, str], tuple[float, bool]]:
    course = ps.PartyRounds.within(parties_plan())
    plan = course.update if updates else course.first
    report = audit_gradients(target_of(plan), ps.randomness.seeded(seed), moves=5, starts=2)
    return {(row[0], row[1]): (row[4], row[5]) for row in report.rows}  # type: ignore[misc]


@pytest.mark.parametrize("updates", [False, True])
def test_the_claim_for_parties_is_nearly_attained_and_never_beaten(updates: bool) -> None:
    ratios = of_parties(updates=updates)
    assert not any(violated for _, violated in ratios.values())
    assert all(0.99 < ratio <= 1 for ratio, _ in ratios.values())


def test_a_claim_that_prices_an_exchange_of_parties_as_one_that_comes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    change_kind(monkeypatch, "party-softmax", move=bugs.as_added)
    assert of_parties()["P", "replace-one"][1]


def test_a_party_that_may_be_twice_as_long_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = parties.truncated
    monkeypatch.setattr(parties, "truncated", lambda V, steps: 2 * right(V, steps))
    monkeypatch.setattr(parties, "_squared_length", lambda ray: 0)  # nor does the container refuse it
    for updates in (False, True):
        found = of_parties(updates=updates)
        assert found["P", "add-remove"][1]
        assert found["P", "replace-one"][1]


def test_a_map_whose_rows_are_not_shortened_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = gradient_map.unit_rows
    monkeypatch.setattr(gradient_map, "unit_rows", lambda *given: 2 * right(*given))
    monkeypatch.setattr(gradient_map, "_within", lambda schema, u, r, k: gradient_map.Mapped(u, r, k))
    assert found(rounds())["g", "add-remove"][1]


def test_plans_of_records_have_another_search() -> None:
    with pytest.raises(ps.PlanError, match="audit sensitivity"):
        audit_gradients(target_of(plan_of()), ps.randomness.seeded(1))


@pytest.mark.nightly
def test_the_command_searches_a_rounds_plan_and_the_others_say_what_they_take(tmp_path: Any, privstats: Any) -> None:
    course = rounds(model="distributed")
    plan = course.next(ps.simulate(course, shards())[:1])
    assert isinstance(plan.schema, ps.GradientSchema)
    (tmp_path / "round.toml").write_text(plan.to_toml())
    plan.published.save(values_path(tmp_path / "round.toml"))
    done = privstats(
        "audit", "sensitivity", "round.toml", "--starts", "1", "--seed", "1", "--json", cwd=tmp_path, code=0
    )
    assert '"audit": "gradients"' in done.stdout
    done = privstats("audit", "budget", "round.toml", cwd=tmp_path, code=0)
    assert "no claim is contradicted" in done.stdout
    for words in ("noise", "canary"):
        done = privstats("audit", words, "round.toml", cwd=tmp_path, code=2)
        assert re.search("GradientSchema; give a (ClassSchema|plan of records)", done.stderr), done.stderr
