"""The base of all kinds of schema: its statistics, their scales and bounds, and what a plan must give or promise.

The layout, the noise and the wire are derived from this alone, so a further kind is a subclass, a row in ``kinds`` and
its sums and sensitivity. The base is independent of the kinds.

A statistic is one frozen row, which defines its letter in the table of a kind. Shape, wire entries, scale, bound and
default share are derived from a row. The sums are in ``moments`` (host and device compute them differently), and the
joint sensitivity, a property of a *set* of statistics, is in the kind's file, where ``dp`` reads it.

Symmetric blocks are two segments. The diagonal and the strict upper triangle travel separately, because off-diagonal
noise has 1/sqrt 2 of the standard deviation. Scaling the triangle by sqrt 2, as one would on paper, has no exact
integer form.

S implies B and D. They are sums of entries of S, so a schema that asks for all of them sends S and derives the rest:
nothing is uploaded, noised or paid for twice.

Counts have 2^12 grid steps per record, so that their noise spans many steps, as in other statistics. The counts' ring
holds the records of all honest clients together (each at most ``max_records``), so counts never wrap, and a sum with
noisy counts above the plan's limit is refused. All other segments are sized for the largest sum that passes this
check. Ridge sums carry no count, so all their segments are sized for every client at its limit.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from privstats.errors import PlanError, SchemaError

if TYPE_CHECKING:
    from privstats.schema.public_values import Values
    from privstats.transforms import Transform


Adjacency: TypeAlias = Literal["add-remove", "replace-one"]
"""How two neighbouring data sets differ: one unit is added or removed, or one is replaced."""

Cells: TypeAlias = Literal["class", "pooled", "fold", "cell", "pull", "block"]
Axis: TypeAlias = Literal["class", "feature", "target", "temperature", "power", "exclusion"]

COUNT_SCALE = 1 << 12
"""Grid steps per record in a count, so that the noise on it is many steps wide."""


@dataclass(frozen=True)
class Statistic:
    """One kind of sum over records.

    Attributes:
        letter: its name in schemas, plans and releases.
        cells: the partition of the sums: one block per ``"class"``, per ``"fold"``, per ``"cell"`` of count tables, per
            ``"pull"`` or group of sites, per ``"block"`` of a partition of records, or one block of all records.
        axes: the axes of a block, each as long as there are classes or temperatures, or as the ``"feature"`` or
            ``"target"`` vectors.
        powers: degree in the entries of the feature vector and of the target vector.
        symmetric: a block is a symmetric matrix; its diagonal and strict upper triangle are sent.
        share: the default part of mu^2; None: an equal part of the remainder.
        implied_by: the letter of another statistic with entries that add up to this one, which is then never sent.
        meaning: the sum, as a phrase for data owners who are not statisticians. A letter may mean different sums in
            different tables, so every row has its own phrase.
        divided: the exact sums are quotients rather than integer steps, and are stored in wire steps.
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
    def factor(self) -> int:
        """Wire steps per step of the exact sum as moments store it."""
        return 1 if self.divided else self.resolution

    def block(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Shape of one block; ``sizes`` has the length of every axis and the number of every kind of cell."""
        return tuple(sizes[axis] for axis in self.axes)

    def blocks(self, sizes: Mapping[str, int]) -> int:
        """Return the number of blocks."""
        return 1 if self.cells == "pooled" else sizes[self.cells]

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Shape of the sum as an array: blocks first, unless there is one of all records."""
        lead = () if self.cells == "pooled" else (self.blocks(sizes),)
        return (*lead, *self.block(sizes))

    def entries(self, sizes: Mapping[str, int]) -> int:
        """Numbers that a block is sent as: a symmetric one without its lower triangle."""
        size = math.prod(self.block(sizes))
        return (size + sizes[self.axes[0]]) // 2 if self.symmetric else size

    def scale(self, features: float, targets: float = 1.0) -> float:
        """Wire steps per real unit, from the grid steps per unit of a feature and of a target."""
        return float(self.resolution) * (features ** self.powers[0] * targets ** self.powers[1])

    def bound(self, steps: int) -> int:
        """Return the most that a record of ``steps`` grid steps adds to one entry, in wire steps.

        Off the diagonal of a symmetric block it is half of that, because 2 |x_i x_j| <= x_i^2 + x_j^2.
        """
        return self.resolution * int(steps**self.degree)


INFLUENCES = "efghijkl"
"""The letters of influence values on the first outcome of an effect, on the second, and so on."""


def letters_of(table: tuple[Statistic, ...]) -> str:
    """Return the letters of a table, in wire order."""
    return "".join(row.letter for row in table)


def by_letter(table: tuple[Statistic, ...], letters: str) -> tuple[Statistic, ...]:
    """Return the rows of ``table`` that ``letters`` names, in the order of ``letters``.

    Raises:
        SchemaError: a letter that the table does not have: nothing may be derived from an undefined statistic.
    """
    rows = {row.letter: row for row in table}
    unknown = "".join(letter for letter in letters if letter not in rows)
    if unknown:
        raise SchemaError(f"statistics has unknown letters {unknown!r}; use letters out of {''.join(rows)}")
    return tuple(rows[letter] for letter in letters)


Predicted: TypeAlias = Literal["classes", "ridge", "parties"]
"""What a model predicts: a class, or targets; ``"parties"``: a class, from one direction of each party."""


class Schema(ABC):
    """The bounds that every record obeys, as a frozen value; each kind is a dataclass.

    Attributes:
        task: the word for this kind in plan files.
        makes: the results from the sums, as a phrase for an ethics board; its page refuses a kind without one.
        table: the rows of its statistics.
        appended: number of ``features`` after those of the transform, such as a target.
        predicts: the target of models from one release; None where no head is built from the release alone.
        optional: letters of the statistics that a plan may exclude.
        suppressible: whether a release may exclude rare classes (``min_count``).
        whole_parties: whether a party is one record, however many records it holds.
        scores_head: whether the published values are a head; no measured record may have helped to train it.
        finds_cuts: whether the schema counts declared columns with open cut points, to choose them.
        no_persons: why no plan may promise one person with several rows; empty where the sums are sums over rows.
        needs_privacy: why no plan may release exact sums; empty where one may.
        features, clip_norm, grid_bits, nonnegative, transform, feature_names, statistics: as in the kinds.

    Example:
        >>> schema = ps.RidgeSchema(2, clip_norm=2.0, target_bound=1.0)
        >>> isinstance(schema, ps.schema.Schema), schema.task, [statistic.letter for statistic in schema.sent]
        (True, 'ridge', ['G', 'h', 'q'])
    """

    task: ClassVar[str]
    makes: ClassVar[str] = ""
    appended: ClassVar[int] = 0
    predicts: ClassVar[Predicted | None] = None
    optional: ClassVar[str] = ""
    suppressible: ClassVar[bool] = False
    whole_parties: ClassVar[bool] = False
    scores_head: ClassVar[bool] = False
    finds_cuts: ClassVar[bool] = False
    no_persons: ClassVar[str] = "no sum of a person's rows can be shortened where the sums are no sums over rows"
    needs_privacy: ClassVar[str] = ""

    if TYPE_CHECKING:  # fields of the kinds, or properties of theirs

        @property
        @abstractmethod
        def features(self) -> int:
            """Entries of the vectors that are clipped (after ``transform``)."""

        @property
        @abstractmethod
        def clip_norm(self) -> float:
            """R, their largest norm."""

        @property
        @abstractmethod
        def grid_bits(self) -> int:
            """f; a vector of norm R is 2**f grid steps long."""

        @property
        @abstractmethod
        def nonnegative(self) -> bool:
            """Whether features are known to be >= 0."""

        @property
        @abstractmethod
        def transform(self) -> tuple[Transform, ...]:
            """Public maps applied before clipping."""

        @property
        @abstractmethod
        def feature_names(self) -> tuple[str, ...] | None:
            """Names of the columns that come in."""

        @property
        @abstractmethod
        def table(self) -> tuple[Statistic, ...]:
            """The rows of its statistics."""

        @property
        @abstractmethod
        def statistics(self) -> str:
            """Letters of what is sent, in wire order."""

    @property
    def sent(self) -> tuple[Statistic, ...]:
        """The rows of the statistics that are sent, in wire order."""
        return by_letter(self.table, self.statistics)

    @property
    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """Length of every axis and number of every kind of cell."""

    def refuses_persons(self, *, averaged: bool) -> str:  # noqa: ARG002  kinds read it
        """Why persons with several rows are refused, averaged or clipped; empty where they are not."""
        return self.no_persons

    def scale_of(self, statistic: str) -> float:
        """Wire steps per real unit of a statistic (counts carry ``COUNT_SCALE``)."""
        return by_letter(self.table, statistic)[0].scale(self.scale)

    @property
    def record(self) -> str:
        """One record, as a phrase for data owners."""
        return self.columns

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """Names of the classes: none, unless a kind has classes."""
        return None

    @property
    def site_groups(self) -> int:
        """The number of groups of sites with separate sums."""
        return 1

    @property
    def open_columns(self) -> tuple[str, ...]:
        """Declared columns with cut points to choose before anything is measured under the schema."""
        if self.finds_cuts or not (self.transform and self.transform[0].reads_cells):
            return ()
        cells: Any = self.transform[0]
        return tuple(cells.open)

    @property
    def columns(self) -> str:
        """The columns other than labels and targets, as a phrase."""
        if self.transform and self.transform[0].reads_cells:
            cells: Any = self.transform[0]
            return f"the columns {', '.join(column.name for column in cells.columns)} of a table"
        width = self.features - self.appended
        return f"{width} numbers" if self.feature_names is None else f"the columns {', '.join(self.feature_names)}"

    @property
    def clipping(self) -> str:
        """The sentence that explains the bound on a record's weight."""
        if len(self.transform) == 1 and self.transform[0].reads_cells and self.clip_norm == 1.0:
            return "Its row of cells has length 1 whatever the table holds, in whole numbers, so no record weighs more."
        return (
            f"Then it is shortened to the length {self.clip_norm:g} where it is longer, so that no record weighs more, "
            f"and rounded to steps of {1 / self.scale:.2g}."
        )

    @property
    def derived(self) -> str:
        """Statistics that follow from the sent ones; by default none."""
        return ""

    @property
    def needs(self) -> Mapping[str, tuple[int, ...]]:
        """Shapes of the published values that a measurement reads, by name; by default none."""
        return {}

    @property
    def among(self) -> tuple[int, ...] | None:
        """The clients that an unmasked sum must be over; by default None: any clients."""
        return None

    @property
    def follows(self) -> Schema | None:
        """The schema of the earlier sum over the same clients: none, unless a kind follows one."""
        return None

    @property
    def followed(self) -> bool:
        """Whether later sums without noise must be over the same clients; by default False."""
        return False

    @property
    def packages(self) -> tuple[str, ...]:
        """Optional packages that a measurement needs; by default none."""
        return ()

    def check_values(self, values: Mapping[str, Values]) -> None:
        """Refuse published values that a measurement could not read, before any record is read.

        Raises:
            PlanError: a value is missing, unknown or of another shape; kinds add bounds of their own.
        """
        result = {name: value.integers.shape for name, value in values.items()}
        if result != dict(self.needs):
            wanted = ", ".join(f"{name} of shape {shape}" for name, shape in self.needs.items()) or "none"
            raise PlanError(f"the published values do not fit the schema, which reads {wanted}; publish these")

    def plain_fields(self) -> dict[str, Any]:
        """Fields that a plan file stores in another form than the value does; by default none."""
        return {}

    def refusal(self, unit: str | None) -> str:
        """Why no plan may promise this unit ("record", "client", or None for no DP at all); empty where one may."""
        return self.needs_privacy if unit is None else ""

    @property
    def steps(self) -> int:
        """Grid steps in the clip norm: 2**grid_bits, the integer radius of the ball of all grid vectors."""
        return 1 << self.grid_bits

    @property
    def scale(self) -> float:
        """Grid steps per feature unit, s = 2**f / R."""
        return self.steps / self.clip_norm

    @property
    def bound(self) -> int:
        """The most that one record adds to any exact sum or to the square of its norm, in grid steps."""
        return max(self.steps**2, *(row.bound(self.steps) // row.resolution for row in self.sent))


def classes_of(classes: int, names: tuple[str, ...] | None) -> str:
    """Return a phrase for a label: out of the named classes, or out of their number."""
    return f"one of {classes} classes" if names is None else f"one of the classes {', '.join(names)}"
