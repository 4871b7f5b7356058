"""Word a plan's facts for reviewers, one clause each without a full stop, and the difference of two plans."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from privstats.dp import Noise, NoPrivacy, doubtful_counts
from privstats.errors import DataError
from privstats.plan.plan import Plan
from privstats.plan.provers import PROVERS
from privstats.plan.validity import Validity
from privstats.printable import at_least, at_most, delta_text, first_few
from privstats.review.drop_outs import drop_out_facts, plan_dropouts
from privstats.review.special_facts import (
    changed_devices,
    device_facts,
    facts_of_kind,
    open_facts,
    warning_of_exact_sums,
)
from privstats.secagg.masking_facts import UNNAMED, masking_facts

_WEAK_EPSILON = 10.0


def facts(plan: Plan) -> list[str]:
    """Return one sentence per fact, in a reviewer's order.

    Example:
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(3, 3, 100), privacy=ps.NoPrivacy())
        >>> ps.review.facts(plan)[0]
        "3 clients, everyone masks with everyone; 2 others together hold a client's keys; a client opens its masks for a
        list of survivors that 2 clients signed; 0 clients may vanish and 0 may help the server"
    """
    budget = plan.budget()
    return [*open_facts(plan), *facts_together([plan], budget.epsilon, budget.delta)]


def facts_together(
    plans: Sequence[Plan], epsilon: float, delta: float, epsilon_of: Callable[[float], float] | None = None
) -> list[str]:
    """Return the facts of sessions under one promise, each once.

    Args:
        plans: the sessions', with the cohort of the first.
        epsilon, delta: of all sessions together.
        epsilon_of: computes epsilon of all sessions from a multiple of their mu; None: of one plan.
    """
    sections: tuple[Callable[[Plan], list[str]], ...] = (
        lambda plan: _warnings(plan, epsilon, delta),
        lambda plan: masking_facts(plan.masking),
        lambda plan: [UNNAMED] if plan.key_agreement is None else [],
        _proofs,
        facts_of_kind,
        _trust,
        lambda plan: drop_out_facts(plan, epsilon_of),
        _minimum_count,
        device_facts,
    )
    return list(dict.fromkeys(fact for section in sections for plan in plans for fact in section(plan)))


def _warnings(plan: Plan, epsilon: float, delta: float) -> list[str]:
    records = plan.cohort.max_records
    if plan.noise is None:
        return warning_of_exact_sums(plan.schema)
    out = []
    if delta * records > 1:
        out.append(
            f"WARNING: delta {delta_text(delta)} lets {at_most(delta * records, '.0f')} of {records} records be "
            f"exposed outright; choose less than 1 / max_records = {at_least(1 / records, '.2g')}"
        )
    if epsilon > _WEAK_EPSILON:
        out.append(
            f"WARNING: epsilon {at_most(epsilon, '.6g')} promises almost nothing; `privstats audit "
            "budget` shows how little"
        )
    return out


def _proofs(plan: Plan) -> list[str]:
    if plan.validity is None or plan.claim is None:
        return []

    most, records = plan.validity.most_records, plan.cohort.max_records
    prover, package = plan.validity.prover, PROVERS.origin(plan.validity.level)
    proved = f"every client proves that {prover.meaning.format(max_records=most)}"
    proved = f"{package} states: {proved}" if package else proved
    return [
        f"EXPERIMENTAL: {proved}; no outside reader has verified the argument yet" if prover.experimental else proved,
        f"a lying client can invent {most} records, {most / records:.3g} of all that the plan admits, and "
        f"{plan.claim.tolerance:.2g} more, because sums are rounded to the grid; c liars invent c times as many: "
        "proofs do not protect a class with few records",
    ]


def _trust(plan: Plan) -> list[str]:
    if plan.noise is None:
        return []
    trusted = _trusted(plan.noise)
    members = plan.noise.members
    if members == 1:
        return [trusted]
    return [
        trusted,
        f"each of the {members} members adds the noise in full, so a release carries {math.sqrt(members):.3g} times "
        "the noise that the promise needs",
    ]


def _trusted(noise: Noise) -> str:
    return f"trust in the {noise.model} model: {noise.trust.trusted}"


def _minimum_count(plan: Plan) -> list[str]:
    if not plan.min_count or not plan.schema.suppressible:
        return []
    sigma = 0.0 if plan.noise is None else plan.noise.max_sigma(plan.cohort.clients)["N"]
    low, high = doubtful_counts(plan.min_count, sigma, laplace=plan.noise is not None and plan.noise.pure)
    per_dimension = plan.min_count / plan.schema.features
    chance = f"in at least 99 % of releases (noise of {sigma:.3g} on a count with all shares) " if sigma else ""
    goes = f"and one of fewer than {math.floor(low)} is removed" if low >= 1 else "but noise may keep any smaller one"
    return [
        f"{chance}a class of at least {math.ceil(high)} records stays {goes}",
        f"min_count is {per_dimension:.2g} records per dimension, which protects no record by itself",
    ]


Number: TypeAlias = float | int | None

_SAME = "unchanged"
_LISTED = 6


@dataclass(frozen=True)
class Change:
    """A key of the plan file that differs.

    Attributes:
        key: tables and name, joined by dots.
        before, after: as in the files; None where absent.

    Example:
        >>> change = ps.review.Change("cohort.clients", before="3", after="4")  # one of difference(...).changes
        >>> f"{change.key}: {change.before} -> {change.after}"
        'cohort.clients: 3 -> 4'
    """

    key: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Consequence:
    """A number that follows from the plans.

    Attributes:
        of: its name.
        before, after: None where a plan has no such number.
        means: the change in words.

    Example:
        >>> number = ps.review.Consequence("bytes that a client uploads", before=16, after=21, means="5 more")
        >>> number.after - number.before  # one of difference(...).effects
        5
    """

    of: str
    before: Number
    after: Number
    means: str


@dataclass(frozen=True)
class Difference:
    """The result of :func:`difference`.

    Attributes:
        changes: differing keys, in file order.
        effects: derived numbers, changed or not.
        notes: further consequences, in sentences.
        digests: of both plans; if they differ, all parties must agree again.

    Example:
        >>> schema, small = ps.ClassSchema(2, 2, "NA", clip_norm=1.0), ps.Cohort(3, 3, 100)
        >>> one = ps.Plan(schema=schema, cohort=small, privacy=ps.NoPrivacy())
        >>> two = ps.Plan(schema=schema, cohort=ps.Cohort(4, 3, 100), privacy=ps.NoPrivacy())
        >>> [change.key for change in ps.review.difference(one, two).changes]
        ['cohort.clients']
    """

    changes: tuple[Change, ...]
    effects: tuple[Consequence, ...]
    notes: tuple[str, ...]
    digests: tuple[str, str]


def difference(before: Plan, after: Plan) -> Difference:
    """Compare two plans by fields and derived numbers.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> one = ps.Plan(schema=schema, cohort=ps.Cohort(3, 3, 100), privacy=ps.NoPrivacy())
        >>> two = ps.Plan(schema=schema, cohort=ps.Cohort(4, 3, 100), privacy=ps.NoPrivacy())
        >>> [(change.key, change.before, change.after) for change in ps.review.difference(one, two).changes]
        [('cohort.clients', '3', '4')]
    """
    for name, plan in (("before", before), ("after", after)):
        if not isinstance(plan, Plan):
            raise DataError(f"{name} must be a Plan, got {type(plan).__name__}; read one with Plan.read(path)")
    comparable = _kind(before) == _kind(after)
    effects = (
        *_promise(before, after, comparable),
        *_noise(before, after),
        _consequence("bytes that a client uploads", before.masking.upload_bytes, after.masking.upload_bytes, _size),
        *_survivors(before, after),
    )
    notes = tuple(_notes(before, after, comparable))
    return Difference(tuple(_changes(before, after)), effects, notes, (before.digest, after.digest))


def _kind(plan: Plan) -> tuple[str, ...]:
    """Epsilons are comparable only where unit and adjacency are equal."""
    privacy = plan.privacy
    return () if isinstance(privacy, NoPrivacy) else (privacy.unit, privacy.adjacency)


def _notes(before: Plan, after: Plan, comparable: bool) -> Iterator[str]:
    if before.digest == after.digest:
        yield "the two plans are identical: nothing to agree on anew"
        return
    yield "the digest changes: every party must read and agree on the new plan; earlier releases stay charged"
    old, new = before.noise, after.noise
    if old is not None and new is not None and not comparable:
        yield "the protected unit or the adjacency changed, so the two epsilons do not compare"
    if new is not None and (old is None or old.model != new.model):
        yield _trusted(new)
    if before.protocol != after.protocol:
        yield f"masking changes from {before.protocol!r} to {after.protocol!r}, which trusts others: see `plan check`"
    if before.validity != after.validity:
        yield _proved_now(before.validity, after.validity)
    if before.devices != after.devices:
        yield changed_devices(before.devices, after.devices)


def _proved_now(before: Validity | None, after: Validity | None) -> str:
    if after is None:
        return "clients prove nothing of their sums any more: one lying client can shift the sum by anything"
    level = f"level {after.level!r}, at most {after.most_records} records of one client"
    refused = f"a client with more than {after.most_records} records is refused before it spends anything"
    if before is None:
        return f"clients prove their sums now ({level}): {refused}"
    change = after.most_records - before.most_records
    worth = f", and a liar may invent {_more(before.most_records, after.most_records)}" if change else ""
    return f"what clients prove changes from level {before.level!r} to {level}{worth}; {refused}"


def _changes(before: Plan, after: Plan) -> Iterator[Change]:
    old, new = dict(_flat(before.tables)), dict(_flat(after.tables))
    for key in dict.fromkeys([*old, *new]):
        if old.get(key) != new.get(key):
            yield Change(key, _in_words(old.get(key)), _in_words(new.get(key)))


def _flat(tables: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tables.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{above}{key}.")
        elif value or not isinstance(value, list | tuple | Mapping):  # an empty list is a key that is left out
            yield f"{above}{key}", value


def _in_words(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        return str(value)
    if all(isinstance(each, Mapping) for each in value):
        return " then ".join(each["kind"] + _settings(each) for each in value)
    return first_few([*map(str, value)], _LISTED)


def _settings(transform: Mapping[str, Any]) -> str:
    rest = ", ".join(f"{key}={_in_words(value)}" for key, value in transform.items() if key != "kind")
    return f" ({rest})" if rest else ""


def _promise(before: Plan, after: Plan, comparable: bool) -> Iterator[Consequence]:
    old, new = before.budget(), after.budget()
    for name in ("epsilon", "delta", "mu"):
        one, two = (getattr(budget, name) if math.isfinite(budget.mu) else None for budget in (old, new))
        yield Consequence(name, one, two, _protection(one, two, comparable))
    guarantees = (None if plan.noise is None else plan.noise.guarantee for plan in (before, after))
    one, two = (None if each is None else 100 * each.tpr(0.01) for each in guarantees)
    yield Consequence("of 100 found at 1 % false alarms, at most", one, two, _protection(one, two, comparable))


def _protection(before: Number, after: Number, comparable: bool) -> str:
    if before == after and comparable:
        return _SAME
    if after is None:
        return "nothing is promised any more: exact sums are released"
    if before is None:
        return "a promise where there was none"
    if not comparable:
        return "another promise: the two do not compare"
    return "weaker: more can be learned" if after > before else "stronger: less can be learned"


def _noise(before: Plan, after: Plan) -> Iterator[Consequence]:
    """Yield all shares' noise in records of the largest norm, so that plans with different clips compare."""
    old, new = _felt(before), _felt(after)
    for statistic in dict.fromkeys([*old, *new]):
        yield _consequence(f"noise on {statistic}, in records", old.get(statistic), new.get(statistic), _louder)


