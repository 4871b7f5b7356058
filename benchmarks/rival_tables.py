"""The tables of benchmarks/raw_tables/numbers.md that compare pairs of columns with rivals, from the committed results.

Part of ``benchmarks/tables.py``, which writes them into the page. Every verdict is of differences split by split: ahead
or behind by more than one standard error of their mean, level otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.measuring import Row, results, standard_error
from benchmarks.raw_tables.finer_ends import FIXED
from benchmarks.raw_tables.finer_ends import TITLE as FRESH
from benchmarks.raw_tables.interactions import CHOSEN_ON, EXACT, TITLE, TOLD
from benchmarks.table import Cells, Tables, by_name

__all__ = ["RIVALS", "TABLES", "Gap", "decided", "gap", "rows", "worth"]

RIVALS = ("no pairs", "DP-EBM", "trees", "trees, tuned", "boosting")
_PRIVATE = RIVALS[:-1]
_RESULT, _FRESH = "raw_tables.interactions", "raw_tables.finer_ends"
_HEADS = {"no pairs": "without pairs", "boosting": "boosting, no privacy"}
_DECIDED = 0.005


@dataclass(frozen=True)
class Gap:
    """How far ours is ahead of a rival: mean and standard error over splits, more is better.

    Attributes:
        mean, error: of the AUC, or of the rival's log loss less ours.
    """

    mean: float
    error: float

    @property
    def side(self) -> int:
        """1 ahead, -1 behind, by more than one standard error; else 0."""
        return (self.mean > self.error) - (self.mean < -self.error)


def rows() -> list[Row]:
    """Every table at every epsilon that was measured; the tables on which pairs are worth most come first."""
    exact = without_privacy()
    found = [row for row in results(_RESULT)[TITLE] if row["data"] in exact]
    return sorted(found, key=lambda row: (row["epsilon"], -worth(row["data"]).mean))


def without_privacy() -> dict[str, Row]:
    """Boosting without privacy, by table."""
    return {row["data"]: row for row in results(_RESULT)[EXACT]}


def worth(data: str) -> Gap:
    """What interactions are worth in AUC on a table: boosting without privacy, less boosting that reads one column."""
    row = without_privacy()[data]
    return _gap(row["boosting, aucs"], row["boosting, no pairs, aucs"])


def decided(data: str) -> bool:
    """Whether pairs decide on a table: interactions are worth more than .005, and more than two standard errors."""
    found = worth(data)
    return found.mean > max(_DECIDED, 2 * found.error)


def gap(row: Row, rival: str, score: str) -> Gap | None:
    """How far ours is ahead of a rival in ``aucs`` or ``losses``; None where they are the same head, or not run."""
    there = without_privacy()[row["data"]] if rival == "boosting" else row
    if f"{rival}, {score}" not in there:
        return None
    return _signed_gap(row[f"ours, {score}"], there[f"{rival}, {score}"], score)


def _signed_gap(ours: Sequence[float], theirs: Sequence[float], score: str) -> Gap:
    found = _gap(ours, theirs)
    return found if score == "aucs" else Gap(-found.mean, found.error)


def _gap(ours: Sequence[float], theirs: Sequence[float]) -> Gap:
    gaps = np.subtract(ours, theirs)
    return Gap(float(gaps.mean()), standard_error(gaps))


def _by_row(score: str, digits: int) -> Cells:
    """A line per table and epsilon: ours, and how far it is ahead of each rival."""
    lines = []
    for row in rows():
        ours = row[f"ours, {score}"]
        base = f"{_digits(float(np.mean(ours)), 3)} ± {_digits(standard_error(ours), 3)}"
        gaps = (_shown(row, rival, score, digits) for rival in RIVALS)
        interactions = _signed(worth(row["data"]).mean, 3)
        lines.append([_named(row["data"]), f"{row['epsilon']:g}", interactions, base, *gaps])
    return [["table", "epsilon", "interactions", "ours", *(_HEADS.get(rival, rival) for rival in RIVALS)], *lines]


def raw_tables_finer_ends() -> Cells:
    """Two more cuts at either end of a number, where the cuts are told: over the eighths, and over private trees."""
    beside = {(row["data"], row["epsilon"]): row for row in rows()}
    lines = []
    for row in sorted(results(_RESULT)[TOLD], key=lambda row: (row["epsilon"], -worth(row["data"]).mean)):
        there = beside.get((row["data"], row["epsilon"]))
        if there is None:
            continue
        cells = []
        for score, digits in (("aucs", 3), ("losses", 4)):
            cells += [
                _text(_signed_gap(row[f"finer ends, {score}"], rival, score), digits)
                for rival in (row[f"eighths, {score}"], there[f"trees, tuned, {score}"])
            ]
        lines.append([_named(row["data"]), f"{row['epsilon']:g}", f"{there['signal']:.0f}", *cells])
    heads = [f"{score}: over {rival}" for score in ("AUC", "log loss") for rival in ("eighths", "trees, tuned")]
    return [["table", "epsilon", "s", *heads], *lines]


def fresh_ends(row: Row, score: str) -> Gap:
    """How far finer ends are ahead of even cut points in ``aucs`` or ``losses``, through whole courses."""
    return _signed_gap(row[f"finer, {score}"], row[f"even, {score}"], score)


def _fresh_ends(title: str) -> Cells:
    """Finer ends over even cut points, on tables that did not choose them, by s."""
    lines = []
    for row in sorted(results(_FRESH)[title], key=lambda row: round(row["signal"])):
        even = ", ".join(_digits(float(np.mean(row[f"even, {score}"])), 3) for score in ("aucs", "losses"))
        gaps = (_text(fresh_ends(row, score), 4) for score in ("aucs", "losses"))
        lines.append([row["data"], f"{row['epsilon']:g}", f"{row['signal']:.0f}", even, *gaps])
    return [["table", "epsilon", "s", "even: AUC, log loss", "AUC: finer ends", "log loss: finer ends"], *lines]


def _named(data: str) -> str:
    """A table's name: bold where pairs decide, with a star where pairs were designed on it."""
    return (f"**{data}**" if decided(data) else data) + " *" * (data in CHOSEN_ON)


