"""Record a head's sources; the guarantee itself rests on plan and release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, inf
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from privstats.course.positions import charged_mu, in_places
from privstats.dp import Privacy, gaussian_epsilon, gaussian_mu
from privstats.dp.conditions import is_clause
from privstats.dp.privacy import Adjacency, Model, Unit
from privstats.errors import DataError, ReleaseError
from privstats.heads.evidence import Released, require_release
from privstats.plan.conditions import joint_condition
from privstats.printable import at_most, delta_text
from privstats.release import Release
from privstats.schema import Schema

if TYPE_CHECKING:
    from privstats.course import Releases
    from privstats.course.promise import Promise


Assumed = Literal["classes", "rows"]
"""Values that a private fit may read from the records if no public one is given: the classes, the number of rows."""

_ASSUMED = {"classes": "the list of classes", "rows": "the number of rows to a power of two"}


class Provenance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The sources of a head; ``str`` returns its promise.

    Guarantee:
        Where ``exact`` is False, everything in the head is a function of releases that together are (epsilon, delta)-DP
        for one ``unit`` under ``adjacency``, under trust model ``model`` (post-processing; Dwork, Roth 2014,
        proposition 2.1). Releases of one course add up as ``sqrt(sum mu_i^2)``, with the sessions without a sum before
        the last one. A session without a sum behind the last release has no part in the head: the course's own promise,
        which every ledger is charged, counts it. Only the file's signature protects this claim against forgery.

    Attributes:
        exact: whether records or noiseless sums were used; None: unknown.
        epsilon, delta: joint promise of its releases, or None.
        condition: the promise's assumption, a clause that follows "while" (``Plan.condition`` of every session); None
            also in a file that an earlier version wrote.
        plan, releases, course: digests: the (first) plan, releases in order, course.
        survivors, clients: parties in the first sum and its plan.
        reproducible: others may know the noise, so no promise holds.
        public: digest of public records, which the promise excludes.
        assumed_public: values read from the records (``"classes"``, ``"rows"``); the promise excludes them.
        multiplicity: maximum rows per record, covered by epsilon and delta together; stated by the caller
            (``Private``).

    Example:
        >>> X, y = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]] * 5), [0, 0, 1, 1] * 5
        >>> terms = {"epsilon": 1.0, "delta": 1e-5, "adjacency": "add-remove", "clip_norm": 2.0, "classes": [0, 1]}
        >>> found = ps.heads.LDA().fit_private(X, y, ledger="uncharged", **terms).provenance_
        >>> str(found).partition(", while ")[0]
        'epsilon 1 at delta 1e-05: central noise, one record, add-remove'
        >>> found.condition.partition(";")[0]
        'the server adds its noise and keeps the exact sum secret'
        >>> str(ps.heads.LDA().fit(X, y).provenance_)
        'exact: no promise'
    """

    exact: bool | None = None
    epsilon: float | None = None
    delta: float | None = None
    adjacency: Adjacency | None = None
    unit: Unit | None = None
    model: Model | None = None
    plan: str | None = None
    releases: tuple[str, ...] = ()
    course: str | None = None
    survivors: int | None = None
    clients: int | None = None
    reproducible: bool = False
    public: str | None = None
    assumed_public: tuple[Assumed, ...] = ()
    multiplicity: int = 1
    condition: str | None = None

    def __post_init__(self) -> None:
        promise = (self.epsilon, self.delta, self.adjacency, self.unit, self.model)
        if self.exact is not False and any(term is not None for term in promise):
            raise ValueError("only a head that is not exact has epsilon, delta, adjacency, unit and model")
        if self.exact is False and not (None not in promise and _possible(self.epsilon, self.delta)):
            raise ValueError("a promise has a finite epsilon above 0, a delta in [0, 1), adjacency, unit and model")
        if self.assumed_public and (
            self.exact is not False or len(set(self.assumed_public)) < len(self.assumed_public)
        ):
            raise ValueError("only a head with a promise has assumed_public, each word of it once")
        if self.multiplicity < 1 or (self.multiplicity > 1 and self.exact is not False):
            raise ValueError("only a head with a promise has a multiplicity, at least 1")
        if self.condition is not None and (self.exact is not False or not is_clause(self.condition)):
            raise ValueError("only a head with a promise has a condition, a printable clause")

    @classmethod
    def of(cls, releases: Sequence[Any], course: str | None = None) -> Provenance:
        """Return the provenance of releases of one plan or course.

        Unknown if a release is another library's, or if model, unit, adjacency, row limits or clips differ.
        """
        if not all(isinstance(each, Release) for each in releases):
            return UNKNOWN
        first = releases[0]
        facts: dict[str, Any] = {
            "plan": first.plan.digest,
            "releases": tuple(each.digest for each in releases),
            "course": _course_of(releases) or course,
            "survivors": len(first.survivors),
            "clients": first.plan.cohort.clients,
            "reproducible": any(each.reproducible for each in releases),
        }
        if len({_terms(each) for each in releases}) > 1:
            return UNKNOWN
        promise, privacy = _promise(releases), first.plan.privacy
        if promise is None or not isinstance(privacy, Privacy):
            return cls(exact=True, **facts)
        return cls(
            exact=False,
            epsilon=promise.epsilon,
            delta=promise.delta + _failure(releases),
            adjacency=privacy.adjacency,
            unit=privacy.unit,
            model=privacy.model,
            condition=joint_condition(each.plan for each in releases),
            **facts,
        )

    @property
    def beside_exact_rows(self) -> Provenance:
        """Provenance after the serving site's exact rows were used too: no promise."""
        promise = dict.fromkeys(("epsilon", "delta", "adjacency", "unit", "model", "condition"))
        return msgspec.structs.replace(self, exact=True, assumed_public=(), multiplicity=1, **promise)

    def of_rows(self, times: int) -> Provenance:
        """Return the provenance where epsilon is for one row and one record may be in ``times`` rows.

        mu-GDP per row is ``times * mu`` for ``times`` rows (group privacy: Dong, Roth and Su 2022); pure epsilon scales
        alike.
        """
        if times == 1 or self.epsilon is None or self.delta is None:
            return self
        epsilon = times * self.epsilon
        if self.delta > 0:
            epsilon = gaussian_epsilon(times * gaussian_mu(self.epsilon, self.delta), self.delta)
        return msgspec.structs.replace(self, epsilon=epsilon, multiplicity=times)

    @property
    def release(self) -> str | None:
        """Digest of the first release; None where fitted on records."""
        return self.releases[0] if self.releases else None

    @property
    def covered(self) -> bool:
        """Whether a promise covers the head, so that it may be published."""
        return self.exact is False and not self.reproducible

    @property
    def caveat(self) -> str | None:
        """Sentence on values that the promise excludes, if any."""
        if not self.assumed_public:
            return None
        return (
            "The promise does not cover what was read off the records because no public value was given, and where one "
            f"record can show: {' and '.join(_ASSUMED[each] for each in self.assumed_public)}."
        )

    def tables(self) -> dict[str, Any]:
        """Return the known facts by name."""
        known: dict[str, Any] = msgspec.to_builtins(self)
        return known

    def tags(self) -> dict[str, str]:
        """Return the known facts as texts by name, for metadata of other formats."""
        known = {name: value for name, value in self.tables().items() if name != "releases"}
        known["assumed_public"] = ", ".join(self.assumed_public) or None
        known |= {"promise": str(self), "release": self.release}
        return {f"privstats.{name}": _text(value) for name, value in known.items() if value is not None}

    def __str__(self) -> str:
        if self.exact is None:
            return "unknown: the file does not state whether a promise covers it"
        if self.exact:
            return "exact: no promise"
        if self.reproducible:
            return "no promise: its noise came from a generator that others may know"
        law = "" if self.delta else " Laplace"
        rows = "" if self.multiplicity == 1 else f" in at most {self.multiplicity:,} rows"
        promise = f"{self.model}{law} noise, one {self.unit}{rows}, {self.adjacency}"
        assumed = "".join(f"; {_ASSUMED[each]} assumed public" for each in self.assumed_public)
        claim = f"epsilon {at_most(self.epsilon or inf, '.6g')} at delta {delta_text(self.delta or 0.0)}"
        return f"{claim}: {promise}{assumed}, while {self._assumption}"

    @property
    def _assumption(self) -> str:
        return self.condition or "the condition of its plan holds, which this file does not state"