def _felt(plan: Plan) -> dict[str, float]:
    if plan.noise is None:
        return dict.fromkeys(plan.schema.statistics, 0.0)
    released = plan.noise.released_sigma(plan.cohort.clients)
    largest = {
        row.letter: row.bound(plan.schema.grid_steps) / plan.schema.scale_of(row.letter) for row in plan.schema.sent
    }
    return {statistic: sigma / largest[statistic] for statistic, sigma in released.items()}


def _survivors(before: Plan, after: Plan) -> Iterator[Consequence]:
    old, new = before.cohort, after.cohort
    spare = old.clients - before.masking.min_listed, new.clients - after.masking.min_listed
    yield _consequence("clients", old.clients, new.clients, _more)
    yield _consequence("clients that may vanish", *spare, _more)
    yield _consequence("clients that may collude", old.colluders, new.colluders, _more)
    if before.noise is not None and after.noise is not None:
        one, two = _best(before, before.noise), _best(after, after.noise)
        yield Consequence(
            "epsilon if no client vanishes", one, two, _protection(one, two, _kind(before) == _kind(after))
        )


def _best(plan: Plan, noise: Noise) -> float | None:
    return plan_dropouts(plan, noise)[0].epsilon if noise.trust.divided else noise.epsilon


def _consequence(of: str, before: Number, after: Number, means: Any) -> Consequence:
    if before is None or after is None:
        return Consequence(of, before, after, "released now" if before is None else "released no more")
    return Consequence(of, before, after, _SAME if before == after else means(before, after))


def _size(before: float, after: float) -> str:
    return f"{after / before:.3g} times as many"


def _louder(before: float, after: float) -> str:
    if not before or not after:
        return "noise where there was none" if after else "no noise any more"
    return f"{after / before - 1:+.0%}: " + ("less accurate" if after > before else "more accurate")


def _more(before: float, after: float) -> str:
    return f"{abs(after - before):g} {'more' if after > before else 'fewer'}"
