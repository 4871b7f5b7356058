"""A score over all parties: what a record adds follows from it and the head alone, and pooled it is scikit-learn's."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, recall_score, roc_auc_score

import privstats as ps
from privstats.encoding import flatten
from privstats.errors import HeadError, PlanError, PrivstatsError, RecordError, SchemaError
from privstats.heads import scoring as room
from privstats.heads.registry import HEADS as EVERY_HEAD
from privstats.heads.scoring import head_digest
from privstats.kinds.scoring import HEAD, cells_of_scores
from privstats.randomness import seeded
from privstats.schema.public_values import Published, Values
from tests import made
from tests.made import refused

HEADS = (
    *(ps.heads.LDA(), ps.heads.QDA(), ps.heads.NaiveBayes(), ps.heads.RidgeClassifier()),
    *([ps.heads.LowRankQDA(rank=2)] if "LowRankQDA" in EVERY_HEAD else []),
)


def records(count: int, classes: int, features: int = 5, seed: int = 0) -> tuple[Any, Any]:
    y = np.arange(count) % classes
    return np.random.default_rng(seed).normal(size=(count, features)) + np.eye(classes, features)[y], y


def fitted(head: Any, classes: int) -> Any:
    return head.fit(*records(300, classes, seed=1))


def counts(scoring: ps.Scoring, X: Any, y: Any, **more: Any) -> Any:
    return ps.measure(scoring.schema, X, y, published=scoring.published, **more)


def released(scoring: ps.Scoring, X: Any, y: Any) -> ps.Release:
    plan = scoring.plan(cohort=ps.Cohort(3, 3, len(y)), privacy=ps.NoPrivacy())
    return ps.simulate(plan, [(X[k::3], y[k::3]) for k in range(3)])


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("head", HEADS, ids=lambda head: type(head).__name__)
def test_without_noise_it_is_the_pooled_score(head: Any, classes: int) -> None:
    model, (X, y) = fitted(head, classes), records(600, classes)
    found = ps.inference.head_score(released(ps.Scoring(model, by_class=classes > 2), X, y))
    said = model.predict(X)
    assert found.accuracy.value == pytest.approx(model.score(X, y), abs=1e-12)
    assert found.confusion.tolist() == confusion_matrix(y, said).tolist()
    assert found.balanced_accuracy.value == pytest.approx(balanced_accuracy_score(y, said), abs=1e-12)
    assert [each.value for each in found.recall.values()] == pytest.approx(recall_score(y, said, average=None))
    shares = model.predict_proba(X)
    for name, curve in found.roc.items():
        exact = roc_auc_score(y == int(name), shares[:, int(name)])
        assert curve.auc_bounds[0] <= exact <= curve.auc_bounds[1]
        assert curve.auc.low <= exact <= curve.auc.high
        assert abs(curve.auc.value - exact) < 0.02
    sure = ps.heads.expected_calibration_error(model, X, y)
    assert found.calibration.error.low <= sure <= found.calibration.error.high


@pytest.mark.parametrize("head", HEADS, ids=lambda head: type(head).__name__)
def test_a_record_has_the_same_scores_in_any_company(head: Any) -> None:
    """Products of matrices round otherwise for more rows, so neighbours would move each other over an edge."""
    model = fitted(head, 3)
    X, _ = records(40, 3, seed=2)
    whole = room.scores_alone(model, X)
    for chosen in (np.arange(40)[::-1], np.arange(1, 40), *np.arange(40)[:, None]):
        moved = np.empty((len(chosen), 6))[:, 1:]  # rows that begin elsewhere in memory
        moved[:] = X[chosen]
        for one, other in zip(whole, room.scores_alone(model, moved), strict=True):
            assert one[chosen].tobytes() == other.tobytes()


@given(seed=st.integers(0, 10**6), margin=st.booleans(), classes=st.sampled_from([2, 3]))
def test_one_record_moves_one_cell_of_every_table(seed: int, margin: bool, classes: int) -> None:
    model = fitted(ps.heads.QDA(), classes)
    scale: dict[str, Any] = {"score": "margin", "reach": 3.0} if margin else {}
    scoring = ps.Scoring(model, score_bins=6, by_class=classes > 2, **scale)
    X, y = records(12, classes, seed=seed)
    moved = flatten(counts(scoring, X, y)) - flatten(counts(scoring, X[1:], y[1:]))
    alone = flatten(counts(scoring, X[:1], y[:1]))
    assert (moved.tolist(), (moved != 0).sum()) == (alone.tolist(), len(scoring.schema.tables))
    assert counts(scoring, X[:5], y[:5]) + counts(scoring, X[5:], y[5:]) == counts(scoring, X, y)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_sensitivity_is_what_one_record_moves(classes: int) -> None:
    scoring = ps.Scoring(fitted(ps.heads.LDA(), classes), score_bins=2 * classes, by_class=classes > 2)
    X, y = records(60, classes, seed=4)
    single = np.stack([counts(scoring, X[k : k + 1], y[k : k + 1]).T for k in range(60)])
    apart = {"add-remove": single, "replace-one": (single[:, None] - single[None]).reshape(-1, single.shape[1])}
    for adjacency, moves in apart.items():
        most = float(np.linalg.norm(moves, axis=1).max())
        assert most == pytest.approx(ps.dp.joint_mu(scoring.schema, {"T": 1.0}, adjacency))  # type: ignore[arg-type]


WILD = st.floats(allow_nan=True, allow_infinity=True, width=64)


@given(
    scores=arrays(np.float64, (4, 3), elements=WILD),
    shares=arrays(np.float64, (4, 3), elements=WILD),
    margin=st.booleans(),
    classes=st.sampled_from([2, 3]),
)
def test_every_number_has_a_cell(scores: Any, shares: Any, margin: bool, classes: int) -> None:
    scale: dict[str, Any] = {"score": "margin", "reach": 2.0} if margin else {}
    by_class = classes > 2
    schema = ps.ScoringSchema("0" * 64, 1, classes=classes, features=2, score_bins=4, by_class=by_class, **scale)
    cut, labels = slice(None, classes), np.array([0, 1, 1, 0])
    places = cells_of_scores(schema, scores[:, cut], shares[:, cut], labels)
    assert len(places) == len(schema.tables)
    for table, cells in zip(schema.tables, places, strict=True):
        assert cells.min() >= 0
        assert cells.max() < np.prod(schema.shape(table))
    for row in range(4):
        one = slice(row, row + 1)
        alone = cells_of_scores(schema, scores[one, cut], shares[one, cut], labels[one])
        assert [cells[row] for cells in places] == [cells[0] for cells in alone]


def test_tied_classes_and_the_middle_are_the_first_class() -> None:
    """As ``predict`` has it; the bin of a tie is one of the predicted class's."""
    schema = ps.ScoringSchema("0" * 64, 1, classes=2, features=2, score_bins=4)
    half = np.full((2, 2), 0.5)
    assert cells_of_scores(schema, half, half, np.array([0, 1]))[0].tolist() == [1, 5]