UNKNOWN = Provenance()
"""Provenance of a head from another library's release, or from releases with different terms."""

EXACT = Provenance(exact=True)
"""Provenance of a head fitted on exact records."""


def _promise(releases: Sequence[Release]) -> Privacy | Promise | None:
    """Return the releases' joint promise: the plan's, or the smallest that covers a course's sessions."""
    first, own = releases[0].plan, _of_course(releases)
    if any(each.plan.noise is None for each in releases):
        return None
    plans, position = [each.plan for each in own], own[-1].position if own else None
    if len(releases) == 1 and (position is None or not position.place):
        return first.privacy if isinstance(first.privacy, Privacy) else None
    from privstats.course.promise import Promise

    others = (each.budget.mu for each in releases if each.position is None)
    return Promise.covering(hypot(charged_mu(plans, position), *others), first)


def _failure(releases: Sequence[Release]) -> float:
    """Return the probability that any session's masks fail, of those without a sum too."""
    failures = [each.plan.masking.failure for each in releases]
    own = [each.position for each in releases if each.position is not None]
    lost = own[-1].place + 1 - len(own) if own else 0
    return sum(failures) + max(lost, 0) * max(failures)


def _of_course(releases: Sequence[Release]) -> list[Release]:
    """Return the releases that name a course: not a count of rows before it."""
    return [each for each in releases if each.position is not None]


