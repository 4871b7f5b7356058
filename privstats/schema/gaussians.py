"""The schema of an alignment: a client's records as one Gaussian, then its part in the rounds to the barycentre.

It defines the joint contribution of a client's records and its bounds; ``moments`` computes the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

import numpy as np

from privstats.errors import PlanError, SchemaError
from privstats.schema.base import Schema
from privstats.schema.checks import GIVEN, checked_vectors, settle, whole
from privstats.schema.public_values import Values
from privstats.schema.statistic import Statistic
from privstats.transforms import Transform

__all__ = ["LEDOIT_WOLF", "MOST_ROUNDS", "GaussianSchema"]

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
        meaning="the root of each party's covariance as seen from the published reference, times its number of records",
        symmetric=True,
    ),
)
"""Records, sum of rows, covariances and covariance roots weighted by records, in wire order."""

LEDOIT_WOLF = "ledoit-wolf"
MOST_ROUNDS = 3
"""Sums of more rounds begin to reveal the contributions of single clients (docs/alignment.md)."""

_TOLERANCE = 2.0**-30  # of the largest value: the rounding error of published integers and of eigenvalues


@dataclass(frozen=True)
class GaussianSchema(Schema):
    """Client Gaussians for SLOT-Align: ``(n, sum x, n Sigma)``, and in rounds ``(n, n (S^1/2 Sigma S^1/2)^1/2)``.

    A course builds it (:class:`~privstats.course.Alignment`). Entries are bounded by n R^2 whatever S is, so the ring
    follows from public numbers; clients check the published S before any record is read.

    Args:
        features: dimension d of the vectors that are clipped (after ``transform``), at least 2.
        clip_norm: R, the Euclidean norm to which every vector is clipped.
        shrinkage: a number in [0, 1], the weight of the round covariance, the same for every client; or
            ``"ledoit-wolf"``, a weight that each client takes from its records, which no promise can cover.
        rounds: T, 1 to 3, fixed from the start.
        reference: this is a round, which reads the published S, ``(d, d)``.
        among: for a round without noise: the clients of the first sum, in order; only a sum over exactly these is
            unmasked.
        grid_bits, nonnegative, transform, feature_names: as in :class:`ClassSchema`.

    Raises:
        SchemaError: naming the field, its bound and the remedy.

    Example:
        >>> schema = ps.GaussianSchema(2, clip_norm=4.0, shrinkage=0.1, rounds=2)
        >>> moments = ps.measure(schema, [[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
        >>> moments.records, moments.real().V.round(2).tolist()
        (4, [[2.3, 0.0], [0.0, 7.7]])
    """

    task: ClassVar[str] = "gaussians"
    makes: ClassVar[str] = (
        "averages, and how columns vary together, by which the measurements of parties are made alike"
    )
    table: ClassVar[tuple[Statistic, ...]] = _TABLE

    features: int = GIVEN
    clip_norm: float = GIVEN
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
        settle(self, rounds=whole("rounds", self.rounds, 1, "two come near the barycentre"))
        if self.rounds > MOST_ROUNDS:
            raise SchemaError(
                f"rounds must be at most {MOST_ROUNDS}, got {self.rounds}: sums of more rounds begin to say which "
                "client gave what; two come near the barycentre"
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
    def sizes(self) -> dict[str, int]:
        """Length of the one axis."""
        return {"feature": self.features}

    @property
    def needs(self) -> Mapping[str, tuple[int, ...]]:
        """The reference S in a round."""
        return {"S": (self.features, self.features)} if self.reference else {}

    @property
    def follows(self) -> GaussianSchema | None:
        """The schema of the first sum, of a round."""
        return replace(self, reference=False, among=None) if self.reference else None

    @property
    def followed(self) -> bool:
        """Whether this is the first sum."""
        return not self.reference

    def check_values(self, values: Mapping[str, Values]) -> None:
        """Refuse an S that is not symmetric with 0 <= S <= R^2 I.

        Raises:
            PlanError: likewise for another shape.
        """
        super().check_values(values)
        if not self.reference:
            return
        whole_numbers, radius = values["S"].integers, self.clip_norm**2
        symmetric = np.array_equal(whole_numbers, whole_numbers.T)
        spectrum = np.linalg.eigvalsh(values["S"].real) if symmetric else np.array([-np.inf])
        if not -_TOLERANCE * radius <= spectrum[0] <= spectrum[-1] <= radius * (1 + _TOLERANCE):
            raise PlanError(
                "the published S is no covariance of rows of norm clip_norm: it must be symmetric with eigenvalues "
                "from 0 to clip_norm^2; refuse it, and ask who made it"
            )

    @property
    def record(self) -> str:
        """One record, as a phrase for data owners."""
        return self.columns

    def refusal(self, unit: str | None) -> str:
        """Why no promise covers one record: the matrices that are sent are functions of all records at once."""
        if unit == "record":
            return (
                "no useful bound is known for how far one record moves a client's covariance root, and with it the "
                'transport of all its records: give unit="client" with a client_clip, or NoPrivacy()'
            )
        if unit == "client" and self.shrinkage == LEDOIT_WOLF:
            return "Ledoit and Wolf's weight is taken from the records; under a promise give a public shrinkage"
        return ""


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
