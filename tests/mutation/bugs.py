"""The wrong pieces of code themselves, each as small as the mistake that it stands for.

A bug wraps the right function where it can, so that it stays a bug when the library changes around it.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from privstats import dp, session
from privstats.course import Binned
from privstats.course.base import mu_of
from privstats.dp import mechanisms
from privstats.dp.calibration import Noise, calibrate
from privstats.dp.gaussian import gaussian_mu
from privstats.dp.privacy import TrustModel
from privstats.dp.sensitivities import allocate, joint_mu
from privstats.encoding import flatten
from privstats.errors import LocalProtocolError
from privstats.files.outside import Outside
from privstats.intake.columns import Readings
from privstats.moments.grid import Grid
from privstats.plan import Plan, check_plausible
from privstats.randomness import Generator, secure
from privstats.records.reading import Reading
from privstats.release import Release
from privstats.transforms.cells import Cells

flat, right_release, right_draw, right_outside = flatten, session.release, mechanisms._sample, Grid.outside
right_read = Outside.read
right_share, right_share_sigma = dp.draw_share, Noise.share_sigma


def without_surplus(table: Mapping[str, TrustModel]) -> Mapping[str, TrustModel]:
    """No trust model pays for the variance that discreteness costs."""
    return {name: replace(row, surplus_variance=0.0) for name, row in table.items()}


def square_apart(share: Any, steps: float) -> Any:
    """An influence in whole steps, and what its square leaves of 1 from the real one."""
    return np.rint(np.clip(share, -1.0, 1.0) * steps), np.rint(np.clip(1.0 - share * share, 0.0, 1.0) * steps)


def numbers_for_texts(right: Callable[..., Any]) -> Callable[..., Any]:
    """Columns of two declared texts are read as numbers where they hold some."""

    def told(tile: Any, names: Any, declared: Any) -> Any:
        X, *rest = right(tile, names, declared)
        return np.where(np.isnan(X), right(tile, names, ())[0], X), *rest

    return told


def as_added(right: Callable[..., float]) -> Callable[..., float]:
    """An exchange of two units costs what one costs that comes."""
    return lambda schema, weights, _: right(schema, weights, "add-remove")


def left_out_for_nothing(right: Callable[..., float]) -> Callable[..., float]:
    """An exchange of two influences of one block never moves how many records there are."""

    def square(schema: Any, weights: Any, adjacency: Any) -> float:
        counted = {} if adjacency == "replace-one" and schema.blocks == 1 else weights
        return right(schema, {**weights, "N": counted.get("N", 0.0)}, adjacency)

    return square


def lost_rows_kept(right: Callable[..., Any]) -> Callable[..., Any]:
    """Of declared columns every record counts as one that can be read, whatever the maps behind the cells give."""

    def features(reading: Reading, tile: Any) -> Any:
        X, fine, *rest = right(reading, tile)
        return X, np.ones_like(fine) if reading.declaration is not None else fine, *rest

    return features


def priced_as_a_record(_: Callable[..., Any]) -> Callable[..., Any]:
    """Noise levels at which one record costs the promise, whatever the unit is."""
    return lambda schema, privacy, shares, mu: allocate(shares, mu, partial(joint_mu, schema), privacy.adjacency)


def scaled_sigma(factor: float) -> Any:
    """Noise that is too small where the plan calibrates it; its table still says what it should be."""

    def wrong(right: Any) -> Any:
        def calibrated(*arguments: Any, **options: Any) -> Noise:
            noise = right(*arguments, **options)
            return replace(noise, rows=tuple(replace(row, sigma=factor * row.sigma) for row in noise.rows))

        return calibrated

    return wrong


def shares_of(count: Any) -> cached_property[Any]:
    """A plan whose clients draw shares for another number of them than the honest survivors."""

    def noise(plan: Plan) -> Noise | None:
        return calibrate(plan.schema, plan.privacy, honest_shares=count(plan.cohort))  # type: ignore[arg-type]

    found = cached_property(noise)
    found.__set_name__(Plan, "noise")
    return found


def draw_of(bug: Any) -> Any:
    """A drawing of all segments in which ``bug(segment, values, sigma)`` spoils every segment."""

    def draw(noise: Any, layout: Any, rng: Generator) -> Any:
        values = right_draw(noise, layout, rng)
        parts = [
            bug(segment, values[place], noise.share_sigma(segment))
            for segment, place in zip(layout.segments, layout.slices, strict=True)
        ]
        return np.concatenate(parts)

    return draw


def no_off_diagonal(segment: Any, values: Any, sigma: float) -> Any:
    return np.zeros_like(values) if segment.name.endswith(".off") else values


def cut_at_three_sigma(segment: Any, values: Any, sigma: float) -> Any:
    return np.clip(values, -int(3 * sigma), int(3 * sigma))


def without_sign(segment: Any, values: Any, sigma: float) -> Any:
    return np.abs(values)


def one_stream(noise: Any, layout: Any, rng: Generator) -> Any:
    """Every segment starts at the beginning of the same stream."""
    seed = rng.bytes(32)
    sampler = noise.trust.sampler
    return np.concatenate([sampler(noise.share_sigma(s), s.size, Generator(seed)) for s in layout.segments])


def forgotten_share() -> Any:
    """Every fourth client forgets its noise."""
    calls = itertools.count()

    def draw(noise: Any, layout: Any, rng: Generator, layers: Any = ()) -> Any:
        values = right_share(noise, layout, rng, layers)
        return values if next(calls) % 4 else np.zeros_like(values)

    return draw


def repeated_share() -> Any:
    """The first share that was drawn is kept and used again."""
    kept: dict[Any, Any] = {}

    def draw(noise: Any, layout: Any, rng: Generator, layers: Any = ()) -> Any:
        return kept.setdefault((noise, layout), right_share(noise, layout, rng, layers))

    return draw


def halved(right: Any) -> Any:
    return lambda *arguments: right(*arguments) // 2


def coarse_grid_sigma(noise: Noise, segment: Any) -> float:
    """Second moments live on the square of the features' grid; here the square is forgotten."""
    scale = segment.scale if segment.statistic in "NA" else 8 * segment.scale**0.5
    return noise.sigma[segment.statistic] * scale * segment.noise_factor


