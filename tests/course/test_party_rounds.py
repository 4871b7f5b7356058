"""Two rounds of whole parties: one promise for both, an update that no published weights make longer, and one head."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import privstats as ps
from privstats.cli.main import app
from privstats.errors import DataError, HeadError, PlanError, ReleaseError
from privstats.moments import gradient_map
from privstats.schema.public_values import VALUE_BITS, Published, Values, values_path
from privstats.workflows.report.explanations import not_promised
from privstats.workflows.report.sessions import collected
from tests.course.cases import PARTIES, C, D, parties_plan, plan_of, promise, shards
from tests.made import refused, unnamed
from threat_models.audits.target import target_of
from threat_models.findings import _audits

MANY = 40
UPDATES = ps.PartyUpdateSchema.of(PARTIES)
MOST = (1 << (VALUE_BITS - 1)) - 1


def course(**changes: Any) -> ps.PartyRounds:
    return ps.PartyRounds.within(parties_plan(MANY, **{"epsilon": 30.0, **changes}))


@pytest.fixture(scope="module")
def released() -> tuple[ps.PartyRounds, list[ps.Release]]:
    made_of = course()
    return made_of, ps.simulate(made_of, shards(clients=MANY), rng=ps.randomness.seeded(2))


def in_floats(X: np.ndarray, y: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The definition, in real numbers."""
    U = X / np.linalg.norm(X, axis=1, keepdims=True)
    W = ahead = start
    for step in range(30):
        scores = np.exp(U @ ahead.T)
        before, W = W, ahead + C * (np.eye(C)[y] - scores / scores.sum(axis=1, keepdims=True)).T @ U / len(U)
        ahead = W + step / (step + 3) * (W - before)
    moved = W - start - (W - start).mean(axis=0)
    return np.asarray(moved / np.linalg.norm(moved))


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("model", ["central", "distributed", "local"])
def test_both_rounds_keep_the_promise_and_share_it_equally(model: str, adjacency: str) -> None:
    whole = parties_plan(epsilon=8.0, model=model, adjacency=adjacency)
    found = ps.PartyRounds.within(whole)
    one, two = (plan.noise for plan in found.priced)
    assert whole.noise.mu * (1 - 1e-6) < found.mu <= whole.noise.mu
    assert one.sigma == two.sigma
    assert one.mu == two.mu == pytest.approx(whole.noise.mu / math.sqrt(2), rel=1e-6)
    assert found.promise.holds(found.mu)


@pytest.mark.ci
def test_the_second_round_starts_from_the_first_sum_at_length_16(released: Any) -> None:
    found, (first, second) = released
    said = second.plan.published
    P = first.moments.P
    np.testing.assert_allclose(said.read()["W"].real, 16 * P / np.linalg.norm(P), atol=1e-4)
    assert said.after == ps.course.history([first]).hex()
    assert second.plan == replace(found.update, published=said)
    assert found.next([first, second]) is None
    ps.course.verify_next(found, second.plan, [first])
    other = Published.of({"W": Values.rounded(said.read()["W"].real + 0.1)}, bytes.fromhex(said.after))
    with pytest.raises(PlanError, match="is not the one that follows"):
        ps.course.verify_next(found, replace(second.plan, published=other), [first])


@pytest.mark.parametrize("length", [0.0, 4.0, 40.0])
def test_an_update_is_that_of_the_definition_up_to_the_grid(length: float) -> None:
    X, y = (np.concatenate(each) for each in zip(*shards(), strict=True))
    start = Values.rounded(length * np.random.default_rng(0).normal(size=(C, D)))
    P = ps.measure(UPDATES, X, y, published=Published.of({"W": start})).real().P
    np.testing.assert_allclose(P, in_floats(X, y, start.real), atol=3 / UPDATES.grid_steps)


def test_from_zero_an_update_is_the_first_direction() -> None:
    zero = Published.of({"W": Values.rounded(np.zeros((C, D)))})
    for X, y in (*shards(), (np.zeros((0, D)), np.zeros(0, int))):
        assert np.array_equal(ps.measure(UPDATES, X, y, published=zero).P, ps.measure(PARTIES, X, y).P)


@given(st.integers(0, 2**32 - 1), st.integers(-8, 64), st.sampled_from([1, 40, MOST]), st.sampled_from([1e-4, 1, 1e4]))
def test_attack_no_published_weights_make_an_update_longer_or_depend_on_order(seed, exponent, size, scale):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30, D)) * scale, rng.integers(0, C, 30)
    said = Published.of({"W": Values(rng.integers(-size, size + 1, (C, D)), exponent)})
    order = rng.permutation(30)
    for schema in (ps.PartyUpdateSchema(C, D), ps.PartyUpdateSchema(C, D, grid_bits=20), UPDATES):
        found = ps.measure(schema, X, y, published=said)
        assert sum(int(entry) ** 2 for entry in found.P.ravel()) <= schema.grid_steps**2
        assert found == ps.measure(schema, X[order], y[order], published=said)


