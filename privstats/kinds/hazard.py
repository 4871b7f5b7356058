"""Sum the score and information of grouped-time proportional hazards, one row per person.

The bits are equal in any batch, order and BLAS. A person counts fully or as zero: no error depends on a person and the
published weights together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from privstats import moments
from privstats.errors import PlanError, RecordError, SchemaError
from privstats.intake.columns import Readings
from privstats.intake.declared.categories import Categories
from privstats.intake.meaning import listed
from privstats.kinds.base import Kind
from privstats.kinds.column_facts import number_facts
from privstats.kinds.counts import CountSchema
from privstats.kinds.late_entry import LateEntry
from privstats.kinds.score import SQUARE, Errors, checked_errors, errors_facts, within_length
from privstats.kinds.subdistribution import cells_of, check_ratios, check_staying, staying_parts
from privstats.kinds.worst import ONE, Record, WorstPair, added, of_score, record_of
from privstats.moments.base import ExactClass, Moments, RealMoments, containers
from privstats.progress import progress_bar
from privstats.records.cells import cells_in, gaps_in, require_cells
from privstats.records.emptied import ListedColumn, listed_columns
from privstats.records.reading import Reading, Unread
from privstats.records.reasons import GAP, NO_CELL, WORD, Why, no_number, spelled
from privstats.records.variables import Bins, Variable, plain_variable, variable_of
from privstats.schema.base import Adjacency, Statistic, letters_of
from privstats.schema.checks import REQUIRED, as_int, checked_vectors, settle, size
from privstats.schema.public_values import Values
from privstats.schema.rounds import AdaptiveSchema
from privstats.transforms import ConstantFeature, Transform, steps_of

if TYPE_CHECKING:
    from privstats.moments.clip_report import ClipTally
    from privstats.moments.grid import Ints
    from privstats.records.opened import Opened

# fmt: off
_TABLE: tuple[Statistic, ...] = (
    Statistic("g", "pooled", ("feature",), (1, 1), share=0.7,
        meaning="the sum of the change that each person would make to the model, over all periods"),
    Statistic("H", "pooled", ("feature", "feature"), (2, 0), symmetric=True, share=0.3,
        meaning="the sum over persons and periods of products of every two columns, weighted by the variance of each "
        "predicted event"),
)
"""Score and information of grouped-time proportional hazards, in wire order."""

_ROBUST: tuple[Statistic, ...] = (
    replace(_TABLE[0], share=0.665), replace(_TABLE[1], share=0.285),
    replace(SQUARE, meaning="the sum of products of every two entries of the change that each person would make"),
)
"""The same with the score's second moment over persons."""
# fmt: on

CAP = 1.0  # M, the cumulative hazard up to which a person is followed
_MAX_BINS = 256
# Sums of products of row entries and 20-bit weights are exact in float64.
_MAX_FEATURES = 1 << 12
_EVENTS_PER_BIN = 10
_MAX_STRATA = 4
_CELLS_PER_BIN = 4  # count cells per bin of continuous times
PART_BITS = 16  # bits of f, a bin's observed part; f times a hazard is exact in float64


