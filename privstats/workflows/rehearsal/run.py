"""Run a rehearsal: a complete study on the parties' files, compared with each party alone.

Masks, messages, noise and course are real, but facts are read from the files and one process sees all records: no
result is a release.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from privstats.course import Binned, Centred, Rounds
from privstats.course.base import Course
from privstats.dp import Privacy
from privstats.dp.privacy import MODELS
from privstats.errors import DataError, SchemaError, UnreadableRecordsWarning
from privstats.files.atomic import require_place
from privstats.heads import LDA, RefinedSoftmax
from privstats.heads.diagnostics import FewRecordsWarning, only_ranks
from privstats.inference import Scorecard, scorecard
from privstats.intake.column_names import place_of, places_in
from privstats.kinds import ClassSchema
from privstats.moments import RecordFile
from privstats.plan import Cohort, Plan
from privstats.plan.settings import new_plans
from privstats.progress import progress_bar
from privstats.randomness import Generator
from privstats.release import Release
from privstats.transforms import Cells
from privstats.workflows.fitting import fitted
from privstats.workflows.rehearsal.areas import Auc, Decided, Shares, auc, gain
from privstats.workflows.rehearsal.assumed import Assumed, RehearsalOptions, assumed_of, has_one_class
from privstats.workflows.rehearsal.page import write_page
from privstats.workflows.rehearsal.parties import Party, parties_of, read_file, shared_names, target_of, tested
from privstats.workflows.rehearsal.sources import HeldTable, Source, written_as
from privstats.workflows.rehearsal.stated import StatedGaps
from privstats.workflows.rehearsal.without_noise import exact_alone, exact_sums
from privstats.workflows.simulate import simulate

_PAIR = 2
_TILE_BYTES = 1 << 24
_DRAWS = 40
"""Noise replicates for the scorecard's bands: a fifth of the usual number, because 30 columns take a minute."""


@dataclass(frozen=True)
class Opened:
    """The read files, and the facts treated as public."""

    asked: RehearsalOptions
    public: Assumed
    parties: tuple[Party, ...]
    seconds: float
    files: tuple[Source, ...]

    @property
    def privacy(self) -> Privacy:
        """The rehearsed guarantee."""
        return self.asked.privacy(len(self.parties))

    @property
    def plan(self) -> Plan:
        """Plan with the total guarantee."""
        cells = Cells(self.public.columns)
        names = self.public.classes
        schema = ClassSchema(len(names), cells.width, "NAB", clip_norm=1.0, class_names=names, transform=(cells,))
        clients = len(self.parties)
        colluders = min(1, clients - _PAIR) if MODELS[self.privacy.model].divided else 0
        return Plan(
            schema=schema,
            cohort=Cohort(clients, clients, 2 * self.public.records, colluders),
            privacy=self.privacy,
            **new_plans(),
        )

    @property
    def course(self) -> Course:
        """Course: any cut points, then the recipe for these classes."""
        two, size = len(self.public.classes) == _PAIR, self.public.persons or self.public.records
        if not Cells(self.public.columns).open:
            return (Rounds if two else Centred).within(self.plan, expected_records=size)
        return Binned.within(self.plan, "rounds" if two else "centred", expected_records=size)


@dataclass(frozen=True)
class Own:
    """Areas of one party's own and the joint private model, on its own held-out records.

    Attributes:
        alone, private, gain: None without a model of its own, or without a record of each class held out.
        unfitted, unscored: classes without a record among those summed, and held out.
    """

    records: int
    alone: Auc | None
    private: Auc | None
    gain: Auc | None
    unfitted: tuple[str, ...] = ()
    unscored: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Rehearsal:
    """Results of a rehearsal; ``print`` shows areas and costs.

    Attributes:
        own: by party, on its own held-out records.
        private: joint private model's area, on all held-out records.
        exact: likewise from exact sums of the same sessions, without privacy.
        alone: by party, its own model's area on all held-out records; None where it sums no record of some class.
        decided: the private model's predictions.
        card: the private model's points, with bands.
        ranks: whether the private model's probabilities are too sure (``diagnostics.RANKS``).
        upload_bytes: masked bytes per party.
        seconds: reading included.
    """

    opened: Opened
    own: Mapping[str, Own]
    private: Auc
    exact: Auc
    alone: Mapping[str, Auc | None]
    decided: Decided
    releases: tuple[Release, ...]
    card: Scorecard
    ranks: bool
    upload_bytes: int
    seconds: float

    def __str__(self) -> str:
        from privstats.workflows.rehearsal.page import text_of

        return text_of(self)


