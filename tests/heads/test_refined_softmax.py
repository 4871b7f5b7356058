"""Refined softmax: any prefix of a course is a head, and it is the head of the recipe."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

import privstats as ps
from privstats.course.alone import single_party_plan
from privstats.course.read_recipe import recipe_of
from privstats.dp import Ledger
from privstats.errors import DataError, HeadError, ReleaseError
from privstats.estimates.clip_link import LastGradient, link_of
from privstats.randomness import seeded
from tests.course.cases import RIDGE, SOFTMAX, C, D, N, rounds, shards
from tests.drawing import named
from tests.lengths import sized

Released = list[ps.Release]
Records = tuple[np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def releases() -> list[ps.Release]:
    return ps.simulate(rounds(rounds=3, epsilon=3.0), shards(), rng=seeded(1))


@pytest.fixture(scope="module")
def records() -> tuple[np.ndarray, np.ndarray]:
    X, y = zip(*shards(), strict=True)
    return np.concatenate(X), np.concatenate(y)


def test_every_prefix_of_a_course_is_a_head(releases: Released, records: Records) -> None:
    X, y = records
    for rounds_ in range(4):
        head = ps.heads.RefinedSoftmax().fit_releases(releases[: rounds_ + 1])
        assert head.rounds_ == rounds_
        assert head.score(X, y) > 0.6
        assert head.weights_.shape == (C, D + 1)
    alone = ps.heads.RefinedSoftmax().fit_release(releases[0])
    np.testing.assert_array_equal(
        alone.decision_function(X), ps.heads.RefinedSoftmax().fit_releases(releases[:1]).decision_function(X)
    )


def test_without_noise_it_is_the_head_of_the_exact_records(records: Records) -> None:
    """At a huge epsilon the course ends where ``fit`` does."""
    X, y = records
    course = rounds(rounds=4, epsilon=99.0)
    noisy = ps.heads.RefinedSoftmax().fit_releases(ps.simulate(course, shards(), rng=seeded(2)))
    exact = ps.heads.RefinedSoftmax().fit(X, y)
    assert (noisy.predict(X) == exact.predict(X)).mean() > 0.95


def test_it_beats_the_discriminant_of_one_release_at_the_same_budget_on_digits() -> None:
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y, test, truth = X[order[300:]], y[order[300:]], X[order[:300]], y[order[:300]]
    scores = {"refined": [], "one shot": []}
    for draw in range(4):
        with warnings.catch_warnings(), named(f"noise {draw}"):  # in any profile the same
            warnings.simplefilter("ignore")
            terms = {"epsilon": 0.3, "delta": 1e-5, "adjacency": "add-remove", "classes": range(10)}
            terms["ledger"] = "uncharged"
            scores["refined"].append(ps.heads.RefinedSoftmax().fit_private(X, y, **terms).score(test, truth))
            unit = {**terms, "clip_norm": 1.0, "transform": (ps.transforms.UnitNorm(),)}
            scores["one shot"].append(ps.heads.LDA().fit_private(X, y, **unit).score(test, truth))
    assert np.mean(scores["refined"]) > np.mean(scores["one shot"]) + 0.02, scores


def test_priors_move_the_intercept_alone(releases: Released, records: Records) -> None:
    X, _ = records
    usual = ps.heads.RefinedSoftmax().fit_releases(releases)
    even = ps.heads.RefinedSoftmax(priors="uniform").fit_releases(releases)
    skewed = ps.heads.RefinedSoftmax(priors=[0.98, 0.01, 0.01]).fit_releases(releases)
    np.testing.assert_array_equal(usual.rule_.coef, even.rule_.coef)
    assert (skewed.predict(X) == 0).mean() > (usual.predict(X) == 0).mean()
    shift = usual.rule_.intercept - even.rule_.intercept
    counts = np.asarray(releases[0].moments.N)
    np.testing.assert_allclose(shift - shift.mean(), np.log(counts) - np.log(counts).mean(), atol=0.2)


def test_a_file_and_a_module_score_as_the_head_does(releases: Released, records: Records, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    X, _ = records
    head = ps.heads.RefinedSoftmax(priors="uniform").fit_releases(releases, labels=["a", "b", "c"])
    head.save(tmp_path / "head")
    back = ps.heads.load(tmp_path / "head")
    assert back.get_params() == head.get_params()
    assert back.predict(X).tolist() == head.predict(X).tolist()
    with torch.no_grad():
        scores = ps.heads.to_module(head)(torch.tensor(X)).numpy()
    np.testing.assert_allclose(scores, head.decision_function(X), atol=1e-10)
    with pytest.raises(HeadError, match="not linear"):
        ps.heads.to_linear(head)
    assert set(head.predict(X)) <= {"a", "b", "c"}
    np.testing.assert_allclose(head.predict_proba(X).sum(axis=1), 1)


def test_rows_of_any_length_score_alike_and_zero_has_a_score(releases: Released) -> None:
    head = ps.heads.RefinedSoftmax().fit_releases(releases)
    row = np.arange(1.0, D + 1)
    np.testing.assert_allclose(head.decision_function([row]), head.decision_function([1e6 * row]), rtol=1e-12)
    np.testing.assert_allclose(head.decision_function(np.zeros((1, D)))[0], head.rule_.intercept)


def test_a_basis_folds_into_the_map(releases: Released) -> None:
    rule = ps.heads.RefinedSoftmax().fit_releases(releases).rule_
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(9, D)))[0]
    X = np.random.default_rng(1).normal(size=(4, 9))
    np.testing.assert_allclose(rule.lifted(basis).scores(X), rule.scores(X @ basis))


def test_one_party_fits_a_whole_course_under_one_spend(tmp_path: Path, records: Records) -> None:
    X, y = records
    ledger = Ledger.create(tmp_path / "spent.db")
    ledger.set_cap("mine", unit="record", adjacency="replace-one", epsilon=2.0001, delta=1e-5)
    head = ps.heads.RefinedSoftmax(rounds=2)
    terms = {"epsilon": 2.0, "delta": 1e-5, "adjacency": "replace-one", "classes": [0, 1, 2]}
    head.fit_private(X, y, **terms, ledger=ledger, expected_records=500)
    assert [release.plan.schema.task for release in head.releases_] == ["classes", "gradients", "gradients"]
    assert head.releases_[1].plan.schema.expected_records == 500
    assert head.rounds_ == 2
    assert ledger.account("mine").spent == pytest.approx(2.0, rel=1e-5)
    assert len(X) == N
    public = ps.heads.RefinedSoftmax(rounds=1).fit_private(X, y, **terms, ledger="uncharged")
    assert public.releases_[1].plan.schema.expected_records == 512, "the power of two that is nearest to 600"


def test_what_is_no_course_is_refused_with_a_sentence(releases: Released, records: Records) -> None:
    ridge = ps.simulate(rounds(RIDGE), shards(RIDGE))
    head = ps.heads.RefinedSoftmax()
    for wrong, error, said in (
        (releases[0], DataError, "must be a list"),
        ([], DataError, "must be a list"),
        ([None, releases[1]], DataError, "the first release"),
        ([releases[0], "x"], DataError, "Release or None"),
        (ridge, ReleaseError, "RefinedRidge"),
        ([releases[0], ridge[1]], ReleaseError, "of its course"),
    ):
        with pytest.raises(error, match=said):
            head.fit_releases(wrong)
    with pytest.raises(DataError, match="labels must name each"):
        head.fit_releases(releases, labels=["a"])
    with pytest.raises(HeadError, match="rounds must be"):
        ps.heads.RefinedSoftmax(rounds=0).fit(*records)
    with pytest.raises(DataError, match="batches cannot be given"):
        head.fit_private([records], epsilon=1.0, delta=1e-5, adjacency="add-remove")
    plain = ps.ClassSchema(C, D, "NA", 1.0, transform=(ps.transforms.UnitNorm(),))
    poor = ps.Release.exact(plain, ps.measure(plain, *records))
    with pytest.raises(ReleaseError, match="NAB"):
        head.fit_release(poor)


def test_damaged_numbers_give_no_head(releases: Released) -> None:
    first = releases[0]
    wild = ps.Release(first.plan, np.zeros_like(first.vector), first.survivors)
    assert np.isfinite(ps.heads.RefinedSoftmax().fit_release(wild).weights_).all()  # nothing is known, all is finite


def test_classes_and_surface_are_those_of_the_plan(records: Records) -> None:
    schema = ps.ClassSchema(
        3, D, "NAB", 1.0, transform=(ps.transforms.UnitNorm(),), class_names=("ash", "beech", "elm")
    )
    named = [(X, np.array(["ash", "beech", "elm"])[y]) for X, y in shards()]
    head = ps.heads.RefinedSoftmax().fit_releases(ps.simulate(rounds(schema), named, rng=seeded(3)))
    assert set(head.predict(records[0])) <= {"ash", "beech", "elm"}
    assert head.preprocessing_.clip_norm == 1.0
    assert SOFTMAX.features == head.preprocessing_.features


def test_few_records_are_told_once_with_the_heads_that_do_better() -> None:
    X, y = np.random.default_rng(0).normal(size=(30, 40)), np.arange(30) % 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ps.heads.RefinedSoftmax(rounds=1).fit(X, y)
    (said,) = [each for each in caught if each.category is ps.heads.FewRecordsWarning]
    assert "RefinedSoftmax estimates a covariance of 40 features from about 30 records: use RDA or LDA" in str(
        said.message
    )
    assert said.filename == __file__


@pytest.mark.parametrize("calibrated", [False, True])
def test_the_probabilities_of_two_classes_follow_the_last_released_gradient(calibrated: bool) -> None:
    """Of a rare outcome; a calibration behind the rounds changes nothing of it."""
    table, ill = _patients(6_000)
    course = _course_of_cells(6_000, 8.0, 3, calibrated=calibrated)
    releases = ps.private_releases(course, table, ill, ledger="uncharged", rng=seeded(1), allow_reproducible=True)
    head = ps.heads.RefinedSoftmax().fit_releases(releases)
    assert abs(head.predict_proba(table)[:, 1].mean() - ill.mean()) < 0.01
    recipe: Any = recipe_of(releases)
    whitening, states = recipe.states(releases)
    sums, weights = recipe.sums(releases[0]), whitening.turned(head.weights_)
    g = whitening.turned(np.asarray(releases[3].moments.g))
    last = LastGradient(states[2].weights, g, float(releases[3].sigma["g"]))
    link = link_of(whitening, sums, weights, recipe.clip, last)
    assert head.link_[0] == pytest.approx(link.temperature, rel=1e-6)
    np.testing.assert_allclose(head.link_[1], link.shifts, atol=1e-6)
    alone = link_of(whitening, sums, weights, recipe.clip)
    assert abs(link.shifts - alone.shifts).max() > 1e-4


@pytest.mark.parametrize(("n", "epsilon", "calibrated"), [(600, 1.0, False), (2_000, 3.0, False), (600, 3.0, True)])
def test_noise_moves_the_mean_probability_as_far_as_the_card_states(n: int, epsilon: float, calibrated: bool) -> None:
    table, ill = _patients(n)
    course = _course_of_cells(n, epsilon, 3, calibrated=calibrated)
    means, stated = [], []
    for seed in range(sized(12, 48)):
        options: Any = {"ledger": "uncharged", "rng": seeded(seed), "allow_reproducible": True}
        head = ps.heads.RefinedSoftmax().fit_releases(ps.private_releases(course, table, ill, **options))
        means.append(head.predict_proba(table)[:, 1].mean())
        stated.append(head.mean_noise_)
    assert 1 / 3 < np.mean(stated) / np.std(means, ddof=1) < 3


def _patients(n: int) -> tuple[dict[str, list[Any]], np.ndarray]:
    rng = np.random.default_rng(5)
    age = rng.normal(60, 10, n)
    ill = (rng.random(n) < 1 / (1 + np.exp(4 - 0.08 * (age - 50)))).astype(int)
    return {"age": age.tolist(), "ward": rng.choice(["a", "b", "c"], n).tolist()}, ill


def _course_of_cells(n: int, epsilon: float, rounds_: int, *, calibrated: bool) -> ps.Rounds:
    columns = (ps.Numeric("age", (50.0, 60.0, 70.0)), ps.Categories("ward", ("a", "b", "c")))
    schema = ps.ClassSchema(2, statistics="NAB", clip_norm=1.0, transform=(ps.Cells(columns),))
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)
    return ps.Rounds.within(single_party_plan(schema, privacy), rounds_, expected_records=n, calibrated=calibrated)
