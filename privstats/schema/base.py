"""The base of all kinds of schema: rows, sizes, scales, bounds, and what a plan must give or promise for it.

The layout, the noise and the wire are derived from this alone, so a further kind is a subclass, a row in ``kinds`` and
its sums and sensitivity. The base is independent of the kinds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from privstats.errors import PlanError
from privstats.schema.statistic import Statistic, by_letter

if TYPE_CHECKING:
    from privstats.schema.public_values import Values
    from privstats.transforms import Transform

__all__ = ["Predicted", "Schema", "classes_of"]

Predicted: TypeAlias = Literal["classes", "ridge", "parties"]
"""What a model predicts: a class, or targets; ``"parties"``: a class, from one direction of each party."""


class Schema(ABC):
    """The bounds that every record obeys, as a frozen value; each kind is a dataclass.

    Attributes:
        task: the word for this kind in plan files.
        makes: what is made of its sums, as a phrase for an ethics board, whose page refuses a kind without one.
        table: the rows of its statistics.
        appended: how many of the ``features`` stand behind those that the transform gives, such as a target.
        predicts: what models from a release of it predict; None where no head is built from it alone.
        optional: letters of the statistics that a plan may leave out.
        suppressible: whether a release may leave rare classes out (``min_count``).
        whole_parties: whether a party is one record of it, however many records it holds.
        scores_head: whether its published values are a head, which no record that it measures may have made.
        finds_cuts: whether it counts declared columns whose cut points are open, to find them.
        no_persons: why no plan may promise one person with several rows; empty where its sums are sums over rows.
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
    @abstractmethod
    def record(self) -> str:
        """One record, as a phrase for data owners."""

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """Names of the classes: none, unless a kind has classes."""
        return None

    @property
    def site_groups(self) -> int:
        """How many groups of sites have sums of their own."""
        return 1

    @property
    def open_columns(self) -> tuple[str, ...]:
        """Declared columns whose cut points must be found before anything is measured under it."""
        if self.finds_cuts or not (self.transform and self.transform[0].reads_cells):
            return ()
        cells: Any = self.transform[0]
        return tuple(cells.open)

    @property
    def columns(self) -> str:
        """The columns beside labels and targets, as a phrase."""
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
        """Statistics that follow from the sent ones: none, unless a kind says otherwise."""
        return ""

    @property
    def needs(self) -> Mapping[str, tuple[int, ...]]:
        """Published values that a measurement reads, by name, and their shapes: none, unless a kind says otherwise."""
        return {}

    @property
    def among(self) -> tuple[int, ...] | None:
        """The clients whose sum alone may be unmasked: any, unless a kind follows an earlier sum."""
        return None

    @property
    def follows(self) -> Schema | None:
        """The schema of the earlier sum over the same clients: none, unless a kind follows one."""
        return None

    @property
    def followed(self) -> bool:
        """Whether later sums without noise must be over the same clients: no, unless a kind says otherwise."""
        return False

    @property
    def packages(self) -> tuple[str, ...]:
        """Optional packages that a measurement needs: none, unless a kind says otherwise."""
        return ()

    def check_values(self, values: Mapping[str, Values]) -> None:
        """Refuse published values that a measurement could not read, before any record is read.

        Raises:
            PlanError: a value is missing, unknown or of another shape; kinds add bounds of their own.
        """
        found = {name: value.integers.shape for name, value in values.items()}
        if found != dict(self.needs):
            wanted = ", ".join(f"{name} of shape {shape}" for name, shape in self.needs.items()) or "none"
            raise PlanError(f"the published values do not fit the schema, which reads {wanted}; publish these")

    def plain_fields(self) -> dict[str, Any]:
        """Fields that a plan file holds in another form than the value does: none, unless a kind says otherwise."""
        return {}

    def refusal(self, unit: str | None) -> str:  # noqa: ARG002  kinds read it
        """Why no plan may promise this unit ("record", "client", or None for no DP at all); empty where one may."""
        return ""

    def facts(self) -> list[str]:
        """What a reviewer is told of this kind beside what holds for all, one sentence each."""
        return []

    @property
    def steps(self) -> int:
        """Grid steps in the clip norm: 2**grid_bits, the integer radius of the ball every grid vector lies in."""
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
    """A label, as a phrase: out of all named classes, or out of so many."""
    return f"one of {classes} classes" if names is None else f"one of the classes {', '.join(names)}"