def _terms(release: Release) -> object:
    privacy = release.plan.privacy
    if not isinstance(privacy, Privacy):
        return None
    of_unit = privacy.max_records_per_client, privacy.max_records_per_person, privacy.clip
    return privacy.model, privacy.unit, privacy.adjacency, *of_unit


def _course_of(releases: Sequence[Release]) -> str | None:
    return next((each.position.course for each in releases if each.position is not None), None)


def _possible(epsilon: float | None, delta: float | None) -> bool:
    return epsilon is not None and 0 < epsilon < inf and delta is not None and 0 <= delta < 1


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_WRONG_LIST = (
    "a list must hold the releases of a Centred course: its mean (or None), its class sums, and of a calibrated one "
    "its calibration (or None), in order; give other releases one at a time"
)


def present(releases: Releases) -> list[Release]:
    """Return the releases with a sum; DataError without the first."""
    if isinstance(releases, Release) or not isinstance(releases, Sequence) or not releases:
        raise DataError("releases must be a list with the release of every node of a course; give them in order")
    have = [each for each in releases if each is not None]
    if releases[0] is None or not all(isinstance(each, Release) for each in have):
        raise DataError("releases must hold Release or None, and the first release, on which all rounds rest")
    return have


ROW_TABLES = (("records",),)
"""The tables of a count of rows."""


def behind_counts(releases: Releases) -> tuple[list[Release], Releases]:
    """Split off the count of rows, or the count sessions, that begin a course.

    ReleaseError if later sums used other cut points than those of the counts, or the releases are not of one course.
    """
    if len(releases) > 1 and is_row_count(releases[0]):
        return [releases[0]], in_places(releases[1:])  # type: ignore[list-item]
    releases = in_places(releases)
    place = next((at for at, each in enumerate(releases) if each is not None and not _counts(each)), 0)
    counts, rest = [each for each in releases[:place] if each is not None], list(releases[place:])
    if not place or not (counts or _reads_table(rest[0])):
        return [], releases
    if counts and not _behind_these(rest[0], counts):
        raise ReleaseError(
            "the cut points of these sums do not follow from these counts: give all releases of one Binned course, in "
            "order, and None for one without a sum"
        )
    from privstats.kinds import CalibrationSchema, ClassSchema

    if len(rest) == 2 and _is_of(rest[0], ClassSchema) and (rest[1] is None or _is_of(rest[1], CalibrationSchema)):
        return counts, [None, *rest]  # a mean without a sum went before
    return counts, rest


def is_row_count(release: object) -> bool:
    """Return whether a release counts the rows of one party, and nothing else (:mod:`~privstats.heads.row_count`)."""
    return _counts(release) and getattr(release, "plan").schema.tables == ROW_TABLES  # noqa: B009


def behind_cut_points(release: Released | Releases) -> tuple[tuple[Released, ...], Released]:
    """Return all releases of a ``Binned`` course over one plan, and the last; or a release alone."""
    if not isinstance(release, list | tuple):
        alone = require_release(release)
        return (alone,), alone
    counts, rest = behind_counts(release)
    if len(rest) != 1 or len(release) == 1 or rest[0] is None:
        raise DataError(
            "a list is in the order of a course's sessions, and here must hold the releases of a Binned course over "
            "one plan: its counts (or None), then the sums; give other releases one at a time"
        )
    return (*counts, require_release(rest[0])), rest[0]


