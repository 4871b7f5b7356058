"""Forecast what a reader will report: its own rules on releases drawn from public guesses, before any budget is spent.

Records are drawn from the guesses, pass every session's sums and noise, and are read by the public reader. No number of
the study's records enters.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import expit

from privstats.course import Course, Effect, Hazard, Single
from privstats.course.base import as_next
from privstats.dp.calibration import level_at
from privstats.encoding import flatten
from privstats.errors import PlanError, ReleaseError
from privstats.estimates.denoise import Array
from privstats.inference.hazard_ratios import hazards
from privstats.inference.regression.linear import ols
from privstats.inference.releases import column_names, interactions_of, map_columns
from privstats.inference.treatment_effects.rows import effects, subgroups_of
from privstats.kinds import EffectSchema, HazardSchema, RidgeSchema
from privstats.moments import Moments, exact_moments
from privstats.plan import Plan
from privstats.printable import first_few
from privstats.release import Release
from privstats.schema import Bins, Schema
from privstats.transforms import ByArm, Categories, Centre, ConstantFeature, Interactions, Scale, Transform

DRAWS = 100
"""Number of releases that a forecast draws."""

_SETS = 10  # data sets among the draws; the others differ in noise alone
_MAX_DRAWN = 2_048  # records of one set; sums of more records are multiples of theirs
_EVEN = 1 / 3  # variance of an even column of -1 to 1
_LOG_RATIO = 0.3  # of each column of a hazard
_HALVINGS = 60
_PARTS = 2, 4  # of the most records, which may not all come
_NARROWER = {
    "half the variance of even columns": 1 / 2,
    "a fifth of the variance of even columns": 1 / 5,
    "all values in a tenth of their ranges": 1 / 100,
}
"""Share of the even variance by words: few columns of a study are even over their declared ranges."""
_USUAL = 2  # of these are usual, and a warning says what they hide
_NARROWER_DRAWS = 40  # of each: enough for half of the draws
_SHOWN = 6  # names of rows in one sentence

Random: TypeAlias = np.random.Generator


@dataclass(frozen=True)
class Guesses:
    """Public guesses about the records.

    Attributes:
        variance: of a column behind its range; 1/3 for uniform on -1 to 1.
        residual: standard deviation of outcomes about the lines, in outcome units; None: a quarter of the range.
        treated: share of the treated, if not randomised; of hazards by an arm, that of the arm.
        separation: standard deviation of the log odds of treatment: 0 for a coin, 1 for moderate confounding.
        rarest: share of records in the last stratum, or with the last text of a column; None: as many as with others.
    """

    records: int
    variance: float = _EVEN
    residual: float | None = None
    treated: float = 0.5
    separation: float = 1.0
    rarest: float | None = None

    def __post_init__(self) -> None:
        for name in ("records", "variance", "residual"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise PlanError(f"{name} must be above 0, got {value!r}; pass a public guess")
        for name in ("treated", "rarest"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1:
                raise PlanError(f"{name} must be between 0 and 1, a share of the records, got {value!r}")
        if not 0 <= self.separation <= 10:
            raise PlanError(f"separation must be from 0 to 10, in log odds, got {self.separation!r}; 1 is moderate")

    def share_of(self, values: int) -> Array:
        """Return the shares of a column's texts; the last one's is ``rarest``."""
        last = 1 / values if self.rarest is None else self.rarest
        return np.append(np.full(values - 1, (1 - last) / (values - 1)), last)


@dataclass(frozen=True)
class ForecastRow:
    """One row of the table to come.

    Attributes:
        reported: number of draws that report it.
        half_width: median over the draws; infinite where at most half report it.

    Example:
        >>> ps.inference.ForecastRow("age", reported=97, half_width=0.2).reported
        97
    """

    name: str
    reported: int
    half_width: float


@dataclass(frozen=True)
class Forecast:
    """What the reader reports of draws from public guesses.

    Attributes:
        why: the reader's most frequent reason for a hidden row, or empty.

    Example:
        >>> schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=(0, 1), probability=0.5)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-6)
        >>> course = ps.Effect.start(schema, ps.Cohort(2, 2, 2_000), privacy)
        >>> ps.inference.forecast(course, records=2_000, draws=5).rows[0].reported
        5
    """

    records: int
    draws: int
    rows: tuple[ForecastRow, ...]
    why: str

    @property
    def worst(self) -> ForecastRow:
        """The row that is reported least often; of several such, the widest."""
        return min(self.rows, key=lambda row: (row.reported, -row.half_width))

    @property
    def reports_nothing(self) -> bool:
        """Whether no draw reports any row."""
        return not any(row.reported for row in self.rows)

    @property
    def sentence(self) -> str:
        """How many draws report which rows."""
        by_count: dict[int, list[str]] = {}
        for row in self.rows:
            by_count.setdefault(row.reported, []).append(row.name)
        several = len(self.rows) > 1
        parts = [
            f"{first_few(names, _SHOWN)} in {count}" if several else f"in {count}" for count, names in by_count.items()
        ]
        return f"forecast for {self.records:,} records: reported {'; '.join(parts)} of {self.draws} draws"


class _Row(NamedTuple):
    """One row of one draw; ``why`` it is hidden, if it is."""

    low: float
    high: float
    why: str


class Study(NamedTuple):
    """A plan's sessions with columns of numbers: how records are drawn, and how releases are read.

    Attributes:
        names: of the table's rows.
        draw: X and y of one data set.
        read: the rows of one draw.
    """

    course: Course
    names: tuple[str, ...]
    draw: Callable[[Guesses, int, Random], tuple[Any, Any]]
    read: Callable[[Sequence[Release], float], list[_Row]]


def forecast(
    plan: Plan | Effect | Hazard,
    *,
    draws: int = DRAWS,
    alpha: float = 0.05,
    **guesses: Any,
) -> Forecast:
    """Forecast which rows a plan's table will report, and how wide, by the reader's own rules.

    Args:
        plan: of a ``RidgeSchema``; or a course of effects or hazards, or its plan. Noise is that of ``min_survivors``
            survivors.
        guesses: as :class:`~privstats.inference.forecasts.Guesses`.

    Raises:
        PlanError: another schema, or a guess out of range.

    Example:
        >>> schema = ps.RidgeSchema(2, clip_norm=2.0, target_bound=4.0, transform=(ps.transforms.ConstantFeature(1.0),))
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 10_000), privacy=privacy)
        >>> found = ps.inference.forecast(plan, records=10_000, draws=10)
        >>> found.worst.reported, round(found.worst.half_width, 2)
        (10, 0.08)
    """
    given = Guesses(**guesses)
    study, chance = study_of(plan), np.random.default_rng(0)
    read = [_read(study, releases, alpha) for releases in islice(_drawn(study, given, chance, draws), draws)]
    rows = tuple(_forecast_row(name, [each[place] for each in read], draws) for place, name in enumerate(study.names))
    why = Counter(row.why for each in read for row in each if row.why)
    return Forecast(given.records, draws, rows, why.most_common(1)[0][0] if why else "")


def forecast_sentences(plan: Plan | Course) -> list[str]:
    """Return the forecast of a plan or course of effects or hazards, in one sentence; empty for other plans.

    It is for columns that are even over their declared ranges, at the plan's most records, a half and a quarter of
    them; and at the most records for half and a fifth of that variance, and for values in a tenth of each range. It is
    a warning where no draw reports a row, or where half of the draws hide one at half or a fifth of the variance.
    """
    if not isinstance(plan, Plan | Effect | Hazard) or not plan.schema.several_sessions:
        return []
    cohort = plan.cohort if isinstance(plan, Plan) else plan.plan.cohort
    if isinstance(plan.schema, HazardSchema) and plan.schema.expected_events is None:
        return ["no forecast of the rows that will be reported: set expected_events in [schema], a public guess"]
    try:
        found, *fewer = [forecast(plan, records=max(cohort.max_records // part, 1)) for part in (1, *_PARTS)]
    except (PlanError, ReleaseError):  # the plan of a later session, whose course has the forecast
        return []
    other = "other guesses: `privstats plan suggest --half-width`"
    hidden = [row.name for row in found.rows if not row.reported]
    if not hidden:
        narrower = {
            words: forecast(plan, draws=_NARROWER_DRAWS, records=found.records, variance=share * _EVEN)
            for words, share in _NARROWER.items()
        }
        less = "; ".join(_fewer(each, found) for each in fewer)
        worlds = "; ".join(f"with {words}, {_narrower(each, found)}" for words, each in narrower.items())
        line = f"{found.sentence}, for columns spread evenly over their ranges{_width(found)}; {worlds}"
        return [f"{_refuted(found, narrower)}{line}; if fewer come, {less}; {other}"]
    what = "no row will" if found.reports_nothing else f"{first_few(hidden, _SHOWN)} will not"
    return [f"WARNING: {what} be reported ({found.sentence}): {found.why}; {other}"]


def _fewer(forecast: Forecast, most: Forecast) -> str:
    """State a forecast for fewer records, next to that for the most."""
    if [row.reported for row in forecast.rows] == [row.reported for row in most.rows]:
        return f"{forecast.records:,} records: the same"
    return forecast.sentence.removeprefix("forecast for ")


def _narrower(forecast: Forecast, found: Forecast) -> str:
    """State a forecast for columns of less variance, next to that for even ones."""
    if all(row.reported == each.draws for each in (forecast, found) for row in each.rows):
        return f"the same{_width(forecast)}"
    return f"{forecast.sentence.partition(': ')[2]}{_width(forecast)}"


def _width(forecast: Forecast) -> str:
    width = forecast.worst.half_width
    return f" (half width {width:.3g})" if math.isfinite(width) else ""


def _refuted(found: Forecast, narrower: Mapping[str, Forecast]) -> str:
    """Return a warning, as a sentence's beginning, where a usual world hides a row that even columns have; else ""."""
    for words, each in list(narrower.items())[:_USUAL]:
        pairs = zip(found.rows, each.rows, strict=True)
        lost = [row.name for even, row in pairs if 2 * row.reported <= each.draws and 2 * even.reported > found.draws]
        if lost:
            return (
                f"WARNING: do not rely on {first_few(lost, _SHOWN)} unless the columns fill their declared ranges: "
                f"with {words}, at least half of the draws hide such a row. Declare narrower ranges by public "
                "knowledge, or plan more records or a larger epsilon: "
            )
    return ""