@dataclass(frozen=True)
class HazardSchema(AdaptiveSchema, Kind):
    """Score and information of proportional hazards in bins of time, at published weights w.

    P(event in bin j | at risk) = 1 - exp(-mu_j), mu_j = exp(w'u_j); u_j is a person's row with the constant in bin j's
    column. At risk in a bin, a person adds r u_j and v u_j u_j', with v = mu_j rho, ``rho = mu_j / (exp(mu_j) - 1)``,
    and r = rho at the event, else -mu_j. With continuous times, a person may be censored after the part f of a bin's
    hazard (published clock c). In that bin ``r = -rho (exp(f mu_j) - 1)``, so ``|r| <= f mu_j``, and
    ``v = mu_j rho (1 - (1 - f) exp(f mu_j))``. ``exp`` of a column's weight is the continuous model's hazard ratio, for
    any bins. A course builds the rounds (:class:`~privstats.course.Hazard`).

    With an ``entry`` a person is at risk from it on. Hazards of earlier bins are 0, and that of the entry's bin is its
    remaining part p mu_j; p is 1 minus the clock's part before the entry, and 0 at discrete times.

    With ``ratios="subdistribution"`` a person with another cause stays at risk until the last bin, with the weight of
    who would not have left by then (Fine and Gray 1999): hazards after the person's time are those parts of mu_j that
    published G gives, the share of persons who have not left by the middle of each cell.

    A person is censored before the first bin where the published cumulative hazard would pass 1. This depends on
    columns and weights alone, so the censoring is not informative, for any w.

    Args:
        features: dimension of the rows after ``transform``, the constant included.
        clip_norm: R, the norm to which rows with their constant are clipped.
        bins: times from 0 on; persons observed beyond the last edge are censored there.
        event: column of 1 (event) and 0 (censored), or of texts that a first :class:`~privstats.transforms.Levels`
            declares: the second is the event, further texts are causes that censor, and ratios are cause-specific.
        feature_names: columns without ``bins.name`` and ``event``.
        transform: public maps; the last is a :class:`~privstats.transforms.ConstantFeature` of at most R / sqrt 2.
        cap: M, the cumulative hazard up to which a person counts; 1.
        expected_events: a public guess, at least ten per bin and stratum.
        times: ``"continuous"``, or ``"discrete"`` where a bin is one visit. f is 1 for discrete times, and
            where ``times`` is None (old plans).
        time_unit: the unit to which your times are rounded down. f adds half of it to exits, and p to entries above 0:
            an entry of 0 is the origin itself.
        strata: a column of two to four declared values, each with its own bin weights and clock (stratified Cox model);
            it has no ratio.
        entry: a column of the times at which persons enter (left truncation), in the unit of ``bins``; needs ``times``.
            At discrete times a person is at risk from the visit after the entry, so nobody is at risk in the first bin:
            number visits from 1, and enter 0 for a person who is there from the start. A person who leaves before the
            entry, at its time or at its visit is never at risk, and is unreadable. None: everyone is at risk from 0 on.
            The counts then have a second table, of entries.
        errors: ``"robust"`` (default): also sum J, the second moment of persons' scores, at 5 % of the budget.
            Intervals then hold for the ratio that the rounds estimate, also where hazards are not proportional.
            ``"model"``: errors assume proportional hazards. A plan file without ``errors`` means ``"model"``.
        ratios: ``"subdistribution"``: ratios of the rate of the event among persons without it, whatever else happened
            to them (Fine and Gray); they follow how often the event happens. It needs ``times``, an event of three or
            more texts, robust errors and no entry. None: cause-specific ratios.
        grid_bits, nonnegative: as in :class:`ClassSchema`.

    Guarantee:
        The unit is one person over all periods, one row. |sum_j r_j u_j| <= M R and |sum_j v_j u_j u_j'| <= M R^2 for
        every w and c, attained in the limit (docs/sensitivity.md), wherever a person enters. A person's entries for
        other strata are 0 and change no bound. Source: Prentice and Gloeckler 1978.

    Example:
        >>> schema = ps.HazardSchema(
        ...     2,
        ...     clip_norm=2.0,
        ...     bins=ps.Bins("months", (0, 6, 12, 24)),
        ...     event="died",
        ...     feature_names=("arm",),
        ...     transform=(ps.transforms.ConstantFeature(1.0),),
        ... )
        >>> schema.sizes, schema.needs  # one weight for the column, and one for each bin
        ({'feature': 4}, {'w': (4,)})
    """

    task: ClassVar[str] = "hazard"
    purpose: ClassVar[str] = (
        "a step of a survival analysis: which columns raise or lower the rate at which an event happens"
    )
    no_persons: ClassVar[str] = "a record of a HazardSchema is a person already, over all periods: one row each"
    ignorable: ClassVar[str] = "its times and event given the columns"
    proved: ClassVar[str] = "gHJ"
    unstated: ClassVar[Mapping[str, Any]] = {"errors": "model"}
    several_sessions: ClassVar[bool] = True
    levels_apart: ClassVar[bool] = True

    features: int = REQUIRED
    clip_norm: float = REQUIRED
    _: KW_ONLY
    bins: Bins
    event: str
    feature_names: tuple[str, ...]
    transform: tuple[Transform, ...]
    cap: float = CAP
    expected_events: int | None = None
    times: str | None = None
    time_unit: float | None = None
    strata: Categories | None = None
    entry: str | None = None
    grid_bits: int = 12
    nonnegative: bool = False
    errors: Errors | None = None
    ratios: Literal["subdistribution"] | None = None

    def __post_init__(self) -> None:
        settle(self, errors=checked_errors(self.errors))
        settle(self, bins=_checked_bins(self.bins), transform=steps_of(self.transform))
        settle(self, strata=_checked_strata(self.strata))
        _check_times(self)
        _check_maps(self)
        settle(self, **checked_vectors(self), cap=_checked_cap(self.cap))
        _check_columns(self)
        check_ratios(self)
        _check_constant(self)
        _check_events(self)

    @property
    def table(self) -> tuple[Statistic, ...]:
        """The statistics that these errors need."""
        return _ROBUST if self.errors == "robust" else _TABLE

    @property
    def goal(self) -> Unread:
        """What y holds."""
        return Unread()

    @cached_property
    def reading(self) -> Reading:
        """What is read of each person: columns, time and event by name."""
        further = (None if self.strata is None else self.strata.name, self.entry)
        columns = (*self.feature_names, self.bins.name, self.event, *(each for each in further if each is not None))
        return replace(super().reading, columns=columns, batches=False)

    @property
    def statistics(self) -> str:
        """Sent letters, in wire order."""
        return letters_of(self.table)

    @property
    def periods(self) -> int:
        """Number of bins."""
        return len(self.bins.edges) - 1

    @property
    def baselines(self) -> int:
        """Number of strata."""
        return 1 if self.strata is None else len(self.strata.values)

    @property
    def constant(self) -> float:
        """The constant of each bin's column."""
        last = self.transform[-1]
        assert isinstance(last, ConstantFeature)  # noqa: S101  the constructor has refused others
        return last.value

    @property
    def marks(self) -> tuple[float, ...]:
        """Edges of the count cells, four per continuous bin."""
        parts, unit, result = _CELLS_PER_BIN if self.times == "continuous" else 1, self.time_unit, [self.bins.edges[0]]
        for low, high in pairwise(self.bins.edges):
            inner = [low + (high - low) * place / parts for place in range(1, parts)]
            inner = inner if unit is None else sorted({unit * round(each / unit) for each in inner})
            result += [*(each for each in inner if low < each < high), high]
        return tuple(result)

    @property
    def in_bin(self) -> NDArray[np.intp]:
        """The bin of each count cell."""
        return np.searchsorted(self.bins.edges, self.marks[1:]) - 1

    def counted(self, by: str | None = None) -> CountSchema:
        """Return the schema of counts by time cell, event, any stratum and ``by``; with an entry also of entries.

        Args:
            by: a two-valued column of ``feature_names``.
        """
        if by is not None and by not in self.feature_names:
            raise SchemaError(f"by must be one of the columns {', '.join(self.feature_names)}, got {by!r}")
        if by is not None and len(self._two(by).values) > 2:
            raise SchemaError(f"by must be a column of two values, and {by!r} has {len(self._two(by).values)} texts")
        wider = replace(self.bins, edges=(*self.marks, 2 * self.marks[-1] - self.bins.edges[-2]), open="above")
        enters = None if self.entry is None else replace(wider, name=self.entry)
        groups = (self.strata, None if by is None else self._two(by))
        crossed = (self._two(self.event), groups[0], enters, groups[1])
        every: tuple[Variable, ...] = (wider, *(each for each in crossed if each is not None))
        tables = [tuple(each.name for each in every if each is not enters)]
        if self.entry is not None:
            tables.append((self.entry, *(each.name for each in groups if each is not None)))
        return CountSchema(every, tuple(tables), late_entry=self.late_entry)

    @property
    def late_entry(self) -> LateEntry | None:
        """The times of which the entry must come before the exit, if persons enter late."""
        if self.entry is None or self.times is None:
            return None
        return LateEntry(self.entry, self.bins.name, self.times, rounded=self.time_unit is not None)

    def _two(self, name: str) -> Categories:
        levels: Any = self.transform[0]
        declared = (*levels.columns, *levels.outcomes) if levels.kind == "levels" else ()
        declarations = [each for each in declared if each.name == name and isinstance(each, Categories)]
        return declarations[-1] if declarations else Categories(name, (0, 1))

    @property
    def causes(self) -> tuple[str, ...]:
        """The event, then other causes."""
        values = self._two(self.event).values
        return tuple(map(str, values[1:])) if len(values) > 2 else (self.event,)

    @property
    def sizes(self) -> dict[str, int]:
        """Columns, then each stratum's bins."""
        return {"feature": self.features - 1 + self.periods * self.baselines}

    @property
    def record(self) -> str:
        """Description of one record."""
        columns = self.columns if self.strata is None else f"{self.columns}, {self.strata.name}"
        enters = "" if self.entry is None else f", the time of entry {self.entry}"
        return f"{columns}{enters}, the time {self.bins.name} and whether {self.event} happened then, of one person"

    def scale_of(self, statistic: str) -> float:
        """Grid steps per real unit: 2**f per R, and per M for residuals and v; 2**f per M R for scores in J."""
        row = next(row for row in self.sent if row.letter == statistic)
        if statistic == "J":
            return row.scale(self.scale / self.cap)
        return row.scale(self.scale) / self.cap if statistic == "H" else row.scale(self.scale, self.steps / self.cap)

    @property
    def needs(self) -> Mapping[str, tuple[int, ...]]:
        """The weights w of columns, then bins; for continuous times also the clock c, by stratum.

        c is the elapsed part of the bin's hazard at each cell's end; a bin's last is 1. Subdistribution ratios also
        need G by cell and stratum.
        """
        cells = ((len(self.marks) - 1) * self.baselines,)
        clock = {"c": cells} if self.times == "continuous" else {}
        return {"w": (self.sizes["feature"],), **clock, **({"G": cells} if self.ratios else {})}

    @property
    def refuses_parts(self) -> str:
        """Return "": each person's row adds its own terms, as :meth:`moments_of` guarantees."""
        return ""

    def check_values(self, values: Mapping[str, Values]) -> None:
        """Refuse misshaped weights, over 20 bits, tiny or enormous, a clock not rising from 0 to 1 in every bin, or G.

        G must fall from at most 1, and stay above 0.
        """
        super().check_values(values)
        if "G" in values:
            check_staying(values["G"], self.baselines, PART_BITS)
        if "c" in values:
            steps, of = values["c"].integers, np.arange(self.baselines)[:, None] * self.periods + self.in_bin
            ends = np.diff(of.ravel(), append=self.periods * self.baselines) > 0
            rising = np.diff(steps + (of.ravel() << PART_BITS), prepend=0) >= 0
            if values["c"].exponent != PART_BITS or not rising.all() or (steps[ends] != 1 << PART_BITS).any():
                raise PlanError(f"published c must rise from 0 to 1 inside every bin, in steps of 2**-{PART_BITS}")

    @property
    def column_facts(self) -> tuple[str, ...]:
        """Whether the event must hold numbers."""
        return number_facts(self, (self.event,))

    @property
    def facts(self) -> tuple[str, ...]:
        """Whether the event must hold numbers, and what the model's own errors assume."""
        errors = errors_facts(self.errors, "that hazards are proportional given the columns")
        return (*self.column_facts, *errors, *self._late_facts)

    @property
    def _late_facts(self) -> tuple[str, ...]:
        if self.entry is None or self.times != "discrete":
            return ()
        return (
            f"with an entry at discrete times nobody is at risk in the first bin, {self.bins.cells[0]}: number visits "
            "from 1, and enter 0 for a person who is there from the start",
        )

    def plain_fields(self) -> dict[str, Any]:
        """Return the fields for a plan file."""
        strata = {} if self.strata is None else {"strata": plain_variable(self.strata)}
        return {"bins": plain_variable(self.bins), **strata}

    def move(self, weights: Mapping[str, float], adjacency: Adjacency) -> float:
        """Return mu^2: scores differ by at most 2 M R, positive semidefinite informations by at most sqrt 2 M R^2.

        J adds a positive semidefinite g g' with |g|^2 <= (M R)^2, so two persons differ by at most sqrt 2 times that.
        """
        score = weights.get("g", 0.0) * (self.cap * self.clip_norm) ** 2
        information = weights.get("H", 0.0) * (self.cap * self.clip_norm**2) ** 2
        square = weights.get("J", 0.0) * (self.cap * self.clip_norm) ** 4
        add = score + information + square
        return add if adjacency == "add-remove" else 4 * score + 2 * information + 2 * square

    @classmethod
    def example(cls) -> Self:
        """Return a small schema of this kind."""
        return cls(
            4,
            2.0,
            bins=Bins("months", (0, 6, 12, 24)),
            event="died",
            feature_names=("arm", "age", "dose"),
            transform=(ConstantFeature(1.0),),
        )

    @classmethod
    def worst(cls) -> WorstPair:
        """Return the rule for two data sets that attain the bound."""
        return WorstPair(_pairs, added(of_score))

    @classmethod
    def containers(cls) -> tuple[ExactClass, type[RealMoments]]:
        """Return the classes of exact sums and of sums in real units."""
        return HazardMoments, RealHazardMoments

    def moments_of(self, records: Opened, values: Mapping[str, Values]) -> Moments:
        """Return the exact sums of a round over a table of columns, time and event by name.

        Guarantee:
            In integers, for any published values: a person adds sum r_j u_j and sum a_j a_j', with |u_j| <= 2**f and
            |a_j|^2 <= 4**f v_j. v_j is at most the bin's hazard. Hazards before the event sum to at most M; r at the
            event is in 0..1. With J a person also adds c c' with |c| <= M 2**f. A person with NaN or infinite entries
            after the transform adds nothing.

        Raises:
            DataError, RecordError: malformed columns, or unreadable values.
        """
        persons, why, declared = _read(self, records)
        if records.excluded is not None:
            fine = ~np.logical_or.reduce(list(why.values()))
            records.excluded.add(fine, why, declared)
            persons = persons.part(fine)
        return _summed(self, persons, values, records.progress)


