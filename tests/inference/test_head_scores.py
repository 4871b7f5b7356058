"""Scores of a head from noisy counts: equal to what they estimate without noise, and covered with it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import privstats as ps
from benchmarks.measuring import results
from benchmarks.raw_tables import widths
from privstats.errors import ReleaseError
from privstats.inference.head_curves import STEADY, area, expected_area, expected_sentences, reliability, roc_curve
from privstats.randomness import seeded
from tests import made

COUNTS = arrays(np.float64, 6, elements=st.integers(1, 40).map(float))
Z = 1.96
Missed = dict[str, tuple[int, int]]


def pairs_won(others: Any, members: Any, tied: float) -> float:
    """By every pair of records."""
    won = sum(
        x * y * (1 if a < b else tied if a == b else 0) for b, x in enumerate(members) for a, y in enumerate(others)
    )
    return float(won / (members.sum() * others.sum()))


@given(others=COUNTS, members=COUNTS)
def test_the_area_is_that_of_all_pairs_and_lies_within_its_bounds(others: Any, members: Any) -> None:
    curve = roc_curve(tuple(np.linspace(0, 1, 7)), others, members, 0.0, Z)
    assert curve.auc.value == pytest.approx(pairs_won(others, members, 0.5))
    assert curve.auc_bounds == pytest.approx((pairs_won(others, members, 0), pairs_won(others, members, 1)))
    assert not curve.auc.reported or curve.auc.low <= curve.auc_bounds[0] <= curve.auc_bounds[1] <= curve.auc.high
    assert len(curve.thresholds) == len(curve.true_positive) == 5
    assert curve.thresholds[0] > curve.thresholds[-1]
    rates = [each.value for each in curve.true_positive]
    assert rates == sorted(rates)


@given(others=COUNTS, members=COUNTS)
def test_more_noise_never_narrows_an_interval(others: Any, members: Any) -> None:
    quiet, loud = (area(others, members, sigma, Z) for sigma in (0.0, 3.0))
    assert not loud.reported or (loud.low <= quiet.low + 1e-9 and loud.high >= quiet.high - 1e-9)


@example(others=np.ones(6), members=np.array([1.0, 1, 1, 1, 8, 1]), sigma=1.0, at=0.0, seed=0)
@given(
    others=COUNTS, members=COUNTS, sigma=st.sampled_from([0.0, 1.0, 6.0]), at=st.floats(0, 1), seed=st.integers(0, 99)
)
def test_a_curve_that_every_interval_holds_lies_in_the_band(others, members, sigma, at, seed):
    """Between the thresholds too: such a curve is made of rates inside of their intervals, each rising."""
    curve, chance = roc_curve(tuple(np.linspace(0, 1, 7)), others, members, sigma, Z), np.random.default_rng(seed)
    rates, low, high = curve.band()
    lows, highs = (
        np.array([[each[end] for each in group] for group in (curve.false_positive, curve.true_positive)])
        for end in (1, 2)
    )
    known = np.maximum.accumulate(lows + at * chance.random(lows.shape) * (highs - lows), axis=1)
    if (known > highs + 1e-12).any():
        return  # no rising curve goes through these
    rates = (rates[1:] + rates[:-1]) / 2
    x = np.concatenate([[0.0], known[0], [1.0]])
    y = np.concatenate([[0.0], known[1], [1.0]])
    for steps in ("post", "pre"):  # the lowest and the highest rising curve through the points
        place = np.searchsorted(x, rates, side="right" if steps == "post" else "left")
        value = y[np.maximum(place - 1, 0)] if steps == "post" else y[np.minimum(place, len(y) - 1)]
        assert (low[:-1] <= value + 1e-12).all()
        assert (value <= high[:-1] + 1e-12).all()
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) >= 0).all()


def test_an_area_that_noise_hides_is_not_told() -> None:
    few = np.array([1.0, 2.0, 0.0])
    assert area(few, few, 50.0, Z)[1:] == (0.0, 1.0, False)
    assert area(-few, few, 0.5, Z)[1:] == (0.0, 1.0, False)
    assert area(0 * few, few, 0.0, Z)[1:] == (0.0, 1.0, False)


@given(wrong=COUNTS, right=COUNTS)
def test_the_calibration_error_covers_any_probabilities_inside_the_bins(wrong: Any, right: Any) -> None:
    edges = np.linspace(0.5, 1, 7)
    found = reliability(edges, wrong, right, 0.0, 1, Z)
    for sure in (edges[:-1], edges[1:], (edges[:-1] + edges[1:]) / 2):
        exact = np.abs(right - sure * (right + wrong)).sum() / (right + wrong).sum()
        assert found.error.low <= exact <= found.error.high + 1e-12
    assert [each.value for each in found.right] == pytest.approx(right / (right + wrong))


def test_a_calibration_error_that_noise_hides_is_not_told() -> None:
    found = reliability(np.linspace(0.5, 1, 4), np.zeros(3), np.ones(3), 100.0, 1, Z)
    assert not found.error.reported
    assert (found.error.low, found.error.high) == (0.0, 1.0)


def pointwise(found: ps.inference.HeadScore) -> dict[str, Any]:
    """What a picture of it draws, by name."""
    out: dict[str, Any] = {}
    for name, curve in found.roc.items():
        for place, (true, false) in enumerate(zip(curve.true_positive, curve.false_positive, strict=True)):
            out |= {f"true positive {name} {place}": true, f"false positive {name} {place}": false}
    if found.calibration is not None:
        out |= {f"right {place}": each for place, each in enumerate(found.calibration.right)}
    return out | {f"{i} as {j}": each for i, row in enumerate(found.predicted) for j, each in enumerate(row)}


class World:
    """A head and a population that it is scored on."""

    def __init__(self, classes: int, rare: float = 0.2, features: int = 3) -> None:
        self.classes, self.features, self.rare = classes, features, rare
        self.chance = np.random.default_rng(classes)
        self.head = ps.heads.LDA().fit(*self.draw(400))
        self.scoring = ps.Scoring(self.head, score_bins=10, by_class=classes > 2)

    def draw(self, count: int) -> tuple[Any, Any]:
        shares = np.r_[np.full(self.classes - 1, (1 - self.rare) / (self.classes - 1)), self.rare]
        y = self.chance.choice(self.classes, count, p=shares)
        return self.chance.normal(size=(count, self.features)) + 1.2 * np.eye(self.classes, self.features)[y], y

    def exact(self, count: int) -> dict[str, float]:
        """Of the population."""
        X, y = self.draw(count)
        said, shares = self.head.predict(X), self.head.predict_proba(X)
        recalls = [float((said[y == label] == label).mean()) for label in range(self.classes)]
        found = {"accuracy": float((said == y).mean()), "balanced accuracy": float(np.mean(recalls))}
        named = range(self.classes) if self.classes > 2 else (1,)
        for label in named:
            order = np.argsort(np.argsort(shares[:, label])) + 1
            inside = y == label
            won = order[inside].sum() - inside.sum() * (inside.sum() + 1) / 2
            found[f"AUC {label}"] = float(won / (inside.sum() * (~inside).sum()))
        sure = shares.max(axis=1)
        place = np.minimum((sure * 10).astype(int), 9)
        gaps = np.bincount(place, weights=sure - (said == y), minlength=10)
        plan = self.scoring.plan(cohort=ps.Cohort(2, 2, count), privacy=ps.NoPrivacy())
        known = slice(0, 40_000)  # of whom each is scored by itself
        whole = ps.inference.head_score(ps.simulate(plan, [(X[known][k::2], y[known][k::2]) for k in range(2)]))
        drawn = {name: each.value for name, each in pointwise(whole).items() if 0.02 < each.value < 0.98}
        return {**found, **drawn, "calibration error": float(np.abs(gaps).sum() / count)}

    def missed(self, truth: dict[str, float], epsilon: float, draws: int, count: int) -> tuple[Missed, Missed]:
        """By measure how many intervals were reported, and how many of these missed; and the same of what is drawn."""
        plan = self.scoring.plan(cohort=ps.Cohort(2, 2, count), privacy=made.promise(epsilon=epsilon))
        out = dict.fromkeys(truth, (0, 0))
        for draw in range(draws):
            X, y = self.draw(count)
            release = ps.simulate(plan, [(X[::2], y[::2]), (X[1::2], y[1::2])], rng=seeded(draw))
            found = ps.inference.head_score(release)
            read = {"accuracy": found.accuracy, "balanced accuracy": found.balanced_accuracy}
            read |= {f"AUC {name}": each for name, each in found.auc.items()}
            read["calibration error"] = found.calibration.error
            read |= {name: each for name, each in pointwise(found).items() if name in truth}
            for name, each in read.items():
                reported, missed = out[name]
                out[name] = (
                    reported + each.reported,
                    missed + (each.reported and not each.low <= truth[name] <= each.high),
                )
        drawn = pointwise(found).keys() & out.keys()
        return {name: out[name] for name in out if name not in drawn}, {name: out[name] for name in drawn}


@pytest.mark.ci
@pytest.mark.parametrize("classes", [2, 3])
def test_intervals_cover_the_population_under_noise(classes: int) -> None:
    world = World(classes)
    missed, drawn = world.missed(world.exact(200_000), 1.0, 30, 500)
    assert all(reported and misses <= 5 for reported, misses in missed.values()), missed  # 6 of 30 at 5 %: 3 in 1,000
    reported, misses = map(sum, zip(*drawn.values(), strict=True))
    assert misses <= 0.08 * reported, drawn


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_intervals_cover_the_population_in_many_draws(classes: int, epsilon: float) -> None:
    world = World(classes)
    missed, drawn = world.missed(world.exact(1_000_000), epsilon, 300, 1000)
    assert all(misses <= 0.05 * reported + 3 * (0.0475 * reported) ** 0.5 for reported, misses in missed.values()), (
        missed
    )
    assert all(misses <= 0.05 * reported + 5 * (0.0475 * reported) ** 0.5 for reported, misses in drawn.values()), drawn
    reported, misses = map(sum, zip(*drawn.values(), strict=True))
    assert misses <= 0.06 * reported


def test_a_head_that_predicts_one_class_is_said_to() -> None:
    y = np.arange(600) % 10 > 8
    X = np.random.default_rng(0).normal(size=(600, 3))
    head = ps.heads.LDA().fit(X, y.astype(int))
    for privacy in (ps.NoPrivacy(), made.promise(epsilon=3.0)):
        plan = ps.Scoring(head, score_bins=4).plan(cohort=ps.Cohort(2, 2, 600), privacy=privacy)
        found = ps.inference.head_score(ps.simulate(plan, [(X[::2], y[::2]), (X[1::2], y[1::2])], rng=seeded(0)))
        assert found.only == "0"
        assert "predicts one class, '0'" in found.remarks[0]
        assert "priors='uniform', which costs no privacy" in found.remarks[0]
        assert found.remarks[0] in str(found.summary()).replace("\n  ", " ")


def test_a_score_that_noise_hides_says_why() -> None:
    y = np.arange(40) % 2
    X = np.random.default_rng(0).normal(size=(40, 3)) + y[:, None]
    plan = ps.Scoring(ps.heads.LDA().fit(X, y)).plan(cohort=ps.Cohort(2, 2, 40), privacy=made.promise(epsilon=0.05))
    found = ps.inference.head_score(ps.simulate(plan, [(X[::2], y[::2]), (X[1::2], y[1::2])], rng=seeded(0)))
    assert not found.reported
    assert "noise hides how many records" in found.why_not_reported
    assert {row["reported"] for row in found.to_rows()} == {False}
    assert [row[1] for row in found.summary().rows] == ["-"] * 8


@pytest.mark.parametrize(("share", "rare"), [(0.07, True), (0.93, True), (0.4, False)])
@pytest.mark.parametrize("epsilon", [None, 2.0])
def test_a_score_leads_with_the_order_and_says_what_accuracy_is_worth(share: float, rare: bool, epsilon: Any) -> None:
    chance = np.random.default_rng(3)
    y = (chance.random(6_000) < share).astype(int)
    X = chance.normal(size=(6_000, 2)) + 1.2 * y[:, None]
    head = ps.heads.LDA().fit(X[:3_000], y[:3_000])
    privacy = ps.NoPrivacy() if epsilon is None else made.promise("central", epsilon=epsilon)
    plan = ps.Scoring(head).plan(cohort=ps.Cohort(2, 2, 3_000), privacy=privacy)
    found = ps.inference.head_score(ps.simulate(plan, [(X[k::2], y[k::2]) for k in (3_000, 3_001)], rng=seeded(0)))
    names = [row["metric"] for row in found.to_rows()]
    assert names[0] == "AUC"
    assert [name.split()[0] for name in names[1:3]] == ["sensitivity", "specificity"]
    assert names.index("accuracy") > max(place for place, name in enumerate(names) if name == "recall")
    assert bool(found.remarks) == rare
    if rare:
        usual = max(float((y[3_000:] == label).mean()) for label in (0, 1))
        label = str(int(share > 0.5))
        assert all(fact in found.remarks[0] for fact in (f"predicting {label!r}", f"about {usual:.2f}"))


def test_margins_have_areas_and_no_calibration() -> None:
    y = np.arange(600) % 2
    X = np.repeat(np.random.default_rng(0).normal(size=(600, 1)) + y[:, None], 20, axis=1)
    head = ps.heads.NaiveBayes().fit(X, y)  # which takes equal columns for twenty proofs
    bounds = []
    for scale in ({}, {"score": "margin", "reach": 40.0}):
        plan = ps.Scoring(head, **scale).plan(cohort=ps.Cohort(2, 2, 600), privacy=ps.NoPrivacy())
        found = ps.inference.head_score(ps.simulate(plan, [(X[::2], y[::2]), (X[1::2], y[1::2])]))
        assert (found.calibration is None) == bool(scale)
        low, high = found.roc["1"].auc_bounds
        bounds.append(high - low)
    assert bounds[1] < bounds[0] / 2  # probabilities of a sharp head share the outer bins


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("margins", [False, True])
def test_a_picture_has_a_panel_for_what_was_counted_and_says_how_its_bands_hold(classes: int, margins: bool) -> None:
    y = np.arange(900) % classes
    X = np.random.default_rng(0).normal(size=(900, 7)) + 2 * np.eye(classes, 7)[y]
    scale: Any = {"score": "margin", "reach": 9.0} if margins else {}
    scoring = ps.Scoring(ps.heads.LDA().fit(X, y), score_bins=6, **scale)
    plan = scoring.plan(cohort=ps.Cohort(2, 2, 900), privacy=made.promise(epsilon=8.0))
    figure = ps.inference.head_score(
        ps.simulate(plan, [(X[::2], y[::2]), (X[1::2], y[1::2])], rng=seeded(0)), alpha=0.1
    ).plot()
    wanted = [*(["true positive rate"] * (classes == 2)), *(["share of right predictions"] * (not margins)), "label"]
    assert [axes.get_ylabel() for axes in figure.axes] == wanted
    said = figure.get_supxlabel().replace("\n", " ")
    assert all(fact in said for fact in ("90 % intervals", "noise of the counts", "each pointwise"))
    cells = [text.get_text() for text in figure.axes[-1].texts]
    assert len(cells) == classes**2
    assert all(" to " in cell or cell == "?" for cell in cells) == (classes <= 5)


def test_a_picture_of_nothing_is_refused_and_what_noise_hides_is_grey(tmp_path: Any) -> None:
    y = np.arange(60) % 2
    X = np.random.default_rng(0).normal(size=(60, 3)) + 3 * y[:, None]
    parties = [(X[::2], y[::2]), (X[1::2], y[1::2])]
    scoring = ps.Scoring(ps.heads.LDA().fit(X, y), score_bins=4)
    for epsilon, hidden in ((0.05, True), (1.0, False)):
        plan = scoring.plan(cohort=ps.Cohort(2, 2, 60), privacy=made.promise(epsilon=epsilon))
        found = ps.inference.head_score(ps.simulate(plan, parties, rng=seeded(0)))
        if hidden:
            with pytest.raises(ReleaseError, match="noise hides how many records"):
                found.plot(tmp_path / "score.svg")
            assert not list(tmp_path.iterdir())
            continue
        grey = [patch for patch in found.plot().axes[1].patches if patch.get_width() == 0.25]
        assert len(grey) == sum(not each.reported for each in found.calibration.right) == 1
    with pytest.raises(ReleaseError, match="a figure is saved as"):
        found.plot(tmp_path / "score.gif")


def test_another_release_is_refused_by_its_kind() -> None:
    schema = ps.CountSchema((ps.Categories("sex", ("f", "m")),), (("sex",),))
    release = ps.Release.exact(schema, ps.measure(schema, {"sex": ["f", "m"]}))
    with pytest.raises(ReleaseError, match="measures a CountSchema; see Scoring"):
        ps.inference.head_score(release)


@pytest.mark.ci
@pytest.mark.parametrize("share", [0.05, 0.5])
def test_the_width_that_is_told_before_is_the_width_that_comes(share: float) -> None:
    """Of a head whose area is 0.8, in its own probabilities: log-odds are normal in both classes and calibrated."""
    chance, apart = np.random.default_rng(0), 1.19
    y = (chance.random(8_000) < share).astype(int)
    X = chance.normal(size=(8_000, 2)) + [apart, 0] * y[:, None]
    head = ps.heads.LDA().fit(X[:4_000], y[:4_000])
    plan = ps.Scoring(head).plan(cohort=ps.Cohort(2, 2, 4_000), privacy=made.promise("central", epsilon=2.0))
    told = expected_area(plan, share)
    shards = [(X[4_000::2], y[4_000::2]), (X[4_001::2], y[4_001::2])]
    widths = []
    for run in range(5):
        auc = ps.inference.head_score(ps.simulate(plan, shards, rng=seeded(run))).auc["1"]
        widths.append(auc.high - auc.low)
    assert told.high - told.low == pytest.approx(np.median(widths), rel=0.25)
    (said, advice) = expected_sentences(plan)
    facts = ("4,000 records", f"{told.high - told.low:.2f} wide", "AUC is 0.8", f"{100 * share:g} in 100")
    assert all(fact in said for fact in facts)
    assert said.endswith("no forecast of the AUC")
    assert "pass --release (Scoring(releases=))" in advice
    few = replace(plan, cohort=ps.Cohort(2, 2, 20))
    assert "noise where 5 in 100" in expected_sentences(few)[0]


@pytest.mark.parametrize(("records", "rough"), [(1_000, False), (999, True)])
def test_the_width_of_few_records_is_said_to_be_rough(records: int, rough: bool) -> None:
    """By the plan's public bound alone, and as often as the committed measurements found it."""
    head = ps.heads.LDA().fit(np.eye(4, 2), [0, 1, 0, 1])
    plan = ps.Scoring(head).plan(cohort=ps.Cohort(2, 2, records), privacy=made.promise("central", epsilon=2.0))
    said = expected_sentences(plan)[0]
    assert said.endswith("by more than a quarter") is rough
    assert ("fewer than 1,000 records" in said) is rough
    rows = [row for row in results("raw_tables.widths")[widths.TITLE] if (row["records"] < STEADY) is rough]
    off = 1 - sum(row["near"] for row in rows) / sum(row["shown"] for row in rows)
    assert (round(3 * off), off < 0.05) == ((1, False) if rough else (0, True))


