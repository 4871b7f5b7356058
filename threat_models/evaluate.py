"""Running attacks against a plan, once or over a range of settings, with a file from which a stopped run continues.

Pure apart from that file. Every attack has its own generator, named by seed, plan and setting, so rows do not depend on
which others run, and the same seed gives the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from typing import Any

from privstats.course import Course, DisjointRounds
from privstats.course.base import as_next
from privstats.dp import Privacy
from privstats.errors import AggregationError, DataError, MissingExtraError, PlanError, ReleaseError, SchemaError
from privstats.files.result_cache import ResultCache
from privstats.kinds import RecordSchema, SitesSchema
from privstats.plan import Plan
from privstats.printable import at_most, delta_text
from privstats.release import Release
from privstats.transforms import Levels
from threat_models.adversary import SIGHTS, Adversary, Sees
from threat_models.attack import AnyAttack, Attack, CourseExamination, Examination
from threat_models.axes import AXES, Axis
from threat_models.chance import named
from threat_models.game import Game, alike
from threat_models.report import LeakageReport, Row, Verdict
from threat_models.world import Field, Pool, Setting

_CANDIDATES = 8
_LEAST_TRIALS = 8
_MOST_SWEPT = 1_000_000


class Results(ResultCache[Row]):
    """Rows by key; in memory only without a path.

    Raises:
        DataError: the file cannot be read or written.
    """

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        super().__init__(Row, path)


@dataclass(frozen=True)
class Effort:
    """The effort and the seed of a run.

    Attributes:
        trials: worlds (membership: pairs of worlds) per attack; each attack plays its own share of it.
        records: records per class in a world.
        seed: reproduces every byte; None for the operating system's randomness.
        confidence: of all rows together.
        results: a file that keeps finished rows, so that a stopped run goes on where it was; needs a seed.
        tick: called with the number of trials done.
        playing: called with the names of attacks that are played together; its context is open while they are.

    Raises:
        DataError: too few trials or records, or a results file without a seed.
    """

    trials: int = 200
    records: int = 30
    seed: int | None = None
    confidence: float = 0.95
    results: str | os.PathLike[str] | None = None
    tick: Callable[[int], None] = field(default=lambda _: None, compare=False)
    playing: Callable[[Sequence[str]], AbstractContextManager[None]] = field(
        default=lambda _: nullcontext(), compare=False
    )

    def __post_init__(self) -> None:
        if self.trials < _LEAST_TRIALS:
            raise DataError(f"trials must be at least {_LEAST_TRIALS}, got {self.trials}: fewer say nothing")
        if self.records < 1:
            raise DataError(f"records per class must be at least 1, got {self.records}")
        if not 0.5 <= self.confidence < 1:
            raise DataError(f"confidence must lie between 0.5 and 1, got {self.confidence}")
        if self.results is not None and self.seed is None:
            raise DataError("a run that can be continued needs a seed; give one")

    def of(self, attack: AnyAttack) -> int:
        """Trials for one attack."""
        return max(_LEAST_TRIALS, round(self.trials * attack.effort))


def evaluate(plan: Plan, attacks: Sequence[AnyAttack], data: Pool, effort: Effort | None = None) -> LeakageReport:
    """Play every attack against a plan.

    Each row's confidence is widened for the number of rows (Bonferroni), so the report's confidence holds for all of
    them and for the worst one that is picked out of them.

    Args:
        plan: the plan under attack, with its own noise.
        attacks: from ``attacks_named``.
        data: where worlds get their records.
        effort: how long to look.
    """
    effort, target = effort or Effort(), _unnamed(plan)
    jobs = [_Job(target, attack, attack.adversary(target)) for attack in attacks]
    return _report(plan, "What an attacker learns", _play(jobs, data, effort), effort)


def evaluate_course(
    course: Course, attacks: Sequence[AnyAttack], data: Callable[[Plan], Pool], effort: Effort | None = None
) -> LeakageReport:
    """Play every attack against each session of a course, and against what is drawn from its releases.

    Sessions that differ in published values alone are played once; rows name the session from 0. Values come from
    invented releases of the earlier sessions. A row's ceiling is the promise of its session, and of the whole course
    where rows are drawn from it.

    Args:
        course: the course under attack, with the noise of its sessions.
        attacks: from ``attacks_named``.
        data: where worlds of a session get their records.
        effort: how long to look.
    """
    effort, sessions = effort or Effort(), sessions_of(course, (effort or Effort()).seed)
    drawing = [attack for attack in attacks if attack.refusal_of(course) is None]
    playing = {
        place: [attack for attack in attacks if attack not in drawing and attack.refusal(plan) is None]
        for place, plan in sessions.items()
    }
    played = [*drawing, *(attack for chosen in playing.values() for attack in chosen)]
    parts = sum(bool(chosen) for chosen in (drawing, *playing.values()))
    shared = replace(effort, confidence=1 - (1 - effort.confidence) / max(1, parts))
    rows = _drawn_rows(course, drawing, shared)
    for place, chosen in playing.items():
        plan = _unnamed(sessions[place])
        jobs = [_Job(plan, attack, attack.adversary(plan), setting={"session": float(place)}) for attack in chosen]
        rows += _play(jobs, data(plan), shared) if jobs else ()
    first, delta = course.first, getattr(course.first.privacy, "delta", 0.0)
    rows += tuple(
        _silent(attack, attack.adversary(first), attack.refusal(first) or "reads another session", "does not apply")
        for attack in attacks
        if attack not in played
    )
    declared = f"{first.budget().promise}, over {course.most} sessions"
    if first.noise is not None:
        declared += f": epsilon {at_most(course.epsilon(delta))} at delta {delta_text(delta)} (mu {at_most(course.mu)})"
    title, features = "What an attacker learns from a course", first.schema.features
    return LeakageReport(title, declared, rows, effort.confidence, course.digest, features, effort.seed, effort.trials)


def sessions_of(course: Course, seed: int | None) -> dict[int, Plan]:
    """Return the plans of a course's sessions by place, without those that differ in published values alone."""
    from threat_models.audits.course import invented

    plan: Plan | None = course.first
    result, history, rng = {0: course.first}, list[Release | None](), named(seed, course.digest, "sessions")
    while plan is not None and len(history) + 1 < course.most and not isinstance(course, DisjointRounds):
        history.append(as_next(course, history, invented(plan, rng)))
        plan = course.next(history)
        known = [(each.schema, each.privacy) for each in result.values()]
        if plan is not None and (plan.schema, plan.privacy) not in known:
            result[len(history)] = plan
    return result