def _checked_bins(value: object) -> Bins:
    result = variable_of(value) if isinstance(value, Mapping) else value
    if type(result) is not Bins:  # a subclass could have other cells under the same digest
        raise SchemaError(f"bins must be Bins of the time, got {type(result).__name__}")
    if result.edges[0] != 0:
        late = "the origin of everyone's time: for persons who enter later (left truncation) name their column in entry"
        raise SchemaError(f"edges of {result.name} must start at 0, {late}")
    if result.missing or result.open in ("below", "none") or len(result.edges) > _MAX_BINS + 1:
        rule = f"at most {_MAX_BINS} bins, open above alone: a missing or negative time has no bin"
        raise SchemaError(f"{result.name} must be {rule}")
    return replace(result, open="both")  # the default, which plan files omit; counted() opens it above


def _checked_strata(value: object) -> Categories | None:
    if value is None:
        return None
    result = variable_of(value) if isinstance(value, Mapping | Categories) else value
    if not isinstance(result, Categories) or result.other or result.missing or len(result.values) > _MAX_STRATA:
        text = f"two to {_MAX_STRATA} declared values: each has a baseline of its own, which costs as much as its bins"
        raise SchemaError(f"strata must be Categories of {text}; got {type(result).__name__}")
    return result


def _checked_cap(cap: object) -> float:
    number = size("cap", cap, "the cumulative hazard up to which a person counts is 1")
    if number != CAP:
        below, beyond = (
            "below 1 one event alone moves the score past its bound",
            "beyond 1 intervals have missed too often",
        )
        raise SchemaError(f"cap must be 1, got {number:g}: {below if number < CAP else beyond}; omit it")
    return number