@given(st.sampled_from([-8, 0, 64]), st.sampled_from([1e-4, 1.0]))
def test_attack_published_weights_keep_a_logit_a_whole_number_below_2_to_53(exponent: int, scale: float) -> None:
    right, seen = gradient_map.probabilities, [0.0]

    def watched(logits: np.ndarray, at: int) -> np.ndarray:
        seen.append(float(np.abs(logits).max()))
        assert (logits == np.rint(logits)).all()
        return right(logits, at)

    said = Published.of({"W": Values(np.full((C, D), MOST) * np.array([[1], [-1], [1]]), exponent)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gradient_map, "probabilities", watched)
        ps.measure(ps.PartyUpdateSchema(C, D), scale * np.ones((4, D)), [0, 1, 2, 0], published=said)
    assert 0 < max(seen) <= 2.0**53


def test_a_head_adds_both_sums_and_has_the_promise_of_both(released: Any) -> None:
    found, (first, second) = released
    head = ps.heads.PartyDiscriminant().fit_release([first, second])
    np.testing.assert_array_equal(head.coef_, first.moments.P + second.moments.P)
    assert head.provenance_.epsilon == pytest.approx(found.epsilon(1e-5), rel=1e-6)
    assert head.provenance_.releases == (first.digest, second.digest)
    X, y = (np.concatenate(each) for each in zip(*shards(seed=1), strict=True))
    one = ps.heads.PartyDiscriminant().fit_release([first, None])
    assert one.provenance_ == ps.heads.PartyDiscriminant().fit_release(first).provenance_
    sited = ps.heads.PartyDiscriminant().fit_release([first, second], X_site=X)
    assert min(head.score(X, y), sited.score(X, y)) > 0.8


def test_noise_of_both_rounds_is_told_from_signal_by_a_sites_rows(released: Any, monkeypatch: Any) -> None:
    from privstats.contrib.heads import party_discriminant

    seen: list[float] = []
    monkeypatch.setattr(
        party_discriminant, "site_weights", lambda weights, sigma, rows: seen.append(sigma) or np.asarray(weights)
    )
    first = released[1][0]
    for releases in (released[1], [first]):
        ps.heads.PartyDiscriminant().fit_release(releases, X_site=np.eye(D))
    assert seen == pytest.approx([math.sqrt(2) * first.sigma["P"], first.sigma["P"]])


@pytest.mark.ci
def test_releases_of_two_courses_are_no_two_rounds(released: Any) -> None:
    found, (first, second) = released
    again = ps.simulate(found, shards(clients=MANY), rng=ps.randomness.seeded(3))
    for wrong in ([again[0], second], [first, again[1]]):
        with pytest.raises(ReleaseError, match="the second release is no update after the first"):
            ps.heads.PartyDiscriminant().fit_release(wrong)
    for wrong in ([first, first], [first, second, second]):
        with pytest.raises(ReleaseError, match="is not the next of its course"):
            ps.heads.PartyDiscriminant().fit_release(wrong)
    for wrong in ([None, second], second):
        refused(ReleaseError, "an update only behind its first round", ps.heads.PartyDiscriminant().fit_release, wrong)
    for wrong in ([], [None], [None, None]):
        with pytest.raises(DataError, match="one or both releases of a PartyRounds course"):
            ps.heads.PartyDiscriminant().fit_release(wrong)
    refused(HeadError, "release must be a Release, got NoneType", ps.heads.PartyDiscriminant().fit_release, None)
    refused(ReleaseError, r"directions of parties; use heads\.PartyDiscriminant", ps.heads.LDA().fit_release, second)


@pytest.mark.ci
def test_attack_a_second_release_of_other_weights_or_another_promise_is_none(released: Any, tmp_path: Path) -> None:
    """It names the first release; neither it, nor one read from a file, is what follows from it."""
    found, (first, second) = released
    said = second.plan.published
    turned = Published.of({"W": Values.rounded(-said.read()["W"].real)}, bytes.fromhex(said.after))
    exact = ps.simulate(replace(parties_plan(MANY), privacy=ps.NoPrivacy()), shards(clients=MANY))
    plans = {
        "weights": replace(found.update, published=turned),
        "promise": replace(course(epsilon=2.0).update, published=said),
        "cohort": replace(found.update, cohort=ps.Cohort(MANY, MANY - 1, MANY), published=said),
    }
    for what, plan in plans.items():
        parts = [ps.measure(plan.schema, *shard, published=plan.published) for shard in shards(clients=MANY)]
        named = plan.at(second.position)
        ps.session.aggregate_unmasked(named, parts, ps.randomness.seeded(5)).save(tmp_path / what)
        forged = ps.Release.load(tmp_path / what)
        with pytest.raises(ReleaseError, match="the second release is no update after the first"):
            ps.heads.PartyDiscriminant().fit_release([first, forged])
    with pytest.raises(ReleaseError, match="the second release is no update after the first"):
        ps.heads.PartyDiscriminant().fit_release([exact.at(first.position), second])
    second.save(tmp_path / "second")
    loaded = ps.heads.PartyDiscriminant().fit_release([first, ps.Release.load(tmp_path / "second")])
    np.testing.assert_array_equal(loaded.coef_, first.moments.P + second.moments.P)


def test_a_first_round_without_a_sum_is_asked_for_again(released: Any) -> None:
    found, (first, _) = released
    assert found.next([None]) == found.first
    repeated = unnamed(first).at(found.position([False]))
    assert found.next([None, repeated]) is None
    assert found.next([None, None]) is None
    head = ps.heads.PartyDiscriminant().fit_release([None, repeated])
    np.testing.assert_array_equal(head.coef_, first.moments.P)


def test_the_masked_sum_of_updates_is_exact(released: Any) -> None:
    """To the last digit, over parties of which one has no record."""
    said = released[1][1].plan.published
    mine = [*shards(clients=4), (np.zeros((0, D)), np.zeros(0, int))]
    parts = [ps.measure(UPDATES, *shard, published=said) for shard in mine]
    plan = replace(parties_plan(epsilon=100.0), schema=UPDATES, published=said)
    noisy = [ps.session.aggregate_unmasked(plan, each, ps.randomness.seeded(4)) for each in (parts, [parts[-1]] * 5)]
    assert np.array_equal(noisy[0].vector - noisy[1].vector, ps.encoding.flatten(sum(parts[1:], parts[0])))


def test_parts_of_other_weights_are_not_added_nor_sent(released: Any) -> None:
    plan, (X, y) = released[1][1].plan, shards()[0]
    other = Published.of({"W": Values.rounded(np.eye(C, D))})
    parts = [ps.measure(UPDATES, X, y, published=said) for said in (plan.published, other)]
    refused(DataError, "moments with different published values", lambda: parts[0] + parts[1])
    refused(DataError, "measured with other published values", ps.session.contribution, plan, parts[1])


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (lambda: plan_of(), "two rounds of parties need a Plan of a PartySchema; use Rounds for a ClassSchema"),
        (lambda: course().update, "need a Plan of a PartySchema"),
        (lambda: "plan.toml", "need a Plan of a PartySchema"),
        (lambda: replace(parties_plan(), privacy=ps.NoPrivacy()), "a course needs differential privacy"),
    ],
)
def test_what_has_no_two_rounds_of_parties_is_refused(plan: Any, words: str) -> None:
    for make in (ps.PartyRounds, ps.PartyRounds.within):
        refused(PlanError, words, make, plan())


