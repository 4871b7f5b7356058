"""Numbers that JSON cannot hold: null stands for infinity and NaN, in every document that the library writes.

It is no serialiser: owners build their documents of plain values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

__all__ = ["json_text", "json_value"]


def json_value(value: Any) -> Any:
    """The value with null for each number that JSON cannot hold, through all mappings and sequences in it.

    Example:
        >>> from privstats.files.jsonable import json_value
        >>> json_value({"epsilon": float("inf"), "rows": (1.0, float("nan"))})
        {'epsilon': None, 'rows': [1.0, None]}
    """
    if isinstance(value, Mapping):
        return {name: json_value(inner) for name, inner in value.items()}
    if isinstance(value, tuple | list):
        return [json_value(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_text(document: Any) -> str:
    """A document for people and programs: two spaces of indent, and no number that a strict reader refuses.

    Example:
        >>> from privstats.files.jsonable import json_text
        >>> print(json_text({"epsilon": float("inf")}))
        {
          "epsilon": null
        }
    """
    return json.dumps(json_value(document), indent=2, allow_nan=False)