def _check_maps(schema: HazardSchema) -> None:
    if schema.transform and schema.transform[0].reads_cells:
        raise SchemaError("transform must not start with Cells: hazards read numbers; code such columns as 0 and 1")
    *before, last = schema.transform or (None,)
    if not isinstance(last, ConstantFeature) or any(isinstance(step, ConstantFeature) for step in before):
        text = "transform must end in ConstantFeature, and have no other: each bin's column holds its value"
        raise SchemaError(text)


def _check_columns(schema: HazardSchema) -> None:
    if not isinstance(schema.event, str):
        raise SchemaError(f"event must be the name of a column, got {type(schema.event).__name__}: name it")
    if not schema.feature_names:
        raise SchemaError("feature_names must name the columns: hazards are read from a table, by name")
    if schema.entry is not None and (not isinstance(schema.entry, str) or not schema.entry):
        raise SchemaError(f"entry must be the name of a column of times, got {schema.entry!r}; or omit it")
    taken = (schema.bins.name, schema.event, "" if schema.strata is None else schema.strata.name)
    if schema.entry in taken:
        raise SchemaError(f"entry names {schema.entry!r}, which has another role: name the column of entry times")
    named = ("bins", "event", *(() if schema.strata is None else ("strata",)), "entry")
    for field, each in zip(named, schema.counted().variables, strict=False):
        if each.name in schema.feature_names:
            why = "a stratum has no ratio" if field == "strata" else "what happens after the start is no column"
            raise SchemaError(f"{field} names {each.name!r}, a column too: {why}")
    levels: Any = schema.transform[0]
    if levels.kind == "levels" and [each.name for each in levels.outcomes] not in ([], [schema.event]):
        raise SchemaError(f"outcomes of Levels must be the event {schema.event!r} alone, or none")
    if schema.sizes["feature"] > _MAX_FEATURES:
        raise SchemaError(f"columns and bins must be at most {_MAX_FEATURES}, got {schema.sizes['feature']}")


