"""Describe the values of a setting: which ones it can have, how a refusal reads, and how a file writes them.

Help of the command line reads forms, so this module loads nothing that computes before a value is checked.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, get_args

from privstats.errors import PlanError

_KEY_DIGITS, _MAX_SHOWN = 64, 40
_LONGEST_NAME = 120


class Form:
    """The values that one setting can have, whatever the other settings are. A form refuses by ``checked``."""

    @property
    def choices(self) -> tuple[str, ...]:
        """All values, where these are a few words; else empty."""
        return ()

    @property
    def bounds(self) -> str:
        """The values in words, for the page of the plan file."""
        return ""

    def checked(self, name: str, value: Any) -> Any:
        """Return a value as a plan stores it; raise PlanError unless the setting can have it."""
        raise NotImplementedError

    def read(self, name: str, value: Any) -> Any:
        """Return the value of a plan file as an argument of the setting's class."""
        del name
        return value

    def written(self, value: Any) -> Any:
        """Return a value as plan files and canonical tables hold it."""
        return value


class Words(Form):
    """One of several words, which a module holds.

    Args:
        name: where they are, ``"module:name"``: words, a table of words, or a ``Literal``.
        remedy: what to do for a value that no word states; it ends the refusal.
    """

    def __init__(self, name: str, *, remedy: str = "choose one") -> None:
        self._name, self._remedy = name, remedy

    @property
    def choices(self) -> tuple[str, ...]:
        """The words, in order."""
        words = resolve_name(self._name)
        return get_args(words) or tuple(words)

    @property
    def bounds(self) -> str:
        """The words as files write them."""
        *several, last = [f'`"{word}"`' for word in self.choices]
        return f"{', '.join(several)} or {last}" if several else last

    def checked(self, name: str, value: Any) -> Any:
        """Return one of the words; raise PlanError for another value."""
        if not isinstance(value, str) or value not in self.choices:
            raise PlanError(f"{name} must be one of {', '.join(self.choices)}, got {value!r}; {self._remedy}")
        return value


class Levels(Words):
    """The level of an installed prover.

    Args:
        provers: the door :data:`~privstats.plan.provers.PROVERS`.
        remedy: what to do for another value; it ends the refusal.
    """

    def __init__(self, provers: Any, *, remedy: str) -> None:
        self._provers, self._remedy = provers, remedy

    @property
    def choices(self) -> tuple[str, ...]:
        """The levels, in order."""
        return tuple(self._provers)

    @property
    def bounds(self) -> str:
        """The levels as files write them, each with its meaning."""
        rows = self._provers.rows().values()
        meanings = {row.level: row.meaning.format(max_records="`most_records`") for row in rows}
        return "; ".join(f'`"{level}"`: {meaning}' for level, meaning in meanings.items())

    def checked(self, name: str, value: Any) -> Any:
        """Return the level of an installed prover; raise PlanError for another value."""
        if isinstance(value, str):
            self._provers.needed(value, name, self._remedy)
        return super().checked(name, value)


class AsciiName(Form):
    """A word that another part of the plan knows, which refuses other words.

    Args:
        sample: a word for the message.
    """

    def __init__(self, sample: str) -> None:
        self._sample = sample

    def checked(self, name: str, value: Any) -> Any:
        """Return an ASCII word; raise PlanError for another value."""
        if not isinstance(value, str) or not value.isascii():
            raise PlanError(
                f"{name} must be an ASCII name, for example {self._sample!r}, got {ascii(value)[:_MAX_SHOWN]}"
            )
        return value


@dataclass(frozen=True)
class Integer(Form):
    """An integer from ``low`` to ``high``; None: without an upper limit."""

    low: int
    high: int | None = None

    @property
    def bounds(self) -> str:
        """The range, for the page."""
        return f"{self.low} or more" if self.high is None else f"{self.low} to {self.high:,}"

    def checked(self, name: str, value: Any) -> Any:
        """Return an integer of this range; raise PlanError for another value."""
        if type(value) is not int or value < self.low or (self.high is not None and value > self.high):
            wanted = f"of at least {self.low}" if self.high is None else f"from {self.low} to {self.high}"
            raise PlanError(f"{name} must be an integer {wanted}, got {value!r:.40}")
        return value


@dataclass(frozen=True)
class Number(Form):
    """A number of a range.

    Attributes:
        ends: the smallest and the largest number, or the place where these are, ``"module:name"``; None: no largest.
        above: whether the number is above the smallest one.
        zero: whether 0 is a value, too.
    """

    ends: tuple[float, float | None] | str
    above: bool = False
    zero: bool = False

    @property
    def low(self) -> float:
        """The smallest number."""
        return self._ends[0]

    @property
    def high(self) -> float | None:
        """The largest number, if any."""
        return self._ends[1]

    @property
    def _ends(self) -> tuple[float, float | None]:
        ends: tuple[float, float | None] = resolve_name(self.ends) if isinstance(self.ends, str) else self.ends
        return ends

    @property
    def bounds(self) -> str:
        """The range, for the page."""
        low, to = (f"above {self.low:g}", "and at most") if self.above else (f"{self.low:g}", "to")
        known = f"{low} or more" if self.high is None else f"{low} {to} {self.high:g}"
        return f"{known}, or 0" if self.zero else known

    def checked(self, name: str, value: Any) -> Any:
        """Return the number as a float; raise PlanError for another value."""
        from privstats.python_values import check_number

        high = math.inf if self.high is None else self.high
        wanted = f"a number {'' if self.above else 'of '}{self.bounds}"
        return check_number(name, value, wanted, self.low, high, ends="(]" if self.above else "[]")


