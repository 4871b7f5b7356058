"""Find a plan's settings that every browser refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias

from privstats.contrib.http.page import BUNDLE, client_file
from privstats.kinds import CountSchema
from privstats.plan import Plan


def warnings(plan: Plan) -> list[str]:
    """Return warnings that no browser answers a plan, or that the documented page cannot ask it."""
    if plan.devices is None:
        return []
    refusal = unanswered(plan)
    if refusal:
        return [f"WARNING: {refusal}"]
    if isinstance(plan.schema, CountSchema):
        return []
    return [
        f"WARNING: the page of `privstats http page` asks count tables alone, and schema.task is {plan.schema.task!r}: "
        "serve a separate page that calls run.measure, or choose task = 'counts'"
    ]


def unanswered(plan: Plan) -> str:
    """Return why every browser refuses a plan with ``[devices]``; empty if browsers answer."""
    for setting, value, values in _refused(_accepted(), plan.tables):
        choose = f"choose {' or '.join(values)}" if any(values) else "omit it"
        shown = f" = {value!r}" if isinstance(value, str | int | float) else ""
        return (
            f"no browser answers a plan with {setting}{shown}: {choose}, or let only installed software answer "
            "(`privstats http new --installed`)"
        )
    return ""


_Accepted: TypeAlias = Mapping[str, Mapping[str, tuple[str, ...]]]
_Refused: TypeAlias = Iterator[tuple[str, Any, tuple[str, ...]]]


def _refused(accepted: _Accepted, tables: Mapping[str, Any]) -> _Refused:
    # In the client's order: each refused setting, its value, and the accepted values.
    for name, table in {"plan": tables, **tables}.items():
        if name in accepted:
            yield from _surplus(accepted, name, name, table)
    schema, tasks = tables["schema"], tuple(name for name, keys in accepted.items() if "task" in keys)
    if schema["task"] in tasks:
        yield from _surplus(accepted, "schema", schema["task"], schema)
    else:
        yield "schema.task", schema["task"], tasks


def _surplus(accepted: _Accepted, name: str, listed: str, table: Mapping[str, Any]) -> _Refused:
    for key, value in table.items():
        setting, values = f"{name}.{key}", accepted[listed].get(key)
        text = "" if value in ([], ()) else str(value)
        if values is None or (values and text not in values):
            yield setting, value, values or ()
        elif setting in accepted:
            for each in value.values() if isinstance(value, Mapping) else value:
                yield from _surplus(accepted, setting, setting, each)


@cache
def _accepted() -> dict[str, dict[str, tuple[str, ...]]]:
    # Keys by table, each with its only values if it has some.
    (found,) = re.findall(r"^const ACCEPTED=(\{.*\});$", client_file(BUNDLE).read_text("utf-8"), re.M)
    rows = {table: [row.partition("=") for row in text.split(" ")] for table, text in json.loads(found).items()}
    return {
        table: {key: tuple(values.split("|")) if given else () for key, given, values in each}
        for table, each in rows.items()
    }