def study_of(plan: Plan | Effect | Hazard) -> Study:
    """Return a plan's study.

    Raises:
        PlanError: no study of this kind of plan is drawn.
    """
    return _study(plan.schema, plan)


@singledispatch
def _study(_: Schema, __: Plan | Effect | Hazard) -> Study:
    raise PlanError("forecasts are drawn of regressions, effects and hazards: pass a plan of one of these")


def _read(study: Study, releases: Sequence[Release], alpha: float) -> list[_Row]:
    """Return the rows of one draw; all are hidden where the reader refuses the releases."""
    try:
        return study.read(releases, alpha)
    except ReleaseError as error:
        return [_Row(-math.inf, math.inf, str(error))] * len(study.names)


def _forecast_row(name: str, draws: Sequence[_Row], number: int) -> ForecastRow:
    widths = [math.inf if row.why else (row.high - row.low) / 2 for row in draws]
    reported = sum(map(math.isfinite, widths))
    return ForecastRow(name, reported, float(np.median(widths)) if 2 * reported > number else math.inf)


def _drawn(study: Study, guesses: Guesses, chance: Random, draws: int) -> Iterator[list[Release]]:
    """Yield the releases of all sessions, draw by draw."""
    doublings = max(0, math.ceil(math.log2(guesses.records / _MAX_DRAWN)))
    records = max(1, round(guesses.records / 2**doublings))
    for _ in range(_SETS):
        X, y = study.draw(guesses, records, chance)
        sums: dict[tuple[str, str], Moments] = {}
        for _ in range(-(-draws // _SETS)):
            yield _played(study.course, X, y, doublings, sums, chance)


def _played(
    course: Course, X: Any, y: Any, doublings: int, sums: dict[tuple[str, str], Moments], chance: Random
) -> list[Release]:
    """Run every session; ``sums`` holds those of earlier draws, by task and published values."""
    releases: list[Release] = []
    plan: Plan | None = course.first
    while plan is not None:
        known = plan.schema.task, "" if plan.published is None else plan.published.sha256
        if known not in sums:
            sums[known] = _summed(plan, X, y, doublings)
        releases.append(as_next(course, releases, _released(plan, sums[known], chance)))
        plan = course.next(releases)
    return releases


def _summed(plan: Plan, X: Any, y: Any, doublings: int) -> Moments:
    """Return the sums of the records 2^doublings times, dealt to the clients in turn."""
    clients = plan.cohort.min_survivors if _by_client(plan.schema) else 1
    total: Any = sum(
        exact_moments(plan.schema, _part(X, k, clients), _part(y, k, clients), published=plan.published).for_client(k)
        for k in range(clients)
    )
    for _ in range(doublings):
        total = total + total
    return total  # type: ignore[no-any-return]


def _by_client(schema: Schema) -> bool:
    return isinstance(schema, EffectSchema) and (schema.groups is not None or isinstance(schema.probability, tuple))


def _part(records: Any, place: int, clients: int) -> Any:
    if isinstance(records, Mapping):
        return {name: column[place::clients] for name, column in records.items()}
    return None if records is None else records[place::clients]


def _released(plan: Plan, exact: Moments, chance: Random) -> Release:
    """Add noise of the plan's size, for the smallest sum that it releases. It protects nothing: no record is real."""
    vector, noise, survivors = flatten(exact), plan.noise, plan.cohort.min_survivors
    if noise is None:
        return Release(plan, vector, tuple(range(survivors)))
    left_for = (level_at(noise.levels, survivors),) * survivors if noise.levels else ()
    sigma = noise.sigma_at_levels(left_for) if noise.levels else noise.released_sigma(survivors)
    sizes = np.concatenate(
        [np.full(each.size, sigma[each.statistic] * each.scale * each.noise_factor) for each in plan.layout.segments]
    )
    noisy = vector + np.rint(chance.normal(size=len(vector)) * sizes).astype(np.int64)
    return Release(plan, noisy, tuple(range(survivors)), left_for=left_for)


# --- columns and outcomes


def _bounded(variance: float, size: tuple[int, ...], chance: Random) -> Array:
    """Draw numbers of this variance about 0: even; beyond 1/3, where -1 and 1 are the ends, more often at the ends."""
    if _EVEN < variance <= 1:
        at_ends = chance.random(size) < (variance - _EVEN) / (1 - _EVEN)
        return np.where(at_ends, chance.choice((-1.0, 1.0), size), chance.uniform(-1, 1, size))
    return chance.uniform(-1, 1, size) * math.sqrt(3 * variance)


def _with_products(schema: Schema, columns: Array) -> Array:
    """Return the columns behind their ranges, with products of the declared pairs in the last ones."""
    products = interactions_of(schema.transform)
    return columns if products is None else products.apply(columns[:, : products.takes(columns.shape[1])])


def _columns(schema: Schema, width: int, guesses: Guesses, records: int, chance: Random) -> Array:
    """Draw the columns behind their ranges, ``(records, width)``: numbers, columns of declared texts, and products."""
    columns, levels = _bounded(guesses.variance, (records, width), chance), schema.reading.levels
    if levels is None:
        return _with_products(schema, columns)
    names, (scale, shift) = column_names(schema, width), _mapped(schema, width)
    for declared in levels.columns:
        codes = chance.choice(len(declared.values), records, p=guesses.share_of(len(declared.values)))
        for code, value in enumerate(declared.values[1:], 1):
            name = declared.name if len(declared.values) == 2 else f"{declared.name}: {value}"
            if name in names:
                place = names.index(name)
                columns[:, place] = scale[place] * (codes == code) + shift[place]
    return _with_products(schema, columns)


def _mapped(schema: Schema, width: int) -> tuple[Array, Array]:
    """Return ``(scale, shift)`` of the maps to the columns' ranges; products are of mapped columns."""
    products = interactions_of(schema.transform)
    own = width if products is None else products.takes(width)
    maps = [map_ for map_ in schema.transform if not isinstance(map_, ByArm | Interactions)]
    scale, shift = map_columns(maps, own)
    return np.pad(scale, (0, width - own), constant_values=1.0), np.pad(shift, (0, width - own))


def _explained(u: Array, relative: float, guesses: Guesses) -> Array:
    """Return what columns explain of an outcome: as much as they leave, as far as its range of -1 to 1 has room."""
    explained = max(min(relative**2, _EVEN - relative**2), 0.0)
    signs = np.resize((1.0, -1.0), u.shape[1])
    return np.asarray(u @ signs * math.sqrt(explained / u.shape[1] / guesses.variance))


def _outcome(u: Array, relative: float, guesses: Guesses, chance: Random, *, binary: bool = False) -> Array:
    """Draw outcomes in -1..1 with residuals of standard deviation ``relative``; those of two texts are the ends."""
    if binary:
        rare = (1 - math.sqrt(max(1 - relative**2, 0.0))) / 2
        return np.where(chance.random(len(u)) < rare, 1.0, -1.0)
    residuals = _bounded(min(relative**2, 1.0), (len(u),), chance)
    return np.clip(_explained(u, relative, guesses) + residuals, -1.0, 1.0)


def _even_share(records: int, chance: Random) -> Array:
    """Draw uniform numbers of which every share has its part, so that repeated records keep a trial's probability."""
    return np.asarray((chance.permutation(records) + 0.5) / records)


# --- effects


@_study.register
def _of_effect(schema: EffectSchema, plan: Plan | Effect) -> Study:
    course = plan if isinstance(plan, Effect) else Effect.within(plan)
    numeric = _numeric_effect(schema)
    outcomes = schema.outcome_names or ("",)
    parts = ["", *(name for _, name, _ in subgroups_of(schema))]
    names = tuple(" ".join(filter(None, (name, part))) or "all" for name in outcomes for part in parts)
    drawn = replace(course, plan=replace(course.plan, schema=numeric), analysis=None)
    return Study(
        drawn, names, lambda *given: _effect_records(schema, numeric, drawn.plan.cohort.min_survivors, *given),
        _read_effects,
    )  # fmt: skip


def _numeric_effect(schema: EffectSchema) -> EffectSchema:
    """Return the schema of columns that are numbers behind their ranges; subgroups are bins of such columns."""
    *_, constant, by_arm = schema.transform
    if not isinstance(constant, ConstantFeature) or not isinstance(by_arm, ByArm):
        raise PlanError("the transform must end in ConstantFeature and ByArm; build the schema with EffectSchema.of")
    names = column_names(schema, schema.width)
    columns = [name for place, name in enumerate(names) if place != by_arm.column]
    parts = tuple(
        Bins(columns[place % len(columns)], tuple(np.linspace(-1, 1, cells + 1).tolist()))
        for place, cells in enumerate(schema.crossed)
    )
    return replace(schema, transform=(constant, by_arm), feature_names=names, subgroups=parts or None)


def _effect_records(
    schema: EffectSchema, numeric: EffectSchema, clients: int, guesses: Guesses, records: int, chance: Random
) -> tuple[Array, Array]:
    by_arm: Any = numeric.transform[-1]
    columns = np.delete(_columns(schema, schema.width, guesses, records, chance), by_arm.column, axis=1)
    arm = _even_share(records, chance) < _propensity(schema, columns, clients, guesses)
    relative = 0.5 if guesses.residual is None else guesses.residual / schema.half
    levels, outcomes = schema.reading.levels, range(schema.outcomes)
    declared = () if levels is None else levels.outcomes
    binary = [bool(declared) and isinstance(declared[place], Categories) for place in outcomes]
    y = np.stack([_outcome(columns, relative, guesses, chance, binary=binary[place]) for place in outcomes], axis=1)
    y = schema.middle + schema.half * y
    return np.insert(columns, by_arm.column, arm, axis=1), y if schema.outcomes > 1 else y[:, 0]


def _propensity(schema: EffectSchema, columns: Array, clients: int, guesses: Guesses) -> Array:
    if schema.probability is not None:
        chances = np.atleast_1d(np.asarray(schema.probability, np.float64))
        return np.resize(chances[:clients], len(columns))
    score = columns.sum(axis=1)
    odds = guesses.separation * (score - score.mean()) / max(float(score.std()), 1e-9)
    low, high = -40.0, 40.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if float(expit(middle + odds).mean()) > guesses.treated else (middle, high)
    return np.asarray(expit(low + odds))


def _read_effects(releases: Sequence[Release], alpha: float) -> list[_Row]:
    rows = [(table.conf_int(alpha), table.why_at(alpha)) for table in effects(releases).tables]
    return [_Row(float(low), float(high), why) for (low, high), why in rows]


# --- hazards


@_study.register
def _of_hazards(schema: HazardSchema, plan: Plan | Hazard) -> Study:
    course, columns = plan if isinstance(plan, Hazard) else Hazard.within(plan), schema.features - 1
    if schema.expected_events is None:
        raise PlanError("half widths of hazards follow from events: set expected_events in the schema, a public guess")
    names = column_names(schema, columns)
    numeric = replace(schema, transform=_maps_of(schema, course.by, names), feature_names=names)
    share = min(schema.expected_events / course.plan.cohort.max_records, 0.99)
    drawn = replace(course, plan=replace(course.plan, schema=numeric))
    return Study(drawn, names, lambda *given: _persons(schema, course.by, share, *given), _read_hazards)


def _maps_of(schema: HazardSchema, by: str | None, names: tuple[str, ...]) -> tuple[Transform, ...]:
    """Return the maps of columns that are behind their ranges already, but for ``by``, whose values are 0 and 1."""
    constant = ConstantFeature(schema.constant)
    if by is None:
        return (constant,)
    (scale, shift), own = _mapped(schema, len(names)), np.array([name == by for name in names])
    centre, unit = np.where(own, -shift / scale, 0.0), np.where(own, 1 / scale, 1.0)
    return Centre(tuple(centre.tolist())), Scale(tuple(unit.tolist())), constant


def _persons(
    schema: HazardSchema, by: str | None, share: float, guesses: Guesses, records: int, chance: Random
) -> tuple[dict[str, Any], None]:
    """Draw persons who are all followed to the last edge, with constant hazards by which ``share`` have the event."""
    columns = schema.features - 1
    u, names = _columns(schema, columns, guesses, records, chance), column_names(schema, columns)
    risk = np.exp(u @ np.resize((_LOG_RATIO, -_LOG_RATIO), columns))
    low, high = 0.0, 64.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if float(-np.expm1(-middle * risk).mean()) > share else (middle, high)
    end = schema.bins.edges[-1]
    times = chance.exponential(1 / np.maximum(low * risk / end, 1e-12))
    if by is not None:
        (scale, shift), place = _mapped(schema, columns), names.index(by)
        crossed = chance.random(records) < guesses.treated
        u[:, place] = scale[place] * crossed + shift[place]
        u = _with_products(schema, u)
        u[:, place] = crossed
    table: dict[str, Any] = dict(zip(names, u.T, strict=True))
    table |= {schema.bins.name: np.minimum(times, end), schema.event: (times < end) * 1}
    if schema.entry is not None:
        table[schema.entry] = np.zeros(records)
    if schema.strata is not None:
        values = np.array(schema.strata.values)
        table[schema.strata.name] = values[chance.choice(len(values), records, p=guesses.share_of(len(values)))]
    return table, None


def _read_hazards(releases: Sequence[Release], alpha: float) -> list[_Row]:
    return _regression_rows(hazards(releases), alpha, 0)


# --- slopes


@_study.register
def _of_slopes(schema: RidgeSchema, plan: Plan) -> Study:
    last = schema.transform[-1] if schema.transform else None
    constant = (last,) if isinstance(last, ConstantFeature) else ()
    columns = schema.features - len(constant)
    products = () if (found := interactions_of(schema.transform)) is None else (found,)
    numeric = replace(schema, transform=(*products, *constant), feature_names=None)
    names = column_names(numeric, columns)
    return Study(
        Single(replace(plan, schema=numeric)), names, lambda *given: _slope_records(numeric, columns, *given),
        lambda releases, alpha: _read_slopes(releases, alpha, len(constant)),
    )  # fmt: skip


def _slope_records(
    schema: RidgeSchema, columns: int, guesses: Guesses, records: int, chance: Random
) -> tuple[Array, Array]:
    products = interactions_of(schema.transform)
    own = columns if products is None else products.takes(columns)
    u = _bounded(guesses.variance, (records, own), chance)
    bound = schema.target_bound / math.sqrt(schema.targets)
    relative = 0.5 if guesses.residual is None else guesses.residual / bound
    y = bound * np.stack([_outcome(u, relative, guesses, chance) for _ in range(schema.targets)], axis=1)
    return u, y if schema.targets > 1 else y[:, 0]


def _read_slopes(releases: Sequence[Release], alpha: float, constants: int) -> list[_Row]:
    (release,) = releases
    schema: Any = release.plan.schema
    target = 0 if schema.targets > 1 else None
    records = None if constants else release.plan.cohort.max_records
    return _regression_rows(ols(release, target=target, records=records, unclipped=True), alpha, constants)


def _regression_rows(table: Any, alpha: float, first: int) -> list[_Row]:
    hidden = "noise hides it: plan more records, fewer columns, or a larger epsilon"
    arrived = getattr(table.errors, "arrived", np.ones(len(table.names), np.bool_))[first:]
    ends, reported = table.conf_int(alpha)[first:], table.errors.reported(alpha)[first:]
    return [
        _Row(float(low), float(high), "" if shown else hidden if converged else table.notes[0])
        for (low, high), shown, converged in zip(ends, reported, arrived, strict=True)
    ]