def _shown(row: Row, rival: str, score: str, digits: int) -> str:
    found = gap(row, rival, score)
    if found is None:
        return "same head" if rival == "no pairs" else "-"
    return _text(found, digits)


def _text(found: Gap, digits: int) -> str:
    shown = f"{_signed(found.mean, digits)} ± {_digits(found.error, digits)}"
    return f"**{shown}**" if found.side < 0 else shown


def raw_tables_rivals_counted() -> Cells:
    """In how many rows ours is ahead, level and behind, by rival and epsilon."""
    groups: dict[str, Callable[[str], bool]] = {
        "all tables": lambda _: True,
        "pairs decide": decided,
        "had no part in the design": lambda data: data not in CHOSEN_ON,
    }
    head = ["beside", "epsilon", *(f"{name}: {score}" for name in groups for score in ("AUC", "log loss"))]
    lines = []
    for rival in RIVALS:
        for epsilon in sorted({row["epsilon"] for row in rows()}):
            there = [row for row in rows() if row["epsilon"] == epsilon]
            cells = (
                _standing(_gaps([row for row in there if among(row["data"])], rival, score))
                for among in groups.values()
                for score in ("aucs", "losses")
            )
            lines.append([_HEADS.get(rival, rival), f"{epsilon:g}", *cells])
    return [head, *lines]


def _gaps(found: Sequence[Row], rival: str, score: str) -> Iterator[Gap]:
    for row in found:
        if (each := gap(row, rival, score)) is not None:
            yield each


def _standing(found: Iterator[Gap]) -> str:
    sides = [each.side for each in found]
    return f"{sides.count(1)} / {sides.count(0)} / {sides.count(-1)}"


def _digits(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".removeprefix("0")


def _signed(value: float, digits: int) -> str:
    return ("-" if value < 0 else "+") + _digits(abs(value), digits)


TABLES: Tables = {
    **by_name(raw_tables_rivals_counted, raw_tables_finer_ends),
    "raw_tables_fresh_ends": partial(_fresh_ends, FRESH),
    "raw_tables_fixed_ends": partial(_fresh_ends, FIXED),
    "raw_tables_rivals_aucs": partial(_by_row, "aucs", 3),
    "raw_tables_rivals_losses": partial(_by_row, "losses", 4),
}
"""By the name in the page's marker: verdicts counted, finer ends, AUC and log loss by table and epsilon."""
