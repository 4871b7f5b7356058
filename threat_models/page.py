"""A leakage report as one page for a privacy officer: measured, declared, combined, in plain sentences.

Wording and layout; the numbers are the report's. Needs the ``report`` extra (jinja2, matplotlib).
"""

from __future__ import annotations

from privstats import optional_dependencies
from privstats.workflows.report import Cell, Figure, Finding, Table, Text, layout
from threat_models.pictures import COLOURS, drawn
from threat_models.report import LeakageReport, Row, number

_TITLES = {
    "matrix": (
        "Who learns what",
        "Each cell is what was measured for an attacker who sees that much: the worst where there are several rows.",
    ),
    "roc": (
        "Hits against false alarms",
        "Grey is more than was promised; a short stretch in it is chance, which the verdicts allow for.",
    ),
    "over-records": ("Leakage against records per class", "More records hide each other; marks at d and d²/2."),
    "over-epsilon": ("Leakage against epsilon", "Dashed and grey: what the promise allows at each epsilon."),
    "over-dropouts": ("Leakage against dropouts", "Fewer clients bring less noise; the promise holds for the fewest."),
    "over-releases": ("Leakage against the number of releases", "Every release of the same records adds to the last."),
    "samples": (
        "Four samples of a class",
        "What a server with public pictures sees of four people's records: secure aggregation off, then only the sums "
        "of the four unmasked, then as it should be.",
    ),
    "reconstruction": (
        "Records rebuilt",
        "From the left: the truth, two readings of the release, two guesses without.",
    ),
}


_HEADER = (
    Cell("attack", ("what was tried, and by whom",)),
    Cell("measured", ("and between what, with confidence",)),
    Cell("without the release", ("the same attacker, guessing",)),
    Cell("most the promise allows", ("to any attacker",)),
    Cell("verdict"),
)
_METRICS = {
    "AUC": "tells a member from a stranger",
    "rebuilt": "share of records rebuilt within 5 %",
    "pairs": "share of values rebuilt as unordered pairs",
    "guessed": "share of guesses that are right",
    "site means rebuilt": "share of sites whose means come out within 5 %",
    "records rebuilt up to a sign": "share of records whose row and target come out within 5 %, up to one common sign",
    "picked": "share of worlds in which the right record, person or client is picked out of the list",
    "row rebuilt up to its length": "share of records whose row comes out within 5 %, up to its length, with its label",
    "AUC without shadow models": "tells a member from a stranger, with one threshold for all",
    "AUC of nearest rows": "tells a member from a stranger, by the nearest of the drawn rows alone",
    "targets found": "share of targets that come out within 5 % of their bound",
    "unseen": "share of lies that no check sees",
    "false sums taken": "share of false sums that enter the total",
    "accuracy lost": "accuracy that the worst sums cost which its proof admits",
    "G rebuilt": "how often the second moment comes out within 5 %",
    "B rebuilt": "how often the second moment comes out within 5 %",
}


def render(report: LeakageReport) -> str:
    """The page as HTML in one file, pictures inside.

    Raises:
        MissingExtraError: jinja2 or matplotlib is not installed.
    """
    optional_dependencies.require("jinja2", "matplotlib", by="the page")
    finding = finding_of(report)
    return layout.render(
        __package__,
        "page.html",
        report=report,
        finding=finding,
        measured=_measured(report),
        declared=_declared(report),
        combined=_combined(report),
    )


def finding_of(report: LeakageReport) -> Finding:
    """The report as a section of a page: a sentence, a table, pictures.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    table = Table("every attack", _HEADER, [_line(row) for row in report.rows])
    figures = [Figure.of_png(*_TITLES[name], png) for name, png in drawn(report).items()]
    return Finding(
        title=report.title,
        summary=_headline(report),
        tables=(table,),
        notes=(
            *([report.leaking] if report.leaking else []),
            *dict.fromkeys(f"{row.attack}: {row.note}." for row in report.rows if row.note),
        ),
        figures=figures,
        violated=report.violated,
        measured={goal: _reached(row) for goal, row in report.worst_by_goal.items()},
    )


def _reached(row: Row) -> str:
    """Describe the best attack's result for a goal, next to a guess and the ceiling."""
    most = "unbounded" if row.ceiling is None else f"at most {number(row.ceiling)}"
    return f"{row.attack}, {row.metric} {number(row.measured)} (without the release {row.without}, {most})"