def sweep(
    plan: Plan,
    attacks: Sequence[AnyAttack],
    data: Pool,
    axis: Axis,
    values: Sequence[float],
    effort: Effort | None = None,
) -> LeakageReport:
    """Play attacks over a range of one setting; every row names its value.

    Args:
        axis: "epsilon" replaces the plan's own, "records" is per class, "dropouts" counts clients that vanish,
            "releases" how many an adversary that sees several of them gets.

    Raises:
        DataError: an unknown axis, no values, or one that no session can have.
        PlanError: a plan that cannot be built at some value.
    """
    effort = effort or Effort()
    if axis not in AXES or not values:
        raise DataError(f"a sweep needs values over one of {', '.join(AXES)}")
    _check(plan, axis, values)
    jobs = [_job(_unnamed(plan), attack, axis, value) for value in values for attack in attacks]
    return _report(plan, f"What an attacker learns, over {axis}", _play(jobs, data, effort), effort)


def matrix(plan: Plan, attacks: Sequence[AnyAttack], data: Pool, effort: Effort | None = None) -> LeakageReport:
    """Play every attack by every possible adversary: one row per attack and per sight of the sums.

    Attacks written for several releases, or for an experiment of their own, have one row and others that say so.
    """
    effort, target = effort or Effort(), _unnamed(plan)
    jobs = []
    for attack in attacks:
        own = attack.adversary(target)
        for sees in SIGHTS:
            jobs.append(_Job(target, attack, *_seeing(attack, own, sees, target)))
    return _report(plan, "Who learns what", _play(jobs, data, effort), effort)


def trial_count(plan: Plan, attacks: Sequence[AnyAttack], effort: Effort) -> int:
    """Trials that ``evaluate`` will report through ``tick``, for a progress bar."""
    return sum(effort.of(attack) for attack in attacks if attack.refusal(plan) is None)


