"""The row ``recorded``: a recording gives one party's vector away under ``x25519``, and nothing under the hybrid.

That the attacker would read the vector if it had ML-KEM's private halves too is ``tests/secagg/test_recorded.py``.
"""

from dataclasses import replace

import pytest

from privstats.errors import PrivstatsError
from privstats.randomness import seeded
from privstats.secagg.keys import CLASSICAL, HYBRID, KEY_AGREEMENTS
from threat_models.attack import attacks_named
from threat_models.attacks import recorded
from threat_models.data import synthetic_pool
from threat_models.evaluate import Effort, evaluate

from ..conftest import plan_of

ROWS = {CLASSICAL: (1.0, None, "leaks"), HYBRID: (0.0, 0.0, "no evidence")}


@pytest.mark.ci
@pytest.mark.parametrize("key_agreement", KEY_AGREEMENTS)
def test_the_row_of_every_version(key_agreement: str) -> None:
    """X25519 alone promises nothing here, so a vector that is read is a leak and no violation."""
    plan = replace(plan_of(), key_agreement=key_agreement)
    pool = synthetic_pool(plan, seeded(0))
    (found,) = evaluate(plan, attacks_named(["recorded"]), pool, Effort(trials=8, seed=1)).rows
    assert (found.measured, found.ceiling, found.verdict) == ROWS[key_agreement]
    assert found.metric == key_agreement


def test_a_version_without_a_stated_promise_is_refused() -> None:
    assert set(recorded.CEILINGS) == set(KEY_AGREEMENTS)
    with pytest.raises(PrivstatsError, match="nothing states what key_agreement='x448' promises against a recording"):
        recorded.ceiling_of("x448")


def test_one_success_against_the_hybrid_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "attack", lambda cohort: cohort.values[0])
    plan = replace(plan_of(), key_agreement=HYBRID)
    pool = synthetic_pool(plan, seeded(0))
    assert evaluate(plan, attacks_named(["recorded"]), pool, Effort(trials=8, seed=1)).violated