def _check_constant(schema: HazardSchema) -> None:
    small = 0 < schema.constant <= schema.clip_norm  # round() refuses infinity
    if not small or 2 * round(schema.constant * schema.scale) ** 2 > schema.steps**2:
        why = (
            "beyond, an event and the bins before it move the score by more than its bound; take 1 and a clip_norm of 2"
        )
        raise SchemaError(
            f"the ConstantFeature must be above 0 and at most clip_norm / sqrt 2, got {schema.constant:g}: {why} or so"
        )


def _check_events(schema: HazardSchema) -> None:
    if schema.expected_events is not None:
        events = as_int("expected_events", schema.expected_events, 1, "a public guess of the number of events")
        strata = schema.baselines
        if schema.periods * strata * _EVENTS_PER_BIN > events:
            held = f"{schema.periods} bins" + (f" in each of {strata} strata" if strata > 1 else "")
            text = f"bins has {held} for {events} expected events: fewer than ten in each make the ratio wrong; expect "
            raise SchemaError(f"{text}{schema.periods * strata * _EVENTS_PER_BIN} or more, or fewer bins, two at least")
        settle(schema, expected_events=events)


def _check_times(schema: HazardSchema) -> None:
    if schema.entry is not None and schema.times is None:
        raise SchemaError("entry needs times='continuous' or 'discrete': state how persons are at risk inside a bin")
    if schema.times not in (None, "continuous", "discrete"):
        raise SchemaError(f"times must be 'continuous' or 'discrete', got {schema.times!r}")
    if schema.time_unit is not None:
        unit = size("time_unit", schema.time_unit, "the unit times are rounded down to, such as 1 for full months")
        if schema.times != "continuous" or any(edge % unit for edge in schema.bins.edges):
            raise SchemaError(f"time_unit {unit:g} needs times='continuous', and edges that are multiples of it")
        settle(schema, time_unit=unit)


# --- the sums

_BITS = 32
"""Bits of a hazard: its product with an entry of a grid row is exact in float64."""
_ONE = float(1 << _BITS)
_EXPONENTIAL_BITS = 40  # bits of gradient_map.exponentials
_ROWS = 4096

# fmt: off
# B_2k / (2k)!, k = 8 .. 1: x / (e^x - 1) = 1 - x / 2 + sum_k B_2k x^2k / (2k)!, to 1e-13 on [0, 1]
_BERNOULLI = (
    -3.3896802963225827e-13, 1.3382536530684679e-11, -5.284190138687493e-10, 2.08767569878681e-08,
    -8.267195767195768e-07, 3.306878306878307e-05, -0.001388888888888889, 0.08333333333333333,
)
# fmt: on

_AXES = ("features", "periods")
HazardMoments, RealHazardMoments = containers(
    "Hazard", HazardSchema, _TABLE, _AXES, "records", "published", "clip_report", optional=_ROBUST[-1:]
)


class _Persons(NamedTuple):
    """Columns ``(n, columns)``; bin, event, time (infinite beyond the last edge), stratum ``(n,)``.

    ``since`` is the bin of the entry, of ``periods`` beyond the last edge, and ``entries`` its time; -1 and 0 without.
    ``others`` marks persons whose time ended by another cause.
    """

    rows: NDArray[np.float64]
    bins: NDArray[np.intp]
    events: NDArray[np.bool_]
    times: NDArray[np.float64]
    strata: NDArray[np.intp]
    since: NDArray[np.intp]
    entries: NDArray[np.float64]
    others: NDArray[np.bool_]

    def part(self, where: slice | NDArray[np.bool_]) -> _Persons:
        rows, bins, events = self.rows[where], self.bins[where], self.events[where]
        strata, since, entries = self.strata[where], self.since[where], self.entries[where]
        return _Persons(rows, bins, events, self.times[where], strata, since, entries, self.others[where])


