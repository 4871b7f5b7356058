"""Which readers read which statistics of a plan, and the cost of the rest: every statistic that is sent takes budget.

Numbers and sentences for ``plan check``; nothing is released and nothing is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from privstats.dp import Privacy
from privstats.plan import Plan
from privstats.workflows.readers import TABLES, possible, reads, sent, with_letters

__all__ = ["Unread", "unread"]


@dataclass(frozen=True)
class Unread:
    """What the chosen readers, heads and tables, read of a plan.

    Attributes:
        chosen: the readers in question.
        assumed: no reader was named, so ``chosen`` is the first that the plan can give.
        readers: for each statistic, the readers that read it, heads with their default parameters.
        letters: statistics that none of ``chosen`` reads; empty where the schema has no readers.
        share: the part of mu^2 that these take; 0 without DP.
        gain: for each of the others, its noise in a plan without them over its noise now; 1 without DP.

    Example:
        >>> from privstats.workflows.unread import unread
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NAS", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> found = unread(plan, ["RDA"])
        >>> found.heads, found.assumed, found.letters
        (('RDA',), False, ())
    """

    chosen: tuple[str, ...]
    assumed: bool
    readers: Mapping[str, tuple[str, ...]]
    letters: tuple[str, ...]
    share: float
    gain: Mapping[str, float]

    @property
    def heads(self) -> tuple[str, ...]:
        """Those of ``chosen`` that are heads."""
        return tuple(name for name in self.chosen if name not in TABLES)

    def sentences(self) -> list[str]:
        """The sentences for a reviewer; none where the schema has no readers."""
        if not self.chosen:
            return []
        out = [f"who reads what: {'; '.join(f'{s} {self._by(names)}' for s, names in self.readers.items())}"]
        if self.letters:
            out.append(f"WARNING: {self._whom()} not {' and '.join(self.letters)}, {self._cost()}")
        return out

    def _by(self, names: tuple[str, ...]) -> str:
        everybody = set().union(*self.readers.values())
        if set(names) != everybody or len(names) == 1:
            return ", ".join(names) or "no reader"
        return "every reader" if everybody & TABLES.keys() else "every head"

    def _whom(self) -> str:
        if self.assumed:
            return f"{self.chosen[0]} (the first reader for this plan; choose with --for) reads"
        return f"{' and '.join(self.chosen)} {'reads' if len(self.chosen) == 1 else 'read'}"

    def _cost(self) -> str:
        if not self.share:
            return "which is released all the same: leave it out of schema.statistics"
        least = min(self.gain, key=self.gain.__getitem__)
        return (
            f"which takes {self.share:.1%} of the budget: left out of schema.statistics, it would make the noise on "
            f"{least} {1 - self.gain[least]:.0%} smaller"
        )


def unread(plan: Plan, chosen: Sequence[str] = ()) -> Unread:
    """Compare a plan's statistics with those that heads and tables read.

    Args:
        plan: the plan.
        chosen: names of heads or of ``readers.TABLES``; if there are none, the first that the plan can give.

    Raises:
        KeyError: a reader of that name does not exist.
        PlanError: a table that a release under this plan cannot give.

    Example:
        >>> from privstats.workflows.unread import unread
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NABD", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=privacy)
        >>> found = unread(plan, ["LDA"])
        >>> found.letters, round(found.share, 3)  # what LDA does not read, and the part of the budget that it takes
        (('D',), 0.065)
    """
    schema, able = plan.schema, possible(plan)
    asked = tuple(chosen) or able[:1]
    read = {letter for name in asked for letter in reads(name, plan)}
    readers = {letter: tuple(name for name in able if letter in reads(name, plan)) for letter in sent(schema)}
    letters = tuple(letter for letter in readers if letter not in read) if able else ()
    return Unread(asked if able else (), not chosen, readers, letters, *_cost(plan, letters))


def _cost(plan: Plan, letters: tuple[str, ...]) -> tuple[float, Mapping[str, float]]:
    """The share of these letters, and what the noise on the others would be without them."""
    if not letters or plan.noise is None or not isinstance(plan.privacy, Privacy):
        return 0.0, {}
    share = {row.statistic: row.share for row in plan.noise.rows}
    rest = {letter: part for letter, part in share.items() if letter not in letters}
    written = None
    if plan.privacy.shares is not None:
        written = {letter: part / sum(rest.values()) for letter, part in rest.items()}
    schema = with_letters(plan.schema, "".join(rest))
    without = replace(plan, schema=schema, privacy=replace(plan.privacy, shares=written))
    after = {} if without.noise is None else without.noise.sigma
    return sum(share[letter] for letter in letters), {s: after[s] / plan.noise.sigma[s] for s in rest}
