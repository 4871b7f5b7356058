"""Measure a published softmax's hits, and its confidence at eleven temperatures.

The bits are equal in any batch, order and BLAS. An unreadable record counts as zero: no refusal depends on a record and
the published weights together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privstats import moments
from privstats.kinds.base import Kind
from privstats.kinds.classes import ClassSchema
from privstats.kinds.record_rows import class_rows
from privstats.kinds.worst import Record, WorstPair, added, dense, record_of
from privstats.moments.base import ExactClass, Moments, RealMoments, containers
from privstats.records.reading import Labels
from privstats.schema.base import Adjacency, Statistic, by_letter, letters_of
from privstats.schema.checks import REQUIRED
from privstats.schema.public_values import Values
from privstats.schema.rounds import AdaptiveSchema, settle_round
from privstats.transforms import Transform

if TYPE_CHECKING:
    from privstats.moments.grid import Ints
    from privstats.moments.record_sums import RecordTerms
    from privstats.records.opened import Opened

_TABLE: tuple[Statistic, ...] = (
    Statistic(
        "t",
        "pooled",
        ("temperature",),
        (0, 1),
        meaning="the model's accuracy minus its mean confidence, and the changes of that confidence when public "
        "factors multiply its scores",
    ),
)
"""Hits less confidence at the first of eleven temperatures, and the gains of confidence at the others."""

FACTORS = (0.3, 0.45, 0.65, 0.85, 1.0, 1.2, 1.5, 1.9, 2.5, 3.3, 4.5)
"""s_1 < ... < s_11: what the published scores are multiplied by; the temperatures are 1 / s."""


@dataclass(frozen=True)
class CalibrationSchema(AdaptiveSchema, Kind):
    """Hits and confidence of a softmax at published weights: t, eleven numbers.

    With ``u = (sqrt(1 - a^2) Mx / |Mx|, a)``, a = 0.1, and ``P_i`` the largest probability of ``softmax(s_i W u)``, a
    record adds
    ``([right] - P_1, P_2 - P_1, ..., P_11 - P_10)``; [right] is 1 if the largest score is its label's.

    Guarantee:
        Unit one record. ``p <= P_1 <= ... <= P_11 <= 1`` with ``p = floor(2^f / C) / 2^f`` holds in integers for
        *every* record, M and W: the largest of C probabilities is at least 1 / C and grows with the factor, and the
        integers are made monotone after rounding. So the gains are nonnegative with sum at most ``1 - P_1`` and sum of
        squares at most ``(1 - P_1)^2``. Add-remove:
        ``|t|^2 <= ([right] - P_1)^2 + (1 - P_1)^2 <= max(1, 2 (1 - p)^2)``. Replace-one:
        ``([right] - [right]' + P_1' - P_1)^2 + (1 - P_1)^2 + (1 - P_1')^2 <= (2 - p)^2 + (1 - p)^2``. The squared
        distance of nonnegative vectors is at most the sum of their squared lengths. The bound is convex in P_1 and
        P_1', so largest where each is p or 1. Source: the library's own (docs/proofs/rounds.md).

    Args:
        features, classes, expected_records, course_mu, clip_norm, nonnegative, transform, class_names, feature_names:
            as in :class:`GradientSchema`.
        grid_bits: f, 2 to 20; 1 is 2**f steps long.

    Example:
        >>> schema = ps.CalibrationSchema(3, classes=2, expected_records=1_000, course_mu=0.3)
        >>> schema.sizes, schema.needs  # what is summed, and the published values that the measurement reads
        ({'temperature': 11}, {'M': (3, 3), 'W': (2, 4)})
    """

    task: ClassVar[str] = "calibration"
    purpose: ClassVar[str] = "how sure of itself the model that this study makes may be"
    no_persons: ClassVar[str] = ""
    needs_privacy: ClassVar[str] = (
        "a calibration cannot be released without differential privacy: weights can be chosen so that one record "
        "alone counts; add a Privacy to the plan"
    )
    table: ClassVar[tuple[Statistic, ...]] = _TABLE
    statistics: ClassVar[str] = letters_of(_TABLE)
    proved: ClassVar[str] = "t"
    nearer: ClassVar[bool] = True

    features: int = REQUIRED
    classes: int = REQUIRED
    _: KW_ONLY
    expected_records: int
    course_mu: float
    clip_norm: float = 1.0
    grid_bits: int = 12
    nonnegative: bool = False
    transform: tuple[Transform, ...] = ()
    class_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        settle_round(self)

    @property
    def goal(self) -> Labels:
        """What y holds."""
        return Labels.of(self.classes, self.class_names)

    @property
    def sizes(self) -> dict[str, int]:
        """Number of temperatures."""
        return {"temperature": len(FACTORS)}

    @property
    def rows(self) -> ClassSchema:
        """The class schema, on a finer grid, that reads records."""
        return class_rows(self, self.classes)

    @property
    def record(self) -> str:
        """Description of one record."""
        return self.rows.record

    def scale_of(self, statistic: str) -> float:
        """Grid steps per real unit: 2**f."""
        return by_letter(self.table, statistic)[0].scale(1.0, float(self.grid_steps))

    @property
    def needs(self) -> Mapping[str, tuple[int, ...]]:
        """M ``(d, d)`` and W ``(C, d + 1)``."""
        return {"M": (self.features, self.features), "W": (self.classes, self.features + 1)}

    def move(self, weights: Mapping[str, float], adjacency: Adjacency) -> float:
        """Return mu^2 of one record (docs/proofs/rounds.md)."""
        rest = 1 - (self.grid_steps // self.classes) / self.grid_steps
        square = max(1.0, 2 * rest**2) if adjacency == "add-remove" else (1 + rest) ** 2 + rest**2
        return square * weights.get("t", 0.0)

    @classmethod
    def example(cls) -> Self:
        """Return a small schema of this kind."""
        return cls(4, 3, expected_records=100, course_mu=1.0)

    @classmethod
    def worst(cls) -> WorstPair:
        """Return the rule for two data sets that attain the bound."""
        return WorstPair(_pairs, added(lambda _, record: {("t", 0): dense(record["v"])}))

    @classmethod
    def containers(cls) -> tuple[ExactClass, type[RealMoments]]:
        """Return the classes of exact sums and of sums in real units."""
        return CalibrationMoments, RealCalibrationMoments

    def moments_of(self, records: Opened, values: Mapping[str, Values]) -> Moments:
        """Return the exact sums of a calibration.

        Guarantee:
            For all admitted values, every record adds integers as :class:`~privstats.CalibrationSchema` bounds them. A
            record with NaN or infinite entries adds nothing and is not in ``records``.
        """
        sums = moments.grid.sums_of(self, "t")
        count = 0
        for rows, labels in records.pieces():
            sums["t"].admit(len(rows))
            gains, fine = _mapped(self, rows, labels, values)
            sums["t"].partial += gains.sum(axis=0)
            count += int(np.count_nonzero(fine))
        return CalibrationMoments(self, sums["t"].result(), count)

    def terms_of(self, records: Opened, values: Mapping[str, Values]) -> RecordTerms:
        """Return each record's contribution."""
        several = records.pieces()
        return moments.record_sums.RecordTerms.joined(_added(self, rows, y_part, values) for rows, y_part in several)


# --- the sums


CalibrationMoments, RealCalibrationMoments = containers(
    "Calibration", CalibrationSchema, _TABLE, ("classes", "features"), "records", "published"
)


def _added(
    schema: CalibrationSchema, rows: NDArray[Any], labels: NDArray[Any], values: Mapping[str, Values]
) -> RecordTerms:
    gains, fine = _mapped(schema, rows, labels, values)
    return moments.record_sums.RecordTerms(fine, (moments.record_sums.Term({"t": (gains, None)}),), {})


def _mapped(
    schema: CalibrationSchema, rows: NDArray[Any], labels: NDArray[Any], values: Mapping[str, Values]
) -> tuple[Ints, NDArray[np.bool_]]:
    grid, fine = moments.rounds.grid_rows(schema.rows, rows)
    units = moments.gradient_map.unit_rows(schema, grid, values["M"])
    return calibration_map(schema, units[fine], labels[fine].astype(np.intp), values["W"]), fine


def calibration_map(schema: CalibrationSchema, unit: Ints, labels: NDArray[np.intp], W: Values) -> Ints:
    """Return records' contributions, integers ``(n, 11)``.

    Args:
        unit: :func:`~privstats.moments.gradient_map.unit_rows` of the published M, ``(n, d + 1)``.
        labels: ``(n,)``, 0..C-1.
        W: admitted published weights.
    """
    scores = unit @ W.integers.T.astype(np.float64)
    exponent, one = W.exponent + schema.grid_bits, float(schema.grid_steps)
    below = scores - scores.max(axis=1, keepdims=True)
    sure = np.empty((len(FACTORS) + 1, len(scores)))
    sure[0] = one * (scores.argmax(axis=1) == labels)
    for place, factor in enumerate(FACTORS, 1):
        numerators = moments.gradient_map.exponentials(below * factor, exponent)  # the largest is 2**40
        sure[place] = np.floor(numerators.max(axis=1) * one / numerators.sum(axis=1))
    np.maximum.accumulate(sure[1:], axis=0, out=sure[1:])  # a rounding cannot make a gain negative
    gains = np.diff(sure, axis=0).T
    gains[:, 0] *= -1
    return gains


# --- the two data sets that the certificate compares


def _pairs(schema: CalibrationSchema, _: Mapping[str, float]) -> list[tuple[Record, Record]]:
    rest = schema.grid_steps - schema.grid_steps // schema.classes
    pair = record_of([], v=[[0, rest], [1, rest]]), record_of([], v=[[0, -schema.grid_steps]])
    return [pair, pair[::-1]]
