"""Provenance of a head: made under a promise, from exact records, or unknown.

``fit`` and ``fit_release`` write this record of facts, and head files keep it. It promises nothing by itself: the plan
and the release do.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot, inf
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from privstats.dp import Privacy, gaussian_epsilon, gaussian_mu
from privstats.dp.models import Model
from privstats.dp.privacy import Adjacency, Unit
from privstats.release import Release

if TYPE_CHECKING:
    from privstats.course.promise import Promise

__all__ = ["EXACT", "UNKNOWN", "Assumed", "Provenance"]

Assumed = Literal["classes", "rows"]
"""What a private fit can read off the records for want of a public value: the list of classes, the number of rows."""

_ASSUMED = {"classes": "the list of classes", "rows": "the number of rows to a power of two"}


class Provenance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The sources of a head; ``str`` gives its promise.

    Guarantee:
        Where ``exact`` is False, everything in the head is a function of releases that together are (epsilon, delta)-DP
        for one ``unit`` under ``adjacency``, under trust model ``model`` (post-processing; Dwork, Roth 2014,
        proposition 2.1). Releases of one course add up as ``sqrt(sum mu_i^2)``. The claim is as good as the file's
        signature: without one, anyone can write it.

    Attributes:
        exact: whether it was made from records or sums without noise: a function of single records, which no promise
            covers. None where unknown, as for files of formats 1 and 2.
        epsilon, delta: the promise of the releases that it was made from, together; None without one.
        adjacency, unit, model: of the promise, as in ``Privacy``.
        plan: digest of the plan; of a course, of its first plan.
        releases: digests of the releases, in order.
        course: digest of the course, where ``fit_private`` ran one.
        survivors, clients: parties in the (first) sum, and parties of the plan.
        reproducible: the noise came from a generator that others may know, so there is no promise.
        public: digest of the public records that went in beside the releases; the promise is for the others.
        assumed_public: what ``fit_private`` read off the records, because the caller gave no public value:
            ``"classes"`` or ``"rows"``. The promise holds for all else; one record can show in these.
        multiplicity: the most rows that one record may be in, by the word of who resampled (``Private``); epsilon and
            delta are for all of them together.

    Raises:
        ValueError: a promise in parts, or out of its bounds; or something assumed twice, or without a promise.

    Example:
        >>> X, y = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]] * 5), [0, 0, 1, 1] * 5
        >>> terms = {"epsilon": 1.0, "delta": 1e-5, "adjacency": "add-remove", "clip_norm": 2.0, "classes": [0, 1]}
        >>> str(ps.heads.LDA().fit_private(X, y, ledger="uncharged", **terms).provenance_)
        'epsilon 1 at delta 1e-05: central noise, one record, add-remove'
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

    @classmethod
    def of(cls, releases: Sequence[Any], course: str | None = None) -> Provenance:
        """The provenance of a head made from these releases; unknown where one was made by another library.

        Args:
            releases: of one plan, or of the nodes of one course, in order; at least one. Where they promise different
                things (another unit, adjacency or model) nothing is known of them together.
            course: the course's digest, where the caller ran one.
        """
        if not all(isinstance(each, Release) for each in releases):
            return UNKNOWN
        first = releases[0]
        facts: dict[str, Any] = {
            "plan": first.plan.digest,
            "releases": tuple(each.digest for each in releases),
            "course": course,
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
            delta=promise.delta + sum(each.plan.masking.failure for each in releases),
            adjacency=privacy.adjacency,
            unit=privacy.unit,
            model=privacy.model,
            **facts,
        )

    @property
    def beside_exact_rows(self) -> Provenance:
        """The same sources, where exact rows of the site that serves the head went in too: no promise covers it."""
        promise = dict.fromkeys(("epsilon", "delta", "adjacency", "unit", "model"))
        return msgspec.structs.replace(self, exact=True, assumed_public=(), multiplicity=1, **promise)

    def of_rows(self, times: int) -> Provenance:
        """The same, where its epsilon is of one row, and one record may be in so many: epsilon of all at its delta.

        mu-GDP of one row is ``times`` mu-GDP of so many (group privacy: Dong, Roth, Su 2019), and a pure epsilon is
        ``times`` epsilon.
        """
        if times == 1 or self.epsilon is None or self.delta is None:
            return self
        whole = times * self.epsilon
        if self.delta > 0:
            whole = gaussian_epsilon(times * gaussian_mu(self.epsilon, self.delta), self.delta)
        return msgspec.structs.replace(self, epsilon=whole, multiplicity=times)

    @property
    def release(self) -> str | None:
        """Digest of the first release; None where the head was made from records."""
        return self.releases[0] if self.releases else None

    @property
    def covered(self) -> bool:
        """Whether a promise covers the head, so that it may be shown."""
        return self.exact is False and not self.reproducible

    @property
    def caveat(self) -> str | None:
        """The sentence on what the promise does not cover; None where nothing was assumed."""
        if not self.assumed_public:
            return None
        return (
            "The promise does not cover what was read off the records because no public value was given, and where one "
            f"record can show: {' and '.join(_ASSUMED[each] for each in self.assumed_public)}."
        )

    def tables(self) -> dict[str, Any]:
        """The known facts, as plain values by name."""
        known: dict[str, Any] = msgspec.to_builtins(self)
        return known

    def tags(self) -> dict[str, str]:
        """The known facts as texts by name, for the tags of a tracking server and the metadata of other formats."""
        known = {name: value for name, value in self.tables().items() if name != "releases"}
        known["assumed_public"] = ", ".join(self.assumed_public) or None
        known |= {"promise": str(self), "release": self.release}
        return {f"privstats.{name}": _text(value) for name, value in known.items() if value is not None}

    def __str__(self) -> str:
        if self.exact is None:
            return "unknown: nothing says whether a promise covers it"
        if self.exact:
            return "exact: no promise"
        if self.reproducible:
            return "no promise: its noise came from a generator that others may know"
        law = "" if self.delta else " Laplace"
        rows = "" if self.multiplicity == 1 else f" in at most {self.multiplicity:,} rows"
        promise = f"{self.model}{law} noise, one {self.unit}{rows}, {self.adjacency}"
        assumed = "".join(f"; {_ASSUMED[each]} assumed public" for each in self.assumed_public)
        return f"epsilon {self.epsilon:.6g} at delta {self.delta:.3g}: {promise}{assumed}"


UNKNOWN = Provenance()
"""Provenance of a head from a file of format 1 or 2, or from a release made by another library."""

EXACT = Provenance(exact=True)
"""Provenance of a head fitted on exact records."""


def _promise(releases: Sequence[Release]) -> Privacy | Promise | None:
    """The promise of releases together: a plan's own, or the least that covers the nodes of a course; None without."""
    first = releases[0].plan
    if any(each.plan.noise is None for each in releases):
        return None
    if len(releases) == 1:
        return first.privacy if isinstance(first.privacy, Privacy) else None
    from privstats.course.promise import Promise

    return Promise.covering(hypot(*(each.budget.mu for each in releases)), first)


def _terms(release: Release) -> object:
    """What a promise is about, beside its numbers."""
    privacy = release.plan.privacy
    if not isinstance(privacy, Privacy):
        return None
    of_unit = privacy.max_records_per_client, privacy.max_records_per_person, privacy.clip
    return privacy.model, privacy.unit, privacy.adjacency, *of_unit


def _possible(epsilon: float | None, delta: float | None) -> bool:
    return epsilon is not None and 0 < epsilon < inf and delta is not None and 0 <= delta < 1


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
