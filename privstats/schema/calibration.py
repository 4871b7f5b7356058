"""The schema of a calibration: how often a published softmax is right, and how sure it is at eleven temperatures.

The last session of a course whose probabilities are to be trusted (``Rounds`` or ``Centred``, ``calibrated=True``).
Bounds and shapes only; the map from records to integers is in ``moments.calibration``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from privstats.schema.base import Schema
from privstats.schema.checks import GIVEN
from privstats.schema.classes import ClassSchema
from privstats.schema.gradients import check_widths, class_rows, settle_round
from privstats.schema.public_values import Values
from privstats.schema.statistic import Statistic, by_letter, letters_of
from privstats.transforms import Transform

__all__ = ["FACTORS", "CalibrationSchema"]

_TABLE: tuple[Statistic, ...] = (
    Statistic(
        "t",
        "pooled",
        ("temperature",),
        (0, 1),
        meaning="how much more often the model is right than it is sure, and how much surer eleven public factors on "
        "its scores make it",
    ),
)
"""Hits less confidence at the first of eleven temperatures, and the gains of confidence at the others."""

FACTORS = (0.3, 0.45, 0.65, 0.85, 1.0, 1.2, 1.5, 1.9, 2.5, 3.3, 4.5)
"""s_1 < ... < s_11: what the published scores are multiplied by; the temperatures are 1 / s."""


@dataclass(frozen=True)
class CalibrationSchema(Schema):
    """Hits and confidence of a softmax at published weights: t, eleven numbers.

    With ``u = (sqrt(1 - a^2) Mx / |Mx|, a)`` and ``P_i`` the largest probability of ``softmax(s_i W u)``, a record adds
    ``([right] - P_1, P_2 - P_1, ..., P_11 - P_10)``, where [right] is 1 if the largest score is that of its label.

    Guarantee:
        Unit one record. ``p <= P_1 <= ... <= P_11 <= 1`` with ``p = floor(2^f / C) / 2^f`` holds in whole numbers for
        *every* record and every M and W: the largest of C probabilities is at least 1 / C and grows with the factor,
        and the integers are made monotone after rounding. So the gains are not negative and add up to at most
        ``1 - P_1``, and their squares to at most ``(1 - P_1)^2``. Add-remove: ``|t|^2 <= ([right] - P_1)^2 +
        (1 - P_1)^2 <= max(1, 2 (1 - p)^2)``. Replace-one: ``([right] - [right]' + P_1' - P_1)^2 + (1 - P_1)^2 +
        (1 - P_1')^2 <= (2 - p)^2 + (1 - p)^2``: vectors without negative entries are no further apart than the root of
        their squares together, and the sum is convex in P_1 and P_1', so it is largest where both are p or 1. Source:
        the bound is the library's own (docs/sensitivity.md).

    Args:
        features, classes, expected_records, course_mu, clip_norm, nonnegative, transform, class_names, feature_names:
            as in :class:`GradientSchema`.
        grid_bits: f; 1 is 2**f steps long. Between 2 and 20.

    Raises:
        SchemaError: naming the field, its bound and the remedy.

    Example:
        >>> schema = ps.CalibrationSchema(3, classes=2, expected_records=1_000, course_mu=0.3)
        >>> schema.sizes, schema.needs  # what is summed, and the published values that the measurement reads
        ({'temperature': 11}, {'M': (3, 3), 'W': (2, 4)})
    """

    task: ClassVar[str] = "calibration"
    makes: ClassVar[str] = "how sure of itself the model that this study makes may be"
    no_persons: ClassVar[str] = ""
    table: ClassVar[tuple[Statistic, ...]] = _TABLE
    statistics: ClassVar[str] = letters_of(_TABLE)

    features: int = GIVEN
    classes: int = GIVEN
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
    def sizes(self) -> dict[str, int]:
        """How many temperatures."""
        return {"temperature": len(FACTORS)}

    @property
    def rows(self) -> ClassSchema:
        """How records are read, before the published map: as those of a class schema on a finer grid."""
        return class_rows(self, self.classes)

    @property
    def record(self) -> str:
        """One record, as a phrase for data owners."""
        return self.rows.record

    def scale_of(self, statistic: str) -> float:
        """Grid steps per real unit: 2**f."""
        return by_letter(self.table, statistic)[0].scale(1.0, float(self.steps))

    @property
    def needs(self) -> Mapping[str, tuple[int, ...]]:
        """M ``(d, d)`` and W ``(C, d + 1)``."""
        return {"M": (self.features, self.features), "W": (self.classes, self.features + 1)}

    def check_values(self, values: Mapping[str, Values]) -> None:
        """Refuse values of another shape, wider than 20 bits, tiny or enormous, before any record is read."""
        super().check_values(values)
        check_widths(values)

    def refusal(self, unit: str | None) -> str:
        """Why no plan may go without DP: chosen weights make one record alone count."""
        if unit is not None:
            return ""
        return (
            "a calibration cannot be released without differential privacy: weights can be chosen so that one record "
            "alone counts; give the plan a Privacy"
        )
