"""Do the intervals of a regression table keep their claim? Worlds with known coefficients, read as a user reads them.

The claim: at most a fraction alpha of releases report an interval that misses. Every world is within the plan's public
bounds, goes through measuring, summing and noising as a session does, and is read by the public reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, betaincinv

from privstats import session
from privstats.errors import PlanError, ReleaseError
from privstats.inference import Regression, ols
from privstats.inference.cell_design import Intervals, declared_cells
from privstats.inference.releases import interactions_of, map_columns, raw_slopes
from privstats.intake.tables import Codes
from privstats.kinds import RidgeSchema
from privstats.plan import Plan
from privstats.progress import track
from privstats.randomness import Generator
from privstats.release import Release
from privstats.schema import narrowed
from privstats.transforms import Cells, ConstantFeature
from threat_models.audits.verdict import Report
from threat_models.made_up import sums_of

_ALPHA = 0.05
_CONFIDENCE = 0.999
MOST_RECORDS = 20_000
_EFFECTS = 0.3  # coefficients of the model's columns, as a share of what keeps targets inside their bound
_EVEN = 4.0  # of a Dirichlet law of cells' shares: the larger the more even
_COLUMNS = ("records", "parameter", "runs", "reported", "reported and missed", "at least", "claimed", "verdict")

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Tally:
    """The intervals of one world size.

    Attributes:
        names: of the parameters.
        runs: releases.
        reported, missed: number of intervals reported, and of those that miss, ``(m,)``.
        unread: releases that the reader refused.
    """

    names: tuple[str, ...]
    runs: int
    reported: Array
    missed: Array
    unread: int


def audit_inference(plan: Plan, rng: Generator, *, runs: int = 500) -> Report:
    """Count how often a release reports an interval that misses, at the plan's most records and at a third of them.

    A row is violated where the lower end of the Clopper-Pearson interval (one-sided, 99.9 % for the whole table) is
    above alpha = .05.

    Raises:
        PlanError: not a plan of a regression with a constant, or one whose columns are mapped by more than ranges.
    """
    _regression(plan)
    most = min(plan.cohort.max_records, MOST_RECORDS)
    tallies = {n: tally(plan, n, rng, runs) for n in (most, most // 3)}
    normal = (
        "columns are correlated and normal within the clip, errors are normal: no audit of a reader sees real records"
    )
    return report_of(list(tallies.items()), runs, (normal,))


def report_of(tallies: Sequence[tuple[int, Tally]], runs: int, notes: Sequence[str]) -> Report:
    """Return the report over the releases of each world.

    Args:
        tallies: with the number of records of each.
        runs: releases of each.
        notes: on the worlds.
    """
    tests = sum(len(each.names) for _, each in tallies)
    rows = [row for n, each in tallies for row in _rows(n, each, (1 - _CONFIDENCE) / tests)]
    flagged = _flagged(runs, (1 - _CONFIDENCE) / tests)
    seen = ", ".join(f"{rate:.1%}: {bdtrc(flagged - 1, runs, rate):.2f}" for rate in (0.05, 0.068, 0.08, 0.105, 0.13))
    text = [
        f"flagged from {flagged} misses in {runs} runs on; a true miss rate is flagged with probability {seen}",
        *notes,
    ]
    unread = sum(each.unread for _, each in tallies)
    if unread:
        text.append(f"{unread} of {len(tallies) * runs} releases were refused by the reader, which tells nothing")
    return Report("inference", _COLUMNS, tuple(rows), tuple(text), any(row[-1] == "violates" for row in rows))


def _regression(plan: Plan) -> RidgeSchema:
    """The schema, if it is that of a regression with a constant."""
    refusal = PlanError("audit inference takes a plan of a RidgeSchema whose transform ends in ConstantFeature")
    schema = narrowed(plan.schema, RidgeSchema, refusal)
    if not isinstance((schema.transform or (None,))[-1], ConstantFeature):
        raise refusal
    if open_ := getattr(schema.transform[0], "open", ()):
        raise PlanError(
            f"the cut points of {', '.join(open_)} come from a course: give this audit the plan with some edges "
            "stated, for intervals hold between any"
        )
    return schema


def tally(plan: Plan, records: int, rng: Generator, runs: int) -> Tally:
    """Play ``runs`` worlds of this many records under the plan, and compare every interval with the truth."""
    schema = _regression(plan)
    chance = np.random.default_rng(int.from_bytes(rng.bytes(8), "little"))
    unread, names, reported, missed = 0, tuple[str, ...](), np.zeros(1), np.zeros(1)
    for _ in track("releasing", range(runs)):
        world = World.draw(schema, records, chance)
        try:
            release, target = released(plan, world, rng), 0 if schema.targets > 1 else None
            # The truth is the regression on all cells, that of gaps among them.
            table = ols(release, target=target, cov_type="nonrobust", gaps_as_cells=True)
        except ReleaseError:
            unread += 1
            continue
        names, low, high = world.read(table)
        reported = reported + np.isfinite(high - low)
        missed = missed + ((low > world.truth) | (high < world.truth))
    return Tally(names or ("",), runs, reported, missed, unread)


@dataclass(frozen=True, eq=False)
class World:
    """Records and the coefficients behind them, the intercept first, in raw units; of declared columns contrasts.

    Attributes:
        X, y: as they are measured.
        truth: of the parameters, in the order of :meth:`read`.
        cells: by declared column its cells, the first of which the others are compared with; none of numbers.
    """

    X: Any
    y: Array
    truth: Array
    cells: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def read(self, table: Regression) -> tuple[tuple[str, ...], Array, Array]:
        """Names of the parameters, and the ends of their intervals."""
        if not self.cells:
            low, high = table.conf_int(_ALPHA).T
            return table.names, low, high
        result = table.cells(reference={name: cells[0] for name, cells in self.cells.items()}, alpha=_ALPHA)
        compared = ~result.reference
        names = [f"{column}: {cell}" for column, cell in zip(result.columns, result.cells, strict=True)]
        return tuple(np.array(names, object)[compared].tolist()), result.low[compared], result.high[compared]

    @classmethod
    def draw(cls, schema: RidgeSchema, records: int, chance: np.random.Generator) -> World:
        """Correlated normal columns within the clip, normal errors, random coefficients."""
        if (declared := declared_cells(schema)) is not None:
            return cls._of_cells(declared, schema, records, chance)
        constant = schema.transform[-1]
        assert isinstance(constant, ConstantFeature)  # noqa: S101  the audit has refused others
        columns = schema.features - 1
        room = np.sqrt(max(schema.clip_norm**2 - constant.value**2, 0.0) / columns)
        mixing = np.eye(columns) + 0.5 * np.tri(columns, k=-1) / columns
        products = interactions_of(schema.transform)
        own = columns if products is None else products.takes(columns)
        if products is not None:
            room = min(room, 1.0)  # products of columns within 1 are within 1
        raw = np.clip(chance.normal(size=(records, own)) @ mixing[:own, :own].T * room / 3, -room, room)
        rows = raw if products is None else np.asarray(products.apply(raw))
        bound = schema.target_bound
        slopes = chance.uniform(-1, 1, columns) * _EFFECTS * bound / (room * columns)
        level = chance.uniform(-1, 1) * bound / 8
        y = level + rows @ slopes + chance.normal(size=records) * bound / 8
        scale, shift = map_columns([map_ for map_ in schema.transform if map_ is not products], own)
        of_slopes, of_level = raw_slopes(schema.transform, columns)
        truth = np.array([level + slopes @ of_level, *(of_slopes @ slopes)])
        targets = np.zeros((records, schema.targets))
        targets[:, 0] = y
        return cls((raw - shift) / scale, targets if schema.targets > 1 else y, truth)

    @classmethod
    def _of_cells(cls, cells: Cells, schema: RidgeSchema, records: int, chance: np.random.Generator) -> World:
        """Every cell holds some of the records and has an effect by chance; effects add up, errors are normal."""
        values, fitted = np.empty((records, len(cells.columns))), np.zeros(records)
        bound, truth, named = schema.target_bound, list[Array](), dict[str, tuple[str, ...]]()
        for j, (column, marks) in enumerate(zip(cells.columns, cells.marks, strict=True)):
            intervals = Intervals.of(column, marks)
            codes = np.asarray(intervals.of_codes)
            share = chance.dirichlet(np.full(len(intervals.names), _EVEN))
            drawn = chance.choice(len(codes), records, p=share[codes] / np.bincount(codes)[codes])
            values[:, j] = np.concatenate([[marks[0] - 1], marks, [np.nan]])[drawn]
            effects = chance.uniform(-1, 1, len(intervals.names)) * _EFFECTS * bound / len(cells.columns)
            fitted += effects[codes[drawn]]
            truth.append(effects[1:] - effects[0])
            named[column.name] = intervals.names
        y = fitted + chance.normal(size=records) * bound / 8
        return cls(Codes(values, {}), y, np.concatenate(truth), named)


def released(plan: Plan, world: World, rng: Generator) -> Release:
    """A release of the world's records, dealt to all clients of the plan."""
    clients = plan.cohort.clients
    parts = [sums_of(plan.schema, world.X[k::clients], world.y[k::clients]) for k in range(clients)]
    return session.aggregate_unmasked(plan, parts, rng)


def _rows(records: int, tally: Tally, tail: float) -> list[tuple[str | int | float, ...]]:
    rows: list[tuple[str | int | float, ...]] = []
    for name, reported, missed in zip(tally.names, tally.reported, tally.missed, strict=True):
        least = float(betaincinv(missed, tally.runs - missed + 1, tail)) if missed else 0.0
        verdict = "violates" if least > _ALPHA else "holds"
        rows.append((records, name, tally.runs, reported / tally.runs, missed / tally.runs, least, _ALPHA, verdict))
    return rows


def _flagged(runs: int, tail: float) -> int:
    """The fewest misses that contradict the claim."""
    misses = np.arange(1, runs + 1)
    return int(misses[betaincinv(misses, runs - misses + 1, tail) > _ALPHA][0])
