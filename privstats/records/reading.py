"""Define what is read of each record, before anything is clipped or summed.

A schema states its :class:`Reading`. The readers of records know this value, and no kind of schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from privstats.intake.columns import Listed
from privstats.transforms.base import Transform, input_features, output_features

if TYPE_CHECKING:
    from privstats.intake.declared.columns import Column
    from privstats.transforms import Cells, Levels

Unreadable: TypeAlias = Literal["refuse", "leave out"]
"""How a record that cannot be read is treated: by an error, or excluded with a warning."""


@dataclass(frozen=True)
class Labels:
    """y holds a label per record.

    Attributes:
        classes: the valid labels: class names, or 0..C-1.
    """

    classes: tuple[str, ...] | range

    @classmethod
    def of(cls, classes: int, names: tuple[str, ...] | None) -> Self:
        """Build from the number of classes and their names, if they have any."""
        return cls(range(classes) if names is None else names)


@dataclass(frozen=True)
class Targets:
    """y holds real numbers.

    Attributes:
        width: numbers per record.
        gaps: whether a record without its target is readable.
        names: names of the targets, for messages; empty where the plan has none.
    """

    width: int = 1
    gaps: bool = False
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unread:
    """No entry of y is read, only its length."""


Goal: TypeAlias = Labels | Targets | Unread
"""What y holds."""


@dataclass(frozen=True)
class Reading:
    """What is read of each record.

    Attributes:
        features: entries of a record's row after the maps.
        maps: public maps, in order.
        names: X's columns, in the order to which a frame is sorted; None: as given.
        goal: what y holds.
        appended: entries that follow the row in the schema's vectors, such as a target.
        columns: columns that are read by name, without y; empty: X and y are read.
        batches: whether records may come in batches.
        open_cells: whether declared columns may lack cut points.

    Example:
        >>> schema = ps.ClassSchema(2, 3, "NA", clip_norm=1.0, transform=(ps.transforms.ConstantFeature(1.0),))
        >>> reading = schema.reading
        >>> reading.features, reading.inputs, reading.goal
        (3, 2, Labels(classes=range(0, 2)))
    """

    features: int
    maps: tuple[Transform, ...]
    names: tuple[str, ...] | None
    goal: Goal
    appended: int = 0
    columns: tuple[str, ...] = ()
    batches: bool = True
    open_cells: bool = False

    @property
    def inputs(self) -> int:
        """Number of X's columns."""
        return input_features(self.maps, self.features)

    def outputs(self, columns: int) -> int | None:
        """Return the number of features that the maps make of X's columns; None where open.

        Raises:
            SchemaError: the maps do not accept so many columns.
        """
        return output_features(self.maps, columns)

    @property
    def width(self) -> int:
        """Entries of y per record."""
        return self.goal.width if isinstance(self.goal, Targets) else 1

    @cached_property
    def declaration(self) -> Cells | None:
        """The declared columns, if any."""
        first: Any = self.maps[0] if self.maps else None
        return first if first is not None and first.reads_cells else None

    @cached_property
    def declared(self) -> tuple[Column, ...]:
        """The columns of declared cells; empty without any."""
        return () if self.declaration is None else self.declaration.columns

    @cached_property
    def gaps_have_cells(self) -> bool:
        """Whether columns are declared in which every value has a cell, a gap too."""
        return self.declaration is not None and not self.declaration.missing

    @cached_property
    def levels(self) -> Levels | None:
        """The declared texts that count as 0 and 1, if any."""
        first: Any = self.maps[0] if self.maps else None
        return first if first is not None and first.kind == "levels" else None

    @property
    def source(self) -> Cells | tuple[str, ...] | None:
        """The columns to read from a file: declared ones, or names; None: all."""
        return self.declaration or self.names

    @cached_property
    def words(self) -> frozenset[str]:
        """Words that elsewhere mean a gap, and that declared texts or class names list as values."""
        declared = () if self.levels is None else (*self.levels.columns, *self.levels.outcomes)
        classes = self.goal.classes if isinstance(self.goal, Labels) else ()
        names = () if isinstance(classes, range) else classes
        return frozenset[str]().union(Listed.of(names).words, *(each.words for each in declared))

    @cached_property
    def listed_words(self) -> frozenset[str]:
        """The words of :attr:`words`, and those that declared cells list."""
        return self.words.union(*(each.words for each in self.declared))
