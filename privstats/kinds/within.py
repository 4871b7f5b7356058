"""Compute class moments less each client's own offset; they add over clients only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privstats import moments
from privstats.kinds.base import Kind
from privstats.kinds.classes import ClassMoments, ClassSchema, RealClassMoments
from privstats.kinds.record_rows import class_rows
from privstats.kinds.worst import Record, Sums, WorstPair, first, many, plain, record_of, vectors, wire
from privstats.moments.base import ExactClass, Moments, RealMoments
from privstats.records.reading import Labels
from privstats.schema.base import COUNT_SCALE, Adjacency, Predicted, Statistic, classes_of, letters_of
from privstats.schema.checks import REQUIRED, as_int, checked_class_names, checked_pull, checked_vectors, settle
from privstats.schema.narrowing import bare
from privstats.schema.public_values import Values
from privstats.transforms import Transform

if TYPE_CHECKING:
    from privstats.moments.clip_report import ClipReport
    from privstats.records.opened import Opened

_TABLE: tuple[Statistic, ...] = (
    Statistic("N", "class", (), (0, 0), meaning="how many records each class has", share=0.02),
    Statistic(
        "L",
        "pooled",
        ("class", "class"),
        (0, 0),
        meaning="the counts of every two classes, minus the part that each party's own mean explains",
        symmetric=True,
        share=0.05,
        divided=True,
    ),
    Statistic(
        "A",
        "class",
        ("feature",),
        (1, 0),
        meaning="for each class, the sum of its feature vectors, minus the part that each party's own mean explains",
        share=0.8,
    ),
    Statistic(
        "B",
        "pooled",
        ("feature", "feature"),
        (2, 0),
        meaning="the sum of products of every two features, minus the part that each party's own mean explains",
        symmetric=True,
    ),
)
"""Counts, and counts, sums and second moments less what each client's own offset explains, in wire order."""


