"""Sum second moments within sites, less the part that each site's own shrunk mean explains.

The sums add over sites only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privstats import moments
from privstats.errors import DataError, SchemaError
from privstats.kinds.base import Kind
from privstats.kinds.classes import ClassSchema
from privstats.kinds.worst import Record, Sums, WorstPair, first, many, plain, record_of, vectors, wire
from privstats.moments.base import ExactClass, Moments, RealMoments, checked_index
from privstats.records.reading import Targets
from privstats.schema.base import OUTCOME, Adjacency, Statistic, letters_of
from privstats.schema.checks import (
    REQUIRED,
    checked_groups,
    checked_pull,
    checked_vectors,
    refused_groups,
    settle,
    size,
)
from privstats.schema.narrowing import bare
from privstats.schema.public_values import Values
from privstats.transforms import ConstantFeature, Transform

if TYPE_CHECKING:
    from privstats.moments.clip_report import ClipReport
    from privstats.records.opened import Opened

_TABLE: tuple[Statistic, ...] = (
    Statistic("N", "pooled", (), (0, 0), meaning="how many records there are", share=0.02),
    Statistic(
        "Q",
        "pull",
        ("feature", "feature"),
        (2, 0),
        meaning="the sum of products of every two columns, minus the part that each site's own mean explains",
        symmetric=True,
    ),
)
"""Records, and second moments less what each site's own shrunk mean explains, per group and pull, in wire order."""

_MAX_PULLS = 4


