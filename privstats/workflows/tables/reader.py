"""The row of a table reader: what it reads, accepts and refuses. It loads nothing that computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from privstats.doors import resolved
from privstats.errors import PrivstatsError, ReleaseError
from privstats.row_fields import Place
from privstats.workflows.tables.options import Options

if TYPE_CHECKING:
    from privstats.doors import Door
    from privstats.plan import Plan
    from privstats.release import Release
    from privstats.schema import Schema
    from privstats.workflows.tables.result import TableResult


@dataclass(frozen=True)
class TableReader:
    """A reader of ``privstats table``.

    Functions may be given as ``"module:name"``, so that listing readers loads none.

    Attributes:
        name: as users type it.
        letters: the statistics that it reads, by the ``task`` of a kind of schema; alternatives are separated by
            blanks, the preferred one first. Empty: all that are sent.
        place: function of releases and options that returns the table.
        options: dataclass of its options.
        check: function of a plan that raises a ``PrivstatsError`` where every release under it would be refused.
        shares: budget shares for plans that send these statistics; empty: the schema's.
        family: of the models that it reads; empty: any.
        intervals: whether its intervals need Gaussian noise and sums of records or of persons' averages.
        of_courses: whether it reads several releases of one course.
        proposed: whether lists of a plan's readers show it, and ``privstats table`` prefers it to others.
        requested_by: option that means this reader where several fit; another package's reader has it alone.
        instead: what to use in place of an option that it lacks, by option.

    Example:
        >>> from privstats.workflows.tables import READERS
        >>> schema = ps.RidgeSchema(2, clip_norm=1.0, target_bound=1.0)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> READERS["ols"].accepts(plan), READERS["km"].accepts(plan)
        (True, False)
    """

    name: str
    letters: Mapping[str, str]
    place: Callable[[Sequence[Release], Any], TableResult] | Place
    options: type[Options] = field(default_factory=lambda: Options)  # no class attribute: Sphinx would list it twice
    check: Callable[[Plan], object] | Place | None = None
    shares: Mapping[str, float] = field(default_factory=dict)
    family: str = ""
    intervals: bool = True
    of_courses: bool = False
    proposed: bool = True
    requested_by: str = ""
    instead: Mapping[str, str] = field(default_factory=dict)

    def read(self, releases: Sequence[Release], options: Options) -> TableResult:
        """Return the table of releases, with an instance of :attr:`options`."""
        from privstats.workflows.tables.result import TableResult

        table = self._called("place", releases, options)
        if not isinstance(table, TableResult):
            raise ReleaseError(f"the place of {_readers().titled(self.name)} returns no TableResult: return one")
        return table

    def require_place(self) -> None:
        """Refuse a ``place`` that names no function."""
        self._function("place")

    def fits(self, schema: Schema) -> bool:
        """Return whether a release holds these statistics."""
        alike = self.family in ("", getattr(schema, "family", ""))
        return schema.task in self.letters and alike and self._read(schema) is not None

    def read_of(self, schema: Schema) -> str:
        """Return the letters that it reads of a schema that fits."""
        return self._read(schema) or sent(schema)

    def refusal(self, plan: Plan) -> str:
        """Return why the reader refuses every release under a plan, or empty."""
        if self.intervals and (why := refusal(plan)):
            return f"intervals are {why}"
        try:
            if self.check is not None:
                self._called("check", plan)
        except PrivstatsError as error:
            return str(error)
        return ""

    def accepts(self, plan: Plan) -> bool:
        """Return whether a release fits and is not refused."""
        return self.fits(plan.schema) and not self.refusal(plan)

    @property
    def wanted(self) -> str:
        """Kinds and statistics, as a phrase."""
        return " or ".join(_named(task) + _with(letters) for task, letters in self.letters.items())

    def alternatives(self, schema: Schema) -> list[str]:
        """Return the letters by which it reads this kind, each alternative alone; empty: any, or it does not."""
        return self.letters.get(schema.task, "").split()

    def _read(self, schema: Schema) -> str | None:
        held = set(sent(schema))
        return next((way for way in self.alternatives(schema) or [""] if held >= set(way)), None)

    def _function(self, part: str) -> Callable[..., Any]:
        """Return the function that a field names."""
        with _readers().using(self.name, part):
            function = resolved(getattr(self, part))
            if not callable(function):
                raise TypeError("it is no function")
        return cast("Callable[..., Any]", function)

    def _called(self, part: str, *given: Any) -> Any:
        function = self._function(part)
        with _readers().using(self.name, part):
            return function(*given)


def _readers() -> Door[TableReader]:
    # Named by a text, as rows name their functions: the module of the readers imports this one.
    readers: Door[TableReader] = resolved("privstats.workflows.tables:READERS")
    return readers


def sent(schema: Schema) -> str:
    """Return the letters of a schema's sent statistics.

    Example:
        >>> from privstats.workflows.tables.reader import sent
        >>> sent(ps.ClassSchema(2, 2, "NAB", clip_norm=1.0))
        'NAB'
    """
    return "".join(row.letter for row in schema.sent)


def refusal(plan: Plan) -> str:
    """Return why no interval of a release is valid, with the remedy, or an empty text.

    Example:
        >>> from privstats.workflows.tables.reader import refusal
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NAD", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> refusal(plan)
        ''
    """
    from privstats.dp import Privacy

    if not isinstance(plan.privacy, Privacy):
        return ""
    if plan.privacy.pure:
        return "proved for Gaussian noise, and delta = 0 has Laplace noise: give a delta above 0"
    if plan.person_clip is not None and not plan.person_clip.averaged:
        return "for independent rows, and one person's rows are not: set person_clip='average'"
    if plan.privacy.client_clip is not None:
        return "for sums of records, and client_clip shortens whole clients: omit client_clip"
    return ""


def _named(task: str) -> str:
    from privstats.kinds import KINDS

    if task not in KINDS:
        return f"the task {task!r}, which no installed kind of schema has,"
    name = KINDS[task].__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def _with(letters: str) -> str:
    ways = " or ".join(", ".join(way) for way in letters.split())
    return f" with statistics {ways}" if ways else ""