def test_no_update_goes_without_a_promise_nor_promises_a_record() -> None:
    said, cohort = Published.of({"W": Values.rounded(np.eye(C, D))}), ps.Cohort(5, 5, 5)
    with pytest.raises(PlanError, match="cannot be released without differential privacy"):
        ps.Plan(schema=UPDATES, cohort=cohort, privacy=ps.NoPrivacy(), published=said)
    with pytest.raises(PlanError, match="one record may change its party's direction"):
        ps.Plan(schema=UPDATES, cohort=cohort, privacy=promise(), published=said)
    with pytest.raises(PlanError, match="wider than 20 bits, or tiny or enormous"):
        ps.measure(UPDATES, *shards()[0], published=Published.of({"W": Values.rounded(1e-30 * np.eye(C, D))}))


def test_the_commands_of_plans_read_a_second_round(tmp_path: Path, released: Any) -> None:
    """They certify, explain and search it, and refuse what needs known parties."""
    plan, where = released[1][1].plan, str(tmp_path / "second.toml")
    (tmp_path / "second.toml").write_text(plan.to_toml())
    plan.published.save(values_path(where))

    def said(*words: str) -> str:
        done = CliRunner().invoke(app, [*words, where])
        return done.output if done.exit_code == 0 else f"exit {done.exit_code}: {done.exception} {done.output}"

    assert "second.toml is consistent" in said("plan", "check")
    assert "PartyDiscriminant" not in said("plan", "check")
    assert not said("plan", "certify").startswith("exit")
    assert "no claim is contradicted" in said("audit", "budget")
    assert "this needs a ClassSchema or RidgeSchema, got PartyUpdateSchema" in said("audit", "canary")
    assert "no party of known records is available for a PartyUpdateSchema; give a" in said("audit", "noise")


def test_a_report_on_a_second_round_speaks_of_whole_parties(released: Any) -> None:
    plan = released[1][1].plan
    assert "each with any number of records" in collected(plan)[0]
    assert "That a single record stays hidden within its party: it may change the party's whole direction." in (
        not_promised(plan)
    )
    assert (
        len(_audits(target_of(plan), ps.randomness.seeded(1), None)) == 2
    )  # a search, and nothing that needs known parties


def test_a_file_without_a_promise_is_read_again(tmp_path: Path) -> None:
    bare = ps.PartyRounds(course().first)
    ps.course.write(tmp_path / "study.toml", bare)
    assert ps.course.read(tmp_path / "study.toml") == bare
    assert ps.course.Single(bare.first).digest != bare.digest
