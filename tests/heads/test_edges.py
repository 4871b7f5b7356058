"""Every head is fitted on sums at their edges, or refuses them in one sentence."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.heads.registry import HEADS
from tests.heads.conftest import quick

CLASSES = [name for name, entry in HEADS.items() if entry.task == "classes"]
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


def _released(name: str, X: Any, y: Any, epsilon: float | None, **options: Any) -> Any:
    entry = HEADS[name]
    statistics = "NA" + ("B" if "B" in entry.any_of else "S") + entry.beside_B
    maps = (ps.transforms.UnitNorm(),) if entry.after_rounds else ()
    privacy = (
        ps.NoPrivacy()
        if epsilon is None
        else ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)
    )
    plan = ps.Plan(
        schema=ps.ClassSchema(3, D, statistics, 1.0, transform=maps),
        cohort=ps.Cohort(clients=2, min_survivors=2, max_records=1_000),
        privacy=privacy,
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


def test_rounds_name_a_class_without_a_record() -> None:
    X, y, _ = EDGES["a class without a record"]
    with pytest.raises(ps.ReleaseError, match="class 2 has no record in the release, or is suppressed"):
        ps.heads.RefinedSoftmax().fit_release(_released("RefinedSoftmax", X, y, None))
