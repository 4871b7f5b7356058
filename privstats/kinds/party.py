"""Sum one clipped direction per party; sums add over parties, not over parts of one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import TYPE_CHECKING, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats import moments
from privstats.errors import DataError
from privstats.kinds.base import Kind
from privstats.kinds.classes import ClassSchema
from privstats.kinds.record_rows import class_rows
from privstats.kinds.worst import Record, WorstPair, added, dense, first, record_of
from privstats.moments.base import ExactClass, Moments, RealMoments
from privstats.records.reading import Labels
from privstats.schema.base import Adjacency, Predicted, Statistic, by_letter, letters_of
from privstats.schema.checks import REQUIRED, checked_vectors, settle
from privstats.schema.public_values import Values
from privstats.schema.rounds import ROW_BITS, check_exact, check_widths, settle_classes
from privstats.transforms import Transform

if TYPE_CHECKING:
    from privstats.moments.clip_report import ClipReport
    from privstats.records.opened import Opened

_TABLE: tuple[Statistic, ...] = (
    Statistic(
        "P",
        "pooled",
        ("class", "feature"),
        (0, 1),
        meaning="the sum of one vector of each party, of length at most 1, which points where the classes differ most",
    ),
)
"""One direction of each party, C x d numbers of norm 1 at most."""

_UPDATE_TABLE: tuple[Statistic, ...] = (
    replace(
        _TABLE[0],
        meaning="the sum of one vector of each party, of length at most 1: the change that its records would make to "
        "the published weights",
    ),
)
"""The same for updates of published weights."""


@dataclass(frozen=True)
class PartySchema(Kind):
    """One direction of each party: P, the sum of ``V_k``, C x d numbers, in which every party weighs the same.

    A party with rows X and one-hot labels Y descends from zero in thirty accelerated steps (:func:`direction`):
    ``W += C / e (Y - softmax(XW'))'X / n`` with ``e = sum |x|^2 / n``. The party sends W at length 1.
    ``heads.PartyDiscriminant`` reads the release. Rows are held in memory, four bytes a number.

    Guarantee:
        Unit one client, which counts as one record (``max_records_per_client=1``). ``|V|_F <= 2**f`` holds in integers
        for *every* set of records (:func:`shortened`). So mu = 1 / sigma for a party added or removed, and 2 / sigma
        for one exchanged; both are attained up to truncation. A party without records sends zeros. Source: the
        Gaussian mechanism on a vector clipped per party, as in DP-FedAvg (McMahan et al. 2018, arXiv:1710.06963);
        docs/proofs/parties.md. No promise covers one record: it may change its party's full direction.

    Args:
        classes: C, 2 to 8,192; labels are 0..C-1.
        features: d, after ``transform``, 2 to 65,536.
        clip_norm: norm to which rows are clipped; no bound rests on it.
        grid_bits: f, 2 to 20; a direction is 2**f steps long.
        nonnegative, transform, class_names, feature_names: as in :class:`ClassSchema`.

    Example:
        >>> schema = ps.PartySchema(2, 2)
        >>> one = ps.measure(schema, [[1.0, 0.0], [-1.0, 0.0]], [1, 0])
        >>> many = ps.measure(schema, [[1.0, 0.0], [-1.0, 0.0]] * 500, [1, 0] * 500)
        >>> one == many, one.real().P.round(2).tolist()  # a party of a thousand records weighs as much as one of two
        (True, [[-0.71, 0.0], [0.71, 0.0]])
    """

    # A changed direction needs another name here, because all parties of a plan must compute the same one.
    task: ClassVar[str] = "party-softmax"
    purpose: ClassVar[str] = (
        "a rule that distinguishes the classes, to which each party contributes one direction, as one vote"
    )
    table: ClassVar[tuple[Statistic, ...]] = _TABLE
    statistics: ClassVar[str] = letters_of(_TABLE)
    predicts: ClassVar[Predicted | None] = "parties"
    party_is_record: ClassVar[bool] = True
    proved: ClassVar[str] = "P"

    classes: int
    features: int = REQUIRED
    clip_norm: float = 1.0
    _: KW_ONLY
    grid_bits: int = 12
    nonnegative: bool = False
    transform: tuple[Transform, ...] = ()
    class_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        settle_classes(self)
        settle(self, **checked_vectors(self))
        check_exact(self)

    @property
    def goal(self) -> Labels:
        """What y holds."""
        return Labels.of(self.classes, self.class_names)

    @property
    def sizes(self) -> dict[str, int]:
        """Axis lengths."""
        return {"class": self.classes, "feature": self.features}

    @property
    def rows(self) -> ClassSchema:
        """The class schema, on a finer grid, that reads records."""
        return class_rows(self, self.classes)

    @property
    def record(self) -> str:
        """Description of one record."""
        return self.rows.record

    @property
    def clipping(self) -> str:
        """Explanation of a party's bounded weight."""
        return (
            "Then one direction is computed from all records of the party, at length 1, and truncated to steps of "
            f"{1 / self.grid_steps:.2g}: every party weighs the same, so that no record weighs more than its party."
        )

    @staticmethod
    def exact_direction(X: NDArray[np.float64], index: NDArray[np.intp], classes: int) -> NDArray[np.float64]:
        """Return the direction of one party's rows, without clip and noise, ``(C, d)``.

        Args:
            X: rows, ``(n, d)``, of any scale.
            index: labels 0..C-1, ``(n,)``.
        """
        rows = X / (np.abs(X).max() or 1.0)
        integers = np.rint(rows * (2.0**ROW_BITS / math.sqrt(X.shape[1])))
        starts = range(0, len(X), _BLOCK_ROWS)
        blocks = [(integers[at : at + _BLOCK_ROWS], index[at : at + _BLOCK_ROWS]) for at in starts]
        return direction(blocks, classes, X.shape[1])

    def scale_of(self, statistic: str) -> float:
        """Grid steps per real unit: 2**f."""
        return by_letter(self.table, statistic)[0].scale(1.0, float(self.grid_steps))

    def refusal(self, unit: str | None) -> str:
        """Return why no promise covers one record."""
        if unit != "record":
            return super().refusal(unit)
        return (
            "one record may change its party's direction completely, so a PartySchema promises parties: set "
            'unit="client" with max_records_per_client=1, or measure a ClassSchema for one record'
        )

    def move(self, weights: Mapping[str, float], adjacency: Adjacency) -> float:
        """Return mu^2: parties' vectors have norm at most 1, and opposed ones differ by 2."""
        return (1 if adjacency == "add-remove" else 4) * weights.get("P", 0.0)

    @classmethod
    def example(cls) -> Self:
        """Return a small schema of this kind."""
        return cls(3, 4)

    @classmethod
    def worst(cls) -> WorstPair:
        """Return the rule for two data sets that attain the bound."""
        return WorstPair(_pairs, added(lambda _, record: {("P", 0): dense(record["a"])}))

    @classmethod
    def containers(cls) -> tuple[ExactClass, type[RealMoments]]:
        """Return the classes of exact sums and of sums in real units."""
        return PartyMoments, RealPartyMoments

    def moments_of(self, records: Opened, values: Mapping[str, Values]) -> PartyMoments:
        """Compute one party's direction from all of its records; an update starts from the published W.

        Guarantee:
            Unit: one party. ``|P|_F <= 2**grid_bits`` in integers, for any records and any float64 error; zeros where
            the records are absent or all 0.
        """
        grid, grid_steps = moments.grid.feature_grid(self.rows), self.rows.grid_steps
        blocks, tally = [], moments.clip_report.ClipTally(self.features, grid_steps)
        for raw, labels in records.pieces():
            rows = np.empty((len(raw), self.features))
            result = grid.quantize(moments.grid.through_maps(self.reading, raw, grid) if self.transform else raw, rows)
            tally.add(result.norms, clipped=result.clipped, energy=result.energy)
            blocks.append((rows.astype(np.float32), labels.astype(np.intp)))  # integers below 2**24
        P = truncated(direction(blocks, self.classes, self.features, values.get("W")), self.grid_steps)
        report = tally.report()
        return PartyMoments(self, P, int(report.records > 0), clip_report=report)


@dataclass(frozen=True)
class PartyUpdateSchema(PartySchema):
    """The second direction of each party: P, the sum of parties' updates ``V_k`` to published weights W.

    A party descends from W, with scores ``W x / clip_norm``, and sends the change at length 1. ``PartyRounds`` chooses
    W.

    Guarantee:
        That of :class:`PartySchema`, for *every* W: the direction is clipped in integers after the descent. No plan may
        be without DP: two exact sums at chosen weights reveal more about a party than one.

    Example:
        >>> schema = ps.PartyUpdateSchema.of(ps.PartySchema(2, 2))
        >>> schema.needs  # the published values that the measurement reads
        {'W': (2, 2)}
        >>> from privstats.schema.public_values import Published, Values
        >>> start = Published.of({"W": Values.rounded([[-8.0, 0.0], [8.0, 0.0]])})
        >>> X, y = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], [1, 0, 1]  # W separates the first two, and not the third
        >>> ps.measure(schema, X, y, published=start).real().P.round(1).tolist()
        [[0.0, -0.7], [0.0, 0.7]]
    """

    task: ClassVar[str] = "party-update"
    purpose: ClassVar[str] = (
        "a step in which such a rule is improved, to which each party contributes one direction, as one vote"
    )
    needs_privacy: ClassVar[str] = (
        "an update cannot be released without differential privacy: two exact sums at chosen weights reveal more of "
        "a party than one; add a Privacy to the plan"
    )
    table: ClassVar[tuple[Statistic, ...]] = _UPDATE_TABLE
    proved: ClassVar[str] = "P"
    predicts: ClassVar[Predicted | None] = None

    @classmethod
    def of(cls, schema: PartySchema) -> PartyUpdateSchema:
        """Return the update schema."""
        return cls(**{each.name: getattr(schema, each.name) for each in fields(schema)})

    @property
    def needs(self) -> Mapping[str, tuple[int, ...]]:
        """W ``(C, d)``."""
        return {"W": (self.classes, self.features)}

    def check_values(self, values: Mapping[str, Values]) -> None:
        """Refuse malformed values, or entries of more than 20 bits."""
        super().check_values(values)
        check_widths(values)


# --- the sums

Block: TypeAlias = tuple[NDArray[np.floating], NDArray[np.intp]]
"""Some thousand rows of integers, ``(m, d)``, of norm at most 2**16, and their labels."""

_STEPS = 30  # fixed for every data set, never chosen from records (benchmarks/peers/numbers.md)

_WEIGHT_BITS = 18

_MAX = float(1 << 28)

_FACTOR_BITS = 32

_BLOCK_ROWS = 4096


def direction(blocks: Sequence[Block], classes: int, features: int, start: Values | None = None) -> NDArray[np.float64]:
    """Return the change of a softmax's weights after thirty steps, at length 1, ``(C, d)``; or zeros.

    Steps are Nesterov's (1983), without intercept or penalty. Their size C / e with ``e = sum |x|^2 / n`` makes them
    independent of row length and class count.

    Guarantee:
        Equal bits for equal records in any order and blocks, on any machine. Weights are integers of at most 2**28, so
        a logit of at most 65,536 features is a sum of integers below 2**53.

    Args:
        blocks: all rows of the party, in steps of 2**-16.
        start: initial weights ``(C, d)``, clipped to about +-2**10 for rows of norm 1; None: zero.

    Raises:
        DataError: more than 2**27 records.
    """
    began = np.zeros((classes, features))
    energy = sum(int(np.vdot(rows, rows)) for rows, _ in _as_floats(blocks))
    if not energy:
        return began
    records = sum(len(labels) for _, labels in blocks)
    exponent = _WEIGHT_BITS + (energy // records).bit_length() // 2
    if start is not None:
        began = np.clip(np.rint(np.ldexp(start.real, exponent - ROW_BITS)), -_MAX, _MAX)
    pace, weights, ahead = math.ldexp(float(classes), exponent - moments.gradient_map.PROBABILITY_BITS), began, began
    for step in range(_STEPS):
        before, weights = weights, ahead - np.rint(_gradient(blocks, ahead, exponent) / energy * pace)
        ahead = np.clip(weights + np.rint((weights - before) * (step / (step + 3))), -_MAX, _MAX)
    moved = classes * (weights - began) - (weights - began).sum(axis=0)  # C times (change - its mean over classes)
    length = math.sqrt(sum(entry**2 for entry in moved.astype(np.int64).ravel().tolist()))
    return np.asarray(moved / (length or 1.0))


def _gradient(blocks: Sequence[Block], weights: NDArray[np.float64], exponent: int) -> NDArray[np.int64]:
    total = moments.grid.ExactSum(weights.shape, 1 << (ROW_BITS + moments.gradient_map.PROBABILITY_BITS))
    for rows, labels in _as_floats(blocks):
        p = moments.gradient_map.probabilities(rows @ weights.T, exponent)
        p[np.arange(len(p)), labels] -= 1 << moments.gradient_map.PROBABILITY_BITS
        total.admit(len(rows))
        total.partial += p.T @ rows
    return total.result()


def _as_floats(blocks: Sequence[Block]) -> Iterator[tuple[NDArray[np.float64], NDArray[np.intp]]]:
    return ((rows.astype(np.float64), labels) for rows, labels in blocks)


@dataclass(frozen=True, eq=False)
class RealPartyMoments(RealMoments):
    """The sum P ``(C, d)`` in real units."""

    P: NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class PartyMoments(Moments):
    """The exact sum on the grid: P int64, ``(C, d)``.

    Attributes:
        records: number of parties with records.
        clip_report: the clip's effect on rows; stays with the party.
        published: digest of the start weights; empty for zero.

    Raises:
        DataError: another shape, or one party's direction longer than 1.
    """

    shown: ClassVar[tuple[str, ...]] = ("classes", "features")

    schema: PartySchema
    P: NDArray[np.int64]
    records: int | None = field(default=None, compare=False)
    clip_report: ClipReport | None = field(default=None, compare=False)
    published: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.records is not None and (type(self.records) is not int or self.records < 0):
            raise DataError(f"records must be an integer of at least 0, or None, got {self.records!r}")
        if self.records is not None and self.records <= 1 and _squared_length(self.P) > self.schema.grid_steps**2:
            raise DataError("P of one party must not be longer than 2**grid_bits; build it with measure()")

    def real(self) -> RealPartyMoments:
        """Return the sums in real units."""
        return RealPartyMoments.of_sums(self.schema, self.wire())


def truncated(V: NDArray[np.float64], grid_steps: int) -> NDArray[np.int64]:
    """Return ``V * grid_steps`` in integers, truncated toward zero and no longer than ``grid_steps``; NaN becomes 0.

    Guarantee:
        ``sum out**2 <= grid_steps**2`` holds exactly, in integers, for every float64 array.
    """
    integers = np.trunc(np.clip(np.nan_to_num(V), -1.0, 1.0) * grid_steps)
    return shortened(integers.astype(np.int64), grid_steps)


def shortened(ray: NDArray[np.int64], grid_steps: int) -> NDArray[np.int64]:
    """Clip an integer ray to the length ``grid_steps``, truncated toward zero.

    Guarantee:
        ``sum out**2 <= grid_steps**2`` holds exactly, for entries of at most ``grid_steps <= 2**20``. With
        t = floor(2**32 grid_steps / |ray|) an entry becomes at most ``|v| t / 2**32``.
    """
    square = _squared_length(ray)
    if square <= grid_steps**2:
        return ray
    factor = math.isqrt((grid_steps << _FACTOR_BITS) ** 2 // square)
    out: NDArray[np.int64] = np.sign(ray) * (np.abs(ray) * factor >> _FACTOR_BITS)
    return out


def _squared_length(ray: NDArray[np.int64]) -> int:
    maximum = max(int(ray.max()), -int(ray.min()))
    if maximum**2 * ray.size < 1 << 63:
        return int(np.vdot(ray, ray))
    return sum(entry**2 for entry in ray.ravel().tolist())


# --- the two data sets that the certificate compares


def _pairs(schema: PartySchema, _: Mapping[str, float]) -> list[tuple[Record, Record]]:
    return [(record_of([], a=first(schema)), record_of([], a=first(schema, -1)))]
