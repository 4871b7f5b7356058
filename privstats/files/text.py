"""Read untrusted TOML in bounded work, and write strict JSON.

Python's TOML reader needs a terabyte of memory for one megabyte of ``a.a.a``.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping
from itertools import islice
from typing import Any

_PLAIN = re.compile(r"[\t\r\n -~]*")
_MOST_PARTS, _MOST_DOTTED = 16, 1 << 12
_INTEGER_BITS = 64
_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+"""
_START = r"(?m)(?:^|[\[{,])"
_LONG_KEY = re.compile(rf"{_START}[ \t]*+(?:{_PART}\.[ \t]*+){{{_MOST_PARTS}}}")
_DOTTED_KEY = re.compile(rf"{_START}(?=[ \t]*+(?:{_PART}\.[ \t]*+){{2}})")


def is_plain_text(data: bytes | str) -> bool:
    """Return whether text is printable ASCII in lines, as a key's is: no null character, no byte-order mark.

    Example:
        >>> from privstats.files.text import is_plain_text
        >>> is_plain_text(b"ssh-ed25519 AAAA\\n"), is_plain_text(b"ssh-ed25519 AAAA\\0")
        (True, False)
    """
    text = data.decode("latin-1") if isinstance(data, bytes) else data
    return _PLAIN.fullmatch(text) is not None


def toml_tables(text: str) -> dict[str, Any]:
    """Return the tables of a TOML document.

    Raises:
        TOMLDecodeError: no TOML, a key of many parts, too deep nesting, or an integer of more than 64 bits.

    Example:
        >>> from privstats.files.text import toml_tables
        >>> toml_tables("version = 1\\n[schema]\\nclasses = 2")
        {'version': 1, 'schema': {'classes': 2}}
    """
    if _LONG_KEY.search(text):
        raise tomllib.TOMLDecodeError(f"a key has more than {_MOST_PARTS} parts, which no file of ours needs")
    if sum(1 for _ in islice(_DOTTED_KEY.finditer(text), _MOST_DOTTED + 1)) > _MOST_DOTTED:
        raise tomllib.TOMLDecodeError(f"more than {_MOST_DOTTED:,} keys have three parts or more; write tables")
    try:
        tables = tomllib.loads(text)
        endless = _has_long_integer(tables)
    except tomllib.TOMLDecodeError:
        raise
    except (RecursionError, ValueError):
        raise tomllib.TOMLDecodeError("it nests too deeply or holds an endless number") from None
    if endless:
        raise tomllib.TOMLDecodeError(f"an integer has more than {_INTEGER_BITS} bits, which no file of ours needs")
    return tables


def _has_long_integer(value: Any) -> bool:
    """Return whether an integer is too long for every setting: it overflows floats, and fills pages where printed."""
    if isinstance(value, dict | list):
        return any(map(_has_long_integer, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int) and value.bit_length() > _INTEGER_BITS


def json_value(value: Any) -> Any:
    """Return the value with null for each number that JSON cannot hold, also inside mappings and sequences.

    Example:
        >>> from privstats.files.text import json_value
        >>> json_value({"epsilon": float("inf"), "rows": (1.0, float("nan"))})
        {'epsilon': None, 'rows': [1.0, None]}
    """
    if isinstance(value, Mapping):
        return {name: json_value(inner) for name, inner in value.items()}
    if isinstance(value, tuple | list):
        return [json_value(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_text(document: Any) -> str:
    """Return strict JSON with an indent of two.

    Example:
        >>> from privstats.files.text import json_text
        >>> print(json_text({"epsilon": float("inf")}))
        {
          "epsilon": null
        }
    """
    return json.dumps(json_value(document), indent=2, allow_nan=False)
