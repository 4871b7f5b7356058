"""A head of two classes carries where its scores lie, so that bins of a later score follow them."""

from typing import Any

import numpy as np
import pytest
from scipy.special import logit

import privstats as ps
from privstats.errors import HeadError
from privstats.estimates.separation import separation
from privstats.estimates.softmax import LDA_SHARE
from privstats.files.envelope import Content
from privstats.heads import refined_softmax
from privstats.heads.persistence import FORMAT, content_of
from privstats.heads.released_scores import POINTS, released_scores
from privstats.inference.head_curves import expected_area, expected_sentences
from privstats.randomness import seeded
from tests import made
from tests.made import refused


def records(count: int, seed: int) -> tuple[Any, Any]:
    chance = np.random.default_rng(seed)
    y = (chance.random(count) < 0.07).astype(int)
    return chance.normal(size=(count, 3)) + 0.8 * y[:, None], y


@pytest.fixture(scope="module")
def head() -> Any:
    X, y = records(4_000, 0)
    schema, privacy = ps.ClassSchema(2, 3, "NAB", clip_norm=4.0), made.promise("central", epsilon=3.0)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 4_000), privacy=privacy)
    release = ps.simulate(plan, [(X[::2], y[::2]), (X[1::2], y[1::2])], rng=seeded(0))
    return ps.heads.LDA().fit_release(release)


def test_the_file_of_a_head_holds_its_scores_and_its_prevalence(head: Any, tmp_path: Any) -> None:
    head.save(tmp_path / "h")
    loaded, (X, y) = ps.heads.load(tmp_path / "h"), records(900, 1)
    assert ps.Scoring(loaded).schema == ps.Scoring(head).schema
    assert ps.Scoring(loaded).schema.cuts is not None
    scores = released_scores(loaded)
    assert scores is not None
    assert scores.quantiles.shape == (2, POINTS)
    shares = head.predict_proba(records(40_000, 2)[0])[:, 1]
    assert np.interp(0.07, np.sort(shares), np.linspace(0, 1, len(shares))) == pytest.approx(
        float(head.prevalence_ @ scores.below(np.array([0.07]))[:, 0]), abs=0.03
    )
    flagged = loaded.predict(X, threshold="prevalence")  # the file of a head held no prevalence
    assert flagged.tolist() == head.predict(X, threshold="prevalence").tolist()
    assert flagged[y == 1].mean() > 0.5


@pytest.mark.parametrize(("epsilon", "apart", "most"), [(1.0, 0.5, 0.12), (3.0, 0.5, 0.08), (1.0, 0.0, 0.15)])
def test_scores_of_a_rare_class_lie_about_as_far_apart_as_they_are(epsilon: float, apart: float, most: float) -> None:
    """Around a mean that is shrunk to that of all rows, they promised an AUC of .53 for one of .83."""
    refined = ps.heads.RefinedSoftmax().fit_releases(rounds_of(rare(6_000, apart, 0), epsilon, 1))
    scores, (fresh, truth) = released_scores(refined), rare(40_000, apart, 2)
    assert scores is not None
    actual = area(*(refined.predict_proba(fresh[truth == k])[:, 1] for k in (0, 1)))
    assert area(*scores.quantiles) == pytest.approx(actual, abs=most)


