"""Define the score and information of grouped-time proportional hazards: parameters, checks and the bound per person.

The sums themselves are in :mod:`privstats.kinds.hazard_sums`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from privstats.errors import PlanError, SchemaError
from privstats.intake.declared.categories import Categories
from privstats.kinds.base import Kind
from privstats.kinds.column_facts import first_bin_facts, number_facts
from privstats.kinds.counts import CountSchema
from privstats.kinds.hazard_sums import PART_BITS, measured_hazards
from privstats.kinds.late_entry import LateEntry
from privstats.kinds.score import SQUARE, Errors, checked_errors, errors_facts
from privstats.kinds.subdistribution import check_ratios, check_staying
from privstats.kinds.worst import ONE, Record, WorstPair, added, of_score, record_of
from privstats.moments.base import ExactClass, Moments, RealMoments, containers
from privstats.records.reading import Reading, Unread
from privstats.records.variables import Bins, Variable, plain_variable, variable_of
from privstats.schema.base import Adjacency, Statistic, letters_of
from privstats.schema.checks import REQUIRED, as_int, checked_vectors, settle, size
from privstats.schema.public_values import Values
from privstats.schema.rounds import AdaptiveSchema
from privstats.transforms import ConstantFeature, Transform, maps_of

if TYPE_CHECKING:
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
        every w and c, attained in the limit (docs/proofs/survival_times.md), wherever a person enters. A person's
        entries for other strata are 0 and change no bound. Source: Prentice and Gloeckler 1978.

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
        settle(self, bins=_checked_bins(self.bins), transform=maps_of(self.transform))
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
        return (
            row.scale(self.scale) / self.cap if statistic == "H" else row.scale(self.scale, self.grid_steps / self.cap)
        )

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
        """Whether the event must hold numbers, what errors and bins assume."""
        errors = errors_facts(self.errors, "that hazards are proportional given the columns")
        first = () if self.times == "discrete" else first_bin_facts(self.bins)
        return (*self.column_facts, *errors, *self._late_facts, *first)

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
        return measured_hazards(self, records, values)


_AXES = ("features", "periods")
HazardMoments, RealHazardMoments = containers(
    "Hazard", HazardSchema, _TABLE, _AXES, "records", "published", "clip_report", optional=_ROBUST[-1:]
)


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
    if not isinstance(last, ConstantFeature) or any(isinstance(map_, ConstantFeature) for map_ in before):
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
    if not small or 2 * round(schema.constant * schema.scale) ** 2 > schema.grid_steps**2:
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


# --- the two data sets that the certificate compares


def _pairs(schema: HazardSchema, _: Mapping[str, float]) -> list[tuple[Record, Record]]:
    """Return one-period persons, who miss the information's bound: it is reached in the limit of many periods."""
    one = _person(schema, 0, ONE, event=False)
    return [(one, _person(schema, place, m, event=not m)) for place in (0, 1) for m in (ONE, 0)]


def _person(schema: HazardSchema, place: int, m: int, *, event: bool) -> Record:
    R = schema.grid_steps
    root = math.isqrt(R * R * int(m * m / math.expm1(m / ONE) / ONE) // ONE) if m else 0
    residual = R if event else -(m * R // ONE)
    ends: dict[str, Any] = {"r": [[0, residual]], "a": [[place, root]] if root else []}
    if schema.errors == "robust":
        ends["c"] = [[place, residual]] if residual else []
    return record_of([[place, R]], m=m, y=ONE if event else 0, **ends)