def test_records_of_a_label_that_the_head_lacks_count_as_wrong() -> None:
    X, y = records(600, 3)
    model = ps.heads.LDA().fit(X[y < 2], y[y < 2])
    found = ps.inference.head_score(released(ps.Scoring(model, labels=[0, 1, 2]), X, y))
    assert found.recall["2"].value == 0
    assert found.accuracy.value == pytest.approx((model.predict(X) == y).mean())
    refused(RecordError, "outside 0..1", counts, ps.Scoring(model), X, y)
    with pytest.warns(ps.errors.UnreadableRecordsWarning, match="200 of the records"):
        assert counts(ps.Scoring(model), X, y, unreadable="leave out").records == 400


def test_columns_are_read_by_name_and_declared_ones_from_a_table() -> None:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    y = np.arange(400) % 2
    frame = pd.DataFrame({"age": 50 + 10 * rng.normal(size=400) + 8 * y, "ward": rng.choice(["a", "b"], 400)})
    frame.loc[5, "age"] = np.nan
    columns = (ps.Numeric("age", edges=(40, 50, 60)), ps.Categories("ward", ("a", "b")))
    terms = {"epsilon": 50.0, "delta": 1e-5, "adjacency": "add-remove", "ledger": "uncharged", "classes": [0, 1]}
    model = ps.heads.LDA().fit_private(frame, y, columns=columns, expected_records=400, **terms)
    found = counts(ps.Scoring(model, equal_bins=True), frame[["ward", "age"]], y)
    assert found.records == 400
    assert found.T.reshape(2, 2, -1).sum(axis=2).trace() == (model.predict(frame) == y).sum()