@pytest.mark.parametrize("run", [0, 2])
def test_few_records_of_many_features_promise_no_more_than_they_keep(run: int, tmp_path: Any) -> None:
    """The weights follow the noise of the sums, which promised an AUC above .89 for one below .69."""
    releases = rounds_of(clear(900, 48, 0.15, run), 1.0, run)
    refined = ps.heads.RefinedSoftmax().fit_releases(releases)
    scores, (fresh, truth) = released_scores(refined), clear(8_000, 48, 0.15, 99)
    assert scores is not None
    actual = area(*(refined.predict_proba(fresh[truth == k])[:, 1] for k in (0, 1)))
    assert area(*refined.score_evidence_.drawn().quantiles) > actual + 0.2
    assert area(*scores.quantiles) == pytest.approx(actual, abs=0.1)
    for priors in ("counts", "uniform"):
        other = ps.heads.RefinedSoftmax(priors=priors).fit_releases(releases)
        logits = logit(other.predict_proba(fresh)[:, 1])
        middle = np.median(logit(released_scores(other).quantiles), axis=1)
        assert middle == pytest.approx([logits[truth == k].mean() for k in (0, 1)], abs=0.4 * logits.std())
    refined.save(tmp_path / "h")
    loaded = ps.heads.load(tmp_path / "h")
    plan = ps.Scoring(loaded).plan(cohort=ps.Cohort(2, 2, 9_000), privacy=made.promise("central", epsilon=2.0))
    (width,) = expected_sentences(plan)
    found = expected_area(plan, 0.5, auc=0.8)
    assert f"{found.high - found.low:.2f} wide if the AUC is 0.8, where 50 in 100" in width
    assert "no forecast of the AUC" in width
    assert ps.heads.scoring.score_cuts(refined, releases, 20) == ps.Scoring(loaded).schema.cuts


@pytest.mark.parametrize(("count", "columns", "seed"), [(200, 30, 0), (200, 8, 1), (60, 8, 7)])
def test_releases_that_hide_the_records_leave_every_auc_open(count: int, columns: int, seed: int) -> None:
    """With a trace, or a count, below 0 they promised .48 to .53 for .54, and .99 to 1 for .40."""
    refined = ps.heads.RefinedSoftmax().fit_releases(rounds_of(clear(count, columns, 0.3, seed), 0.1, seed))
    scores, logits = released_scores(refined), logit(refined.predict_proba(clear(8_000, columns, 0.3, 99)[0])[:, 1])
    assert scores is not None
    assert area(*scores.quantiles) == pytest.approx(0.74, abs=0.01)
    assert logit(scores.quantiles).mean() == pytest.approx(logits.mean(), abs=logits.std())
    assert logit(scores.quantiles).std() == pytest.approx(logits.std(), rel=0.6)


@pytest.mark.parametrize(("columns", "apart"), [(8, 1.3), (20, 0.9)])
def test_clear_classes_promise_what_they_keep(columns: int, apart: float) -> None:
    """They promised .93 for .99: the variance was that of all rows, and the map was taken to stretch all alike."""
    refined = ps.heads.RefinedSoftmax().fit_releases(rounds_of(clear(20_000, columns, apart, 0), 3.0))
    scores, (fresh, truth) = released_scores(refined), clear(20_000, columns, apart, 1)
    assert scores is not None
    actual = area(*(refined.predict_proba(fresh[truth == k])[:, 1] for k in (0, 1)))
    assert area(*scores.quantiles) == pytest.approx(actual, abs=0.01)


def test_margins_are_those_of_the_scores_that_the_head_gives() -> None:
    """Divided by the link's divisor and the temperature, and moved by the link's shifts."""
    refined: Any = ps.heads.RefinedSoftmax().fit_releases(rounds_of(clear(2_000, 8, 0.6, 0), 3.0))
    law = refined.score_evidence_.separation()
    refined.link_, refined.temperature_ = (3.0, np.array([-0.25, 0.5])), 2.0
    other = refined.score_evidence_.separation()
    assert other.spread == pytest.approx(law.spread / 6)
    assert other.centres == pytest.approx((law.centres / 3 + 0.75) / 2)


def test_the_response_of_the_discriminant_is_that_of_one_with_public_records(monkeypatch: Any) -> None:
    """The weights that are answered for are those that the head has."""
    X, y = clear(2_000, 8, 0.6, 0)
    releases, seen = rounds_of((X, y), 1.0), {}

    def spied(*given: Any) -> Any:
        *_, weights, discriminant = given
        seen["off"] = weights - discriminant(given[1].A) - (1 - LDA_SHARE) * given[3][-1].weights
        return separation(*given)

    monkeypatch.setattr(refined_softmax, "separation", spied)
    for public in (None, (X[:60], y[:60])):
        assert released_scores(ps.heads.RefinedSoftmax().fit_releases(releases, public=public)) is not None
        assert np.abs(seen["off"]).max() < 1e-9