def shared_local_sigma(noise: Noise, segment: Any) -> float:
    """Local noise divided among clients, as if they were to meet in one sum."""
    right = right_share_sigma(noise, segment)
    return right / noise.honest_shares**0.5 if noise.model == "local" else right


def half_of_b(right: Callable[..., float]) -> Callable[..., float]:
    return lambda schema, weights, adjacency: right(
        schema, {s: w / 2 if s == "B" else w for s, w in weights.items()}, adjacency
    )


def as_if_nonnegative(right: Callable[..., float]) -> Callable[..., float]:
    return lambda schema, *given: right(replace(schema, nonnegative=True), *given)


def unshrunk_mean(right: Any) -> Any:
    """The noisy mean is trusted as it is: rows are moved by its noise."""
    return lambda total, sigma, records: right(total, 0.0, records)


def sessions_as_one(right: Any) -> Any:
    """Every count session has the part of the promise that all of them share."""
    return lambda plan, edges, part: right(plan, edges, 3 * part)


def cells_by_counts(right: Any) -> Any:
    """The number of cells of the next session follows from how many are occupied, and so does the size of uploads."""
    return lambda found, cells: right(found, min(cells, 1 + 2 * len(found.cells)))


def curvature_without_noise(right: Any) -> Any:
    """The curvature of each class, as if a round had no noise."""
    return lambda *known: right(*known[:-1], 0.0)


def closed_at_the_right(right: Any) -> Any:
    """A value on an edge counts below it, and its sign says that it has reached it."""
    return lambda *given, **named: right(*given, **{**named, "closed": "right"})


def later_counts_unpriced(course: Any) -> Any:
    """What a course costs has one count session in it, however many there are."""
    return (course.first, *course._rest.priced) if isinstance(course, Binned) else course.phases.priced


def cheapest_in_its_place(course: Any) -> Any:
    """What a course costs has the cheapest session that may come at a place in it, and a retry may bring a dearer."""
    return tuple(min((phase.plan for phase in phases), key=mu_of) for phases in course.phases.by_place)


def lost_uncharged(right: Any) -> Any:
    """Sessions without a sum are not in an epsilon that is printed."""
    return lambda plans, position: right([plan for plan in plans if plan is not None], None)


def confidence_of_one_half(right: Callable[..., float]) -> Callable[..., float]:
    """The bound of two classes for any number of them: a model is never less sure than of one in two."""
    return lambda schema, *given: right(replace(schema, classes=2), *given)


def confidences_for_gains(right: Any) -> Any:
    """Every confidence is sent whole, as its running sum, so a record weighs more than the bound."""
    return lambda *given: right(*given).cumsum(axis=1)


def gradients_not_shortened(right: Any) -> Any:
    """A module's gradients are twice as long as the bound."""

    def longer(rows: Any, step: float, exponent: int, steps: int) -> Any:
        found, factor = right(rows, step, exponent, steps)
        return 2 * found, factor

    return longer


def gradients_not_checked(_: Any, gradients: Any, kappa: Any) -> Any:
    """Nothing looks at the norm of the integers."""
    return gradients, kappa


def rows_mixed(right: Any) -> Any:
    """A module's first layer takes the mean of the batch out of its rows, as a normalisation of batches does."""

    def mixed(shape: Any, units: Any, *rest: Any) -> Any:
        return right(shape, units - np.trunc(units.mean(axis=0) / 2), *rest)

    return mixed


def directions_not_shortened(_: Any) -> Any:
    """A direction is rounded to the nearest steps, and its length is what floats and rounding make it."""
    return lambda V, steps: np.rint(np.nan_to_num(V) * steps).astype(np.int64)


def as_if_one_fold(right: Callable[..., float]) -> Callable[..., float]:
    return lambda schema, *given: right(replace(schema, folds=1), *given)