@dataclass(frozen=True)
class SitesSchema(Kind):
    """Second moments within sites, of columns and target, for ``inference.fixed_effects`` and ``mixed``.

    A site is a client; two sites in one client are measured as one. Vectors ``z = (x, y)`` are clipped to one norm R. A
    site of n records with sums s uploads n and, per pull lambda, ``Q = sum z z' - s s' / (n + lambda)``, 0 for n = 0.
    With lambda = 0 the sum over sites is the regression with a dummy for every site. Intervals are too short if slopes
    differ by site, unless ``groups`` are used. Under a promise an unreadable record is excluded.

    Guarantee:
        Unit: one record, or a client of at most ``max_records_per_client``. The noise is calibrated to the largest move
        of ``(N, Q)`` by a record of any site. Q moves by up to 4 R^2 per pull under add-remove, sqrt 2 times that
        under replace-one, plus truncation (``dp.joint_mu``, docs/proofs/parties.md). Replace-one covers a readable
        record for an unreadable one, too, which moves N. Without DP the exact sums over few sites reveal the sites. A
        counting rule, which is no proof, refuses a plan with too few sites for its pulls.

    Args:
        features: columns after the transform *and* the target, at least 2.
        clip_norm: R, the norm to which vectors ``(x, y / target_scale)`` are clipped.
        pulls: lambda, the number of records at 0 that shrink a site's mean: ``(0,)`` for fixed effects, or one number
            in (0, 1e9]. Without DP also two to four increasing numbers, for a random intercept.
        groups: F, 1 or 6 to 64, with one pull; a site's group is its roster index modulo F.
        target_scale: public divisor of the target before the clip.
        transform: public maps of the columns alone; no ``ConstantFeature`` with a pull of 0.
        grid_bits, feature_names: as in :class:`ClassSchema`, without the target.

    Example:
        >>> schema = ps.SitesSchema(2, clip_norm=16.0)
        >>> moments = ps.measure(schema, [[0.0], [1.0], [2.0]], [5.0, 7.0, 9.0]).real()
        >>> moments.N, moments.Q[0].round(1).tolist()  # squares and products about this site's means
        (3.0, [[2.0, 4.0], [4.0, 8.0]])
    """

    task: ClassVar[str] = "sites"
    purpose: ClassVar[str] = "a regression that compares records within a party, and never one party with another"
    ignorable: ClassVar[str] = OUTCOME
    table: ClassVar[tuple[Statistic, ...]] = _TABLE
    statistics: ClassVar[str] = letters_of(_TABLE)
    appended: ClassVar[int] = 1
    nonnegative: ClassVar[bool] = False
    proved: ClassVar[str] = "NQ"
    exact_warning: ClassVar[str] = (
        "exact sums within sites next to exact plain sums of the same records (a RidgeSchema) are one more pull, and "
        "few sites can then be solved for; do not release both exactly (`privstats attack run --attack site-means` "
        "shows how)"
    )

    features: int = REQUIRED
    clip_norm: float = REQUIRED
    _: KW_ONLY
    pulls: tuple[float, ...] = (0.0,)
    groups: int = 1
    target_scale: float = 1.0
    transform: tuple[Transform, ...] = ()
    feature_names: tuple[str, ...] | None = None
    grid_bits: int = 12

    def __post_init__(self) -> None:
        settle(self, **checked_vectors(self))
        settle(self, pulls=_checked_pulls(self.pulls), groups=checked_groups(self.groups))
        settle(self, target_scale=size("target_scale", self.target_scale, "1 leaves the target as it is"))
        if self.groups > 1 and len(self.pulls) > 1:
            raise SchemaError("groups and several pulls cannot be combined: each group would need enough sites")
        if self.pulls[0] == 0 and any(isinstance(map_, ConstantFeature) for map_ in self.transform):
            raise SchemaError(
                "transform must not hold a ConstantFeature with a pull of 0: a site's mean cancels it; omit it"
            )

    @property
    def site_groups(self) -> int:
        """Number of site groups."""
        return self.groups

    @property
    def goal(self) -> Targets:
        """What y holds."""
        return Targets()

    @property
    def sizes(self) -> dict[str, int]:
        """Axis length, and blocks of Q: per pull or group."""
        return {"feature": self.features, "pull": self.groups * len(self.pulls)}

    @property
    def record(self) -> str:
        """Description of one record."""
        return f"{self.columns} and a target"

    # clipped and agrees are unused here: other kinds read them.
    def refuses_cohort(self, clients: int, honest: int, *, promised: bool, clipped: bool, agrees: bool) -> str:  # noqa: ARG002
        """Return why sums within sites are refused over too few sites.

        Without noise the smallest group needs M (p + 1) + 3 honest sites, for M pulls besides the first and p features.
        This is a counting rule, not a proof. A release of M p (p + 1) / 2 + p + 1 numbers fits K = M (p + 1) / 2 + 1
        + 1 / p sites of p unknowns each. The rule requires at least 2 K. Under a promise, several groups need three
        honest sites each on average.
        """
        if promised:
            return refused_groups(self.groups, honest, "errors by groups need several sites in each")
        minimum = (len(self.pulls) - 1) * (self.features + 1) + 3
        crowd = clients // self.groups - (clients - honest)
        if crowd >= minimum:
            return ""
        where = "min_survivors - colluders" if self.groups == 1 else "honest sites in the smallest group at worst"
        return (
            f"{where} is {crowd} and must be at least {minimum} for exact sums within sites: over fewer, sums "
            "reveal single sites; use more sites, fewer pulls, columns or groups, or give a Privacy"
        )

    def refusal(self, unit: str | None) -> str:
        """Return why a promise admits one pull only."""
        if unit is None or len(self.pulls) == 1:
            return ""
        return (
            f"under a promise per {unit} several pulls yield sums that noise makes unreadable: set pulls=(0,), read "
            "inference.fixed_effects, or set NoPrivacy()"
        )

    def move(self, weights: Mapping[str, float], adjacency: Adjacency) -> float:
        """Return mu^2 of one record of a site of any size, for every pull.

        The record moves Q by a positive semidefinite matrix of norm below 4 R^2; two of these differ by at most sqrt 2
        times that. Truncation adds less than one step to each of p^2 entries per truncated site
        (docs/proofs/parties.md). An unreadable record is in no sum, so one exchanged for a readable record moves N and
        Q as one record more does.
        """
        truncation = self.features / self.scale**2
        count, moved = weights.get("N", 0.0), 4 * self.clip_norm**2
        pulls = len(self.pulls) * weights.get("Q", 0.0)
        add = count + pulls * (moved + truncation) ** 2
        return add if adjacency == "add-remove" else max(add, pulls * (math.sqrt(2) * moved + 2 * truncation) ** 2)

    def move_of_client(self, weights: Mapping[str, float], adjacency: Adjacency, records: float) -> float:
        """Return mu^2 of a client: Q is positive semidefinite with trace at most m R^2; two differ by sqrt 2 m R^2."""
        square, truncation = records * self.clip_norm**2, self.features / self.scale**2
        moved = square if adjacency == "add-remove" else math.sqrt(2) * square + 2 * truncation
        return weights.get("N", 0.0) * records**2 + len(self.pulls) * weights.get("Q", 0.0) * moved**2

    @classmethod
    def example(cls) -> Self:
        """Return a small schema of this kind."""
        return cls(5, 1.0)

    @classmethod
    def worst(cls) -> WorstPair:
        """Return the rule for two data sets that attain the bound."""
        return WorstPair(vectors, _sums, _crowd, lambda schema: [_crowd(schema)], halves=True, left_out=lambda _: True)

    @classmethod
    def containers(cls) -> tuple[ExactClass, type[RealMoments]]:
        """Return the classes of exact sums and of sums in real units."""
        return SiteMoments, RealSiteMoments

    def moments_of(self, records: Opened, _: Mapping[str, Values]) -> SiteMoments:
        """Return one site's sums over columns and targets."""
        plain = ClassSchema(2, self.features, "NAB", self.clip_norm, self.grid_bits)
        sums: Any = moments.accumulators.measured(plain, records.over(_vectors(self, records)))  # one class
        return site_moments(self, sums.records, sums.A.sum(axis=0), np.asarray(sums.B), sums.clip_report)


