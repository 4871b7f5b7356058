"""Measure one client's records as a Gaussian, and its part in a barycentre round.

Sums add over clients, not over parts of a client. Counts and sums are exact; covariances and roots are float64,
truncated toward zero so that no bound is exceeded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats import moments
from privstats.errors import PlanError, SchemaError
from privstats.kinds.base import Kind
from privstats.kinds.record_rows import target_rows
from privstats.kinds.ridge import RidgeSchema
from privstats.kinds.worst import WorstPair
from privstats.moments.base import ExactClass, Moments, RealMoments
from privstats.records.containers import feature_rows
from privstats.records.opened import Opened
from privstats.records.reading import Reading, Unread
from privstats.schema.base import Adjacency, Statistic
from privstats.schema.checks import REQUIRED, as_int, checked_vectors, settle
from privstats.schema.public_values import Values
from privstats.transforms import Transform
from privstats.transforms.base import rows_to_sum

if TYPE_CHECKING:
    from privstats.intake.accepted import RecordsLike

_TABLE: tuple[Statistic, ...] = (
    Statistic("N", "pooled", (), (0, 0), meaning="how many records there are", share=0.02),
    Statistic("x", "pooled", ("feature",), (1, 0), meaning="the sum of all feature vectors", share=0.48),
    Statistic(
        "V",
        "pooled",
        ("feature", "feature"),
        (2, 0),
        meaning="each party's covariance of every two features, times its number of records",
        symmetric=True,
    ),
    Statistic(
        "M",
        "pooled",
        ("feature", "feature"),
        (2, 0),
        meaning="each party's covariance root relative to the published reference, times its number of records",
        symmetric=True,
    ),
)
"""Records, sum of rows, covariances and covariance roots weighted by records, in wire order."""

Array: TypeAlias = NDArray[np.float64]

LEDOIT_WOLF = "ledoit-wolf"

_MAX_ROUNDS = 3
"""Sums of more rounds begin to reveal the contributions of single clients (docs/alignment.md)."""

_TOLERANCE = 2.0**-30  # rounding error of published integers and eigenvalues, relative to the largest


@dataclass(frozen=True)
class GaussianSchema(Kind):
    """Client Gaussians for SLOT-Align: ``(n, sum x, n Sigma)``, and in rounds ``(n, n (S^1/2 Sigma S^1/2)^1/2)``.

    A course builds it (:class:`~privstats.contrib.alignment.course.Alignment`). Entries are bounded by n R^2
    (R = ``clip_norm``) for every S; clients check the published S before any record is read.

    Args:
        shrinkage: in [0, 1], the weight of the spherical covariance, equal for all clients. Or ``"ledoit-wolf"``:
            computed from each client's records, which no promise can cover.
        rounds: T, 1 to 3, fixed from the start.
        reference: whether this is a round, which reads the published S, ``(d, d)``.
        among: for a round without noise: the clients of the first sum, in order; only their complete sum is unmasked.
        features, clip_norm, grid_bits, nonnegative, transform, feature_names: as in :class:`ClassSchema`.

    Example:
        >>> schema = ps.GaussianSchema(2, clip_norm=4.0, shrinkage=0.1, rounds=2)
        >>> moments = ps.measure(schema, [[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
        >>> moments.records, moments.real().V.round(2).tolist()
        (4, [[2.3, 0.0], [0.0, 7.7]])
    """

    task: ClassVar[str] = "gaussians"
    purpose: ClassVar[str] = (
        "averages, and how columns vary together, with which the measurements of parties are aligned"
    )
    table: ClassVar[tuple[Statistic, ...]] = _TABLE
    proved: ClassVar[str] = "NxVM"

    features: int = REQUIRED
    clip_norm: float = REQUIRED
    _: KW_ONLY
    shrinkage: float | str
    rounds: int
    reference: bool = False
    among: tuple[int, ...] | None = None
    grid_bits: int = 12
    nonnegative: bool = False
    transform: tuple[Transform, ...] = ()
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        settle(self, **checked_vectors(self))
        settle(self, rounds=as_int("rounds", self.rounds, 1, "two come near the barycentre"))
        if self.rounds > _MAX_ROUNDS:
            raise SchemaError(
                f"rounds must be at most {_MAX_ROUNDS}, got {self.rounds}: sums of more rounds begin to reveal "
                "single clients; two come near the barycentre"
            )
        settle(self, shrinkage=_checked_shrinkage(self.shrinkage))
        if not isinstance(self.reference, bool):
            raise SchemaError(f"reference must be True or False, got {type(self.reference).__name__}")
        settle(self, among=_checked_among(self.among, self.reference))

    @property
    def statistics(self) -> str:
        """``"NxV"``, and ``"NM"`` in a round."""
        return "NM" if self.reference else "NxV"

    @property
    def goal(self) -> Unread:
        """What y holds."""
        return Unread()

    @cached_property
    def reading(self) -> Reading:
        """What is read of each record; a covariance needs all records at once."""
        return replace(super().reading, batches=False)

    @property
    def sizes(self) -> dict[str, int]:
        """Axis length."""
        return {"feature": self.features}

    @property
    def needs(self) -> Mapping[str, tuple[int, ...]]:
        """The reference S in a round."""
        return {"S": (self.features, self.features)} if self.reference else {}

    @property
    def follows(self) -> GaussianSchema | None:
        """Schema of the first sum, for a round."""
        return replace(self, reference=False, among=None) if self.reference else None

    @property
    def followed(self) -> bool:
        """Whether this is the first sum."""
        return not self.reference

    def check_values(self, values: Mapping[str, Values]) -> None:
        """Refuse an S that is not symmetric with 0 <= S <= R^2 I."""
        super().check_values(values)
        if not self.reference:
            return
        integers, radius = values["S"].integers, self.clip_norm**2
        symmetric = np.array_equal(integers, integers.T)
        spectrum = np.linalg.eigvalsh(values["S"].real) if symmetric else np.array([-np.inf])
        if not -_TOLERANCE * radius <= spectrum[0] <= spectrum[-1] <= radius * (1 + _TOLERANCE):
            raise PlanError(
                "the published S is no covariance of rows of norm clip_norm: it must be symmetric with eigenvalues "
                "from 0 to clip_norm^2; refuse it, and ask who computed it"
            )

    def refuses_cohort(self, clients: int, honest: int, *, promised: bool, clipped: bool, agrees: bool) -> str:
        """Return why sums of client covariances would reveal single clients.

        The client minimum without noise is a counting rule, not a proof. T rounds over d features release
        (T + 1) d (d + 1) / 2 numbers. The rule limits these to a quarter of the numbers in the honest clients'
        covariances.
        """
        if promised:
            needed = "because only a clipped vector has one norm bound for every reference: set privacy.client_clip"
            return "" if clipped else f"an alignment under a promise needs client_clip, {needed}"
        minimum = 4 * (self.rounds + 1)
        if honest < minimum:
            return (
                f"min_survivors - colluders is {honest} and must be at least 4 (rounds + 1) = {minimum} for an "
                "alignment without noise: the sums of many rounds over few clients reveal single clients; use fewer "
                "rounds, or more clients"
            )
        if not agrees:
            return (
                "an alignment without noise needs a protocol in which clients see the survivors: two sums whose lists "
                "differ by one client give that client's covariance; omit protocol and panel, or promise a client_clip"
            )
        if self.reference and (self.among is None or self.among[-1] >= clients):
            return "a round without noise must name its clients in schema.among: those of the first sum, in order"
        return ""

    def refusal(self, unit: str | None) -> str:
        """Return why no promise covers one record."""
        if unit == "record":
            return (
                "no useful bound is known for how far one record moves a client's covariance root, and with it the "
                'transport of all its records: set unit="client" with a client_clip, or NoPrivacy()'
            )
        if unit == "client" and self.shrinkage == LEDOIT_WOLF:
            return "Ledoit and Wolf's weight is computed from the records; under a promise set a public shrinkage"
        return ""

    def move(self, weights: Mapping[str, float], adjacency: Adjacency) -> float:
        """Return one record's weight in its client's clip; no sensitivity, because no plan promises a record.

        ||n Sigma|| <= n R^2, and ||n M||^2 = n^2 tr(S Sigma) <= (n R^2)^2 for every admitted S, up to rounding.
        """
        if adjacency != "add-remove":
            raise PlanError("an alignment promises a client added or removed; set adjacency='add-remove'")
        radius_squared = self.clip_norm**2
        return (
            weights.get("N", 0.0)
            + weights.get("x", 0.0) * radius_squared
            + (weights.get("V", 0.0) + weights.get("M", 0.0)) * radius_squared**2
        )

    @classmethod
    def example(cls) -> Self:
        """Return a small schema of this kind."""
        return cls(10, 1.0, shrinkage=0.1, rounds=2, feature_names=tuple(f"c{place}" for place in range(10)))

    @classmethod
    def worst(cls) -> WorstPair:
        """Return no pair: these are no sums over records on a grid, so their clip alone bounds them."""
        return WorstPair(lambda *_: [], lambda *_: {})

    @classmethod
    def containers(cls) -> tuple[ExactClass, type[RealMoments]]:
        """Return the classes of exact sums and of sums in real units."""
        return GaussianMoments, RealGaussianMoments

    def client_gaussian(self, X: RecordsLike) -> ClientGaussian:
        """Return the Gaussian of one client's records, in grid steps.

        Example:
            >>> schema = ps.GaussianSchema(2, clip_norm=4.0, shrinkage=0.0, rounds=1)
            >>> schema.client_gaussian([[1.0, 0.0], [-1.0, 0.0]]).records
            2
        """
        return client_gaussian(self, Opened(self.reading, feature_rows(self.reading, X), None))

    def moments_of(self, records: Opened, values: Mapping[str, Values]) -> GaussianMoments:
        """Return a client's Gaussian, or its part in the round; labels are not read.

        Guarantee:
            For every admitted S, in integers: diagonal entries are at most n R^2, in squared grid steps, and others at
            most half of that. Measured as ``client_clip`` measures, the message is at most as long as n records, up to
            rounding and the eigenvalue floor of :func:`root`.
        """
        gaussian = client_gaussian(self, records)
        n = gaussian.records
        if not self.reference:
            return GaussianMoments(self, n, gaussian.total, _truncated(self, n, n * gaussian.covariance))
        reference = values["S"].real * self.scale**2
        part = mean_root(root(reference), gaussian.covariance) if n else gaussian.covariance
        return GaussianMoments(self, n, M=_truncated(self, n, n * part))


def _checked_shrinkage(value: object) -> float | str:
    if value == LEDOIT_WOLF:
        return LEDOIT_WOLF
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise SchemaError(f"shrinkage must be 'ledoit-wolf' or a number from 0 to 1, got {value!r:.40}")
    return float(value)


def _checked_among(value: object, reference: bool) -> tuple[int, ...] | None:
    if value is None:
        return None
    listed = isinstance(value, tuple | list) and all(type(client) is int and client >= 0 for client in value)
    if not reference or not listed or not value or sorted(set(value)) != list(value):  # type: ignore[call-overload]
        raise SchemaError("among must list the clients of the first sum, once each in increasing order, in a round")
    return tuple(value)  # type: ignore[arg-type]


# --- the sums


@dataclass(frozen=True, eq=False)
class RealGaussianMoments(RealMoments):
    """Sums over clients in real units; an unsent statistic is None.

    Attributes:
        N: records.
        x: sum of rows, ``(d,)``.
        V: sum of n_k Sigma_k, ``(d, d)``.
        M: sum of n_k (S^1/2 Sigma_k S^1/2)^1/2, ``(d, d)``.

    Example:
        >>> schema = ps.GaussianSchema(2, clip_norm=4.0, shrinkage=0.0, rounds=1)
        >>> real = ps.measure(schema, [[1.0, 0.0], [3.0, 0.0]]).real()
        >>> real.N, real.x.tolist(), real.V.round(2).tolist(), real.M is None
        (2.0, [4.0, 0.0], [[2.0, 0.0], [0.0, 0.0]], True)
    """

    N: float
    x: Array | None = None
    V: Array | None = None
    M: Array | None = None


@dataclass(frozen=True, eq=False, repr=False)
class GaussianMoments(Moments):
    """Gaussian sums, int64: N in records, x in grid steps, V and M in squared grid steps.

    ``published`` is the digest of M's published values; empty: none or unknown.

    Example:
        >>> schema = ps.GaussianSchema(2, clip_norm=4.0, shrinkage=0.0, rounds=1)
        >>> moments = ps.measure(schema, [[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
        >>> moments.N, moments.real().V.round(2).tolist()
        (4, [[2.0, 0.0], [0.0, 8.0]])
    """

    shown: ClassVar[tuple[str, ...]] = ("features", "reference")

    schema: GaussianSchema
    N: int
    x: NDArray[np.int64] | None = None
    V: NDArray[np.int64] | None = None
    M: NDArray[np.int64] | None = None
    published: str = ""

    @property
    def records(self) -> int:
        """Records measured. Private, though its sum is sent."""
        return self.N

    def real(self) -> RealGaussianMoments:
        """Return the sums in real units."""
        return RealGaussianMoments.of_sums(self.schema, self.wire())


@dataclass(frozen=True)
class ClientGaussian:
    """One client's Gaussian, in grid steps.

    Attributes:
        total: exact sum of rows, ``(d,)``.
        covariance: shrunk Sigma, ``(d, d)``; 0 without records.
    """

    records: int
    total: NDArray[np.int64]
    covariance: Array


def client_gaussian(schema: GaussianSchema, opened: Opened) -> ClientGaussian:
    """Return the Gaussian of a client's clipped grid records."""
    read = target_rows(schema, 1.0, schema.grid_bits)
    again = opened.again(read.reading)
    sums: Any = moments.accumulators.measured(read, again)  # with targets of 1, h is the sum of rows
    records = sums.clip_report.records
    total = sums.h[:, 0] // read.grid_steps
    if not records:
        return ClientGaussian(0, total, np.zeros((schema.features, schema.features)))
    integers = records * sums.G.astype(object) - np.outer(total.astype(object), total.astype(object))
    covariance = integers.astype(np.float64) / float(records) ** 2
    weight = (
        _ledoit_wolf(read, again, records, total / records, covariance) if schema.shrinkage == LEDOIT_WOLF else None
    )
    share = float(schema.shrinkage) if weight is None else weight
    spherical = np.trace(covariance) / schema.features * np.eye(schema.features)
    return ClientGaussian(records, total, (1 - share) * covariance + share * spherical)


_SMALLEST_RATIO = 1e-12  # smaller eigenvalues are raised to this part of the largest, against division by 0


def root(covariance: Array, power: float = 0.5) -> Array:
    """Return a power of a symmetric positive semi-definite matrix, ``(d, d)``, with an eigenvalue floor."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    floor = max(_SMALLEST_RATIO * float(values[-1]), np.finfo(np.float64).tiny)
    powered: Array = (vectors * np.maximum(values, floor) ** power) @ vectors.T
    return powered


def mean_root(reference_root: Array, covariance: Array) -> Array:
    """Return a client's part of a barycentre round, ``(S^1/2 Sigma S^1/2)^1/2``, ``(d, d)``.

    Its operator norm is at most ``||S||^1/2 ||Sigma||^1/2``.
    """
    return root(reference_root @ covariance @ reference_root)


def _truncated(schema: GaussianSchema, records: int, matrix: Array) -> NDArray[np.int64]:
    """Truncate to integers, and clamp them: float64 rounding may exceed the bounds."""
    maximum = float(records) * schema.grid_steps**2
    off = np.clip(np.trunc((matrix + matrix.T) / 2), -(maximum // 2), maximum // 2)
    np.fill_diagonal(off, np.clip(np.trunc(np.diagonal(matrix)), 0, maximum))
    return off.astype(np.int64)


def _ledoit_wolf(read: RidgeSchema, opened: Opened, records: int, mean: Array, covariance: Array) -> float:
    fourth = sum(float(np.square(np.square(rows - mean).sum(axis=1)).sum()) for rows in _on_grid(read, opened))
    d, square = read.features, float(np.square(covariance).sum())
    spread = square - np.trace(covariance) ** 2 / d  # squared Frobenius distance from the spherical covariance
    error = (fourth / records - square) / records
    return 1.0 if spread <= 0 else float(np.clip(error / spread, 0.0, 1.0))


def _on_grid(read: RidgeSchema, opened: Opened) -> Iterator[Array]:
    for rows, _ in opened.pieces():
        part = rows_to_sum(read.transform, rows.astype(np.float64))
        out = np.empty((len(part), read.features))
        moments.grid.feature_grid(read).quantize(part, out)
        yield out