@dataclass(frozen=True)
class WithinSchema(Kind):
    """Within-client moments of a classification task, for shifted clients: ``x = m_y + b_k + noise``.

    With ``z = (onehot(y), x)`` a client uploads its counts N and ``Q = sum z z' - (sum z)(sum z)' / (n + lambda)``. Q
    has the blocks L ``(C, C)``, A ``(C, d)`` and B ``(d, d)``. Their sums over clients yield the class means of least
    squares with client effects, ``m = L^+ A``, and the scatter ``B - A' m``. Prediction needs the local offset
    (``Personal(head, offset=True)``). Record-level DP costs up to four times the sensitivity of B
    (docs/alignment.md).

    Guarantee:
        Unit: one record, or a client of at most ``max_records_per_client``. The noise is calibrated to the largest move
        of ``(N, L, A, B)`` by a record of *any* client, truncation included (``dp.joint_mu``, docs/proofs/parties.md).
        Under replace-one mu^2 is up to four times that of add-remove. Nothing reveals whether a client is above
        ``n_max``, and no client is refused for it.

    Args:
        pull: lambda, 0 to 1e9: the number of records at 0 that shrink a client's offset. 0 cancels
            unclipped offsets on the grid exactly.
        n_max: public. A client of n > n_max records uses ``lambda n / n_max``, so its weight stays at
            ``n_max / (n_max + lambda)``, to which noise is calibrated.
        classes, features, clip_norm, grid_bits, nonnegative, transform, class_names, feature_names: as in
            :class:`ClassSchema`.

    Example:
        >>> schema = ps.WithinSchema(2, 2, clip_norm=4.0, pull=0.0, n_max=100)
        >>> here = ps.measure(schema, [[0.0, 1.0], [1.0, 1.0]], [0, 1]).real()
        >>> shifted = ps.measure(schema, [[2.0, 1.0], [3.0, 1.0]], [0, 1]).real()
        >>> np.allclose(here.B, shifted.B, atol=1e-3)  # one offset of all the client's records cancels
        True
    """

    task: ClassVar[str] = "within"
    purpose: ClassVar[str] = "a rule that distinguishes the classes, without what each party's own averages explain"
    table: ClassVar[tuple[Statistic, ...]] = _TABLE
    statistics: ClassVar[str] = letters_of(_TABLE)
    predicts: ClassVar[Predicted | None] = "classes"
    proved: ClassVar[str] = "NLAB"

    classes: int
    features: int = REQUIRED
    clip_norm: float = REQUIRED
    _: KW_ONLY
    pull: float
    n_max: int
    grid_bits: int = 12
    nonnegative: bool = False
    transform: tuple[Transform, ...] = ()
    class_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        settle(self, classes=as_int("classes", self.classes, 2, "one class has nothing to separate: set two or more"))
        settle(self, **checked_vectors(self))
        settle(self, class_names=checked_class_names(self.class_names, self.classes))
        settle(self, n_max=as_int("n_max", self.n_max, 1, "records of the largest client that counts in full"))
        remedy = "0 removes every client's offset, 10 is a start"
        settle(self, pull=checked_pull("pull", self.pull, remedy, "ClassSchema"))

    @property
    def goal(self) -> Labels:
        """What y holds."""
        return Labels.of(self.classes, self.class_names)

    @property
    def sizes(self) -> dict[str, int]:
        """Axis lengths and cell counts."""
        return {"class": self.classes, "feature": self.features}

    @property
    def record(self) -> str:
        """Description of one record."""
        return f"{self.columns} and {classes_of(self.classes, self.class_names)}"

    @property
    def weight(self) -> float:
        """t = n_max / (n_max + lambda), the largest removed fraction of a client's offset."""
        return self.n_max / (self.n_max + self.pull)

    def move(self, weights: Mapping[str, float], adjacency: Adjacency) -> float:
        """Return mu^2 of one record, with t = ``weight``; replacing is removing and adding.

        In a client above ``n_max`` a record z = (e_y, x) moves Q by ``(1 - t) z z' + t a (m - z)(m - z)'``. m is the
        mean of the client's others, and a < 1. In a smaller client the bound is no larger. The move is largest where
        |x| = R, m's x part is -x, and the others are of another class. Truncation adds at most one step per entry and
        client; a replaced record may move to another client (docs/proofs/parties.md).
        """
        t, radius, step = self.weight, self.clip_norm, 1 / self.scale
        C, d = self.classes, self.features
        moved = {
            "L": (math.sqrt(1 + 3 * t * t), C / COUNT_SCALE),
            "A": (radius * math.sqrt(1 + 2 * t + 5 * t * t), math.sqrt(C * d) * step),
            "B": (radius**2 * (1 + 3 * t), d * step * step),
        }
        twice = 1 if adjacency == "add-remove" else 2
        blocks = [weights.get(name, 0.0) * (twice * (far + rest)) ** 2 for name, (far, rest) in moved.items()]
        return twice * weights.get("N", 0.0) + math.fsum(blocks)

    @classmethod
    def example(cls) -> Self:
        """Return a small schema of this kind."""
        return cls(3, 4, 1.0, pull=1.0, n_max=20)

    @classmethod
    def worst(cls) -> WorstPair:
        """Return the rule for two data sets that attain the bound."""
        return WorstPair(vectors, _sums, _crowd, lambda schema: [(), _crowd(schema)])

    @classmethod
    def containers(cls) -> tuple[ExactClass, type[RealMoments]]:
        """Return the classes of exact sums and of sums in real units."""
        return WithinMoments, RealWithinMoments

    def moments_of(self, records: Opened, _: Mapping[str, Values]) -> WithinMoments:
        """Return one client's within-client moments."""
        plain = class_rows(self, self.classes, self.grid_bits, "NAB")
        sums: Any = moments.accumulators.measured(plain, records)
        return within_moments(self, sums)


# --- the sums

_SAME = 1e-9
"""Relative size below which an eigenvalue of L counts as 0: directions that a client's own offset explains."""