def _read(schema: HazardSchema, records: Opened) -> tuple[_Persons, Why, dict[str, ListedColumn]]:
    clock, event, *_ = counted = schema.counted().variables
    (columns,) = records.columns([*schema.feature_names, *(each.name for each in counted)])
    cells = {each.name: cells_in(each, columns[each.name]) for each in counted}
    rows = np.column_stack([_numbers(schema, name, columns[name]) for name in schema.feature_names])
    gone = np.isnan(rows)
    if records.excluded is None:
        for each in counted:
            require_cells(each, columns[each.name], cells[each.name])
        if gone.any():
            bad = zip(schema.feature_names, np.atleast_1d(gone.any(axis=0)), strict=True)
            wrong = listed([name for name, any_ in bad if any_])
            raise RecordError(f"X has gaps, or values that are no numbers, in {wrong}; correct or impute them")
    why = {(repr(name), NO_CELL): result < 0 for name, result in cells.items()}
    for each in counted:
        why |= spelled(repr(each.name), each, columns[each.name])
    levels = schema.reading.levels
    for name, column in zip(schema.feature_names, gone.T, strict=True):
        declared = None if levels is None else levels.of(name)
        empty = gaps_in(declared, columns[name])
        unread = column & ~empty
        why[repr(name), GAP] = empty
        why |= no_number(repr(name), columns[name], unread) if declared is None else {(repr(name), WORD): unread}
        why |= spelled(repr(name), declared, columns[name])
    of_cell = np.append(schema.in_bin, [schema.periods, -1])
    bins = of_cell[cells[clock.name]]
    died = (cells[event.name] == 1) & (bins < schema.periods)  # a person seen beyond the last edge is censored there
    times = np.where(bins < schema.periods, columns[clock.name].numbers, np.inf)
    strata = () if schema.strata is None else (schema.strata,)
    stratum = cells[strata[0].name] if strata else np.zeros_like(bins)
    since, entries = np.full_like(bins, -1), np.zeros(len(bins))
    if (entering := schema.late_entry) is not None:
        since, entries = of_cell[cells[entering.entry]], np.nan_to_num(columns[entering.entry].numbers)
        exits = columns[clock.name].numbers
        late = entering.never_at_risk(columns[entering.entry].numbers, exits, since, bins, beyond=schema.periods)
        if records.excluded is None:
            entering.refuse(late)
        why[repr(entering.entry), entering.reason] = late
    worded = listed_columns((event, *strata, *(() if levels is None else levels.columns)), columns)
    others = (cells[event.name] > 1) & (bins < schema.periods)
    persons = _Persons(rows, np.minimum(bins, schema.periods - 1), died, times, stratum, since, entries, others)
    return persons, why, worded


def _numbers(schema: HazardSchema, name: str, column: Readings) -> NDArray[np.float64]:
    levels = schema.reading.levels
    texts = None if levels is None else levels.of(name)
    return column.numbers if texts is None else texts.codes_and_unread(column)[0]


def _summed(schema: HazardSchema, persons: _Persons, values: Mapping[str, Values], progress: bool) -> Moments:
    sums = moments.grid.sums_of(schema, "gHJ")
    tally = moments.clip_report.ClipTally(schema.features, schema.steps)
    with progress_bar("records", len(persons.rows), at_once=progress) as advance:
        for start in range(0, len(persons.rows), _ROWS):
            part = persons.part(slice(start, start + _ROWS))
            for total in sums.values():
                total.admit(len(part.rows))
            for stratum in range(schema.baselines):
                own, first = _of_stratum(schema, values, stratum)
                unit, residuals, roots = _mapped(schema, part.part(part.strata == stratum), own, tally)
                _add_score(schema, unit, residuals, sums["g"].partial, first)
                _add_information(schema, unit, roots, sums["H"].partial, first)
                if "J" in sums:
                    _add_squares(schema, unit, residuals, sums["J"].partial, first)
            advance(len(part.rows))
    totals = {letter: total.result() for letter, total in sums.items()}
    return HazardMoments(schema, records=len(persons.rows), clip_report=tally.report(), **totals)


def _of_stratum(schema: HazardSchema, values: Mapping[str, Values], stratum: int) -> tuple[dict[str, Values], int]:
    columns, cells = schema.features - 1, len(schema.in_bin)
    first, w = columns + stratum * schema.periods, values["w"]
    own = {"w": Values(np.r_[w.integers[:columns], w.integers[first : first + schema.periods]], w.exponent)}
    if "c" in values:
        own["c"] = Values(values["c"].integers[stratum * cells :][:cells], PART_BITS)
    if "G" in values:
        own["G"] = Values(values["G"].integers[stratum * cells :][:cells], PART_BITS)
    return own, first