class Name(Form):
    """The name of a party, for people."""

    def checked(self, name: str, value: Any) -> Any:
        """Return a short printable name that is not blank; raise PlanError for another value."""
        short = isinstance(value, str) and 1 <= len(value) <= _LONGEST_NAME
        if not short or not value.isprintable() or not folded(value):
            raise PlanError(f"{name} must be a name of 1 to {_LONGEST_NAME} printable characters")
        return value


class Names(Form):
    """The names of several parties, for people."""

    def checked(self, name: str, value: Any) -> Any:
        """Return the names as a tuple; raise PlanError unless each is a name."""
        if not isinstance(value, list | tuple):
            raise PlanError(f"{name} must be a list of names, one for each member of the panel")
        return tuple(Name().checked(f"{name}[{place}]", each) for place, each in enumerate(value))


@dataclass(frozen=True)
class Sentence(Form):
    """One sentence, which the parties write to the letter where they rely on it."""

    text: str

    @property
    def bounds(self) -> str:
        """The sentence as files write it."""
        return f'`"{self.text}"`'

    def checked(self, name: str, value: Any) -> Any:
        """Return the sentence; raise PlanError for another value."""
        if value != self.text:
            raise PlanError(f"{name} must be {self.text!r} to the letter, or omitted, got {value!r:.80}")
        return value


class Key(Form):
    """An Ed25519 public key, 64 hexadecimal digits."""

    @property
    def bounds(self) -> str:
        """The form of a key, for the page."""
        return f"{_KEY_DIGITS} hex digits"

    def checked(self, name: str, value: Any) -> Any:
        """Return the key; raise PlanError for another value."""
        if not is_key(value):
            raise PlanError(f"{name} must be an Ed25519 key, 64 lower-case hex digits: see `privstats identity show`")
        _refuse_low_order(name, value)
        return value


class PageTexts(Form):
    """The texts of a page for people, by language."""

    def checked(self, name: str, value: Any) -> Any:
        """Return the texts; raise PlanError unless they have the form of ``files.page_texts``."""
        del name
        from privstats.files.page_texts import checked_texts

        return checked_texts(value)

    def written(self, value: Any) -> Any:
        """Return the texts as a table."""
        return dict(value)


@dataclass(frozen=True)
class CheckedThere(Form):
    """Values that the setting's own class describes and checks."""

    text: str

    @property
    def bounds(self) -> str:
        """The values in words, for the page."""
        return self.text

    def written(self, value: Any) -> Any:
        """Return a mapping as a table."""
        return dict(value) if isinstance(value, Mapping) else value


class Keys(Form):
    """Different Ed25519 public keys, 64 hexadecimal digits each."""

    @property
    def bounds(self) -> str:
        """The form of a key, for the page."""
        return f"different keys of {_KEY_DIGITS} hex digits"

    def checked(self, name: str, value: Any) -> Any:
        """Return the keys as a tuple; raise PlanError unless all are keys, and different."""
        if not isinstance(value, list | tuple) or not all(map(is_key, value)):
            raise PlanError(
                f"{name} must be a list of Ed25519 public keys, 64 lower-case hex digits each, the leader's first: "
                "list identity.public.hex() of each, or what `privstats identity show NAME.pub` prints"
            )
        for place, key in enumerate(value):
            _refuse_low_order(f"{name}[{place}]", key)
        if len(set(value)) != len(value):
            raise PlanError(f"{name} names one identity twice; leader and helpers must be different parties")
        return tuple(value)

    def written(self, value: Any) -> Any:
        """Return the keys as a list."""
        return list(value)


class ClassPairs(Form):
    """A mapping of classes to classes, by their numbers, sorted; a file writes the first ones as text."""

    def checked(self, name: str, value: Any) -> Any:
        """Return a hashable mapping; raise PlanError unless it maps integers to integers."""
        if not isinstance(value, Mapping) or not all(type(each) is int for pair in value.items() for each in pair):
            raise PlanError(f"{name} must map a class to another class by their numbers, for example {name}={{3: 0}}")
        return _Frozen(sorted(value.items()))

    def read(self, name: str, value: Any) -> Any:
        """Return a file's table with integers as keys."""
        try:
            pairs = {int(child): parent for child, parent in value.items()}
        except (AttributeError, ValueError):
            pairs = {}
        numbered = all(isinstance(parent, int) and not isinstance(parent, bool) for parent in pairs.values())
        if not numbered or not isinstance(value, dict) or len(pairs) != len(value):
            raise PlanError(f"aggregation.{name} must be a table of class = parent, for example {name} = {{3 = 0}}")
        return pairs

    def written(self, value: Any) -> Any:
        """Return a table with text as keys."""
        return {str(child): parent for child, parent in value.items()}


def folded(name: str) -> str:
    """Return a name for comparison: NFKC, case folded, with single blanks."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def is_key(value: object) -> bool:
    """Return whether a value has the form of a public key in a plan: 64 lower-case hexadecimal digits."""
    return isinstance(value, str) and len(value) == _KEY_DIGITS and set(value) <= set("0123456789abcdef")


def _refuse_low_order(name: str, key: str) -> None:
    from privstats.files.signing import require_order

    require_order(bytes.fromhex(key), name, PlanError)


class _Frozen(dict[int, int]):
    """A hashable mapping, because plans are values."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))
