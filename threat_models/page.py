"""A leakage report as one page for a person who answers for privacy: measured, declared, combined, in plain sentences.

Only wording and layout; the numbers are the report's. Needs the ``report`` extra (jinja2, matplotlib).
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from importlib.resources import files

from privstats.errors import MissingExtraError
from privstats.version import __version__
from threat_models.pictures import COLOURS, drawn
from threat_models.report import LeakageReport, Row

__all__ = ["render"]

_TITLES = {
    "matrix": ("Who learns what", "Each cell is how often the attack is right for somebody who sees that much."),
    "roc": (
        "Hits against false alarms",
        "Grey is more than was promised; a short stretch in it is chance, which the verdicts allow for.",
    ),
    "over-records": ("Leakage against records per class", "More records hide each other; marks at d and d²/2."),
    "over-epsilon": ("Leakage against epsilon", "Dashed and grey: what the promise allows at each epsilon."),
    "over-dropouts": ("Leakage against dropouts", "Fewer clients bring less noise; the promise holds for the fewest."),
    "over-releases": ("Leakage against the number of releases", "Every release of the same records adds to the last."),
    "reconstruction": (
        "Records rebuilt",
        "From the left: the truth, two readings of the release, two guesses without.",
    ),
}


@dataclass(frozen=True)
class _Line:
    name: str
    who: str
    note: str
    measured: str
    baseline: str
    ceiling: str
    verdict: str
    colour: str


@dataclass(frozen=True)
class _Picture:
    title: str
    caption: str
    source: str


def render(report: LeakageReport) -> str:
    """The page as HTML in one file, pictures inside.

    Raises:
        MissingExtraError: jinja2 or matplotlib is not installed.
    """
    try:
        import jinja2
    except ImportError:
        raise MissingExtraError("the page needs jinja2: pip install 'privstats[report]'") from None
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(files(__package__).joinpath("page.html").read_text("utf-8"))
    pictures = [_picture(name, png) for name, png in drawn(report).items()]
    return template.render(
        report=report,
        headline=_headline(report),
        measured=_measured(report),
        declared=_declared(report),
        combined=_combined(report),
        lines=[_line(row) for row in report.rows],
        pictures=pictures,
        version=__version__,
    )


def _headline(report: LeakageReport) -> str:
    if report.violated:
        names = ", ".join(dict.fromkeys(row.attack for row in report.rows if row.verdict == "violates ceiling"))
        return f"An attack won more than the promise allows ({names}). This must not happen: do not release."
    leaking = {row.attack for row in report.rows if row.verdict == "leaks" and row.goal != "audit"}
    if leaking:
        return f"{_count(len(leaking), 'attack')} learned something from the release; none more than was promised."
    return "No attack in this table learned anything that could be seen from the release."


def _measured(report: LeakageReport) -> str:
    worst = report.worst
    if worst is None or worst.interval is None:
        return "Nothing was measured: no attack applied to this plan."
    return (
        f"The most successful attack is {worst.attack} ({worst.adversary}): {worst.metric} {_rate(worst.measured)}, "
        f"at least {_rate(worst.interval[0])} with confidence; without the release it has {_rate(worst.baseline)}."
    )


def _declared(report: LeakageReport) -> str:
    ceiling = [row for row in report.rows if row.ceiling is not None and row.metric == "AUC" and row.sees == "release"]
    text = report.declared[:1].upper() + report.declared[1:] + "."
    if not ceiling:
        return text + " There is no ceiling: a better attack may learn more than any in this table."
    return (
        text + f" No attacker, whatever it knows, can have an AUC above {_rate(ceiling[0].ceiling)} from one release."
    )


def _combined(report: LeakageReport) -> str:
    several = [row for row in report.rows if row.sees == "releases" and row.ceiling is not None and row.metric == "AUC"]
    if not several:
        return "Each further release of the same records adds to this; the ledger keeps the total."
    row = several[0]
    return (
        f"Releases of the same records add up: over those that {row.attack} collects, the promise allows an AUC of "
        f"{_rate(row.ceiling)}, and {_rate(row.measured)} was measured. The ledger keeps the total of a data set."
    )


def _line(row: Row) -> _Line:
    setting = "".join(f", {name} {value:g}" for name, value in row.setting.items())
    measured = "-"
    if row.measured is not None and row.interval is not None:
        upper = "" if row.interval[1] == float("inf") else f" to {_rate(row.interval[1])}"
        measured = f"{_rate(row.measured)} ({_rate(row.interval[0])}{upper})" if upper else _rate(row.measured)
    return _Line(
        name=row.attack + setting,
        who=row.adversary + ("" if row.metric == "-" else f". In: {row.metric}"),
        note=row.note,
        measured=measured,
        baseline=_rate(row.baseline),
        ceiling="no promise" if row.ceiling is None and row.measured is not None else _rate(row.ceiling),
        verdict=row.verdict,
        colour=COLOURS[row.verdict],
    )


def _picture(name: str, png: bytes) -> _Picture:
    title, caption = _TITLES[name]
    return _Picture(title, caption, "data:image/png;base64," + base64.b64encode(png).decode())


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _count(number: int, noun: str) -> str:
    return f"One {noun}" if number == 1 else f"{number} {noun}s"
