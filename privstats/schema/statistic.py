"""The statistics of all schemas, one frozen row each: the one definition of every letter.

Shape, wire entries, scale, bound and default share are derived from a row. The sums are in ``moments`` (host and device
compute them differently), and the joint sensitivity, a property of a *set* of statistics, is in ``dp``.

Symmetric blocks are two segments. The diagonal and the strict upper triangle travel separately, because off-diagonal
noise has 1/sqrt 2 of the standard deviation. Scaling the triangle by sqrt 2, as one would on paper, has no exact
integer form.

S implies B and D. They are sums of entries of S, so a schema that asks for all of them sends S and derives the rest:
nothing is uploaded, noised or paid for twice.

Counts carry 2^12 grid steps per record, so that their noise is many steps wide like everyone else's. Their ring is
wide enough for all that honest clients can hold together (each at most ``max_records``), so they never wrap, and a
cohort that holds more than the plan admits is refused by its noisy counts; all other segments are sized for what that
check lets through. Ridge sums carry no count, so all their segments are sized for every client at its limit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal, TypeAlias

from privstats.errors import SchemaError

__all__ = [
    "BALANCE",
    "CALIBRATION_TABLE",
    "CLASS_TABLE",
    "COUNT_SCALE",
    "COUNT_TABLE",
    "EFFECT_TABLE",
    "GAUSSIAN_TABLE",
    "GRADIENT_TABLE",
    "HAZARD_TABLE",
    "INFLUENCES",
    "LOGISTIC_TABLE",
    "MEAN_TABLE",
    "PARTY_TABLE",
    "PARTY_UPDATE_TABLE",
    "POISSON_TABLE",
    "RATIO_TABLE",
    "RIDGE_TABLE",
    "SITE_TABLE",
    "TRIAL_TABLE",
    "WITHIN_TABLE",
    "Axis",
    "Cells",
    "Statistic",
    "by_letter",
    "letters_of",
]

Cells: TypeAlias = Literal["class", "pooled", "fold", "cell", "pull", "block"]
Axis: TypeAlias = Literal["class", "feature", "target", "temperature", "power"]

COUNT_SCALE = 1 << 12
"""Grid steps per record in a count, so that the noise on it is many steps wide."""


@dataclass(frozen=True)
class Statistic:
    """One kind of sum over records.

    Attributes:
        letter: its name in schemas, plans and releases.
        cells: what is summed apart: one block per ``"class"``, per ``"fold"``, per ``"cell"`` of count tables, per
            ``"pull"`` or group of sites, per ``"block"`` of a partition of records, or one block of all records.
        axes: the axes of a block, each as long as there are classes or temperatures, or as the ``"feature"`` or
            ``"target"`` vectors.
        powers: degree in the entries of the feature vector and of the target vector.
        symmetric: a block is a symmetric matrix, of which the diagonal and the strict upper triangle travel.
        share: its default part of mu^2; None: an equal part of what the others leave.
        implied_by: the letter that it is a sum of entries of, so that it is derived and never sent beside it.
        meaning: what is summed, as a phrase for data owners who are not statisticians. A letter may mean
            different sums in different tables, so every row has a phrase of its own.
        divided: its exact sums are quotients rather than whole steps, and are kept in wire steps.
    """

    letter: str
    cells: Cells
    axes: tuple[Axis, ...]
    powers: tuple[int, int]
    _: KW_ONLY
    meaning: str
    symmetric: bool = False
    share: float | None = None
    implied_by: str = ""
    divided: bool = False

    @property
    def degree(self) -> int:
        """Degree in all entries of a record; 0 for counts."""
        return sum(self.powers)

    @property
    def resolution(self) -> int:
        """Wire steps per grid step, and ``COUNT_SCALE`` per record in counts."""
        return 1 if self.degree else COUNT_SCALE

    @property
    def kept(self) -> int:
        """Wire steps per step of the exact sum as moments keep it."""
        return 1 if self.divided else self.resolution

    def block(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Shape of one block; ``sizes`` has the length of every axis and the number of every kind of cell."""
        return tuple(sizes[axis] for axis in self.axes)

    def blocks(self, sizes: Mapping[str, int]) -> int:
        """How many blocks there are."""
        return 1 if self.cells == "pooled" else sizes[self.cells]

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Shape of the sum as an array: blocks first, unless there is one of all records."""
        lead = () if self.cells == "pooled" else (self.blocks(sizes),)
        return (*lead, *self.block(sizes))

    def entries(self, sizes: Mapping[str, int]) -> int:
        """Numbers that a block is sent as: a symmetric one without its lower triangle."""
        whole = math.prod(self.block(sizes))
        return (whole + sizes[self.axes[0]]) // 2 if self.symmetric else whole

    def scale(self, features: float, targets: float = 1.0) -> float:
        """Wire steps per real unit, from the grid steps per unit of a feature and of a target."""
        return float(self.resolution) * (features ** self.powers[0] * targets ** self.powers[1])

    def bound(self, steps: int) -> int:
        """The most that a record of ``steps`` grid steps adds to one entry, in wire steps.

        Off the diagonal of a symmetric block it is half of that, because 2 |x_i x_j| <= x_i^2 + x_j^2.
        """
        return self.resolution * int(steps**self.degree)


CLASS_TABLE: tuple[Statistic, ...] = (
    Statistic("N", "class", (), (0, 0), meaning="how many records each class has", share=0.02),
    Statistic("A", "class", ("feature",), (1, 0), meaning="for each class, the sum of its feature vectors", share=0.85),
    Statistic(
        "B",
        "pooled",
        ("feature", "feature"),
        (2, 0),
        meaning="over all classes together, the sum of products of every two features",
        symmetric=True,
        implied_by="S",
    ),
    Statistic(
        "S",
        "class",
        ("feature", "feature"),
        (2, 0),
        meaning="for each class, the sum of products of every two features",
        symmetric=True,
    ),
    Statistic(
        "D",
        "class",
        ("feature",),
        (2, 0),
        meaning="for each class, the sum of squares of every feature",
        implied_by="S",
    ),
    Statistic("T", "class", ("feature",), (3, 0), meaning="for each class, the sum of cubes of every feature"),
    Statistic("F", "class", ("feature",), (4, 0), meaning="for each class, the sum of fourth powers of every feature"),
)
"""Counts, sums, second moments pooled, per class, their diagonals, and third and fourth powers, in wire order."""

GAUSSIAN_TABLE: tuple[Statistic, ...] = (
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
"""Records, sum of rows, covariances and covariance roots weighted by records, in wire order; see ``GaussianSchema``."""

WITHIN_TABLE: tuple[Statistic, ...] = (
    Statistic("N", "class", (), (0, 0), meaning="how many records each class has", share=0.02),
    Statistic(
        "L",
        "pooled",
        ("class", "class"),
        (0, 0),
        meaning="the counts of every two classes, less what each party's own mean explains",
        symmetric=True,
        share=0.05,
        divided=True,
    ),
    Statistic(
        "A",
        "class",
        ("feature",),
        (1, 0),
        meaning="for each class, the sum of its feature vectors, less what each party's own mean explains",
        share=0.8,
    ),
    Statistic(
        "B",
        "pooled",
        ("feature", "feature"),
        (2, 0),
        meaning="the sum of products of every two features, less what each party's own mean explains",
        symmetric=True,
    ),
)
"""Counts, and counts, sums and second moments less what each client's own offset explains, in wire order."""

