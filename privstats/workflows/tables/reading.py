"""Read a table by the name of its reader, or by the first reader that fits."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence

from privstats.course.positions import in_places
from privstats.errors import ReleaseError
from privstats.inference.releases import require_gaussian, require_level
from privstats.release import Release
from privstats.row_options import flag_of
from privstats.workflows.tables.options import clause_of, names_in
from privstats.workflows.tables.reader import TableReader, sent
from privstats.workflows.tables.refusals import refused
from privstats.workflows.tables.result import TableResult
from privstats.workflows.tables.rows import READERS, reader_of


def read(name: str, releases: Release | Sequence[Release], **options: object) -> TableResult:
    """Return the table of a release, or of a course's releases, as ``privstats table --reader NAME`` prints it.

    Args:
        name: of a reader, one of :data:`READERS`.
        releases: one; or those of all sessions of a course, in order, where the reader reads courses.
        options: the reader's, by the names of the fields of its ``options``.

    Raises:
        ReleaseError: no such reader, an option that it lacks, a level out of (0, .5], or a release that it refuses.

    Example:
        >>> schema = ps.RidgeSchema(2, clip_norm=9.0, target_bound=9.0, transform=(ps.transforms.ConstantFeature(1.0),))
        >>> x = np.arange(300)[:, None] % 7
        >>> release = ps.Release.exact(schema, ps.measure(schema, x, x[:, 0] + np.arange(300) % 2))
        >>> table = ps.workflows.tables.read("ols", release, alpha=0.1)
        >>> [row["term"] for row in table.data], round(table.data[1]["estimate"], 1)
        (['const', 'x0'], 1.0)
        >>> ps.workflows.tables.read("ols", release, time="months")
        Traceback (most recent call last):
            ...
        privstats.errors.ReleaseError: time is for reader km, not ols; omit it
    """
    return table_of(name, [releases] if isinstance(releases, Release) else releases, options)


def table_of(
    name: str,
    releases: Sequence[Release],
    given: Mapping[str, object],
    *,
    flags: bool = False,
) -> TableResult:
    """Return the table that :func:`read` returns.

    Args:
        given: the options that a user names.
        flags: whether messages spell options as the command does.
    """
    reader = reader_of(name)
    for option in given:
        if option not in names_in(reader.options):
            raise ReleaseError(_lacks(option, reader, flags))
    options = reader.options(**given)  # type: ignore[arg-type]
    require_level(options.alpha)
    if not releases or not all(isinstance(each, Release) for each in releases):
        raise ReleaseError(f"releases must be a Release, or a course's in order, got {releases!r:.80}; load a file")
    if len(releases) > 1 and not reader.of_courses:
        raise ReleaseError(f"{_word(flags)} {name} reads one release, got {len(releases)}; name one file")
    if why := refused(name, releases[-1].plan):
        if len(releases) > 1:
            in_places(releases)  # refuses another order
        raise ReleaseError(why)
    return reader.read(releases, options)


def fitting(releases: Sequence[Release], given: Collection[str], without: Container[str] = ()) -> str:
    """Return the name of the first reader that accepts the last release and has the given options.

    Args:
        releases: in order; the last decides.
        given: names of options.
        without: readers whose options the command left out.

    Raises:
        ReleaseError: none accepts it.
    """
    plan = releases[-1].plan
    rows = READERS.rows().items()
    accepting = [reader for name, reader in rows if name not in without and reader.accepts(plan)]
    if not accepting:
        if len(releases) > 1:
            in_places(releases)  # refuses another order
        require_gaussian(releases[-1])
        schema = plan.schema
        raise ReleaseError(f"no table is read from {', '.join(sent(schema))} of a {type(schema).__name__}; fit a head")
    proposed = [reader for reader in accepting if reader.proposed] or accepting
    having = [reader for reader in proposed if set(given) <= set(names_in(reader.options))] or proposed
    return next((reader for reader in having if reader.requested_by in given), having[0]).name


def _lacks(option: str, reader: TableReader, flags: bool) -> str:
    having = {name: row.options for name, row in READERS.rows().items() if option in names_in(row.options)}
    if not having:
        return f"{reader.name} has no option {option!r}; it has {', '.join(names_in(reader.options))}"
    *first, last = having
    readers = f"{', '.join(first)} and {last}" if first else f"{_word(flags)} {last}"
    clauses = dict.fromkeys(clause_of(own, option) for own in having.values())
    because = "".join(f", {each}" for each in clauses if each)
    instead = f": {reader.instead[option]}" if option in reader.instead else ""
    shown = flag_of(having[last], option) if flags else option
    return f"{shown} is for {readers}{because}, not {reader.name}; omit it{instead}"


def _word(flags: bool) -> str:
    return "--reader" if flags else "reader"