def _headline(report: LeakageReport) -> str:
    if report.violated:
        names = ", ".join(dict.fromkeys(row.attack for row in report.rows if row.verdict == "violates ceiling"))
        return f"An attack won more than the promise allows ({names}). This must not happen: do not release."
    leaking = [row for row in report.rows if row.verdict == "leaks" and row.goal != "audit"]
    within = {row.attack for row in leaking if row.ceiling is not None}
    free = {row.attack for row in leaking if row.ceiling is None} - within
    parts = [f"{count(len(within), 'attack')} learned something, and no more than was promised."] if within else []
    if free:
        parts.append(f"{count(len(free), 'attack')} learned something that nothing was promised about.")
    if not report.measured:
        return "Nothing was measured: no attack applied to this plan."
    if not parts and report.measured > report.undecided:
        which = "No other attack" if report.doubt else "No attack"
        parts.append(f"{which} in this table learned anything that could be seen from the release.")
    return " ".join([*([report.doubt] if report.doubt else []), *parts])


def _measured(report: LeakageReport) -> str:
    worst = report.worst
    if worst is None or worst.interval is None:
        return "Nothing was measured: no attack applied to this plan."
    text = (
        f"The most successful attack is {worst.attack}, by an attacker who {who(worst)}. "
        f"What counts ({asked(worst)}): {number(worst.measured)}, at least {number(worst.interval[0])} with "
        f"confidence; without the release {worst.without}."
    )
    return text + (f" ({worst.note[:1].upper()}{worst.note[1:]}.)" if worst.note else "")


def _declared(report: LeakageReport) -> str:
    rows = (row for row in report.rows if row.metric == "AUC" and row.sees == "release")
    ceiling = [row.ceiling for row in rows if row.ceiling is not None]
    text = report.declared[:1].upper() + report.declared[1:] + "."
    if not ceiling:
        return text + " There is no ceiling: a better attack may learn more than any in this table."
    return text + f" No attacker, whatever it knows, can have an AUC above {number(max(ceiling))} from one release."


def _combined(report: LeakageReport) -> str:
    several = [row for row in report.rows if row.sees == "releases" and row.ceiling is not None and row.metric == "AUC"]
    if not several:
        return "Each further release of the same records adds to this; the ledger keeps the total."
    row = several[0]
    return (
        f"Releases of the same records add up: over those that {row.attack} collects, the promise allows an AUC of "
        f"{number(row.ceiling)}, and {_measurement(row)} was measured. The ledger keeps the total of a data set."
    )


def _line(row: Row) -> tuple[Text, ...]:
    setting = "".join(f", {name} {value:g}" for name, value in row.setting.items())
    notes = [*([] if row.metric == "-" else [asked(row)]), f"an attacker who {who(row)}"]
    ceiling = "no promise" if row.ceiling is None and row.measured is not None else number(row.ceiling)
    verdict = Cell(row.outcome, colour=COLOURS[row.verdict])
    return Cell(row.attack + setting, notes), _measurement(row), row.without, ceiling, verdict


def _measurement(row: Row) -> str:
    """The number and its interval, where that has two ends."""
    if row.interval is None or row.interval[1] == float("inf"):
        return number(row.measured)
    return f"{number(row.measured)} ({number(row.interval[0])} to {number(row.interval[1])})"


def asked(row: Row) -> str:
    """A row's metric, in words."""
    if row.goal == "unmasking":
        return f"how often this lie shows one client's sums: {row.metric}"
    if row.goal == "audit":
        return f"strength of the signal that is proved, in {row.metric}"
    if row.metric.startswith("SSIM"):
        way = row.metric.partition(", ")[2]
        return "share of pictures recognised" + (f", secure aggregation {way}" if way else "")
    metric, _, letter = row.metric.partition(" by ")
    return _METRICS.get(metric, metric) + (f", by {letter}" if letter else "")


def who(row: Row) -> str:
    """Return the attacker's description, a phrase that follows "an attacker who"."""
    return row.adversary.replace("; ", ", ")


def count(number: int, noun: str) -> str:
    """Return a number with its noun; "One" as a word."""
    return f"One {noun}" if number == 1 else f"{number} {noun}s"
