"""List the readers of a release, with the statistics and budget shares that each needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from privstats.dp import Privacy, suggested_shares
from privstats.dp.pure import pure_shares
from privstats.errors import PlanError
from privstats.heads.registry import HEADS, able, named
from privstats.plan import Plan
from privstats.schema import Schema, predicted
from privstats.workflows.tables.reader import TableReader, sent
from privstats.workflows.tables.refusals import refused
from privstats.workflows.tables.rows import READERS


def possible(plan: Plan) -> tuple[str, ...]:
    """Return the heads, then tables, that a release supports.

    Example:
        >>> from privstats.workflows.readers import possible
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NAD", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> "NaiveBayes" in possible(plan), "LDA" in possible(plan), possible(plan)[-1]
        (True, False, 'table-one')
    """
    heads, schema = tuple[str, ...](), plan.schema
    if schema.optional:
        heads = able(sent(schema))
    elif schema.predicts in ("ridge", "parties"):
        heads = named(predicted(schema))
    proposed = (name for name, table in READERS.rows().items() if table.proposed and table.accepts(plan))
    return (*heads, *(name for name in proposed if not refused(name, plan)))


def reads(name: str, plan: Plan) -> str:
    """Return the letters that a head (with default parameters) or table reads.

    Raises:
        KeyError: neither has that name.
        PlanError: such a release does not support the table.

    Example:
        >>> from privstats.workflows.readers import reads
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NABD", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> reads("LDA", plan), reads("table-one", plan)
        ('NAB', 'NAD')
    """
    schema = plan.schema
    if name not in READERS:
        return HEADS[name].reads(sent(schema))
    if why := refused(name, plan):
        raise PlanError(why)
    return READERS[name].read_of(schema)


def suggested(plan: Plan, reader: str | None = None) -> dict[str, float]:
    """Return budget shares that suit a plan, or one reader; unread letters get none.

    Raises:
        KeyError: no head or table has that name.
        PlanError: the plan has no guarantee, or does not support the table.

    Example:
        >>> from privstats.workflows.readers import suggested
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NAD", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=privacy)
        >>> suggested(plan, "table-one")
        {'N': 0.05, 'A': 0.6, 'D': 0.35}
    """
    letters = None if reader is None else reads(reader, plan)
    if plan.noise is None or not isinstance(plan.privacy, Privacy):
        raise PlanError("shares divide a budget, and this plan adds no noise; give its [privacy] an epsilon")
    table = None if reader is None else READERS.get(reader)
    shares = {} if table is None else table.shares
    if shares and set(shares) <= set(sent(plan.schema)):
        return dict(shares)
    schema = plan.schema if letters is None else with_letters(plan.schema, letters)
    if plan.privacy.pure:
        return pure_shares(schema, None)
    return suggested_shares(schema, plan.noise.mu / plan.privacy.group, plan.cohort.max_records)


def with_letters(schema: Schema, letters: str) -> Schema:
    """Return the schema with these statistics only, where possible.

    Example:
        >>> from privstats.workflows.readers import with_letters
        >>> with_letters(ps.ClassSchema(2, 2, "NAB", clip_norm=1.0), "NA").statistics
        'NA'
    """
    known: Any = schema  # every kind is a dataclass
    chosen: Schema = replace(known, statistics=letters) if schema.optional else schema
    return chosen


@dataclass(frozen=True)
class UnreadStatistics:
    """Statistics of a plan that the chosen readers, heads and tables, read or do not read.

    Attributes:
        assumed: whether ``chosen`` is a default.
        readers: per statistic, with default parameters.
        letters: unread statistics.
        share: their part of mu^2; 0 without DP.
        gain: per other statistic, its noise without them relative to now; empty without DP.
        refused: why no table can be read, or empty.

    Example:
        >>> from privstats.workflows.readers import unread_statistics
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NAS", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> found = unread_statistics(plan, ["RDA"])
        >>> found.heads, found.assumed, found.letters
        (('RDA',), False, ())
    """

    chosen: tuple[str, ...]
    assumed: bool
    readers: Mapping[str, tuple[str, ...]]
    letters: tuple[str, ...]
    share: float
    gain: Mapping[str, float]
    refused: str = ""

    @property
    def heads(self) -> tuple[str, ...]:
        """Heads in ``chosen``."""
        return tuple(name for name in self.chosen if name not in READERS)

    def sentences(self) -> list[str]:
        """Return sentences for a reviewer; none without readers."""
        if self.refused:
            return [f"WARNING: no table or head reads this release: {self.refused}"]
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
        return "every reader" if everybody & READERS.keys() else "every head"

    def _whom(self) -> str:
        if self.assumed:
            return f"{self.chosen[0]} (the first reader for this plan; choose with --for) reads"
        return f"{' and '.join(self.chosen)} {'reads' if len(self.chosen) == 1 else 'read'}"

    def _cost(self) -> str:
        if not self.share:
            return "which is still released: omit it from schema.statistics"
        least = min(self.gain, key=self.gain.__getitem__)
        return (
            f"which takes {self.share:.1%} of the budget: omitting it from schema.statistics makes the noise on "
            f"{least} {1 - self.gain[least]:.0%} smaller"
        )


def unread_statistics(plan: Plan, chosen: Sequence[str] = ()) -> UnreadStatistics:
    """Compare a plan's statistics with those that readers read.

    ``chosen`` names heads and tables; by default the first possible one.

    Raises:
        KeyError: no such reader exists.
        PlanError: the plan does not support a table.

    Example:
        >>> from privstats.workflows.readers import unread_statistics
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NABD", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=privacy)
        >>> found = unread_statistics(plan, ["LDA"])
        >>> found.letters, round(found.share, 3)  # what LDA does not read, and the part of the budget that it takes
        (('D',), 0.065)
    """
    schema, tables = plan.schema, (name for name in chosen if name in READERS)
    able = tuple(dict.fromkeys((*possible(plan), *tables)))
    selected = tuple(chosen) or able[:1]
    read = {letter for name in selected for letter in reads(name, plan)}
    readers = {letter: tuple(name for name in able if letter in reads(name, plan)) for letter in sent(schema)}
    letters = tuple(letter for letter in readers if letter not in read) if able else ()
    share, gain = _cost(plan, letters)
    refused = "" if able else _refused(plan)
    return UnreadStatistics(selected if able else (), not chosen, readers, letters, share, gain, refused)


def _proposed(plan: Plan) -> list[TableReader]:
    return [table for table in READERS.rows().values() if table.proposed and plan.schema.task in table.letters]


def _refused(plan: Plan) -> str:
    reasons = [table.refusal(plan) for table in _proposed(plan)]
    return "; ".join(dict.fromkeys(each for each in reasons if each))


def _cost(plan: Plan, letters: tuple[str, ...]) -> tuple[float, Mapping[str, float]]:
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