@dataclass(frozen=True, eq=False)
class RealWithinMoments(RealMoments):
    """Within-client moments in real units, float64.

    Attributes:
        N: counts, ``(C,)``.
        L: counts less the part that client offsets explain, ``(C, C)``, in records.
        A: class sums likewise, ``(C, d)``.
        B: second moments likewise, ``(d, d)``.

    Example:
        >>> schema = ps.WithinSchema(2, 2, clip_norm=4.0, pull=0.0, n_max=100)
        >>> real = ps.measure(schema, [[2.0, 1.0], [3.0, 1.0]], [0, 1]).real()
        >>> real.N.tolist(), real.L.tolist()
        ([1.0, 1.0], [[0.5, -0.5], [-0.5, 0.5]])
    """

    N: NDArray[np.float64]
    L: NDArray[np.float64]
    A: NDArray[np.float64]
    B: NDArray[np.float64]

    @property
    def means(self) -> NDArray[np.float64]:
        """Least-squares class means ``L^+ A``, ``(C, d)``, up to a common shift."""
        values, vectors = np.linalg.eigh((self.L + self.L.T) / 2)
        real = values > _SAME * max(float(values[-1]), np.finfo(np.float64).tiny)
        inverse = np.where(real, 1 / np.where(real, values, 1.0), 0.0)
        means: NDArray[np.float64] = (vectors * inverse) @ (vectors.T @ self.A)
        return means

    def equivalent(self) -> RealClassMoments:
        """Return class sums with equal counts, means and scatter."""
        means, n = self.means, np.maximum(self.N, 0.0)
        product = self.A.T @ means
        scatter = self.B - (product + product.T) / 2
        return RealClassMoments(N=self.N, A=n[:, None] * means, B=scatter + (means.T * n) @ means)


@dataclass(frozen=True, eq=False, repr=False)
class WithinMoments(Moments):
    """Exact within-client moments, int64: N in records, L in 1 / ``COUNT_SCALE`` records, A and B in grid steps.

    Measure each client's records at once: moments of two parts add up as two clients.

    Attributes:
        clip_report: the clip's effect; stays with the client.

    Example:
        >>> schema = ps.WithinSchema(2, 2, clip_norm=4.0, pull=0.0, n_max=100)
        >>> moments = ps.measure(schema, [[2.0, 1.0], [3.0, 1.0]], [0, 1])
        >>> moments.N.tolist(), moments.real().B.tolist()  # the offset of the client is gone
        ([1, 1], [[0.5, 0.0], [0.0, 0.0]])
    """

    shown: ClassVar[tuple[str, ...]] = ("classes", "features")

    schema: WithinSchema
    N: NDArray[np.int64]
    L: NDArray[np.int64]
    A: NDArray[np.int64]
    B: NDArray[np.int64]
    clip_report: ClipReport | None = field(default=None, compare=False)

    @property
    def records(self) -> int:
        """Records measured. Private."""
        return int(self.N.sum())

    def real(self) -> RealWithinMoments:
        """Return the moments in real units."""
        return RealWithinMoments.of_sums(self.schema, self.wire())


def within_moments(schema: WithinSchema, plain: ClassMoments) -> WithinMoments:
    """Compute ``Q = sum z z' - (sum z)(sum z)' / (n + lambda)`` of one client, truncated toward zero.

    For ``lambda = 0``, a common shift of all rows by a grid vector leaves Q equal bit for bit. Products exceed 2**63,
    hence Python integers. Truncation adds at most one step per entry to the distance of two data sets.

    Args:
        plain: N, A and B of *all* records of the client.
    """
    N, A, B, records = plain.N, plain.A, np.asarray(plain.B), plain.records
    counts, total = np.diag(N), A.sum(axis=0)
    over = records + Fraction(schema.pull) * Fraction(max(records, schema.n_max), schema.n_max)
    if over == 0:
        return WithinMoments(schema, N, counts, A, B, plain.clip_report)  # no records: all sums are 0
    return WithinMoments(
        schema,
        N,
        L=moments.grid.less(counts, N, N, over, COUNT_SCALE),
        A=moments.grid.less(A, N, total, over),
        B=moments.grid.less(B, total, total, over),
        clip_report=plain.clip_report,
    )


# --- the two data sets that the certificate compares


def _crowd(schema: WithinSchema) -> tuple[Record, ...]:
    times, sign = many(schema), 0 if schema.nonnegative else -1
    return (record_of(first(schema, sign), times=times, cell=1),)


def _sums(schema: WithinSchema, records: Sequence[Record]) -> Sums:
    inner = ClassSchema(2, 2, "NAB", schema.clip_norm, schema.grid_bits)
    counts, sums, second = (part.astype(np.int64) for part in plain(records))
    return wire(within_moments(replace(bare(schema), classes=2, features=2), ClassMoments(inner, counts, sums, second)))
