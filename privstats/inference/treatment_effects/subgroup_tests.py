"""Test whether a trial's effect differs between the subgroups of one variable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import fdtrc

from privstats.inference.summary import p_value_text

if TYPE_CHECKING:
    from privstats.inference.treatment_effects.rows import EffectRows
    from privstats.inference.treatment_effects.table import EffectTable

_LEVEL = 0.05  # at which every subgroup must be reported
_WELCH = "Welch's test of equal differences in its subgroups, not adjusted for other tests"


class SubgroupTest(NamedTuple):
    """Welch's test of "the effect is the same in all subgroups of a variable".

    Attributes:
        outcome: empty for a single unnamed one.
        by: the dividing variable.
        p_value: not adjusted for other tests; None where the effect in a subgroup is not reported at .05.

    Example:
        >>> from privstats import randomness
        >>> schema = ps.EffectSchema.of(
        ...     {"age": (20, 90)},
        ...     treatment="arm",
        ...     outcome=(0, 1),
        ...     probability=0.5,
        ...     subgroups=(ps.Bins("age", (20, 50, 90)),),
        ... )
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-6)
        >>> course = ps.Effect.start(schema, ps.Cohort(2, 2, 4_000), privacy)
        >>> arm, age = np.arange(4_000) % 2, np.linspace(20, 90, 4_000)
        >>> y = np.arange(4_000) // 2 % 10 < 3 + 4 * arm * (age > 50)
        >>> X = np.column_stack([age, arm])
        >>> releases = ps.simulate(course, [(X[::3], y[::3]), (X[1::3], y[1::3])], rng=randomness.seeded(0))
        >>> (test,) = ps.inference.effects(releases).interactions()
        >>> test.by, test.p_value < 0.001
        ('age', True)
    """

    outcome: str
    by: str
    p_value: float | None

    def to_row(self) -> dict[str, object]:
        """Return the test as a row of data."""
        return {"test": "interaction", "outcome": self.outcome, "variable": self.by, "p_value": self.p_value}


def equal_effects(tables: Sequence[EffectTable]) -> float | None:
    """Return the p-value of "these effects in disjoint subgroups are equal" (Welch 1951); None where one is hidden.

    Subgroups hold different records and different noise, so estimates are independent given the published outcome
    lines. With weights ``w = 1 / se^2``, their sum W and mean m,

    ``F = sum w (t - m)^2 / (k - 1) / (1 + 2 (k - 2) L / (k^2 - 1))``, with ``L = sum (1 - w / W)^2 / degrees``,

    has k - 1 and ``(k^2 - 1) / (3 L)`` degrees of freedom. For two subgroups it is the square of Welch's t.
    """
    if len(tables) < 2 or any(table.why_at(_LEVEL) for table in tables):
        return None
    k = len(tables)
    weights = np.array([1 / table.bse**2 for table in tables])
    estimates = np.array([table.estimate for table in tables])
    mean = float(weights @ estimates / weights.sum())
    spread = np.square(1 - weights / weights.sum())
    lacking = float((spread / np.array([table.ratio.degrees for table in tables])).sum())
    square = float(weights @ np.square(estimates - mean)) / (k - 1)
    F = square / (1 + 2 * (k - 2) * lacking / (k * k - 1))
    below = (k * k - 1) / (3 * lacking) if lacking else math.inf
    return float(fdtrc(k - 1, min(below, 1e9), F))


def interaction_sentences(rows: EffectRows) -> list[str]:
    """Return a sentence per test."""
    return [
        f"Interaction of the treatment with {test.by}{f' on {test.outcome}' if test.outcome else ''}: "
        f"{p_value_text(test.p_value, _WELCH, 'the effect in a subgroup')}."
        for test in rows.interactions()
    ]
