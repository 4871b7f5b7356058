"""Open doors: tables of rows that installed packages extend by entry points, and that no code assigns to.

A row is a frozen value or a class. Our rows come first, and an installed package replaces none of them. A key comes
from a plan, a file's header or a user: text of the core names no row that another room brings.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from pkgutil import resolve_name
from traceback import extract_tb
from types import MappingProxyType
from typing import Any, TypeVar

from privstats.errors import BrokenPackageWarning, PrivstatsError
from privstats.plug_ins import announced, dist_name, is_ours, loaded, one_line
from privstats.row_fields import RowError, fault_of, shown
from privstats.row_options import RowOptions, check_options

Row = TypeVar("Row")


class Door(Mapping[str, Row]):
    """Rows by name: ours, then those that installed packages announce, each loaded on first use.

    Reading one row of ours looks at no package. A broken package, or two packages with one name, stop no other row:
    the row is refused where it is named, and lists leave it out with a warning.

    Args:
        group: entry points that announce a row under its name.
        noun: what a row is, for messages.
        error: raised where an announced row cannot be loaded, is no row, or is missing: the error of the room whose
            call needs the row.
        fits: whether an object is a row of this name; raises ``RowError`` with what is wrong.
        own: our rows by name.

    Example:
        >>> from privstats.doors import Door
        >>> colours = Door("my.colours", "colour", ps.PrivstatsError, lambda row, name: row == name, {"red": "red"})
        >>> colours["red"], colours.origin("red"), list(colours)
        ('red', '', ['red'])
        >>> colours["blue"] = "blue"
        Traceback (most recent call last):
            ...
        TypeError: 'Door' object does not support item assignment
    """

    def __init__(
        self,
        group: str,
        noun: str,
        error: type[PrivstatsError],
        fits: Callable[[Any, str], bool],
        own: Mapping[str, Row] = MappingProxyType({}),
    ) -> None:
        self.group, self.noun = group, noun
        self._error, self._fits = error, fits
        self._own: Mapping[str, Row] = MappingProxyType(dict(own)) if isinstance(own, dict) else own
        self._checked: dict[str, Row] = {}

    def __repr__(self) -> str:
        return f"<Door {self.group}: {self._listed()}>"

    def __getitem__(self, name: str) -> Row:
        if name in self._own:  # found without entry points, so no broken package stops what names our rows alone
            return self._own[name]
        entry = self._entry(name)
        if entry is None:
            raise KeyError(name)
        row: Row = loaded(entry, self.noun, self._error)
        # A session reads the row of its course at each message. Another package's row is checked each time.
        if is_ours(entry) and self._checked.get(name, MISSING) is row:
            return row
        if why := self._fault(row, name):
            raise self._error(
                f"{dist_name(entry)} announces the {self.noun} {name!r} as {entry.value!r}, which is no {self.noun} of "
                f"that name: {why}; repair or uninstall that package"
            )
        self._checked[name] = row
        return row

    def _fault(self, row: Any, name: str) -> str:
        """Return why an object is no row of this name, a clause; empty for a row."""
        try:
            return "" if self._fits(row, name) else f"it is {shown(row)}"
        except BrokenPackageWarning:  # of another row, where a user turns it into an error
            raise
        except (RowError, PrivstatsError) as fault:
            return str(fault)
        except Exception as fault:  # a check may run another package's code
            return f"its check fails with {type(fault).__name__}: {one_line(fault)}"

    def __contains__(self, name: object) -> bool:
        return name in self._own or any(entry.name == name for entry in announced(self.group))

    def __iter__(self) -> Iterator[str]:
        """Yield our names, then those of other packages; warn of a name that two rows have, and yield ours alone."""
        ours, others = dict.fromkeys(self._own), dict[str, None]()
        for name in dict.fromkeys(entry.name for entry in announced(self.group)):
            if why := self._clash(name):
                warnings.warn(why, BrokenPackageWarning, stacklevel=2)
            if any(map(is_ours, self._entries(name))):
                ours[name] = None
            elif not why:
                others[name] = None
        return iter([*ours, *others])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def rows(self, *, of_others: bool = True) -> dict[str, Row]:
        """Return all rows by name, ours first; warn of each package whose row is broken, and leave that row out.

        Args:
            of_others: whether to load the rows of other packages.
        """
        return {name: row for name in self if of_others or not self.origin(name) for row in self._sound(name)}

    def first(self, wanted: Callable[[Row], bool]) -> Row | None:
        """Return the first row that is wanted, ours first, and load none after it; None where no row is.

        Example:
            >>> from privstats.course.kinds import COURSE_KINDS
            >>> COURSE_KINDS.first(lambda kind: kind.task == "of no kind of schema") is None
            True
        """
        return next((row for name in self for row in self._sound(name) if wanted(row)), None)

    def _sound(self, name: str) -> Iterator[Row]:
        """Yield one row; none, with a warning, where it is broken and of another package."""
        try:
            row = self[name]
        except PrivstatsError as fault:
            if not self.origin(name):
                raise  # so that no list lacks a row of ours without a word
            warnings.warn(str(fault), BrokenPackageWarning, stacklevel=4)
        else:
            yield row

    def options(self, part: str) -> RowOptions:
        """Return the options that the rows add to a command: those in a field of each row that is not None.

        Example:
            >>> from privstats.course.kinds import COURSE_KINDS
            >>> COURSE_KINDS.options("terms").joined()(rounds=3).rounds
            3
        """
        found = {name: getattr(row, part) for name, row in self.rows().items()}
        parts = {name: own for name, own in found.items() if own is not None}
        return RowOptions(parts, origin=self.origin, noun=self.noun)

    def require_own(self, name: str, option: str, part: str, options: str) -> None:
        """Refuse that an option of ours means a row of another package: it would change what our commands do.

        Args:
            name: the row's.
            option: the option that means the row, by the name of its field; empty for none.
            part: the field of the row that states it, for the message.
            options: the field with a row's options.

        Raises:
            RowError: one of our rows has this option.
        """
        if not option or not self.origin(name):
            return
        ours = {own: getattr(row, options) for own, row in self.rows(of_others=False).items()}
        having = [
            own for own, each in ours.items() if each is not None and option in {one.name for one in fields(each)}
        ]
        if having:
            raise RowError(
                f"its {part} is {option!r}, an option of the {self.noun} {having[0]!r} of privstats: choose an option "
                "that no row of privstats has"
            )

    @contextmanager
    def using(self, name: str, part: str = "") -> Iterator[None]:
        """Refuse by the name of its package what the code of a row raises in this block.

        Errors of privstats, of the system and of memory pass as they are, and so does every error of our own rows.

        Args:
            name: the row's.
            part: the field whose code runs, for the message; empty for none.

        Example:
            >>> from privstats.review.plan_notes import NOTES
            >>> with NOTES.using("of no package"):
            ...     len([1, 2])
            2
        """
        try:
            yield
        except (PrivstatsError, BrokenPackageWarning, OSError, MemoryError):
            raise
        except Exception as fault:
            if not self.origin(name):
                raise
            last = extract_tb(fault.__traceback__)[-1]
            raise self._error(
                f"{f'the {part} of ' if part else ''}{self.titled(name)} failed with {type(fault).__name__}: "
                f"{one_line(fault)} ({Path(last.filename).name}, line {last.lineno}); mend or uninstall that package"
            ) from fault

    def needed(self, name: str, by: str, otherwise: str = "") -> Row:
        """Return a row that something else needs.

        Args:
            by: what needs it, for the message.
            otherwise: what to do without it, for the end of the message.

        Raises:
            PrivstatsError: no installed package announces the row.
        """
        if name in self:
            return self[name]
        installed = self._listed()
        raise self._error(
            f"{by} needs the {self.noun} {name!r:.80}, which no installed package announces under the entry points "
            f"{self.group}{f' (installed: {installed})' if installed else ''}; install the package that does"
            f"{f', or {otherwise}' if otherwise else ''}"
        )

    def origin(self, name: str) -> str:
        """Return name and version of the package that announces a row; empty for ours."""
        entry = None if name in self._own else self._entry(name)
        return "" if entry is None or is_ours(entry) else dist_name(entry)

    def titled(self, name: str) -> str:
        """Return a row of another package with that package, for a message; a row of ours without one.

        Example:
            >>> from privstats.workflows.tables import READERS
            >>> READERS.titled("ols")
            "the table reader 'ols'"
        """
        origin = self.origin(name)
        return f"the {self.noun} {name!r}{f' of {origin}' if origin else ''}"

    def _entry(self, name: str) -> EntryPoint | None:
        entries = self._entries(name)
        entries = [entry for entry in entries if is_ours(entry)] or entries  # no package stops what names our rows
        if len(entries) > 1:
            raise self._error(self._clash(name))
        return entries[0] if entries else None

    def _entries(self, name: str) -> list[EntryPoint]:
        return [entry for entry in announced(self.group) if entry.name == name]

    def _clash(self, name: str) -> str:
        """Return the refusal of two rows of one name; empty for one row."""
        entries = sorted(self._entries(name), key=is_ours, reverse=True)
        packages = ["privstats" if is_ours(entry) else dist_name(entry) for entry in entries]
        packages = ["privstats", *packages] if name in self._own else packages
        return clash(self.noun, name, *packages[:2]) if len(packages) > 1 else ""

    def _listed(self) -> str:
        """Return all names for a message, without a refusal of two rows of one name."""
        return ", ".join(dict.fromkeys([*self._own, *(entry.name for entry in announced(self.group))]))


def clash(noun: str, name: str, one: str, other: str) -> str:
    """Return the refusal of two packages that have a row of one name.

    Example:
        >>> from privstats.doors import clash
        >>> clash("head", "LDA", "privstats", "stranger 0.1")
        "privstats and stranger 0.1 both have the head 'LDA'; rename it in one of them, or uninstall one"
    """
    return f"{one} and {other} both have the {noun} {name!r}; rename it in one of them, or uninstall one"


def is_row(cls: type[Any], key: str = "name", options: str = "", over: type = object) -> Callable[[Any, str], bool]:
    """Return the check of a door whose rows are instances of ``cls``.

    Args:
        key: the field with the row's name.
        options: the field with the row's options, a dataclass whose fields have defaults and an :class:`Option`; None
            is accepted where it is the field's default. Empty: the rows have none.
        over: the class from which all options derive.

    Example:
        >>> from privstats.doors import is_row
        >>> from privstats.row_options import Option
        >>> fits = is_row(Option, "help")
        >>> fits(Option("One sentence."), "One sentence.")
        True
        >>> fits(Option("One sentence."), "Another one.")
        Traceback (most recent call last):
            ...
        privstats.row_fields.RowError: its help is 'One sentence.', and must be 'Another one.', the name of the ...
    """

    def fits(row: Any, name: str) -> bool:
        if not isinstance(row, cls):
            raise RowError(f"it is {shown(row)}, and must be an instance of {cls.__name__}")
        if why := fault_of(row) if is_dataclass(cls) else "":
            raise RowError(why)
        if (own := getattr(row, key)) != name:
            raise RowError(f"its {key} is {shown(own)}, and must be {name!r}, the name of the entry point")
        if options and (own := getattr(row, options)) is not getattr(cls, options, MISSING):
            check_options(options, own, over)  # a field's default is one of its class
        return True

    return fits


def resolved(place: Any) -> Any:
    """Return what ``"module:name"`` names, and any other object unchanged: a row may name what it loads on use.

    Example:
        >>> from privstats.doors import resolved
        >>> resolved("math:floor")(2.5), resolved(round)(3.4)
        (2, 3)
    """
    return resolve_name(place) if isinstance(place, str) else place