def rounds_of(records: tuple[Any, Any], epsilon: float, seed: int = 0) -> Any:
    """Releases of a course of rounds over two parties."""
    X, y = records
    schema = ps.ClassSchema(2, X.shape[1], "NAB", clip_norm=1.0, transform=(ps.transforms.UnitNorm(),))
    whole = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, len(y)), privacy=made.promise("central", epsilon=epsilon))
    return ps.simulate(ps.Rounds.within(whole), [(X[::2], y[::2]), (X[1::2], y[1::2])], rng=seeded(seed))


def clear(count: int, columns: int, apart: float, seed: int) -> tuple[Any, Any]:
    """Three in ten are of the second class, whose mean lies ``apart`` off in every column."""
    chance = np.random.default_rng(seed)
    y = (chance.random(count) < 0.3).astype(int)
    return chance.normal(size=(count, columns)) + apart * y[:, None] * (-1.0) ** np.arange(columns), y


def rare(count: int, apart: float, seed: int) -> tuple[Any, Any]:
    """One in twenty is of the second class."""
    chance = np.random.default_rng(seed)
    y = (chance.random(count) < 0.05).astype(int)
    return chance.normal(size=(count, 8)) + apart * y[:, None] * (-1.0) ** np.arange(8), y


def area(others: Any, members: Any) -> float:
    """AUC."""
    ranks = sum(np.searchsorted(np.sort(others), members, side) for side in ("left", "right"))
    return float(ranks.mean() / 2 / len(others))


def test_an_older_file_has_the_digest_that_it_had_and_bins_of_equal_width(head: Any, tmp_path: Any) -> None:
    content = content_of(head)
    older = {name: each for name, each in content.tensors.items() if name[6:] != "quantiles"}
    assert len(older) == len(content.tensors) - 1
    FORMAT.write(tmp_path / "h", Content(content.manifest, older))
    loaded = ps.heads.load(tmp_path / "h")
    assert content_of(loaded).tensors.keys() == older.keys()
    assert ps.Scoring(loaded).schema.cuts is None


@pytest.mark.parametrize("fitted", ["on records", "of three classes", "again on records", "of margins"])
def test_other_heads_have_bins_of_equal_width(head: Any, fitted: str) -> None:
    X, y = records(300, 3)
    if fitted == "of margins":
        assert ps.Scoring(head, score="margin", reach=8.0).schema.cuts is None
        return
    other = ps.heads.LDA()
    if fitted != "on records":
        places = np.arange(300) % (3 if fitted == "of three classes" else 2)
        classes = ps.ClassSchema(int(places.max()) + 1, 3, "NAB", clip_norm=4.0)
        other = other.fit_release(ps.Release.exact(classes, ps.measure(classes, X, places)))
    if fitted != "of three classes":
        other = other.fit(X, y)
    assert released_scores(other) is None
    assert ps.Scoring(other).schema.cuts is None


@pytest.mark.parametrize(
    "change",
    [
        {"priors": None},
        {"quantiles": np.full((2, POINTS), 1.5)},
        {"quantiles": np.full((2, POINTS), np.nan)},
        {"quantiles": np.tile(np.linspace(1, 0, POINTS), (2, 1))},
        {"quantiles": np.full((2, POINTS), 0.5, np.float32)},
        {"area": np.array([0.6, 0.9])},
    ],
)
def test_scores_that_no_head_has_are_refused(head: Any, change: dict[str, Any], tmp_path: Any) -> None:
    content = content_of(head)
    tensors = {**content.tensors, **{f"known.{name}": each for name, each in change.items()}}
    whole = Content(content.manifest, {name: each for name, each in tensors.items() if each is not None})
    FORMAT.write(tmp_path / "h", whole)
    refused(HeadError, "do not hold together", ps.heads.load, tmp_path / "h")
