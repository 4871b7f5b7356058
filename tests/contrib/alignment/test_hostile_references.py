"""Attack: a server that publishes any reference; no client is worth more than the promise, whatever its records are."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.errors import PlanError, PrivstatsError
from privstats.schema.public_values import Published, Values
from tests import made
from tests.contrib.alignment.cohort import COHORT, PROMISE, PUBLIC, RADIUS, D, shards
from tests.lengths import sized

ROUND = replace(PUBLIC, reference=True)
AXIS = np.eye(D)[0]
CLIENTS = {
    "honest": shards()[0][0],
    "at the radius": np.repeat([RADIUS * AXIS, -RADIUS * AXIS], 100, axis=0),
    "beyond it": 1e9 * np.repeat([AXIS, -AXIS], 100, axis=0),
    "one direction": np.outer(np.linspace(-RADIUS, RADIUS, 200), np.ones(D) / 2),
    "one row": np.full((1, D), 3.0),
    "one point": np.tile(RADIUS * AXIS, (200, 1)),
    "tiny": np.random.default_rng(3).normal(size=(200, D)) * 1e-9,
}


def references() -> dict[str, Any]:
    """Matrices that a server may publish: at every edge of what is a covariance within the radius, and random ones."""
    rng = np.random.default_rng(0)
    found = {
        "zero": np.zeros((D, D)),
        "the largest": RADIUS**2 * np.eye(D) * 0.99,
        "one direction": RADIUS**2 * np.outer(AXIS, AXIS) * 0.99,
        "nearly none": 1e-12 * np.eye(D),
        "far from round": np.diag(np.geomspace(1e-10, RADIUS**2 * 0.99, D)),
    }
    for place in range(sized(12, 400)):
        turned, _ = np.linalg.qr(rng.normal(size=(D, D)))
        found[f"random {place}"] = (turned * (RADIUS**2 * rng.uniform(size=D) ** rng.integers(1, 30))) @ turned.T * 0.99
    return found


def plan_of(reference: np.ndarray) -> ps.Plan:
    published = Published.of({"S": Values.rounded((reference + reference.T) / 2, 48)})
    return made.plan(ROUND, COHORT, PROMISE, published=published)


def added(plan: ps.Plan, rows: np.ndarray) -> np.ndarray:
    moments = ps.measure(plan.schema, rows, None, published=plan.published)
    vector: np.ndarray = ps.session.contribution(plan, moments).take().lift()
    return vector


def test_attack_no_reference_makes_a_client_worth_more_than_the_promise() -> None:
    worths = {}
    for name, reference in references().items():
        plan = plan_of(reference)
        for client, rows in CLIENTS.items():
            worths[name, client] = made.worth(plan, added(plan, rows))
    assert max(worths.values()) <= 1 + 1e-9, worths
    assert max(worths.values()) > 0.9, "a search that comes near no bound proves nothing"


WRONG = {
    "too large": 1.01 * RADIUS**2 * np.eye(D),
    "negative": -np.eye(D),
    "one negative direction": np.diag([1.0, 1.0, 1.0, -1e-3]),
    "indefinite": np.eye(D)[:, ::-1] * 5.0,
    "not symmetric": np.triu(np.ones((D, D))),
}


@pytest.mark.parametrize("reference", WRONG.values(), ids=WRONG)
def test_attack_what_is_no_covariance_is_refused_before_a_record_is_read(reference: np.ndarray) -> None:
    published = Published.of({"S": Values.rounded(reference, 48)})
    with pytest.raises(PlanError, match="is no covariance of rows of norm clip_norm"):
        made.plan(ROUND, COHORT, PROMISE, published=published)
    with pytest.raises(PlanError, match="is no covariance"):
        ps.measure(ROUND, Unread(), None, published=published)


def test_attack_a_reference_beyond_every_number_is_refused() -> None:
    with pytest.raises(PrivstatsError):
        plan_of(1e300 * np.eye(D))


class Unread:
    """Records that nobody may read."""

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise AssertionError("the records were read")

    def __iter__(self) -> Any:
        raise AssertionError("the records were read")