RIDGE_TABLE: tuple[Statistic, ...] = (
    Statistic(
        "G",
        "fold",
        ("feature", "feature"),
        (2, 0),
        meaning="the sum of products of every two features",
        symmetric=True,
        share=0.5,
    ),
    Statistic(
        "h", "fold", ("feature", "target"), (1, 1), meaning="the sum of products of features and targets", share=0.48
    ),
    Statistic("q", "fold", (), (0, 2), meaning="the sum of squared targets", share=0.02),
)
"""Gram matrix, cross moments and target energy, in wire order."""


COUNT_TABLE: tuple[Statistic, ...] = (
    Statistic("T", "cell", (), (0, 0), meaning="how many records lie in each cell of every table"),
)
"""Counts of records per cell of all tables."""

SITE_TABLE: tuple[Statistic, ...] = (
    Statistic("N", "pooled", (), (0, 0), meaning="how many records there are", share=0.02),
    Statistic(
        "Q",
        "pull",
        ("feature", "feature"),
        (2, 0),
        meaning="the sum of products of every two columns, less what each site's own mean explains",
        symmetric=True,
    ),
)
"""Records, and second moments less what each site's own shrunk mean explains, per group and pull, in wire order."""

GRADIENT_TABLE: tuple[Statistic, ...] = (
    Statistic(
        "g",
        "pooled",
        ("target", "feature"),
        (1, 1),
        meaning="the sum of what each record would change in the model",
        share=0.99,
    ),
    Statistic(
        "k",
        "pooled",
        (),
        (0, 1),
        meaning="the sum of a number of at most 1 of each record, which sets the size of the step",
        share=0.01,
    ),
)
"""Sum of residuals times mapped rows, and the one number kappa that sets the step size, in wire order."""

