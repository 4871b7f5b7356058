"""TOML that others wrote, parsed in bounded work: what Python's reader would not end with is refused as no TOML.

Of a dotted key of n parts it makes n^2 / 2 texts, so one megabyte of ``a.a.a`` is a terabyte of memory. No file of ours
has a key of more than two parts.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

__all__ = ["toml_tables"]

_MOST_PARTS = 16
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+"""
_LONG_KEY = re.compile(rf"(?m)(?:^|[\[{{,])[ \t]*+(?:{_PART}\.[ \t]*+){{{_MOST_PARTS}}}")


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
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except (RecursionError, ValueError):
        raise tomllib.TOMLDecodeError("it nests too deeply or holds an endless number") from None
