"""Every parameter of every head has bounds, and what is out of them is refused before anything is fitted."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone

from privstats import heads
from privstats.errors import HeadError
from privstats.heads import registry
from privstats.heads.estimator import ClassHead
from privstats.heads.registry.entries import WEIGHT, Bounds, Constraints, Number, Share, Whole

NEVER = ["bogus", -1, -0.5, float("nan"), float("inf"), b"auto", 10**400, [], {}, "AUTO", np.array([[1.0]]), 1 + 2j]
"""Right for no parameter of any head."""


def beyond(bounds: Constraints) -> list[float]:
    """The nearest numbers that an interval leaves out, where one interval bounds the parameter."""
    match [bound for bound in bounds if isinstance(bound, Number | Whole | Share)]:
        case [Number(low, high, closed)]:
            return [float(np.nextafter(low, -np.inf)) if closed else low, float(np.nextafter(high, np.inf))]
        case [Whole(low)]:
            return [low - 1, low + 0.5]
    return []


PARAMETERS = [(name, parameter) for name in registry.HEADS for parameter in registry.head_class(name).bounds]


@pytest.mark.parametrize(("name", "parameter"), PARAMETERS)
def test_a_parameter_out_of_its_bounds_is_refused_by_name(name, parameter):
    kind = registry.head_class(name)
    for value in (*NEVER, *beyond(kind.bounds[parameter])):
        head = kind(**{parameter: value})
        for fit in (lambda head=head: head.fit(np.zeros((0, 0)), []), lambda head=head: head.fit_release(None)):
            with pytest.raises(HeadError, match=f"^{parameter} must be .*, got "):  # before any data is looked at
                fit()


def test_numbers_of_numpy_are_numbers(blobs):
    X, y = blobs()
    head = heads.LowRankQDA(
        rank=np.int64(2), pooled_weight=np.float32(0.5), shrinkage=np.float64(0.1), subspace=np.int32(3)
    )
    head.fit(X, y)
    heads.LDA(subspace=0.9, priors=(0.1, 0.2, 0.3, 0.4)).fit(X, y)
    assert clone(head).rank == 2


def test_a_subspace_wider_than_the_features_is_refused(blobs):
    X, y = blobs()
    for head in (heads.LDA(subspace=99), heads.FisherMix(dimension=99), heads.QDA(subspace=7)):
        with pytest.raises(HeadError, match="is more than the 6 features; give at most 6, or 'auto'"):
            head.fit(X, y)


def test_priors_of_another_number_of_classes_are_refused(blobs):
    with pytest.raises(HeadError, match="4 positive numbers, one per remaining class"):
        heads.LDA(priors=[0.5, 0.5]).fit(*blobs())


class Unbounded(ClassHead):
    """A head of somebody else with a parameter that its bounds forget."""

    entry = registry.Entry()
    bounds: ClassVar[Bounds] = {"weight": WEIGHT}

    def __init__(self, *, weight=0.5, metric="euclidean"):
        self.weight = weight
        self.metric = metric

    def _solve(self, evidence):
        raise AssertionError("an unbounded parameter came through")


def test_a_parameter_without_bounds_is_refused_and_not_used(blobs):
    with pytest.raises(HeadError, match=r"^Unbounded has no bounds for its parameter metric; add them"):
        Unbounded().fit(*blobs())
