"""The tables of the pages on engines: what Flower costs, and how a session between machines grows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from statistics import median

from benchmarks.measuring import Row, Rows, results
from benchmarks.table import Cells, Shown, Table, Tables, by_name

__all__ = ["TABLES"]

_BEFORE = ", before"


def over_flower() -> Cells:
    """benchmarks/engines/numbers.md: sessions of five parties, in one process and as processes, before and after."""
    heading = ["protocol", "where", "sessions", "seconds of a session", "seconds of a step"]
    lines = [[*heading, "processor s a message", "bytes up", "bytes down"]]
    found = results("engines.federation")
    for when in (_BEFORE, ""):
        for place, rows in _by_place(found.get(f"whole sessions{when}", [])):
            steps = [row["seconds"] for row in found[f"steps{when}"] if _place(row) == place]
            message: list[float] = [
                row["processor seconds a message"] for row in rows if row.get("processor seconds a message")
            ]
            lines.append(
                [
                    place[0],
                    f"{place[1]}{when}",
                    str(len(rows)),
                    _spread([row["seconds"] for row in rows]),
                    _spread(steps),
                    f"{median(message):.2f}" if message else "",
                    *(f"{rows[0][name]:,}" for name in ("bytes up", "bytes down")),
                ]
            )
    return lines


def session_growth() -> Cells:
    """benchmarks/engines/numbers.md: a session of many parties on one machine."""
    heading = ["parties", "where", "s of the first step", "s of another step", "MB up", "MB down", "kB of a party"]
    lines, found = [heading], results("engines.scale")
    rows = [row for title in ("steps in the simulation", "steps as processes") for row in found.get(title, [])]
    for (parties, where), each in groupby(rows, lambda row: (row["parties"], row["where"])):
        first, *later = each
        total = {way: sum(row[f"bytes {way}"] for row in (first, *later)) for way in ("up", "down")}
        lines.append(
            [
                str(parties),
                where,
                f"{first['seconds']:.1f}",
                _spread([row["seconds"] for row in later]),
                *(f"{total[way] / 1e6:.2f}" for way in ("up", "down")),
                f"{sum(total.values()) / parties / 1e3:.0f}",
            ]
        )
    return lines


def large_upload() -> Cells:
    """benchmarks/engines/numbers.md: how fast large vectors travel."""
    lines = [["parties", "entries", "bits", "MB of a party", "s of the step", "MB a second", "s of the other steps"]]
    for row in results("engines.scale").get("a large upload", []):
        numbers = ("MB of a party", "seconds", "MB a second", "seconds of the other steps")
        size = f"{row['entries']:,}", row["bits"]
        lines.append([str(row["parties"]), *size, *(f"{row[name]:.1f}" for name in numbers)])
    return lines


def journal_costs() -> Cells:
    """benchmarks/secagg/numbers.md: what a leader's journal costs a report, before segments and now."""
    heading = ["entries", "what", "the helper answers", "processor ms a report", "bytes written a byte received"]
    lines = [[*heading, "waits for the disk a report"]]
    found = results("engines.journal")
    for title, when in (("a leader's journal, before", ", before"), ("a leader's journal", "")):
        for row in found.get(title, []):
            numbers = "processor ms a report", "written a byte received", "waits a report"
            said = [
                f"{row['entries']:,}",
                f"{row['what']}{when}",
                {"away": "when all have reported"}.get(row["helper"], row["helper"]),
            ]
            lines.append([*said, *(f"{row[name]:.2f}" for name in numbers)])
    return lines


def _by_place(rows: Rows) -> list[tuple[tuple[str, str], list[Row]]]:
    return [(place, list(each)) for place, each in groupby(rows, _place)]


def _place(row: Row) -> tuple[str, str]:
    return row["protocol"], row["where"]


def _spread(seconds: list[float]) -> str:
    """The median, and the least and the most where they differ."""
    low, middle, high = f"{min(seconds):.1f}", f"{median(seconds):.1f}", f"{max(seconds):.1f}"
    return middle if low == high else f"{middle} ({low} to {high})"


def _rounded(name: str, digits: int = 1) -> Callable[[Row], str]:
    return lambda row: f"{row[name]:.{digits}f}"


_REQUESTS: dict[str, Shown] = {
    "parties": "{parties}",
    "requests a second, first 5 s": _rounded("0 to 5 s"),
    "5 to 60 s": _rounded("5 to 60 s"),
}
_FAULTS: dict[str, Shown] = {
    "fault": "{fault}",
    "party": "{party}",
    "`flower status` during the fault": "{status}",
    "`join`": lambda row: "; ".join(row["join"]) or "no change",
    "seconds until it works": _rounded("seconds"),
}
TABLES: Tables = {
    **by_name(over_flower, session_growth, large_upload, journal_costs),
    "faults": Table("engines.faults", "three parties after a fault", _FAULTS),
    "silent_requests": Table("engines.scale", "requests a second to Flower", _REQUESTS),
}
"""By the name in the page's marker."""