CALIBRATION_TABLE: tuple[Statistic, ...] = (
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

MEAN_TABLE: tuple[Statistic, ...] = (
    Statistic("x", "pooled", ("feature",), (1, 0), meaning="the sum of all feature vectors"),
)
"""The sum of rows; see ``MeanSchema``."""

PARTY_TABLE: tuple[Statistic, ...] = (
    Statistic(
        "P",
        "pooled",
        ("class", "feature"),
        (0, 1),
        meaning="the sum of one vector of each party, at most 1 long, which points to what tells the classes apart",
    ),
)
"""One direction of each party, C x d numbers of norm 1 at most."""

PARTY_UPDATE_TABLE: tuple[Statistic, ...] = (
    replace(
        PARTY_TABLE[0],
        meaning="the sum of one vector of each party, at most 1 long: what its records would change in the weights "
        "that the plan publishes",
    ),
)
"""The same for updates of published weights."""

LOGISTIC_TABLE: tuple[Statistic, ...] = (
    Statistic(
        "g",
        "pooled",
        ("feature",),
        (1, 1),
        meaning="the sum of what each record would change in the model",
        share=0.591,
    ),
    Statistic(
        "H",
        "pooled",
        ("feature", "feature"),
        (2, 0),
        meaning="the sum of products of every two features, weighted by the variance of each predicted outcome",
        symmetric=True,
        share=0.409,
    ),
)
"""Score and information of a logistic regression; at these shares the information costs nothing beside the score."""

POISSON_TABLE: tuple[Statistic, ...] = (
    Statistic(
        "g", "pooled", ("feature",), (1, 1), meaning="the sum of what each record would change in the model", share=0.7
    ),
    Statistic(
        "H",
        "pooled",
        ("feature", "feature"),
        (2, 0),
        meaning="the sum of products of every two features, weighted by the variance of each predicted outcome",
        symmetric=True,
        share=0.3,
    ),
)
"""Score and information of a Poisson regression."""

HAZARD_TABLE: tuple[Statistic, ...] = (
    Statistic(
        "g",
        "pooled",
        ("feature",),
        (1, 1),
        meaning="the sum over persons of what each would change in the model, all its periods together",
        share=0.7,
    ),
    Statistic(
        "H",
        "pooled",
        ("feature", "feature"),
        (2, 0),
        meaning="the sum over persons and periods of products of every two columns, weighted by the variance of each "
        "predicted event",
        symmetric=True,
        share=0.3,
    ),
)
"""Score and information of grouped-time proportional hazards, in wire order; see ``HazardSchema``."""

_RECORDS = Statistic("N", "pooled", (), (0, 0), meaning="how many records there are", share=0.14)
_INFLUENCE = Statistic(
    "e",
    "pooled",
    ("power",),
    (0, 1),
    meaning="the sum of what each record says of the effect, in units of the most that one can say, and of what its "
    "square leaves of 1",
    share=0.86,
)

INFLUENCES = "efghijkl"
"""The letters of influence values on the first outcome of an effect, on the second, and so on."""

BALANCE = Statistic(
    "b",
    "pooled",
    ("feature",),
    (0, 1),
    meaning="the sum of the columns of the treated less those of the others, each record weighted for its arm",
    share=0.2,
)
"""Columns weighted by arm, in units of the most that one record can say."""

TRIAL_TABLE: tuple[Statistic, ...] = (_RECORDS, _INFLUENCE)
"""Records, and t and 1 - t^2 of each record's influence t on the effect of a randomised treatment, in wire order."""

EFFECT_TABLE: tuple[Statistic, ...] = (
    replace(_RECORDS, share=0.12),
    Statistic(
        "W",
        "pooled",
        (),
        (0, 1),
        meaning="the sum of the records' weights in the population that the effect is of",
        share=0.12,
    ),
    replace(_INFLUENCE, share=0.76),
)
"""The same of a treatment that nobody assigned, with the weights of the records."""

RATIO_TABLE: tuple[Statistic, ...] = (
    replace(_RECORDS, share=0.12),
    replace(
        _INFLUENCE,
        letter="W",
        meaning="the sum of what each record says of the mean outcome without treatment, in units of the most that one "
        "can say, and of what its square leaves of 1",
        share=0.12,
    ),
    replace(_INFLUENCE, share=0.76),
)
"""The same of a ratio, with what stands below its line."""


def letters_of(table: tuple[Statistic, ...]) -> str:
    """The letters of a table, in wire order."""
    return "".join(row.letter for row in table)


def by_letter(table: tuple[Statistic, ...], letters: str) -> tuple[Statistic, ...]:
    """The rows of ``table`` that ``letters`` names, in the order of ``letters``.

    Raises:
        SchemaError: a letter that the table does not have: nothing may be derived from an undefined statistic.
    """
    rows = {row.letter: row for row in table}
    unknown = "".join(letter for letter in letters if letter not in rows)
    if unknown:
        raise SchemaError(f"statistics has unknown letters {unknown!r}; use letters out of {''.join(rows)}")
    return tuple(rows[letter] for letter in letters)
