"""What tests hold on to, as plain as it comes: a promise, a plan, a ledger; a test says what matters to it.

The library has no default for a privacy choice, and neither has a plan: the usual ones stand here, for tests alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import privstats as ps
from privstats.dp import Ledger
from privstats.dp.models import MODELS as EVERY

__all__ = ["MODELS", "cap", "ledger", "plan", "promise"]

MODELS = tuple(name for name, row in EVERY.items() if row.drawn_by != "member")
"""The trust models of a plan without a panel."""

USUAL = {"unit": "record", "adjacency": "add-remove"}


def promise(model: str = "central", **changes: Any) -> ps.Privacy:
    """Epsilon 1 at delta 1e-5 for one record that is added or removed."""
    return ps.Privacy(**{"model": model, **USUAL, "epsilon": 1.0, "delta": 1e-5, **changes})


def plan(schema: Any, cohort: ps.Cohort, privacy: Any = None, **more: Any) -> ps.Plan:
    """A plan that promises nothing, unless a promise is given."""
    return ps.Plan(schema=schema, cohort=cohort, privacy=privacy or ps.NoPrivacy(), **more)


def cap(epsilon: float = 3.0, delta: float = 1e-5, **changes: Any) -> dict[str, Any]:
    """What ``set_cap`` takes, for one record that is added or removed."""
    return {**USUAL, "epsilon": epsilon, "delta": delta, **changes}


def ledger(path: Path, dataset: str = "ward", *, epsilon: float = 3.0, delta: float = 1e-5, **how: Any) -> Ledger:
    """A new ledger with one account under a cap; ``how`` is for ``Ledger.create``."""
    created = Ledger.create(path, **how)
    created.set_cap(dataset, **cap(epsilon, delta))
    return created