def opened(files: Sequence[Source], asked: RehearsalOptions) -> Opened:
    """Read the files, and infer public facts; errors as for :func:`rehearse`."""
    start = perf_counter()
    asked.privacy(len(files))
    if not 0 < asked.test < 1:
        raise DataError(f"test must be between 0 and 1, got {asked.test:g}; give the share to score on, such as 0.25")
    names = shared_names(files, asked.target, asked.drop, asked.persons, asked.read)
    gaps = StatedGaps.of(asked.gaps, names)
    target = names[place_of(asked.target, names) or 0]
    sources = [first := read_file(files[0], names, asked.persons, gaps)]
    readings = {name: first.readings(name) for name in names}
    while has_one_class(readings[target], gaps.words) and len(sources) < len(files):
        sources.append(read_file(files[len(sources)], names, asked.persons, gaps))
        readings[target] = target_of(sources, target)
    trusted = {names[place] for place in places_in(asked.read, names) if place is not None}
    public = assumed_of(
        readings,
        target,
        1,
        persons=asked.persons,
        raw=first.raw,
        stated=gaps,
        affixed=first.affixed(names),
        trusted=trusted,
    )
    try:
        Cells(public.columns)  # refuses too many columns before the other files are read
    except SchemaError as refusal:
        raise SchemaError(f"{refusal}: omit columns from the rehearsal with --drop (in Python drop=)") from None
    sources += [read_file(file, names, asked.persons, gaps) for file in files[len(sources) :]]
    parties = parties_of(files, sources, public, asked.test)
    persons = None if asked.persons is None else sum(each.persons(test=False) for each in parties)
    unnamed = {f"column {place}": "it has no name" for place in first.nameless}
    records = sum(int((~each.test).sum()) for each in parties)
    public = replace(public, left_out=unnamed | dict(public.left_out), records=records, persons=persons)
    return Opened(asked, public, parties, perf_counter() - start, tuple(files))


def rehearsed(what: Opened, advance: Callable[[int], None], rng: Generator | None = None) -> Rehearsal:
    """Run the sessions with masks and noise, and fit each model.

    ``advance`` is called once per party and 3 times more.
    """
    start = perf_counter()
    releases = _releases(what, rng)
    head = fitted(_head(what), releases)
    with _oddities_told():
        private = [np.asarray(head.predict_proba(party.held_out), np.float64) for party in what.parties]
    advance(1)
    card = scorecard(head, releases, draws=_DRAWS)
    advance(1)
    exact = _without_noise(what, what.parties)
    advance(1)
    alone = dict[str, list[Shares] | None]()
    for party in what.parties:
        lacks = party.lacks(what.public.classes, test=False)
        alone[party.name] = None if lacks else _without_noise(what, (party,))
        advance(1)
    held, summed = tested(what.parties), np.concatenate([party.y[~party.test] for party in what.parties])
    return Rehearsal(
        opened=what,
        own={
            party.name: _own(party, what.public.classes, _at(alone[party.name], place), private[place])
            for place, party in enumerate(what.parties)
        },
        private=auc(held, np.concatenate(private)),
        exact=auc(held, np.concatenate(exact)),
        alone={name: None if each is None else auc(held, np.concatenate(each)) for name, each in alone.items()},
        decided=Decided.of(what.public.classes, summed, held.y, np.concatenate(private)),
        releases=releases,
        card=card,
        ranks=only_ranks(head),
        upload_bytes=sum(release.plan.masking.upload_bytes for release in releases),
        seconds=what.seconds + perf_counter() - start,
    )


@contextmanager
def _oddities_told() -> Iterator[None]:
    """Ignore warnings of unreadable values: ``Party.odd`` names them with their file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreadableRecordsWarning)
        yield


def _releases(what: Opened, rng: Generator | None) -> tuple[Release, ...]:
    with _oddities_told():
        releases = simulate(what.course, _shards(what, what.parties), rng=rng)
    return tuple(release for release in releases if release is not None)


def _shards(what: Opened, parties: Sequence[Party]) -> list[Any]:
    names = np.array(what.public.classes)
    return [(table, names[y], *ids) for table, y, *ids in (party.shard for party in parties)]


def _at(shares: list[Shares] | None, place: int) -> Shares | None:
    return None if shares is None else shares[place]


def _own(party: Party, classes: Sequence[str], alone: Shares | None, private: Shares) -> Own:
    held, unscored = tested((party,)), party.lacks(classes, test=True)
    of_own, joint = (None if unscored or each is None else auc(held, each) for each in (alone, private))
    more = None if unscored or alone is None else gain(held, private, alone)
    return Own(len(held.y), of_own, joint, more, party.lacks(classes, test=False), unscored)


def _head(what: Opened) -> Any:
    return RefinedSoftmax() if len(what.public.classes) == _PAIR else LDA()


def _without_noise(what: Opened, learned: Sequence[Party]) -> list[Shares]:
    """Score the same model of some parties' exact sums on all held-out records."""
    size = sum(each.persons(test=False) if each.ids is not None else int((~each.test).sum()) for each in learned)
    with _oddities_told(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FewRecordsWarning)
        shards = _shards(what, learned)
        whole = len(learned) == len(what.parties)  # literally the private sessions, so noise alone differs
        releases = exact_sums(what.course, shards) if whole else exact_alone(what.course, what.plan, shards, size)
        head = fitted(_head(what), releases)
        return [np.asarray(head.predict_proba(party.held_out), np.float64) for party in what.parties]