def allocated_as_added(right: Any) -> Any:
    return lambda shares, mu, cost, _: right(shares, mu, lambda sigma, _: cost(sigma, "add-remove"), "add-remove")


def charged_by_the_other(right: Any) -> Any:
    other = {"add-remove": "replace-one", "replace-one": "add-remove"}
    return lambda schema, sigmas, adjacency: right(schema, sigmas, other[adjacency])


def charged_by_rows(times: int) -> dict[str, float]:
    """k rows of one record as k records of one row."""
    return dict.fromkeys(("add-remove", "replace-one"), float(times))


def counted(cls: Any, records: Any, expected: int | None, max_records: int | None, adjacency: str) -> Any:
    """The number of rows as it is, where nobody stated one."""
    return cls(records.count if expected is None else expected)


def mu_without_delta(epsilon: float, delta: float) -> float:
    return gaussian_mu(epsilon, 1e-2)


def textbook_mu(epsilon: float, delta: float) -> float:
    """The classical formula, proved for epsilon below 1 only."""
    return epsilon / float(np.sqrt(2 * np.log(1.25 / delta)))


def unclipped(fields: str) -> Any:
    """A grid that rounds and never shrinks the rows of these fields."""

    def outside(grid: Grid, squares: Any) -> Any:
        found = right_outside(grid, squares)
        return found[:0] if grid.field in fields else found

    return outside


def by_position(key: Any, folds: int) -> Any:
    return np.arange(len(key)) % folds


def one_more(right: Any) -> Any:
    return lambda *given: right(*given) + 1


_INDICES = Cells.indices


def gaps_below(cells: Cells, codes: Any) -> Any:
    return _INDICES(cells, np.where(np.isnan(codes), -np.inf, codes))


def read_by_type(right: Any) -> Any:
    """One text among the values of a column makes texts of its numbers, and one gap floats of its integers, which
    are other texts: as arrays of numpy have it."""

    def read(values: Any) -> Readings:
        column = right(values)
        if not column.texts and not column.missing.any():
            return column  # type: ignore[no-any-return]
        given = ~column.missing
        texts = [column.texts.get(at, f"{column.numbers[at]} ") if given[at] else "" for at in range(len(given))]
        return Readings.of(np.full(len(given), np.nan), texts)

    return read


def unread_by_type(right: Any) -> Any:
    """One text or gap among the values of a column makes objects of its numbers, of which none is read."""

    def read(values: Any) -> Readings:
        column = right(values)
        if not column.texts and not column.missing.any():
            return column  # type: ignore[no-any-return]
        return replace(column, numbers=np.full(len(column.numbers), np.nan))

    return read


def doubled_counts(moments: Any) -> Any:
    vector = flat(moments)
    if moments.schema.statistics.startswith("N"):
        vector[: moments.schema.classes] *= 2
    return vector


class LiftedFirst:
    """In the place of the noisy sum: the exact one leaves the ring and meets the noise outside.

    There a wrap is a step of 2**b. It goes with no check of what is plausible: that would abort in both worlds.
    """

    def __init__(self, plan: Plan, total: Any, rng: Generator) -> None:
        self.plan, self.total, self.rng = plan, total, rng

    def lift(self) -> Any:
        return self.total.lift() + dp.draw_central(self.plan.noise, self.plan.layout, self.rng)


def unchecked(plan: Plan, vector: Any) -> None:
    """Every sum is plausible."""


def checked_before_noise(right: Any) -> Any:
    def noisy(plan: Plan, total: Any, rng: Generator) -> Any:
        check_plausible(plan, total.lift())
        return right(plan, total, rng)

    return noisy


def never_charged(plan: Plan, account: Any, run: bytes, make: Callable[[], Any]) -> Any:
    return make()


def read_or_none(self: Outside) -> bytes | None:
    try:
        return right_read(self)
    except OSError:
        return None


def number_or_none(right: Callable[[bytes, Path], int]) -> Callable[[bytes, Path], int]:
    def number(written: bytes, path: Path) -> int:
        try:
            return right(written, path)
        except LocalProtocolError:
            return 0

    return number


def any_generator(rng: Generator | None, *, allow_reproducible: bool) -> Generator:
    return secure() if rng is None else rng


@contextmanager
def anybody(machine: Any, **options: Any) -> Iterator[None]:
    yield


def minimum_on_exact_counts(plan: Plan, total: Any, survivors: Any, *rest: Any, **options: Any) -> Release:
    release = right_release(replace(plan, min_count=0, merge={}), total, survivors, *rest, **options)
    counts = total.lift()[plan.layout.slices[0]] / 4096 if plan.min_count else np.zeros(0)
    rare = tuple(int(label) for label in np.flatnonzero(counts < plan.min_count))
    return replace(release, plan=plan, suppressed=rare)


def unrequired(plan: Plan, survivors: Any) -> None:
    """Any number of survivors will do before the charge; the release itself still refuses too few."""
