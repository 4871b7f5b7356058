"""Describe the values of a setting: which ones it can have, how a refusal reads, and how a file writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from privstats.errors import PlanError
from privstats.files.signing import require_order

_KEY_DIGITS, _MAX_SHOWN = 64, 40


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
    """One of several words. A mapping of words may gain entries later."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = words

    @property
    def choices(self) -> tuple[str, ...]:
        """The words, in order."""
        return tuple(self._words)

    @property
    def bounds(self) -> str:
        """The words as files write them."""
        *several, last = [f'`"{word}"`' for word in self.choices]
        return f"{', '.join(several)} or {last}" if several else last

    def checked(self, name: str, value: Any) -> Any:
        """Return one of the words; raise PlanError for another value."""
        if not isinstance(value, str) or value not in self.choices:
            raise PlanError(f"{name} must be one of {', '.join(self.choices)}, got {value!r}")
        return value


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
            require_order(bytes.fromhex(key), f"{name}[{place}]", PlanError)
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


def is_key(value: object) -> bool:
    """Return whether a value has the form of a public key in a plan: 64 lower-case hexadecimal digits."""
    return isinstance(value, str) and len(value) == _KEY_DIGITS and set(value) <= set("0123456789abcdef")


class _Frozen(dict[int, int]):
    """A hashable mapping, because plans are values."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))