def rehearse(
    tables: Mapping[str, Any] | Sequence[Any],
    *,
    target: str,
    epsilon: float,
    delta: float | None = None,
    adjacency: str | None = None,
    model: str | None = None,
    test: float = 0.25,
    drop: Sequence[str] = (),
    persons: str | None = None,
    gaps: Sequence[str] = (),
    page: str | os.PathLike[str] | None = None,
    rng: Generator | None = None,
    read: Sequence[str] = (),
) -> Rehearsal:
    """Rehearse a study on tables that you may look at: ``privstats try`` in Python.

    Masks and noise are real. Facts that a study must know beforehand are read from the tables, so **no result is a
    release**.

    Args:
        tables: one per party, at least two, by name or in sequence: pandas or polars frames, Arrow tables, DuckDB
            relations, mappings of columns, or paths of CSV and Parquet files.
        target: the predicted column, of a few classes.
        epsilon: of the guarantee.
        delta, adjacency, model: likewise; by default the rehearsal's.
        test: approximate share of the records to score on, 0 to 1.
        drop: columns to exclude.
        persons: id column, for a guarantee per person: a person's rows at one party together weigh at most one. The id
            decides whether all rows of a person, in every table, are summed or scored on; rows without an id are
            excluded. None: per record, and a person's rows may be on both sides.
        gaps: words that mean a gap in every column, next to those that look like one (``-``, ``.a``, ``#DIV/0!``).
            ``"crp=-9"`` states a code of one column, which may be a number.
        page: file for the page, which is replaced.
        rng: test randomness; the operating system's when omitted.
        read: columns that name no person or record, although their values look like ids; such a column is not read
            before, and ``opened.public.questions`` states why.

    Raises:
        DataError: tables without common columns, names or ids, or all together with too few records of a class.
        SchemaError: more columns than a plan may declare.
        PlanError: a privacy parameter out of its bounds.
        PrivstatsError: the page cannot be written.
        MissingExtraError: a page without jinja2 or matplotlib.

    Example:
        >>> dose = np.random.default_rng(0).normal(size=(2, 400))
        >>> tables = {name: {"dose": x, "ill": x > 0.5} for name, x in zip(("north", "south"), dose)}
        >>> found = ps.rehearse(tables, target="ill", epsilon=20.0)
        >>> list(found.alone), found.exact.value > 0.9
        (['north', 'south'], True)
    """
    if page is not None:
        require_place(page)
    lists = {"drop": tuple(drop), "gaps": tuple(gaps), "read": tuple(read)}
    options = RehearsalOptions(target, epsilon, delta, adjacency, model, test, persons=persons, **lists)
    result = with_progress(opened(_sources_of(tables, target), options), rng)
    if page is not None:
        write_page(result, page)
    return result


def with_progress(what: Opened, rng: Generator | None = None) -> Rehearsal:
    """Run :func:`rehearsed` with progress, in one thread."""
    from threadpoolctl import threadpool_limits

    with progress_bar("rehearsing", len(what.parties) + 3) as advance, threadpool_limits(1):
        return rehearsed(what, advance, rng)


def _sources_of(tables: Mapping[str, Any] | Sequence[Any], target: str) -> list[Source]:
    named = isinstance(tables, Mapping)
    pairs = list(tables.items()) if isinstance(tables, Mapping) else [("", each) for each in tables]
    if len(pairs) < 2:
        raise DataError("a rehearsal needs two tables or more, one for each party: {'north': frame, 'south': frame}")
    sources: list[Source] = []
    for place, (name, each) in enumerate(pairs, 1):
        if isinstance(each, str | os.PathLike):
            sources.append(written_as(RecordFile(each, target), {}))
        else:
            sources.append(HeldTable(str(name) if named else f"party {place}", each))
    return sources