def test_rows_that_are_not_finite_count_nowhere() -> None:
    model, (X, y) = fitted(ps.heads.LDA(), 2), records(10, 2)
    X[3, 1] = np.inf
    scores, shares = room.scores_alone(model, X)
    assert np.isnan(scores[3]).all()
    assert np.isnan(shares[3]).all()
    assert not np.isnan(np.delete(scores, 3, axis=0)).any()
    refused(RecordError, "NaN or infinite", counts, ps.Scoring(model), X, y)
    with pytest.warns(ps.errors.UnreadableRecordsWarning, match="1 of the records"):
        assert counts(ps.Scoring(model), X, y, unreadable="leave out").records == 9


@pytest.mark.parametrize("how", ["raises", "exits", "is too wide"])
def test_a_record_at_which_another_packages_rule_fails_is_excluded_alone(how: str) -> None:
    model, X = fitted(ps.heads.LDA(), 2), records(10, 2)[0]
    want = room.scores_alone(model, X)
    X[3, 1] = 99.0

    class Rule:
        own = model.rule_

        def scores(self, rows: Any) -> Any:
            if rows[0, 1] != 99.0:
                return self.own.scores(rows)
            if how == "is too wide":
                return np.zeros((1, 3))
            raise SystemExit(3) if how == "exits" else ValueError(f"math domain error at {rows.tolist()}")

    model.rule_ = Rule()
    for expected, found in zip(want, room.scores_alone(model, X), strict=True):
        assert np.isnan(found[3]).all()
        assert np.array_equal(np.delete(found, 3, axis=0), np.delete(expected, 3, axis=0))


def test_a_head_has_one_digest_and_its_plan_carries_it(tmp_path: Any) -> None:
    model = fitted(ps.heads.LDA(), 2)
    model.save(tmp_path / "trees.head")
    again = ps.heads.load(tmp_path / "trees.head")
    plan = ps.Scoring(model).plan(cohort=ps.Cohort(2, 2, 10), privacy=made.promise("central"))
    assert head_digest(again) == head_digest(model) == plan.schema.head
    assert ps.Scoring(fitted(ps.heads.QDA(), 2)).schema.head != plan.schema.head


def test_another_head_than_the_plans_is_refused_before_a_record_is_read() -> None:
    mine, (X, y) = ps.Scoring(fitted(ps.heads.LDA(), 2)), records(10, 2)
    other = ps.Scoring(ps.heads.LDA(shrinkage=0.5).fit(*records(300, 2, seed=1)))
    assert len(mine.published.read()[HEAD].integers) > 0
    size = mine.schema.head_bytes
    forged = np.zeros(size, np.int64)
    for published in (Published.of({HEAD: Values(forged, 0)}), Published.of({HEAD: Values(forged - 1, 0)})):
        refused(PlanError, "published head", ps.measure, mine.schema, X, y, published=published)
    if other.schema.head_bytes == size:
        refused(PlanError, "not the one whose SHA-256", ps.measure, mine.schema, X, y, published=other.published)
    refused(PlanError, "published values do not fit", ps.measure, mine.schema, X, y)