def _mapped(
    schema: HazardSchema, persons: _Persons, values: Mapping[str, Values], tally: ClipTally
) -> tuple[Ints, Ints, Ints]:
    """Return (x, a) ``(n, p + 1)``, r and v ``(n, K)`` in steps of 2**-32, zero where a bound fails."""
    clips: list[moments.grid.Quantized] = []
    unit, fine = moments.rounds.grid_rows(schema, persons.rows, clips=clips)
    moments.rounds.add_clips(tally, schema, unit, fine, clips)
    mu, seen = _hazards(schema, unit, values["w"]), _seen(schema, persons, values)
    if schema.entry is not None:
        mu, seen = _from_entry(schema, mu, seen, persons, values)
    if schema.ratios is not None:
        mu, seen, persons = _with_others(schema, mu, seen, persons, values)
    residuals, variances, within = _periods(schema, mu, persons, seen)
    maximum = float(schema.steps) ** 2
    fine &= within & (np.vecdot(unit, unit) <= maximum) & (2 * np.square(unit[:, -1]) <= maximum)
    return unit, residuals * fine[:, None], variances * fine[:, None]


def _hazards(schema: HazardSchema, unit: Ints, w: Values) -> Ints:
    """Return mu ``(n, K)`` in steps of 2**-32; any value above 1 becomes 2, which exceeds the cap."""
    columns = unit.shape[1] - 1
    weights = w.integers.astype(np.float64)
    scores = (unit[:, :columns] @ weights[:columns])[:, None] + unit[:, -1:] * weights[columns:]
    fitted = scores * math.ldexp(schema.clip_norm / float(schema.steps), -w.exponent)
    pairs = np.stack([np.zeros(fitted.size), fitted.reshape(-1)], axis=1)
    exponentials = moments.gradient_map.exponentials(pairs, 0)[:, 1].reshape(fitted.shape)
    mu = np.floor(np.ldexp(exponentials, _BITS - _EXPONENTIAL_BITS))
    return np.where(fitted > 0, 2 * _ONE, mu)


def _seen(schema: HazardSchema, persons: _Persons, values: Mapping[str, Values]) -> Ints:
    """Return f ``(n,)``, rounded down to steps of 2**-16."""
    if "c" not in values:
        return np.ones(len(persons.times))
    return _passed(schema, persons.bins, persons.times + (schema.time_unit or 0.0) / 2, values["c"])


def _passed(schema: HazardSchema, bins: NDArray[np.intp], times: NDArray[np.float64], clock: Values) -> Ints:
    """Return the part of each person's bin that the clock has passed at a time, rounded down to steps of 2**-16."""
    marks, steps, of = np.array(schema.marks), clock.floats, schema.in_bin
    first, last = np.searchsorted(of, bins), np.searchsorted(of, bins, side="right") - 1
    cell = np.clip(np.searchsorted(marks, times, side="right") - 1, first, last)
    part = np.clip((times - marks[cell]) / (marks[cell + 1] - marks[cell]), 0.0, 1.0)
    before = np.where(cell > first, steps[cell - 1], 0.0)
    return np.asarray(np.floor(before + part * (steps[cell] - before)) / (1 << PART_BITS))


def _from_entry(
    schema: HazardSchema, mu: Ints, seen: Ints, persons: _Persons, values: Mapping[str, Values]
) -> tuple[Ints, Ints]:
    """Return hazards from the entry on, and the part of the last bin's that was observed.

    Hazards only shrink, to p mu in the entry bin, and stay integers of 2**-32: p is one of 2**-16. A hazard beyond the
    cap stays beyond it, so a person's censoring follows from columns, weights and entry alone.
    """
    places, since = np.arange(mu.shape[1]), np.minimum(persons.since, schema.periods - 1)
    left = np.zeros(len(since))  # at discrete times a person is at risk after the visit of the entry
    if schema.times == "continuous":
        middle = (schema.time_unit or 0.0) / 2 * (persons.entries > 0)  # an entry of 0 is the origin itself
        left = 1 - _passed(schema, since, persons.entries + middle, values["c"])
        left = np.where(persons.since == schema.periods, 0.0, left)
    parts = np.where(places == since[:, None], left[:, None], places > since[:, None])
    parts = np.where((persons.since == schema.periods)[:, None], 0.0, parts)
    shrunk = np.where((mu > _ONE) & (parts > 0), 2 * _ONE, np.floor(parts * mu))
    own = (persons.bins == since) & (left > 0)
    held = np.where(own, left, 1.0)
    within = np.clip((seen - (1 - held)) / held, 0.0, 1.0)
    return shrunk, np.where(own, np.floor(within * (1 << PART_BITS)) / (1 << PART_BITS), seen)


def _with_others(
    schema: HazardSchema, mu: Ints, seen: Ints, persons: _Persons, values: Mapping[str, Values]
) -> tuple[Ints, Ints, _Persons]:
    """Return hazards, parts and persons in which who had another cause is observed until the last bin.

    Hazards after that person's time shrink to p mu, with p the sum over the bin's cells of the clock's part times
    G / G(the person's cell). The cap is checked before, so a person's censoring follows from columns and weights alone.
    """
    below = np.cumsum(mu, axis=1) <= schema.cap * _ONE
    parts = staying_parts(schema, values)[cells_of(schema, persons.times)]
    parts = np.where(persons.others[:, None], parts, 1.0)
    shrunk = np.where(below, np.floor(parts * mu), 2 * _ONE)
    last = np.where(persons.others, schema.periods - 1, persons.bins)
    return shrunk, np.where(persons.others, 1.0, seen), persons._replace(bins=last)


