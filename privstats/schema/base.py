"""Define the base of all kinds of schema.

Layout, noise and wire follow from :class:`Statistic` rows. Noise off the diagonal has 1/sqrt 2 of the diagonal's
standard deviation (docs/proofs/sensitivity.md). So a symmetric block's diagonal and strict upper triangle are separate
segments. Counts have 2^12 wire steps per record, so that noise spans many steps. Ring widths: ``plan/cohort.py``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from privstats.errors import PlanError, SchemaError
from privstats.records.reading import Goal, Reading, Unread
from privstats.transforms.base import is_ours

if TYPE_CHECKING:
    from privstats.schema.public_values import Values
    from privstats.transforms import Transform


Adjacency: TypeAlias = Literal["add-remove", "replace-one"]
"""How two neighbouring data sets differ: one unit is added or removed, or one is replaced."""

Partition: TypeAlias = Literal["class", "pooled", "fold", "cell", "pull", "block"]
Axis: TypeAlias = Literal["class", "feature", "target", "temperature", "power", "exclusion"]

COUNT_SCALE = 1 << 12
"""Wire steps per record in a count, so that the noise's standard deviation is many steps."""


@dataclass(frozen=True)
class Statistic:
    """One kind of sum over records.

    Attributes:
        letter: name in plans and releases.
        partition: how blocks divide records: per ``"class"``, ``"fold"``, ``"cell"`` of count tables, ``"pull"`` (a
            lambda or a site group), ``"block"`` of records, or one ``"pooled"`` block.
        axes: axes of a block, with lengths in ``sizes``.
        powers: degrees in the feature and target vectors' entries.
        symmetric: only diagonal and strict upper triangle are sent.
        share: default part of mu^2 (``dp.default_shares``); None: an equal part of the remainder.
            Without a None the largest share has the remainder too.
        implied_by: letter of a statistic that determines this one, which is then unsent.
        meaning: phrase for data holders, specific to the table.
        divided: exact sums are quotients, so they are stored in wire steps, not grid steps.
    """

    letter: str
    partition: Partition
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
        """Degree in a record's entries; 0 for counts."""
        return sum(self.powers)

    @property
    def resolution(self) -> int:
        """Wire steps per grid step; ``COUNT_SCALE`` for counts."""
        return 1 if self.degree else COUNT_SCALE

    @property
    def factor(self) -> int:
        """Wire steps per stored step."""
        return 1 if self.divided else self.resolution

    def block(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return one block's shape."""
        return tuple(sizes[axis] for axis in self.axes)

    def blocks(self, sizes: Mapping[str, int]) -> int:
        """Return the number of blocks."""
        return 1 if self.partition == "pooled" else sizes[self.partition]

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return the array's shape, blocks first unless pooled."""
        lead = () if self.partition == "pooled" else (self.blocks(sizes),)
        return (*lead, *self.block(sizes))

    def entries(self, sizes: Mapping[str, int]) -> int:
        """Return the number of a block's sent entries: no symmetric lower triangle."""
        size = math.prod(self.block(sizes))
        return (size + sizes[self.axes[0]]) // 2 if self.symmetric else size

    def scale(self, features: float, targets: float = 1.0) -> float:
        """Return wire steps per real unit, from grid steps per unit of a feature and of a target."""
        return float(self.resolution) * (features ** self.powers[0] * targets ** self.powers[1])

    def bound(self, grid_steps: int) -> int:
        """Return b in wire steps: n records of ``grid_steps`` grid steps sum to at most n b in an entry.

        Off the diagonal of a symmetric block the maximum is half of this: 2 |x_i x_j| <= x_i^2 + x_j^2.
        """
        return self.resolution * int(grid_steps**self.degree)


INFLUENCES = "efghijkl"
"""Letters of an effect's influence values, one per outcome, in the order of the outcomes."""


def letters_of(table: tuple[Statistic, ...]) -> str:
    """Return a table's letters, in wire order."""
    return "".join(row.letter for row in table)


def by_letter(table: tuple[Statistic, ...], letters: str) -> tuple[Statistic, ...]:
    """Return rows in the order of ``letters``."""
    rows = {row.letter: row for row in table}
    unknown = "".join(letter for letter in letters if letter not in rows)
    if unknown:
        raise SchemaError(f"statistics has unknown letters {unknown!r}; use letters out of {''.join(rows)}")
    if len(set(letters)) < len(letters):
        raise SchemaError(f"statistics names a letter twice, got {letters!r:.80}; name each once")
    return tuple(rows[letter] for letter in letters)


Predicted: TypeAlias = Literal["classes", "ridge", "parties"]
"""A model's output: ``"classes"``; ``"ridge"``: targets; ``"parties"``: classes, from one vector per party."""

OUTCOME = "its outcome given the columns"
"""Values that exclusion must not depend on, where sums relate an outcome to columns. It may depend on the columns."""


class Schema(ABC):
    """The bounds that every record obeys, as a frozen value without data; each kind is a dataclass.

    Attributes:
        task: this kind's value of ``task`` in plan files.
        purpose: the sums' use, as a phrase on ethics pages.
        appended: how many of ``features`` follow the transform's outputs, such as a target.
        predicts: target of models from one release; None: no head.
        optional: letters that a plan may exclude.
        suppressible: whether ``min_count`` may exclude rare classes.
        party_is_record: whether a party is one record.
        scores_head: whether published values are a head; no measured record may have helped to train it.
        finds_cuts: whether columns may lack cut points, which this kind's counts choose.
        no_persons: why no plan may promise privacy per person; else empty.
        needs_privacy: why no plan may release exact sums; else empty.
        unstated: values that a plan file omits, where a new schema has another default.
        exact_warning: what exact sums reveal, as a warning to a privacy officer; may be empty.
        several_sessions: whether a plan's promise is divided among a course's sessions before any runs.
        levels_apart: whether ``Levels`` may be the first map without ``ByArm`` as the last.
        statements: names of the statements that clients can prove of these sums (``Prover.statements``).
        ignorable: what the exclusion of a record must not depend on, for estimates from the others to hold for all.

    Example:
        >>> schema = ps.RidgeSchema(2, clip_norm=2.0, target_bound=1.0)
        >>> isinstance(schema, ps.schema.Schema), schema.task, [statistic.letter for statistic in schema.sent]
        (True, 'ridge', ['G', 'h', 'q'])
    """

    task: ClassVar[str]
    purpose: ClassVar[str]
    appended: ClassVar[int] = 0
    predicts: ClassVar[Predicted | None] = None
    optional: ClassVar[str] = ""
    suppressible: ClassVar[bool] = False
    party_is_record: ClassVar[bool] = False
    scores_head: ClassVar[bool] = False
    finds_cuts: ClassVar[bool] = False
    no_persons: ClassVar[str] = "one person's contribution cannot be clipped where sums are not over rows"
    needs_privacy: ClassVar[str] = ""
    unstated: ClassVar[Mapping[str, Any]] = {}
    exact_warning: ClassVar[str] = ""
    several_sessions: ClassVar[bool] = False
    levels_apart: ClassVar[bool] = False
    statements: ClassVar[tuple[str, ...]] = ()
    ignorable: ClassVar[str] = "its values"

    if TYPE_CHECKING:  # the kinds have fields or properties of these names

        @property
        @abstractmethod
        def features(self) -> int:
            """Entries of the clipped vectors."""

        @property
        @abstractmethod
        def clip_norm(self) -> float:
            """R, the maximum norm of a clipped vector."""

        @property
        @abstractmethod
        def grid_bits(self) -> int:
            """f: a vector of norm R has 2**f steps."""

        @property
        @abstractmethod
        def nonnegative(self) -> bool:
            """Whether features are >= 0."""

        @property
        @abstractmethod
        def transform(self) -> tuple[Transform, ...]:
            """Public maps applied before clipping."""

        @property
        @abstractmethod
        def feature_names(self) -> tuple[str, ...] | None:
            """Names of the input columns."""

        @property
        @abstractmethod
        def table(self) -> tuple[Statistic, ...]:
            """Statistics of this kind."""

        @property
        @abstractmethod
        def statistics(self) -> str:
            """Sent letters, in wire order."""

    @cached_property
    def sent(self) -> tuple[Statistic, ...]:
        """The sent statistics, in wire order."""
        return by_letter(self.table, self.statistics)

    @property
    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """Axis lengths and cell counts."""

    @property
    def is_registered(self) -> bool:
        """Whether the registry of kinds has exactly this class; a subclass of a kind is none."""
        return False

    @property
    def checks_records(self) -> bool:
        """Whether the sums raise RecordError at a record that cannot be read; else they receive readable ones alone."""
        return True

    # averaged is unused here: kinds that override this method read it.
    def refuses_persons(self, *, averaged: bool) -> str:  # noqa: ARG002
        """Return why persons with several rows are refused; else empty."""
        return self.no_persons

    def scale_of(self, statistic: str) -> float:
        """Return wire steps per real unit of a statistic."""
        return by_letter(self.table, statistic)[0].scale(self.scale)

    @property
    def record(self) -> str:
        """Description of one record."""
        return self.columns

    @property
    @abstractmethod
    def goal(self) -> Goal:
        """What y holds."""

    @cached_property
    def reading(self) -> Reading:
        """What is read of each record."""
        appended, cuts = max(self.appended, 0), self.finds_cuts
        features = self.features - self.appended
        return Reading(features, self.transform, self.feature_names, self.goal, appended=appended, open_cells=cuts)

    @property
    def reads_any_record(self) -> bool:
        """Whether every record is readable, whatever its values."""
        reading = self.reading
        return reading.gaps_have_cells and len(reading.maps) == 1 and isinstance(reading.goal, Unread)

    @property
    def excludes_gaps(self) -> bool:
        """Whether a record with a gap is in no sum, under a promise or without one."""
        cells = self.reading.declaration
        return cells is not None and cells.missing is not None

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """Names of the classes, if any."""
        return None

    @property
    def site_groups(self) -> int:
        """Number of site groups."""
        return 1

    @property
    def open_columns(self) -> tuple[str, ...]:
        """Declared columns without cut points."""
        cells = self.reading.declaration
        return () if cells is None or self.reading.open_cells else tuple(cells.open)

    @property
    def columns(self) -> str:
        """Description of the input columns."""
        cells = self.reading.declaration
        if cells is not None:
            return f"the columns {', '.join(column.name for column in cells.columns)} of a table"
        width = self.features - self.appended
        return f"{width} numbers" if self.feature_names is None else f"the columns {', '.join(self.feature_names)}"

    @property
    def clipping(self) -> str:
        """Explanation of a record's bounded weight."""
        first = self.transform[0] if len(self.transform) == 1 else None
        if first is not None and first.reads_cells and is_ours(first) and self.clip_norm == 1.0:
            return "A record's row of cells has at most length 1, exactly and for any table, so no record weighs more."
        return (
            f"Then a record's vector is shortened to the length {self.clip_norm:g} if longer, so that no record weighs "
            f"more, and rounded to steps of {1 / self.scale:.2g}."
        )

    @property
    def derived(self) -> str:
        """Statistics that sent ones imply."""
        return ""

    @property
    def needs(self) -> Mapping[str, tuple[int, ...]]:
        """Shapes of needed published values, by name."""
        return {}

    @property
    def among(self) -> tuple[int, ...] | None:
        """The only clients over which the sum may be unmasked; None: any survivors."""
        return None

    @property
    def follows(self) -> Schema | None:
        """Schema of the earlier sum over the same clients, if any."""
        return None

    @property
    def followed(self) -> bool:
        """Whether later sums without noise must be over this sum's clients."""
        return False

    @property
    def packages(self) -> tuple[str, ...]:
        """Optional packages that measuring needs."""
        return ()

    def check_values(self, values: Mapping[str, Values]) -> None:
        """Refuse, before any record is read, published values that do not fit.

        Raises:
            PlanError: a missing, unknown or misshaped value.
        """
        result = {name: value.integers.shape for name, value in values.items()}
        if result != dict(self.needs):
            wanted = ", ".join(f"{name} of shape {shape}" for name, shape in self.needs.items()) or "none"
            raise PlanError(f"the published values do not fit the schema, which reads {wanted}; publish these")

    # The arguments are unused here: kinds that override this method read them.
    def refuses_cohort(
        self,
        clients: int,  # noqa: ARG002
        honest: int,  # noqa: ARG002
        *,
        promised: bool,  # noqa: ARG002
        clipped: bool,  # noqa: ARG002
        agrees: bool,  # noqa: ARG002
    ) -> str:
        """Return why sums of this kind are refused over such a cohort; else empty.

        Args:
            clients: number of clients.
            honest: minimum number of honest clients in an unmasked sum.
            promised: whether the plan has a promise.
            clipped: whether the promise has a ``client_clip``.
            agrees: whether clients see the list of survivors before the sum is unmasked.
        """
        return ""

    def longest(self, statistic: str) -> int | None:  # noqa: ARG002
        """Return one record's largest L1 length in a statistic, in wire steps; None: no pure epsilon covers it."""
        return None

    @property
    def column_facts(self) -> tuple[str, ...]:
        """Facts for a privacy officer on how columns are read."""
        return ()

    @property
    def facts(self) -> tuple[str, ...]:
        """Facts for a privacy officer on a plan of this kind."""
        return self.column_facts

    def plain_fields(self) -> dict[str, Any]:
        """Return fields in a plan file's form."""
        return {}

    def refusal(self, unit: str | None) -> str:
        """Return why no plan may promise this unit (None: no DP); empty if one may."""
        return self.needs_privacy if unit is None else ""

    @property
    def grid_steps(self) -> int:
        """Grid steps in the clip norm: 2**grid_bits."""
        return 1 << self.grid_bits

    @property
    def scale(self) -> float:
        """Grid steps per feature unit, s = 2**f / R."""
        return self.grid_steps / self.clip_norm

    def on_grid(self, value: float) -> float:
        """Return an entry of a row as sums hold it, rounded to the grid; at most the clip norm."""
        return round(min(max(value, -self.clip_norm), self.clip_norm) * self.scale) / self.scale

    @cached_property
    def bound(self) -> int:
        """b in grid steps: n records sum to at most n b in an entry; at least a record's squared norm."""
        return max(self.grid_steps**2, *(row.bound(self.grid_steps) // row.resolution for row in self.sent))


def classes_of(classes: int, names: tuple[str, ...] | None) -> str:
    """Return a phrase for a label."""
    return f"one of {classes} classes" if names is None else f"one of the classes {', '.join(names)}"