@dataclass(frozen=True)
class _Job:
    """One row to compute: an attack, an adversary, a plan and a setting."""

    plan: Plan
    attack: AnyAttack
    adversary: Adversary
    refusal: str = ""
    setting: Mapping[str, float] = field(default_factory=dict)

    def key(self, effort: Effort) -> str:
        """The key of a finished row."""
        parts: tuple[Any, ...] = (self.plan.digest, self.attack.name, self.adversary, sorted(self.setting.items()))
        return repr((*parts, effort.trials, effort.records, effort.seed, effort.confidence))

    def why_not(self) -> str | None:
        return self.refusal or self.attack.refusal(self.plan)

    def group(self) -> object:
        """Jobs with the same value are played together."""
        if not isinstance(self.attack, Examination) and self.why_not() is None:
            return self.plan.digest, tuple(self.setting.items()), alike(self.attack, self.adversary)
        return id(self)

    def silent(self, why: str, verdict: Verdict) -> Row:
        """The row of a job that was not played."""
        return _silent(self.attack, self.adversary, why, verdict, self.setting)


def _drawn_rows(course: Course, attacks: Sequence[AnyAttack], effort: Effort) -> tuple[Row, ...]:
    """Return the rows of attacks on what is drawn from a course; finished ones come from the results file."""
    results, rows = Results(effort.results), list[Row]()
    confidence = 1 - (1 - effort.confidence) / max(1, len(attacks))
    for attack in attacks:
        key = repr((course.digest, attack.name, effort.trials, effort.seed, effort.confidence))
        if results.get(key) is None:
            results.put(key, _of_course(course, attack, effort, confidence))
        rows += results.get(key) or ()
    return tuple(rows)


def _of_course(course: Course, attack: AnyAttack, effort: Effort, confidence: float) -> tuple[Row, ...]:
    """Return the rows of one attack on a course, or a row with the reason why it does not apply."""
    assert isinstance(attack, CourseExamination)  # noqa: S101  others refuse every course
    trials, rng = effort.of(attack), named(effort.seed, course.digest, attack.name)
    try:
        with effort.playing([attack.name]):
            rows = attack.examine_course(course, rng, trials=trials, confidence=confidence)
    except (AggregationError, PlanError, ReleaseError, SchemaError) as error:
        return (_silent(attack, attack.adversary(course.first), str(error), "does not apply"),)
    effort.tick(trials)
    return rows


def _silent(
    attack: AnyAttack, who: Adversary, why: str, verdict: Verdict, setting: Mapping[str, float] | None = None
) -> Row:
    """Return the row of an attack that was not played."""
    return Row(
        attack=attack.name,
        number=attack.number,
        goal=attack.goal,
        sees=who.sees,
        adversary=who.describe(),
        setting=setting or {},
        metric="-",
        verdict=verdict,
        note=why,
    )


def _unnamed(plan: Plan) -> Plan:
    """Return the plan for records with numbered classes and unnamed columns of numbers, as worlds draw them."""
    if not isinstance(plan.schema, RecordSchema | SitesSchema):  # no world draws records of another kind
        return plan
    schema: Any = plan.schema  # every kind is a dataclass
    names = {each.name for each in fields(schema)} & {"class_names", "feature_names"}
    numbers = tuple(map_ for map_ in schema.transform if not isinstance(map_, Levels))
    return replace(plan, schema=replace(schema, transform=numbers, **dict.fromkeys(names)))


def _check(plan: Plan, axis: Axis, values: Sequence[float]) -> None:
    """Counts are integers, and no more clients vanish than the plan admits; epsilon is the plan's to check."""
    if axis == "epsilon":
        return
    vanish = plan.cohort.clients - plan.cohort.min_survivors
    least, most = (0, vanish) if axis == "dropouts" else (1, _MOST_SWEPT)
    for value in values:
        if not (least <= value <= most and value == int(value)):
            raise DataError(f"a sweep over {axis} needs integers from {least} to {most}, got {value:g}")


def _job(plan: Plan, attack: AnyAttack, axis: Axis, value: float) -> _Job:
    setting: dict[str, float] = {axis: float(value)}
    if axis == "epsilon":
        if not isinstance(plan.privacy, Privacy):
            raise PlanError("privacy.model is 'none', so there is no epsilon to vary: choose a model first")
        plan = replace(plan, privacy=replace(plan.privacy, epsilon=float(value)))
    own = attack.adversary(plan)
    if axis == "releases" and own.sees == "releases":
        one = int(value) == 1
        own = replace(own, sees="release" if one else "releases", releases=int(value))
    return _Job(plan, attack, own, setting=setting)


