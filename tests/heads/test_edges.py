"""Every head is fitted on sums at their edges, or refuses them in one sentence."""

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
import pytest
from sklearn.base import clone

import privstats as ps
from privstats.heads.fitting.least_squares import Solver
from privstats.heads.registry import HEADS
from privstats.randomness import seeded
from tests.heads.conftest import quick
from tests.lengths import sized

CLASSES = [name for name, entry in HEADS.items() if entry.task == "classes"]
REGRESSIONS = {
    **{name: quick(name) for name, entry in HEADS.items() if entry.task == "ridge"},
    **{f"Ridge, {solver}": ps.heads.Ridge(solver=solver) for solver in get_args(Solver) if solver != "auto"},
    "Ridge, by folds": ps.heads.Ridge(penalty="folds"),
}
D = 4


def _rows(n: int) -> Any:
    return np.random.default_rng(4).normal(size=(n, D)) / 4


def _constant() -> Any:
    X = _rows(300)
    X[:, 1] = 0.125
    return X


def _copied() -> Any:
    X = _rows(300)
    X[:, 2] = X[:, 0]
    return X


EDGES: Mapping[str, tuple[Any, Any, dict[str, Any]]] = {
    "a class without a record": (_rows(300), np.repeat([0, 1], 150), {}),
    "the first class without a record": (_rows(300), np.repeat([1, 2], 150), {}),
    "one class with records": (_rows(300), np.zeros(300, int), {}),
    "one record a class": (_rows(3), np.arange(3), {}),
    "a constant column": (_constant(), np.arange(300) % 3, {}),
    "a copied column": (_copied(), np.arange(300) % 3, {}),
    "one class left after suppression": (
        _rows(300),
        np.r_[np.zeros(290, int), np.arange(10) % 2 + 1],
        {"min_count": 50},
    ),
}


def _privacy(epsilon: float | None) -> Any:
    if epsilon is None:
        return ps.NoPrivacy()
    return ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)


def _released(name: str, X: Any, y: Any, epsilon: float | None, **options: Any) -> Any:
    entry = HEADS[name]
    statistics = "NA" + ("B" if "B" in entry.any_of else "S") + entry.beside_B
    maps = (ps.transforms.UnitNorm(),) if entry.after_rounds else ()
    plan = ps.Plan(
        schema=ps.ClassSchema(3, D, statistics, 1.0, transform=maps),
        cohort=ps.Cohort(clients=2, min_survivors=2, max_records=1_000),
        privacy=_privacy(epsilon),
        **options,
    )
    return ps.simulate(plan, [(X[k::2], y[k::2]) for k in (0, 1)])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("epsilon", [None, 3.0], ids=["exact", "noisy"])
@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("name", CLASSES)
def test_sums_at_their_edges_give_a_head_or_one_sentence(name: str, edge: str, epsilon: float | None) -> None:
    X, y, options = EDGES[edge]
    release = _released(name, X, y, epsilon, **options)
    try:
        head = quick(name).fit_release(release)
    except ps.PrivstatsError as refusal:
        assert len(str(refusal)) > 20
        return
    shares = head.predict_proba(X)
    assert shares.shape == (len(X), len(head.classes_))
    assert np.isfinite(shares).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-9)


@pytest.mark.parametrize("name", ["LDA", "QDA", "RDA", "NaiveBayes", "RefinedSoftmax"])
def test_a_class_that_nobody_has_costs_its_own_score_alone(name: str) -> None:
    """Under noise, where nothing shows that the class is empty; of the same records as in a plan without it."""
    rng = np.random.default_rng(1)
    means, y = rng.normal(size=(3, 4)), rng.integers(0, 2, 4_000)
    X, fresh = (means[y] + rng.normal(size=(4_000, 4)) for _ in range(2))
    known: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-6, "adjacency": "add-remove", "ledger": "uncharged"}
    known |= {"expected_records": 4_096} if name == "RefinedSoftmax" else {"clip_norm": 5.0}
    heads = [quick(name).fit_private(X, y, classes=classes, **known) for classes in ((0, 1), (0, 1, 2))]
    without, found = (float((head.predict(fresh) == y).mean()) for head in heads)
    assert found > without - 0.015
    assert heads[1].predict_proba(fresh)[:, 2].mean() < 0.02