def test_a_plan_of_other_columns_than_the_heads_is_refused() -> None:
    scoring, (X, y) = ps.Scoring(fitted(ps.heads.LDA(), 2)), records(10, 2)
    fields = {"classes": 2, "features": 5, "feature_names": tuple("abcde")}
    schema = ps.ScoringSchema(scoring.schema.head, scoring.schema.head_bytes, **fields)
    refused(PlanError, "reads other columns", ps.measure, schema, X, y, published=scoring.published)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ps.Scoring(ps.heads.Ridge().fit([[0.0, 1.0], [1.0, 0.0]], [0.0, 1.0])), "only a classifier"),
        (lambda: ps.Scoring(ps.heads.LDA().fit([[0.0, 1.0], [1.0, 0.0]], [0, 0])), "knows one class"),
        (lambda: ps.Scoring(fitted(ps.heads.LDA(), 2), labels=[0, 2]), "not among the labels"),
        (lambda: ps.Scoring(fitted(ps.heads.LDA(), 2), score_bins=7), "even number"),
        (lambda: ps.Scoring(fitted(ps.heads.LDA(), 2), score="margin"), "reach"),
        (lambda: ps.Scoring(fitted(ps.heads.LDA(), 2), by_class=True), "by_class"),
        (lambda: ps.Scoring(fitted(ps.heads.LDA(), 3), score_bins=1001), "at most 1000"),
        (lambda: ps.ScoringSchema("head", 1, classes=2, features=2), "64 hex digits"),
        (lambda: ps.ScoringSchema("0" * 64, 1, classes=2, features=2, score="logit"), "'probability' or 'margin'"),
        (lambda: ps.ScoringSchema("0" * 64, 1 << 26, classes=2, features=2), "head_bytes"),
        (lambda: ps.ScoringSchema("0" * 64, 1, classes=300, features=2, score_bins=4), "90008 cells"),
    ],
)
def test_what_cannot_be_scored_is_said_in_a_sentence(make: Any, words: str) -> None:
    refused(PrivstatsError, words, make)


def test_a_head_whose_map_is_each_partys_own_is_refused() -> None:
    """What it says of a record follows from the other records of that party."""
    model = fitted(ps.heads.LDA(), 2)
    own = ps.transforms.Transport(5, reference="0" * 64, strength=1.0)
    object.__setattr__(model.preprocessing_, "transform", (own,))
    refused(HeadError, "fitted on the records", ps.Scoring, model)


@pytest.mark.parametrize("option", ["groups", "by_site"])
def test_scores_of_single_sites_are_refused_by_name(option: str) -> None:
    terms = {"cohort": ps.Cohort(3, 3, 30), "privacy": ps.NoPrivacy()}
    with pytest.raises(PlanError, match=f"{option} would count the records of a site by itself"):
        ps.Scoring(fitted(ps.heads.LDA(), 2)).plan(**terms, **{option: 3})  # type: ignore[arg-type]


def test_a_head_that_is_blown_up_to_cost_parties_time_is_refused_with_its_plan() -> None:
    """29 MB over five columns took 22 milliseconds a record, and a plan could name them."""
    model = fitted(ps.heads.LowRankQDA(rank=2), 2)
    honest = ps.Scoring(model)
    text = honest.plan(cohort=ps.Cohort(2, 2, 9), privacy=ps.NoPrivacy()).to_toml()
    object.__setattr__(model.rule_, "factors", np.zeros((len(model.rule_.factors), 1_000_000)))
    refused(SchemaError, r"head_bytes is \d\d,.*refuse such a plan", ps.Scoring, model)
    blown = text.replace(f"head_bytes = {honest.schema.head_bytes}", "head_bytes = 29000000")
    with pytest.raises(PrivstatsError, match="head_bytes is 29,000,000, and a head of 2 classes over 5 columns"):
        ps.Plan.from_toml(blown)


@pytest.mark.parametrize("names", [None, tuple(f"a class with a long name {place}" * 7 for place in range(40))])
def test_every_head_of_ours_has_room_however_many_columns(names: Any) -> None:
    """The largest rule is quadratic: a matrix of float64 for each class."""
    classes = 2 if names is None else len(names)
    X = np.random.default_rng(0).normal(size=(30 * classes, 20))
    y = np.arange(len(X)) % classes
    for head in (ps.heads.QDA(), ps.heads.RDA(), ps.heads.ProtoHyper(), ps.heads.LowRankQDA(rank=19)):
        assert ps.Scoring(head.fit(X, y if names is None else np.array(names)[y]), score_bins=2).schema.features == 20


def test_labels_of_one_name_are_refused() -> None:
    refused((HeadError, SchemaError), "", ps.Scoring, fitted(ps.heads.LDA(), 2), labels=[0, 1, "1"])


def rare(count: int, seed: int) -> tuple[Any, Any]:
    """One in twenty or so is of the second class."""
    chance = np.random.default_rng(seed)
    y = (chance.random(count) < 0.05).astype(int)
    return chance.normal(size=(count, 3)) + 0.7 * y[:, None], y