def _checked_pulls(values: object) -> tuple[float, ...]:
    if not isinstance(values, tuple | list) or not 1 <= len(values) <= _MAX_PULLS:
        raise SchemaError(f"pulls must be a tuple of 1 to {_MAX_PULLS} numbers; (0,) is for fixed effects")
    remedy = "0 removes a site's mean, .4 to 400 are for inference.mixed"
    pulls = tuple(checked_pull("a pull", value, remedy, "RidgeSchema") for value in values)
    if any(low >= high for low, high in pairwise(pulls)):
        raise SchemaError("pulls must increase; sort them and name each once")
    if len(pulls) > 1 and pulls[0] == 0:
        raise SchemaError("a pull of 0 cannot be combined: (0,) is for fixed effects, others are for inference.mixed")
    return pulls


# --- the sums


@dataclass(frozen=True, eq=False)
class RealSiteMoments(RealMoments):
    """Sums within sites in real units, float64.

    Attributes:
        N: records.
        Q: a matrix per pull or group, ``(pulls or groups, p, p)``; the target last, over ``target_scale``.

    Example:
        >>> real = ps.measure(ps.SitesSchema(2, clip_norm=16.0), [[0.0], [1.0], [2.0]], [5.0, 7.0, 9.0]).real()
        >>> (real.Q[0][0, 1] / real.Q[0][0, 0]).round(2)  # the slope within this site
        np.float64(2.0)
    """

    N: float
    Q: NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class SiteMoments(Moments):
    """Exact sums within sites, int64: N in records, Q in squared grid steps.

    Measure each site's records at once: moments of two parts add up as two sites. Sums are in group 0 until
    :meth:`for_client`.

    Attributes:
        clip_report: the clip's effect, target included; stays with the client.

    Example:
        >>> moments = ps.measure(ps.SitesSchema(2, clip_norm=16.0), [[0.0], [1.0], [2.0]], [5.0, 7.0, 9.0])
        >>> moments.N, moments.real().Q[0].round(1).tolist()
        (3, [[2.0, 4.0], [4.0, 8.0]])
    """

    shown: ClassVar[tuple[str, ...]] = ("features", "pulls", "groups")

    schema: SitesSchema
    N: int
    Q: NDArray[np.int64]
    clip_report: ClipReport | None = field(default=None, compare=False)

    @property
    def records(self) -> int:
        """Records measured. Private, though their sum is sent."""
        return self.N

    def for_client(self, index: int | None) -> SiteMoments:
        """Return the sums in the group of a roster index.

        Raises:
            DataError: no index where groups exist, or a second call.
        """
        groups = self.schema.groups
        if groups == 1:
            return self
        place = checked_index(index)
        if self.Q[1:].any():
            raise DataError("these sums are in a group already; pass what measure returned")
        Q = np.zeros_like(self.Q)
        Q[place % groups] = self.Q[0]
        return SiteMoments(self.schema, self.N, Q, self.clip_report)

    def real(self) -> RealSiteMoments:
        """Return the sums in real units."""
        return RealSiteMoments.of_sums(self.schema, self.wire())


def site_moments(
    schema: SitesSchema, records: int, total: NDArray[Any], second: NDArray[Any], report: ClipReport | None = None
) -> SiteMoments:
    """Return a site's moments from sum ``(p,)`` and second moment ``(p, p)`` in grid steps."""
    Q = np.zeros((schema.sizes["pull"], schema.features, schema.features), np.int64)
    for place, pull in enumerate(schema.pulls):
        Q[place] = less_mean(second, total, records + Fraction(pull))
    return SiteMoments(schema, records, Q, report)


def less_mean(second: NDArray[Any], total: NDArray[Any], over: Fraction) -> NDArray[np.int64]:
    """Return ``Z'Z - s s' / over`` (:func:`~privstats.moments.grid.less`); 0 without records and pull."""
    return moments.grid.less(second, total, total, over) if over else np.zeros(second.shape, np.int64)


def _vectors(schema: SitesSchema, records: Opened) -> Iterator[tuple[NDArray[np.float64], NDArray[np.intp]]]:
    columns, target = moments.grid.feature_grid(schema), moments.grid.Grid("y", 1, schema.grid_steps, 1.0)
    yield np.empty((0, schema.features)), np.empty(0, np.intp)  # a site without records has sums too
    for rows, targets in records.pieces():
        x, b = moments.grid.through_maps(schema.reading, rows, columns), targets.astype(np.float64).reshape(-1, 1)
        target.require_finite(b)
        yield np.hstack([x, b / schema.target_scale]), np.zeros(len(x), np.intp)


# --- the two data sets that the certificate compares


def _crowd(schema: SitesSchema) -> tuple[Record, ...]:
    times = many(schema)
    return record_of(first(schema, -1), times=times), record_of([[1, -schema.grid_steps]], times=times, cell=1)


def _sums(schema: SitesSchema, records: Sequence[Record]) -> Sums:
    total: Sums = {}
    for site in {record["cell"] for record in records}:
        counts, sums, second = plain([record for record in records if record["cell"] == site])
        small = replace(bare(schema), features=2, groups=1)
        sent = wire(site_moments(small, int(counts.sum()), sums.sum(axis=0), second))
        for key, array in sent.items():
            total[key] = total.get(key, 0) + array
    return total
