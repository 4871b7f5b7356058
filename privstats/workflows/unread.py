"""Which heads read which statistics of a plan, and what the rest costs: every statistic that is sent takes budget.

Numbers and sentences for ``plan check``; nothing is released and nothing is chosen. Over the registry of heads and the
plan, under the commands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from privstats.dp import Privacy
from privstats.heads.registry import HEADS, able, named
from privstats.plan import Plan
from privstats.schema import ClassSchema, RidgeSchema

__all__ = ["Unread", "unread"]


@dataclass(frozen=True)
class Unread:
    """What the chosen heads read of a plan.

    Attributes:
        heads: those that were asked about.
        assumed: nobody named them: it is the first head that the plan can build.
        readers: for each statistic, the heads of the registry that read it, with their default parameters.
        letters: statistics that none of ``heads`` reads; empty where there are no heads for the schema.
        share: the part of mu^2 that these take; 0 without DP.
        gain: for each of the others, its noise in a plan without them over its noise now; 1 without DP.

    Example:
        >>> from privstats.workflows.unread import unread
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NAS", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> found = unread(plan, ["RDA"])
        >>> found.heads, found.assumed, found.letters
        (('RDA',), False, ())
    """

    heads: tuple[str, ...]
    assumed: bool
    readers: Mapping[str, tuple[str, ...]]
    letters: tuple[str, ...]
    share: float
    gain: Mapping[str, float]

    def sentences(self) -> list[str]:
        """What a reviewer reads of it; nothing where no head is made for the schema."""
        if not self.heads:
            return []
        out = [f"who reads what: {'; '.join(f'{s} {self._by(names)}' for s, names in self.readers.items())}"]
        if self.letters:
            out.append(f"WARNING: {self._whom()} not {' and '.join(self.letters)}, {self._cost()}")
        return out

    def _by(self, names: tuple[str, ...]) -> str:
        return "every head" if set(names) == set().union(*self.readers.values()) else ", ".join(names) or "no head"

    def _whom(self) -> str:
        if self.assumed:
            return f"{self.heads[0]} (the first head for this plan; choose with --head) reads"
        return f"{' and '.join(self.heads)} {'reads' if len(self.heads) == 1 else 'read'}"

    def _cost(self) -> str:
        if not self.share:
            return "which is released all the same: leave it out of schema.statistics"
        least = min(self.gain, key=self.gain.__getitem__)
        return (
            f"which takes {self.share:.1%} of the budget: left out of schema.statistics, it would make the noise on "
            f"{least} {1 - self.gain[least]:.0%} smaller"
        )


def unread(plan: Plan, heads: Sequence[str] = ()) -> Unread:
    """Hold a plan's statistics against what heads read.

    Args:
        plan: the plan.
        heads: names from the registry; if there are none, the first head that the plan can build.

    Raises:
        KeyError: a head of that name does not exist.

    Example:
        >>> from privstats.workflows.unread import unread
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NABD", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=privacy)
        >>> found = unread(plan, ["LDA"])
        >>> found.letters, round(found.share, 3)  # what LDA does not read, and the part of the budget that it takes
        (('D',), 0.065)
    """
    sent = "".join(row.letter for row in plan.schema.sent)
    possible = _possible(plan, sent)
    chosen = tuple(heads) or possible[:1]
    readers = {letter: tuple(name for name in possible if letter in HEADS[name].reads(sent)) for letter in sent}
    read = {letter for name in chosen for letter in HEADS[name].reads(sent)}
    letters = tuple(letter for letter in sent if letter not in read) if possible else ()
    return Unread(chosen if possible else (), not heads, readers, letters, *_cost(plan, letters))


def _possible(plan: Plan, sent: str) -> tuple[str, ...]:
    """Heads that a release under this plan can build, in the order of the registry."""
    if isinstance(plan.schema, ClassSchema):
        return able(sent)
    return named("ridge") if isinstance(plan.schema, RidgeSchema) else ()


def _cost(plan: Plan, letters: tuple[str, ...]) -> tuple[float, Mapping[str, float]]:
    """The share of these letters, and what the noise on the others would be without them."""
    if not letters or plan.noise is None or not isinstance(plan.privacy, Privacy):
        return 0.0, {}
    share = {row.statistic: row.share for row in plan.noise.rows}
    rest = {letter: part for letter, part in share.items() if letter not in letters}
    written = None
    if plan.privacy.shares is not None:
        written = {letter: part / sum(rest.values()) for letter, part in rest.items()}
    sends: Any = plan.schema  # of classes: a regression is read whole
    schema = replace(sends, statistics="".join(rest))
    without = replace(plan, schema=schema, privacy=replace(plan.privacy, shares=written))
    after = {} if without.noise is None else without.noise.sigma
    return sum(share[letter] for letter in letters), {s: after[s] / plan.noise.sigma[s] for s in rest}