def _seeing(attack: AnyAttack, own: Adversary, sees: Sees, plan: Plan) -> tuple[Adversary, str]:
    """The attack's adversary with other eyes, or why it cannot have them."""
    if own.sees == sees:
        return own, ""
    if isinstance(attack, Examination) or "release" not in (own.sees,):
        return Adversary(), f"is written for {SIGHTS[own.sees]}"
    if sees == "heads":
        return Adversary(), "needs sums; models are turned back into sums first"
    colluders = plan.cohort.colluders if sees == "transcript" else 0
    return replace(own, sees=sees, releases=2 if sees == "releases" else 1, colluders=colluders), ""


def _play(jobs: Sequence[_Job], data: Pool, effort: Effort) -> tuple[Row, ...]:
    """Rows in the order of the jobs; finished ones come from the results file, alike ones are played together."""
    results = Results(effort.results)
    playing = sum(1 for job in jobs if job.why_not() is None)
    level = 1 - (1 - effort.confidence) / max(1, playing)
    groups: dict[object, list[_Job]] = {}
    for job in jobs:
        groups.setdefault(job.group(), []).append(job)
    fields: dict[str, Field] = {}
    for group in groups.values():
        open_jobs = [job for job in group if results.get(job.key(effort)) is None]
        if open_jobs:
            for job, rows in zip(open_jobs, _together(open_jobs, data, fields, effort, level), strict=True):
                results.put(job.key(effort), rows)
    return tuple(row for job in jobs for row in results.get(job.key(effort)) or ())


def _together(
    jobs: Sequence[_Job], data: Pool, fields: dict[str, Field], effort: Effort, confidence: float
) -> list[tuple[Row, ...]]:
    """Rows of jobs of one group; an attack that cannot be played gives a row with the reason."""
    job, why = jobs[0], jobs[0].why_not()
    verdict: Verdict = "does not apply"
    try:
        if why is None:
            with effort.playing(list(dict.fromkeys(each.attack.name for each in jobs))):
                rows = _measured(jobs, data, fields, effort, confidence)
            return [tuple(replace(row, setting=job.setting) for row in mine) for mine in rows]
    except (DataError, MissingExtraError) as error:  # other records or an extra would let it be played
        why, verdict = str(error), "underpowered"
    except (AggregationError, PlanError, ReleaseError, SchemaError) as error:
        why = str(error)
    return [(each.silent(why, verdict),) for each in jobs]


def _measured(
    jobs: Sequence[_Job], data: Pool, fields: dict[str, Field], effort: Effort, confidence: float
) -> list[tuple[Row, ...]]:
    job, trials = jobs[0], effort.of(jobs[0].attack)
    if isinstance(job.attack, Examination):
        rng = named(effort.seed, job.plan.digest, job.attack.name)
        rows = job.attack.examine(job.plan, rng, trials=trials, confidence=confidence)
        effort.tick(trials)
        return [rows]
    attacks = [each.attack for each in jobs if not isinstance(each.attack, Examination)]
    setting = _setting(job, attacks[0], effort)
    field = fields.setdefault(job.plan.digest, data.of(job.plan))
    game = Game(field, setting, trials, effort.seed, confidence, lambda: effort.tick(1))
    return [(row,) for row in game.play(attacks, job.adversary)]


def _setting(job: _Job, attack: Attack, effort: Effort) -> Setting:
    records = attack.records or int(job.setting.get("records", effort.records))
    candidates = min(_CANDIDATES, records) if attack.goal == "membership" else 0
    dropouts = int(job.setting["dropouts"]) if "dropouts" in job.setting else None
    return Setting(job.plan, records, candidates, dropouts, hide_label=attack.goal == "inference")


def _report(plan: Plan, title: str, rows: tuple[Row, ...], effort: Effort) -> LeakageReport:
    budget = plan.budget()
    declared = budget.promise
    if plan.noise is not None:
        declared += f": epsilon {at_most(budget.epsilon)} at delta {delta_text(budget.delta)} (mu {at_most(budget.mu)})"
    return LeakageReport(
        title, declared, rows, effort.confidence, plan.digest, plan.schema.features, effort.seed, effort.trials
    )