def test_a_plan_without_a_curve_tells_no_width() -> None:
    counts = made.plan(ps.ClassSchema(2, 2, "NA", 1.0), ps.Cohort(2, 2, 10))
    assert expected_sentences(counts) == []
    with pytest.raises(ValueError, match="counts no score"):
        expected_area(counts, 0.5)


@pytest.mark.ci
@pytest.mark.parametrize("share", [0.07, 0.4])
def test_the_width_that_is_told_of_the_head_as_it_is_is_the_width_that_comes(share: float) -> None:
    """The width of a head whose area is .8 was told of each head, here one of .65."""
    chance = np.random.default_rng(1)
    y = (chance.random(8_000) < share).astype(int)
    X = chance.normal(size=(8_000, 3)) + 0.55 * y[:, None] * np.array([1, 0, 0])
    schema, privacy = ps.ClassSchema(2, 3, "NAB", clip_norm=4.0), made.promise("central", epsilon=3.0)
    first = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 4_000), privacy=privacy)
    release = ps.simulate(first, [(X[:4_000:2], y[:4_000:2]), (X[1:4_000:2], y[1:4_000:2])], rng=seeded(0))
    head = ps.heads.LDA().fit_release(release)
    plan = ps.Scoring(head).plan(cohort=ps.Cohort(2, 2, 4_000), privacy=made.promise("central", epsilon=2.0))
    shards, widths = [(X[4_000::2], y[4_000::2]), (X[4_001::2], y[4_001::2])], []
    for run in range(5):
        found = ps.inference.head_score(ps.simulate(plan, shards, rng=seeded(run)))
        widths.append(found.auc["1"].high - found.auc["1"].low)
    told = expected_area(plan, share, auc=0.65)
    assert told.high - told.low == pytest.approx(np.median(widths), rel=0.25)
    (said,) = expected_sentences(plan)
    assert f"where {round(100 * head.prevalence_[1]):g} in 100" in said
