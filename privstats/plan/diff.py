"""Two plans side by side: which fields changed, and what that does to the promise, the noise, the bytes, the survivors.

For whoever reviews the second plan after the first was approved. Arithmetic on what both plans derived; nothing is
judged good or bad beyond more and less.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from privstats.dp import Noise, NoPrivacy, operating_point
from privstats.errors import DataError
from privstats.plan.dropouts import dropout_table
from privstats.plan.plan import Plan

__all__ = ["Change", "Difference", "Effect", "difference"]

Number: TypeAlias = float | int | None

_SAME = "unchanged"
_LISTED = 6


@dataclass(frozen=True)
class Change:
    """A key of the plan file that differs.

    Attributes:
        key: its tables and name, joined by dots.
        before, after: as the files have it; None where a file leaves it out.
    """

    key: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Effect:
    """A number that follows from the plans.

    Attributes:
        of: what it is a number of.
        before, after: None where a plan has no such number.
        means: what the change comes to, in words.
    """

    of: str
    before: Number
    after: Number
    means: str


@dataclass(frozen=True)
class Difference:
    """What :func:`difference` found.

    Attributes:
        changes: keys that differ, in the order of the files.
        effects: numbers that follow, changed or not.
        notes: sentences on what no number says.
        digests: of both plans; other digests are other plans, which all parties agree on anew.
    """

    changes: tuple[Change, ...]
    effects: tuple[Effect, ...]
    notes: tuple[str, ...]
    digests: tuple[str, str]


def difference(before: Plan, after: Plan) -> Difference:
    """Compare two plans, field by field and by what follows.

    Raises:
        DataError: one of them is none.
    """
    for name, plan in (("before", before), ("after", after)):
        if not isinstance(plan, Plan):
            raise DataError(f"{name} must be a Plan, got {type(plan).__name__}; read one with Plan.read(path)")
    comparable = _kind(before) == _kind(after)
    effects = (
        *_promise(before, after, comparable),
        *_noise(before, after),
        _effect("bytes that a client uploads", before.masking.upload_bytes, after.masking.upload_bytes, _size),
        *_survivors(before, after),
    )
    notes = tuple(_notes(before, after, comparable))
    return Difference(tuple(_changes(before, after)), effects, notes, (before.digest, after.digest))


def _kind(plan: Plan) -> tuple[str, ...]:
    """What epsilons must share to be compared: nothing may be said of others."""
    privacy = plan.privacy
    return () if isinstance(privacy, NoPrivacy) else (privacy.unit, privacy.adjacency)


def _notes(before: Plan, after: Plan, comparable: bool) -> Iterator[str]:
    if before.digest == after.digest:
        yield "the two are one plan: nothing to agree on anew"
        return
    yield "the digest changes: every party reads and agrees on the new plan, and what was released stays charged"
    old, new = before.noise, after.noise
    if old is not None and new is not None and not comparable:
        yield "whom or what the promise is about changed, so the two epsilons do not compare"
    if new is not None and (old is None or old.model != new.model):
        yield f"trust in the {new.model} model: {new.trust.trusted}"
    if before.protocol != after.protocol:
        yield f"masking changes from {before.protocol!r} to {after.protocol!r}, which trusts others: see `plan check`"


def _changes(before: Plan, after: Plan) -> Iterator[Change]:
    old, new = dict(_flat(before.tables)), dict(_flat(after.tables))
    for key in dict.fromkeys([*old, *new]):
        if old.get(key) != new.get(key):
            yield Change(key, _told(old.get(key)), _told(new.get(key)))


def _flat(tables: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tables.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{above}{key}.")
        elif value or not isinstance(value, list | tuple | Mapping):  # an empty list is a key that is left out
            yield f"{above}{key}", value


def _told(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        return str(value)
    if all(isinstance(each, Mapping) for each in value):
        return " then ".join(each["kind"] + _settings(each) for each in value)
    more = f" and {len(value) - _LISTED} more" if len(value) > _LISTED else ""
    return ", ".join(map(str, value[:_LISTED])) + more


def _settings(transform: Mapping[str, Any]) -> str:
    rest = ", ".join(f"{key}={_told(value)}" for key, value in transform.items() if key != "kind")
    return f" ({rest})" if rest else ""


def _promise(before: Plan, after: Plan, comparable: bool) -> Iterator[Effect]:
    old, new = before.budget(), after.budget()
    for name in ("epsilon", "delta", "mu"):
        one, two = (getattr(budget, name) if math.isfinite(budget.mu) else None for budget in (old, new))
        yield Effect(name, one, two, _protection(one, two, comparable))
    one, two = (100 * operating_point(budget.mu)[0] if math.isfinite(budget.mu) else None for budget in (old, new))
    yield Effect("of 100 found at 1 % false alarms, at most", one, two, _protection(one, two, comparable))


def _protection(before: Number, after: Number, comparable: bool) -> str:
    if before == after and comparable:
        return _SAME
    if after is None:
        return "nothing is promised any more: the sums are released as they are"
    if before is None:
        return "a promise where there was none"
    if not comparable:
        return "of another promise: the two do not compare"
    return "weaker: more can be learned" if after > before else "stronger: less can be learned"


def _noise(before: Plan, after: Plan) -> Iterator[Effect]:
    """Noise with everybody's share, as a head feels it: in records of the largest norm, so that clips compare."""
    old, new = _felt(before), _felt(after)
    for statistic in dict.fromkeys([*old, *new]):
        yield _effect(f"noise on {statistic}, in records", old.get(statistic), new.get(statistic), _louder)


def _felt(plan: Plan) -> dict[str, float]:
    if plan.noise is None:
        return dict.fromkeys(plan.schema.statistics, 0.0)
    released = plan.noise.released_sigma(plan.cohort.clients)
    largest = {row.letter: row.bound(plan.schema.steps) / plan.schema.scale_of(row.letter) for row in plan.schema.sent}
    return {statistic: sigma / largest[statistic] for statistic, sigma in released.items()}


def _survivors(before: Plan, after: Plan) -> Iterator[Effect]:
    old, new = before.cohort, after.cohort
    spare = old.clients - old.min_survivors, new.clients - new.min_survivors
    yield _effect("clients", old.clients, new.clients, _more)
    yield _effect("clients that may vanish", *spare, _more)
    yield _effect("clients that may collude", old.colluders, new.colluders, _more)
    if before.noise is not None and after.noise is not None:
        one, two = _best(before, before.noise), _best(after, after.noise)
        yield Effect("epsilon if nobody vanishes", one, two, _protection(one, two, _kind(before) == _kind(after)))


def _best(plan: Plan, noise: Noise) -> float | None:
    cohort = plan.cohort
    if not noise.trust.divided:
        return noise.epsilon
    table = dropout_table(noise, clients=cohort.clients, min_survivors=cohort.min_survivors, colluders=cohort.colluders)
    return table[0].epsilon


def _effect(of: str, before: Number, after: Number, means: Any) -> Effect:
    if before is None or after is None:
        return Effect(of, before, after, "released now" if before is None else "released no more")
    return Effect(of, before, after, _SAME if before == after else means(before, after))


def _size(before: float, after: float) -> str:
    return f"{after / before:.3g} times as many"


def _louder(before: float, after: float) -> str:
    if not before or not after:
        return "noise where there was none" if after else "no noise any more"
    return f"{after / before - 1:+.0%}: " + ("less accurate" if after > before else "more accurate")


def _more(before: float, after: float) -> str:
    return f"{abs(after - before):g} {'more' if after > before else 'fewer'}"
