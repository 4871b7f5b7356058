"""Compute a plan's cost in privacy and in bits, the joint guarantee, and its conditions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, cast

from scipy.special import ndtr

from privstats.dp import NoiseRow, NoPrivacy, Privacy
from privstats.plan.cohort import Headroom
from privstats.schema import Schema

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from privstats.plan.plan import Plan

_CHOSEN = (
    "clip_norm", "target_bound", "grid_bits", "transform", "nonnegative", "statistics", "folds", "estimand", "n_max",
    "pulls", "rounds", "target_scale", "shrinkage", "groups", "residual_norm", "module", "family", "rate", "missing",
    "times", "cap", "time_unit", "pull", "trim", "measure", "balance", "left_out", "score", "reach", "by_class", "cuts",
    "errors", "exposure_bound", "ratios", "negative_binomial", "overdispersion",
)  # fmt: skip
_PUBLIC = {
    "classes": "classes", "features": "columns", "variables": "columns, listed values, bin edges", "tables": "tables",
    "numbers": "number columns with their ranges", "bins": "time bins", "subgroups": "subgroups", "strata": "strata",
    "score_bins": "bins of scores", "outcome": "outcome ranges", "expected_events": "expected events",
    "probability": "chances of treatment",
}  # fmt: skip
"""What each field of a schema makes public."""
_NAMES = ("class_names", "feature_names", "_")
"""Fields that no kind of another package has for settings of its own."""


@dataclass(frozen=True)
class BudgetRow(NoiseRow):
    """One statistic of the plan: its noise, and its room in the ring.

    Without DP sigma is 0, mu and epsilon are infinite, sensitivity and share are nan.

    Attributes:
        bits: ring bits of its widest segment.
        headroom: how many times the largest possible sum fits below the wrap.
        advantage: without DP, the likelihood-ratio attacker's predicted membership advantage.

    Example:
        >>> schema, cohort = ps.ClassSchema(2, 2, "NA", clip_norm=1.0), ps.Cohort(3, 3, 100)
        >>> plan = ps.Plan(schema=schema, cohort=cohort, privacy=ps.NoPrivacy())
        >>> row = plan.budget().rows[0]
        >>> row.statistic, row.sigma, row.bits
        ('N', 0.0, 22)
    """

    bits: int
    headroom: float
    advantage: float


@dataclass(frozen=True)
class Budget:
    """One row per statistic and the joint guarantee. Prints as a table.

    Attributes:
        mu, epsilon, delta: the guarantee of everything released together; infinite mu and epsilon without DP. delta
            includes ``masking_failure``.
        promise: trust model, unit and adjacency, in words.
        masking_failure: bound on the probability that masking shows more than the sum.
        conditions: sentences on epsilon's assumptions; empty without DP.

    Example:
        >>> schema, cohort = ps.ClassSchema(2, 2, "NA", clip_norm=1.0), ps.Cohort(3, 3, 100)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> budget = ps.Plan(schema=schema, cohort=cohort, privacy=privacy).budget()
        >>> budget.promise.partition(", while ")[0], round(budget.mu, 3), round(budget.epsilon, 3)
        ('central noise, one record, add-remove', 0.268, 1.0)
        >>> [(row.statistic, round(row.sigma, 2), row.bits) for row in budget.rows]
        [('N', 26.38, 22), ('A', 3.77, 22)]
    """

    rows: tuple[BudgetRow, ...]
    mu: float
    epsilon: float
    delta: float
    promise: str
    upload_bytes: int
    masking_failure: float = 0.0
    conditions: tuple[str, ...] = ()

    @classmethod
    def of(cls, plan: Plan) -> Budget:
        """Join a plan's noise with its ring widths."""
        schema, noise, masking = plan.schema, plan.noise, plan.masking
        spent = {row.statistic: row for row in noise.rows} if noise else {}
        rows = []
        for statistic in schema.statistics:
            mine = [room for room in plan.headroom if room.segment.statistic == statistic]
            spend = spent.get(statistic, NoiseRow(statistic, math.nan, 0.0, math.inf, math.inf, math.nan))
            advantage = math.nan if noise else predicted_advantage(schema, statistic, plan.cohort.max_records)
            rows.append(_row(spend, mine, advantage))
        totals = (noise.mu, noise.epsilon, noise.delta + masking.failure) if noise else (math.inf, math.inf, 1.0)
        return cls(
            tuple(rows),
            *totals,
            promise=f"{_promise(plan.privacy)}, while {plan.condition}",
            upload_bytes=masking.upload_bytes,
            masking_failure=masking.failure,
            conditions=conditions(schema, per_person=plan.person_clip is not None) if noise else (),
        )

    def __iter__(self) -> Iterator[BudgetRow]:
        return iter(self.rows)

    def __str__(self) -> str:
        from privstats.plan.views import text

        return text(self)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from privstats.plan.views import lines

        return lines(self)

    def _repr_html_(self) -> str:
        from privstats.plan.views import html

        return html(self)


def _promise(privacy: Privacy | NoPrivacy) -> str:
    if isinstance(privacy, NoPrivacy):
        return "no differential privacy: masking hides who sent what, the total is released as it is"
    law = " Laplace" if privacy.pure else ""
    held = privacy.unit_words if privacy.unit == "person" else f"one {privacy.unit}"
    return f"{privacy.model}{law} noise, {held}, {privacy.adjacency}"


def _row(spend: NoiseRow, rooms: Sequence[Headroom], advantage: float) -> BudgetRow:
    bits, headroom = max(room.bits for room in rooms), min(room.factor for room in rooms)
    return BudgetRow(**asdict(spend), bits=bits, headroom=headroom, advantage=advantage)


def predicted_advantage(schema: Schema, statistic: str, max_records: int) -> float:
    """Predict a likelihood-ratio attacker's membership advantage (largest TPR - FPR) from noiseless sums.

    A record changes k entries of sums over the n records of its block, such as its class. Blocks are assumed equally
    large. If entries are independent, the likelihood ratio has the separation d' = sqrt(k / n), and
    the advantage is 2 Phi(d'/2) - 1.
    """
    row = next(row for row in schema.sent if row.letter == statistic)
    separation = math.sqrt(row.entries(schema.sizes) * row.blocks(schema.sizes) / max_records)
    return float(2 * ndtr(separation / 2) - 1)


def conditions(schema: Schema, *, per_person: bool = False) -> tuple[str, ...]:
    """Return the conditions of a promise, for a plan with DP.

    Guarantee:
        Epsilon bounds what the *released sums* reveal. Anything else that depends on a record (a party's refusal, a
        bound chosen by looking at records) is another release, which no budget here counts.
    """
    own = [each.name for each in fields(cast(Any, schema))]
    further = () if schema.checks_records else (name for name in own if name not in (*_CHOSEN, *_PUBLIC, *_NAMES))
    chosen = ", ".join(name for name in (*_CHOSEN, *further) if name in own and getattr(schema, name) is not None)
    public = ", ".join(_PUBLIC[name] for name in _PUBLIC if name in own and getattr(schema, name))
    ids = "each party's ids identify its persons: one who is at two parties, or under two ids, has twice the mu"
    return (
        *((ids,) if per_person else ()),
        "a refusal or absence must not depend on records, because no budget counts it",
        f"the {public} and numbers of records in a plan are public: they come from no private record",
        f"{chosen} and shares were chosen without private records, or from a charged release: a choice by looking at "
        "records, by a sweep for example, is a leak outside the budget",
        "the noise source is the library's own: no feasible audit of outputs distinguishes a deceptive source from the "
        "declared noise (arXiv 2509.23834)",
    )