def _counts(release: Any) -> bool:
    return bool(getattr(getattr(getattr(release, "plan", None), "schema", None), "finds_cuts", False))


def _is_of(release: Any, kind: type[Schema]) -> bool:
    return isinstance(getattr(getattr(release, "plan", None), "schema", None), kind)


def _reads_table(release: Any) -> bool:
    maps: tuple[Any, ...] = getattr(getattr(getattr(release, "plan", None), "schema", None), "transform", ())
    return bool(maps) and maps[0].reads_cells


def _behind_these(release: Any, counts: Sequence[Release]) -> bool:
    from privstats.course.binned import follow_from

    counted: Any = counts[0].plan
    if not (_reads_table(release) and _reads_table(counts[0])):
        return False
    return follow_from(release.plan.schema.transform[0], counted.schema.transform[0], counts)


class OfOneRelease:
    """A head of one release, with an error that names heads of several."""

    @property
    def fit_releases(self) -> Any:
        """Raise AttributeError, so that ``hasattr`` returns False."""
        head = type(self).__name__
        raise AttributeError(
            f"{head} reads one release, or those of a course without gradient rounds in a list: give them to "
            "fit_release; RefinedSoftmax and RefinedRidge read those of gradient rounds"
        )


@dataclass(frozen=True)
class Sources:
    """All releases in order, the class sums, and their calibration or None."""

    releases: tuple[Released, ...]
    sums: Released
    calibration: Release | None = None


def sources(release: Released | Releases) -> Sources:
    """Return a release alone, or a ``Centred`` course's releases, also behind cut points (``Binned``)."""
    if not isinstance(release, list | tuple):
        alone = require_release(release)
        return Sources((alone,), alone)
    from privstats.course import Centred, history
    from privstats.kinds import CalibrationSchema, MeanSchema

    behind: Any
    counts, behind = behind_counts(release)
    if len(behind) == 1 and len(release) > 1:
        behind = [None, *behind]
    if len(behind) not in (2, 3):
        raise DataError(_WRONG_LIST)
    mean, sums, calibration = (*behind, None)[:3]
    if not (_missing_or(MeanSchema, mean) and _missing_or(CalibrationSchema, calibration)):
        raise DataError(_WRONG_LIST)
    if sums is None or (calibration is not None and not isinstance(sums, Release)):
        raise DataError(_WRONG_LIST)
    releases = tuple(require_release(each) for each in (mean, sums, calibration) if each is not None)
    if isinstance(sums, Release) and (mean is not None or calibration is not None):
        Centred.of(mean and mean.plan, sums.plan, calibration and calibration.plan)
    if calibration is not None and calibration.plan.published.after != history([mean, sums]).hex():
        raise DataError("the calibration was measured after other releases: give all those of one course, in order")
    return Sources((*counts, *releases), sums, calibration)


def directions(release: Released | Releases) -> tuple[Released, ...]:
    """Return a release of parties' directions, alone or with their update (``PartyRounds``)."""
    from privstats.kinds import PartySchema

    present: list[Any] = [release]
    if isinstance(release, list | tuple):
        present = [each for each in in_places(release) if each is not None]
    if not 1 <= len(present) <= 2:
        raise DataError(
            "a list must hold one or both releases of a PartyRounds course, in order, None for a round without a sum; "
            "run the course again where there is none"
        )
    first, *updates = map(require_release, present)
    if type(first.plan.schema) is not PartySchema:
        kind = type(first.plan.schema).__name__
        and_ = ", and an update only behind its first round" if first.plan.schema.party_is_record else ""
        raise ReleaseError(f"this is a release of a {kind}; PartyDiscriminant reads a PartySchema{and_}")
    if updates and not _updates(first, updates[0]):
        raise ReleaseError("the second release is no update after the first: give both of one PartyRounds course")
    return (first, *updates)


def _updates(first: Released, second: Released) -> bool:
    if not isinstance(first, Release) or first.plan.noise is None or first.plan.noise.pure:
        return False
    from privstats.course import PartyRounds

    return second.plan == PartyRounds(first.plan).next([first])


def _missing_or(kind: type[Schema], release: Any) -> bool:
    return release is None or (isinstance(release, Release) and isinstance(release.plan.schema, kind))
