"""The row ``recorded``: a recording gives nothing away.

That the attacker would read the vector if it had ML-KEM's private halves too is ``tests/secagg/test_recorded.py``.
"""

import pytest

from privstats.randomness import seeded
from threat_models.attack import attacks_named
from threat_models.attacks import recorded
from threat_models.data import synthetic_pool
from threat_models.evaluate import Effort, evaluate

from ..conftest import plan_of


@pytest.mark.ci
def test_the_row_says_that_masks_promise_nothing_ever_comes_out() -> None:
    pool = synthetic_pool(plan_of(), seeded(0))
    (found,) = evaluate(plan_of(), attacks_named(["recorded"]), pool, Effort(trials=8, seed=1)).rows
    assert (found.measured, found.ceiling, found.verdict) == (0.0, 0.0, "no evidence")
    assert found.metric == "all messages"


def test_one_success_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "attack", lambda cohort: cohort.values[0])
    pool = synthetic_pool(plan_of(), seeded(0))
    assert evaluate(plan_of(), attacks_named(["recorded"]), pool, Effort(trials=8, seed=1)).violated
