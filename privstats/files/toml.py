"""TOML that others wrote, parsed in bounded work: what Python's reader would not end with is refused as no TOML.

Of a dotted key of n parts it makes n^2 / 2 texts, so one megabyte of ``a.a.a`` is a terabyte of memory; and it keeps a
kilobyte for every part. No file of ours has a key of more than two parts, and a person writes few of three.
"""

from __future__ import annotations

import re
import tomllib
from itertools import islice
from typing import Any

__all__ = ["toml_tables"]

_MOST_PARTS, _MOST_DOTTED = 16, 1 << 12
_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+"""
_START = r"(?m)(?:^|[\[{,])"
_LONG_KEY = re.compile(rf"{_START}[ \t]*+(?:{_PART}\.[ \t]*+){{{_MOST_PARTS}}}")
_DOTTED_KEY = re.compile(rf"{_START}(?=[ \t]*+(?:{_PART}\.[ \t]*+){{2}})")


def toml_tables(text: str) -> dict[str, Any]:
    """The tables of a TOML document.

    Raises:
        TOMLDecodeError: no TOML, a key of many parts, a document that nests too deeply, or a number without end.

    Example:
        >>> from privstats.files.toml import toml_tables
        >>> toml_tables("version = 1\\n[schema]\\nclasses = 2")
        {'version': 1, 'schema': {'classes': 2}}
    """
    if _LONG_KEY.search(text):
        raise tomllib.TOMLDecodeError(f"a key has more than {_MOST_PARTS} parts, which no file of ours needs")
    if sum(1 for _ in islice(_DOTTED_KEY.finditer(text), _MOST_DOTTED + 1)) > _MOST_DOTTED:
        raise tomllib.TOMLDecodeError(f"more than {_MOST_DOTTED:,} keys have three parts or more; write tables")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except (RecursionError, ValueError):
        raise tomllib.TOMLDecodeError("it nests too deeply or holds an endless number") from None