def test_rounds_name_a_class_without_a_record() -> None:
    X, y, _ = EDGES["a class without a record"]
    with pytest.raises(ps.ReleaseError, match="class 2 has no record in the release, or is suppressed"):
        ps.heads.RefinedSoftmax().fit_release(_released("RefinedSoftmax", X, y, None))


TARGETS: Mapping[str, tuple[Any, int]] = {
    "a constant column": (_constant(), 1),
    "a copied column": (_copied(), 1),
    "columns of zeros": (np.zeros((300, D)), 1),
    "one record": (_rows(1), 1),
    "an empty fold": (_rows(3), 8),
    "one record in folds": (_rows(1), 8),
}


def _targets(X: Any) -> Any:
    return X @ np.linspace(-1, 1, D) + 0.3


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("epsilon", [None, 3.0], ids=["exact", "noisy"])
@pytest.mark.parametrize("edge", TARGETS)
@pytest.mark.parametrize("name", REGRESSIONS)
def test_sums_of_targets_at_their_edges_give_a_head_or_one_sentence(
    name: str, edge: str, epsilon: float | None
) -> None:
    X, folds = TARGETS[edge]
    y, rows = _targets(X), (ps.transforms.ConstantFeature(1.0),)
    schema = ps.RidgeSchema(D + 1, clip_norm=2.0, target_bound=2.0, folds=folds, transform=rows)
    cohort = ps.Cohort(clients=2, min_survivors=2, max_records=1_000)
    plan = ps.Plan(schema=schema, cohort=cohort, privacy=_privacy(epsilon))
    release = ps.simulate(plan, [(X[k::2], y[k::2]) for k in (0, 1)], rng=seeded(0))
    if folds > 1 and epsilon is None:
        assert (release.moments.fold_q == 0).any()
    try:
        head = clone(REGRESSIONS[name]).fit_release(release)
    except ps.PrivstatsError as refusal:
        assert len(str(refusal)) > 20
        return
    assert np.isfinite(head.predict(X)).all()
    if name == "Ridge" and epsilon is None and len(X) > 100:
        np.testing.assert_allclose(head.predict(X), y, atol=0.05)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("epsilon", [3.0, 50.0])
@pytest.mark.parametrize("edge", ["a class without a record", "the first class without a record"])
@pytest.mark.parametrize("options", [{}, {"calibrated": True}, {"module": "adapter/2"}], ids=str)
def test_a_course_with_a_class_that_no_party_has_ends_in_a_head_or_one_sentence(
    options: dict[str, Any], edge: str, epsilon: float
) -> None:
    """Noise hides whether a class is empty, so its sessions go on, and every prefix of them is a head of all."""
    X, y, _ = EDGES[edge]
    schema = ps.ClassSchema(3, D, "NAB", 1.0, transform=(ps.transforms.UnitNorm(),))
    cohort = ps.Cohort(clients=2, min_survivors=2, max_records=1_000)
    plan = ps.Plan(schema=schema, cohort=cohort, privacy=_privacy(epsilon))
    course = ps.Rounds.within(plan, 2, expected_records=300, **options)
    for seed in range(sized(1, 8)):
        releases = ps.simulate(course, [(X[k::2], y[k::2]) for k in (0, 1)], rng=seeded(seed))
        for most in range(1, len(releases) + 1):
            try:
                head = ps.heads.RefinedSoftmax().fit_releases(releases[:most])
            except ps.PrivstatsError as refusal:
                assert "class" in str(refusal)
                continue
            shares = head.predict_proba(X)
            assert shares.shape == (len(X), 3)
            assert np.isfinite(shares).all()
            np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-9)