def made_of(count: int = 3_000, epsilon: float = 3.0) -> tuple[Any, ps.Release]:
    """A head of a rare outcome, and the release that it was made from."""
    X, y = rare(count, 1)
    schema, privacy = ps.ClassSchema(2, 3, "NAB", clip_norm=4.0), made.promise("central", epsilon=epsilon)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, count), privacy=privacy)
    release = ps.simulate(plan, [(X[::2], y[::2]), (X[1::2], y[1::2])], rng=seeded(1))
    return ps.heads.LDA().fit_release(release), release


def test_bins_follow_the_releases_of_the_head_and_tell_of_a_rare_outcome() -> None:
    """With 20 bins of equal width the AUC of an outcome of 5 % had an interval from .5 to .9."""
    head, release = made_of()
    X, y = rare(4_000, 2)
    true, wide = roc_auc_score(y, head.predict_proba(X)[:, 1]), {}
    for name, more in (("equal", {"equal_bins": True}), ("follow", {})):
        scoring = ps.Scoring(head, **more)
        plan = scoring.plan(cohort=ps.Cohort(2, 2, 4_000), privacy=made.promise("central", epsilon=1.0))
        found = ps.inference.head_score(ps.simulate(plan, [(X[::2], y[::2]), (X[1::2], y[1::2])], rng=seeded(2)))
        auc = found.auc["1"]
        assert auc.low <= true <= auc.high
        assert found.accuracy.low <= head.score(X, y) <= found.accuracy.high
        wide[name] = auc.high - auc.low
        assert found.calibration.label == ("1" if name == "follow" else "")
    assert wide["follow"] < 0.6 * wide["equal"]
    again = ps.Plan.from_toml(plan.to_toml())
    assert (again.digest, again.schema.cuts) == (plan.digest, plan.schema.cuts)
    assert ps.Scoring(head, releases=[release]).schema == scoring.schema
    equal = ps.Scoring(head, equal_bins=True)
    assert "cuts" not in equal.plan(cohort=ps.Cohort(2, 2, 9), privacy=ps.NoPrivacy()).to_toml()
    refused(HeadError, "leave releases or equal_bins out", ps.Scoring, head, releases=[release], equal_bins=True)


def test_a_record_counts_in_the_bin_of_its_probability_on_the_side_of_its_class() -> None:
    head, release = made_of()
    scoring, (X, y) = ps.Scoring(head, 12, releases=[release]), rare(900, 3)
    cuts = scoring.schema.cuts
    assert cuts is not None
    assert 0.5 in cuts
    assert scoring.schema.score_bins == len(cuts) + 1 <= 13
    shares = room.scores_alone(head, X)[1][:, 1]
    expected = np.zeros((2, len(cuts) + 1), int)
    np.add.at(expected, (y, np.searchsorted(cuts, shares, side="right")), 1)
    assert counts(scoring, X, y).T.reshape(2, -1).tolist() == expected.tolist()
    found = ps.inference.head_score(released(scoring, X, y))
    assert found.confusion.tolist() == confusion_matrix(y, head.predict(X)).tolist()
    nothing = np.full((1, 2), np.nan)
    assert cells_of_scores(scoring.schema, nothing, nothing, np.array([0])) == [0]


def test_bins_follow_no_other_releases_than_the_heads_own() -> None:
    head, release = made_of()
    other = made_of(epsilon=2.0)[1]
    for releases in ([other], [release, other], []):
        refused(HeadError, "releases must be those that the head was made from", ps.Scoring, head, releases=releases)
    fields = {"classes": 2, "features": 2, "score_bins": 4}
    for cuts in (
        (0.1, 0.2, 0.3),
        (0.1, 0.5),
        (0.5, 0.2, 0.7),
        (0.2, 0.5, 1.0),
        "0.5",
        (0.2, 0.5, float("nan")),
        (0.2, 0.5, 10**400),
    ):
        with pytest.raises(SchemaError, match="cuts need two classes, and must be score_bins - 1 rising probabilities"):
            ps.ScoringSchema("0" * 64, 1, **fields, cuts=cuts)  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="cuts need score='probability'"):
        ps.ScoringSchema("0" * 64, 1, **fields, cuts=(0.2, 0.5, 0.7), score="margin", reach=8.0)