def _periods(schema: HazardSchema, mu: Ints, persons: _Persons, seen: Ints) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    last = np.arange(mu.shape[1]) == persons.bins[:, None]
    at_risk = (np.arange(mu.shape[1]) <= persons.bins[:, None]) & (np.cumsum(mu, axis=1) <= schema.cap * _ONE)
    at_risk &= (mu > 0) | (np.arange(mu.shape[1]) > persons.since[:, None])  # no event counts before the entry
    died = at_risk & last & persons.events[:, None]
    f = np.where(last & ~died, seen[:, None], 1.0)
    mu = mu * at_risk
    ratio, passed = np.floor(_decay(mu / _ONE) * _ONE), f * mu
    rise = passed / _ONE / _decay(passed / _ONE)  # e^(f mu) - 1
    stayed = np.where(f < 1, np.floor(np.minimum(ratio * rise, passed)), mu)
    variances = np.floor(mu * (ratio / _ONE) * np.maximum(1 - (1 - f) * (1 + rise), 0.0))
    fine = (stayed * ~died).sum(axis=1) <= schema.cap * _ONE
    fine &= ((ratio >= 0) & (ratio <= _ONE) & (variances >= 0) & (variances <= mu)).all(axis=1)
    fine &= ((stayed >= 0) & (stayed <= mu)).all(axis=1)
    return np.where(died, ratio, -stayed), variances, fine


def _decay(mu: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return mu / (exp(mu) - 1) on [0, 1] by IEEE sums and products."""
    square, value = mu * mu, np.full_like(mu, _BERNOULLI[0])
    for coefficient in _BERNOULLI[1:]:
        value *= square
        value += coefficient
    value *= square
    value -= mu * 0.5
    return np.minimum(value + 1.0, 1.0)


def _add_score(schema: HazardSchema, unit: Ints, residuals: Ints, into: Ints, first: int) -> None:
    columns, down = unit.shape[1] - 1, schema.grid_bits - _BITS
    together = residuals.sum(axis=1)[:, None]
    into[:columns] += np.trunc(np.ldexp(together * unit[:, :columns], down)).sum(axis=0)
    into[first : first + schema.periods] += np.trunc(np.ldexp(residuals * unit[:, -1:], down)).sum(axis=0)


def _add_information(schema: HazardSchema, unit: Ints, variances: Ints, into: Ints, first: int) -> None:
    columns, maximum = unit.shape[1] - 1, float(schema.steps) ** 2
    for place, variance in enumerate(variances.T):
        roots = np.trunc(unit * (np.sqrt(variance / _ONE) * moments.gradient_map.SHY)[:, None])
        roots *= (np.vecdot(roots, roots) * _ONE <= maximum * variance)[:, None]
        block, own = roots.T @ roots, first + place
        into[:columns, :columns] += block[:columns, :columns]
        into[:columns, own] += block[:columns, -1]
        into[own, :columns] += block[-1, :columns]
        into[own, own] += block[-1, -1]


def _add_squares(schema: HazardSchema, unit: Ints, residuals: Ints, into: Ints, first: int) -> None:
    """Add c c', with c the person's score over columns and the stratum's bins, in steps of R M."""
    columns = unit.shape[1] - 1
    exact = np.hstack([residuals.sum(axis=1)[:, None] * unit[:, :columns], residuals * unit[:, -1:]])
    scores = within_length(np.ldexp(exact, -_BITS) / schema.cap, float(schema.steps) ** 2)
    block, bins = scores.T @ scores, slice(first, first + schema.periods)
    into[:columns, :columns] += block[:columns, :columns]
    into[:columns, bins] += block[:columns, columns:]
    into[bins, :columns] += block[columns:, :columns]
    into[bins, bins] += block[columns:, columns:]


# --- the two data sets that the certificate compares


def _pairs(schema: HazardSchema, _: Mapping[str, float]) -> list[tuple[Record, Record]]:
    """Return one-period persons, who miss the information's bound: it is reached in the limit of many periods."""
    one = _person(schema, 0, ONE, event=False)
    return [(one, _person(schema, place, m, event=not m)) for place in (0, 1) for m in (ONE, 0)]


def _person(schema: HazardSchema, place: int, m: int, *, event: bool) -> Record:
    R = schema.steps
    root = math.isqrt(R * R * int(m * m / math.expm1(m / ONE) / ONE) // ONE) if m else 0
    residual = R if event else -(m * R // ONE)
    ends: dict[str, Any] = {"r": [[0, residual]], "a": [[place, root]] if root else []}
    if schema.errors == "robust":
        ends["c"] = [[place, residual]] if residual else []
    return record_of([[place, R]], m=m, y=ONE if event else 0, **ends)
