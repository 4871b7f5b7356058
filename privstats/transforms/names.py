"""Public names: of columns, classes and values of categories, in a form in which records can be told by them.

Schemas and declared columns check theirs here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from privstats.errors import SchemaError
from privstats.transforms.one_value import LOST, Reading, reading, same

__all__ = ["check_told_apart", "checked_names", "shown"]

_LONGEST_SHOWN = 40
_LONGEST_NAME = 200
_LARGEST_WHOLE = 1 << 53  # up to which float64 has every whole number


def checked_names(field: str, names: Any, count: int | None = None, of: str = "") -> tuple[str, ...] | None:
    """Different texts without control characters, as a tuple; None where there are none."""
    if names is None:
        return None
    if not isinstance(names, tuple | list) or not all(isinstance(name, str) for name in names):
        raise SchemaError(f"{field} must be a tuple of texts, for example ('cat', 'dog'), got {shown(names)}")
    for name in names:
        if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable() or name != name.strip():
            raise SchemaError(
                f"{field} holds {shown(name)}; a name has 1 to {_LONGEST_NAME} printable characters, "
                "and no space at either end"
            )
    if len(set(names)) != len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise SchemaError(f"{field} holds {shown(twice)} twice; names tell things apart, so use each once")
    if count is not None and len(names) != count:
        raise SchemaError(f"{field} holds {len(names)} names but {of}={count}; name each once, in order")
    return tuple(str(name) for name in names)


def check_told_apart(field: str, values: Sequence[Any]) -> None:
    """Refuse public values that no record's value could be told by: one that is read as missing, two as the same, or
    one with a character that was lost in decoding, which may stand for several.

    Raises:
        SchemaError: naming the first such value.
    """
    known: dict[Reading, Any] = {}
    for value in values:
        read = reading(value)
        if read is None:
            raise SchemaError(
                f"{field} holds {shown(value)}, which is read as a missing value, in every container: write it in "
                "other words, such as 'nothing found'"
            )
        if isinstance(read, str) and LOST in read:
            raise SchemaError(
                f"{field} holds {shown(value)}, of which a character was lost, so several values may look like it: "
                "read the file again in its own encoding"
            )
        if isinstance(read, float) and abs(read) >= _LARGEST_WHOLE:
            raise SchemaError(
                f"{field} holds {shown(value)}, and from 2**53 on numbers run together: put a letter before it"
            )
        key = same(read) if isinstance(read, float) else read
        if key in known:
            raise SchemaError(
                f"{field} holds {shown(known[key])} and {shown(value)}, which are read as one value, in every "
                "container: put a letter before them"
            )
        known[key] = value


def shown(value: object) -> str:
    """A schema is public: a short text or number may be shown, anything else is named by its type."""
    plain = isinstance(value, str | int | float) and len(repr(value)) <= _LONGEST_SHOWN
    if not plain:
        return type(value).__name__
    return repr(str(value)) if isinstance(value, str) else repr(value)  # numpy's texts say that they are numpy's
