"""The number tables of benchmarks/alignment/numbers.md, from the committed results of ``benchmarks/alignment``.

Part of ``benchmarks/tables.py``, which writes them into the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from benchmarks.measuring import Row, results
from benchmarks.table import Cells, Tables, by_name

__all__ = ["TABLES"]

_SCORES = ("whole domain", "own mix", "own prior")
_BASE = "no alignment"
_SETS = {
    "digits": "digits",
    "banking77": "BANKING77",
    "cifar10": "CIFAR-10",
    "fmnist": "Fashion-MNIST",
    "digits5": "five sources",
}


def shift_intervals() -> Cells:
    """benchmarks/alignment/numbers.md: alpha .1 with intervals."""
    lines = [["alpha .1, one client a domain", *_SCORES]]
    rows = _rows("convolutions, one client a domain")
    for row in (row for row in rows if row["alpha"] == "0.1" and row["method"] != _BASE):
        lines.append([row["method"], *(f"{row[score]:+.1f} ± {row[f'{score} +-']:.1f}" for score in _SCORES)])
    return lines


def alignment_rounds() -> Cells:
    """benchmarks/alignment/numbers.md: how far the reference is from its end after each round."""
    rows = results("alignment.shift")["relative error of the reference by rounds: convolutions"]
    numbered = [row for row in rows if row["rounds"] != "POT"]
    steps = ("published", "alvarez-esteban")
    head = ["20 clients, step", *(_after(row["rounds"]) for row in numbered)]
    return [head, *([step, *(f"{row[step]:.1g}" for row in numbered)] for step in steps)]


def _after(rounds: int) -> str:
    return f"{rounds} round" if int(rounds) == 1 else f"{rounds} rounds"


def alignment_changed() -> Cells:
    """benchmarks/alignment/numbers.md: predictions that each further round still changes."""
    lines = [["predictions that differ, %", *map(_after, range(4))]]
    for title, rows in results("alignment.masked").items():
        if title != "machine":
            where = title.partition(": ")[2]
            for way in (name for name in rows[0] if name not in ("rounds", "seeds")):
                lines.append([f"{where}: {way}", *(f"{row[way]:.2f}" for row in rows)])
    return lines


def within_private() -> Cells:
    """benchmarks/alignment/numbers.md: within-client moments under a record's promise, as gains over plain N, A, B."""
    lines: list[list[str]] = []
    for title, rows in results("alignment.private").items():
        if title == "machine":
            continue
        ways = list(dict.fromkeys(row["way"] for row in rows))
        lines = lines or [["whole domain / own mix", "epsilon", *ways]]
        for epsilon in dict.fromkeys(row["epsilon"] for row in rows):
            cells = (_both(row) for row in rows if row["epsilon"] == epsilon)
            lines.append([title.partition("%: ")[2], epsilon, *cells])
    return lines


def _both(row: Row) -> str:
    names = ("whole domain, offset", "own mix, offset")
    if not row["way"].startswith("within"):
        return " / ".join(f"{row[name]:.1f}" for name in names)
    return " / ".join(f"{row[name]:+.1f} ± {row[f'{name} +-']:.1f}" for name in names)


def personal_heads() -> Cells:
    """benchmarks/alignment/numbers.md: what the client's own part adds, on five sets."""
    tables = results("alignment.personal")
    by_set = {name: tables[f"accuracy on the client's own mix, %: {name}"] for name in _SETS}
    ways = [row["way"] for row in by_set["digits"]]
    lines = [["own mix, 50 records a client", *_SETS.values()]]
    for place, way in enumerate(ways):
        cells = (rows[place] for rows in by_set.values())
        lines.append([way, *(f"{row['accuracy']:.1f}" if not place else _gain(row) for row in cells)])
    return lines


def _gain(row: Row) -> str:
    return f"{row['gain']:+.1f} ± {row['95 % +-']:.1f}"


def _rows(which: str) -> Sequence[Row]:
    rows: Sequence[Row] = results("alignment.shift")[f"gain over no alignment, points: {which}"]
    return rows


def _shift(which: str) -> Cells:
    """Methods down, label shifts across; a cell is the whole domain / the own mix / the own mix with its own prior."""
    rows = _rows(which)
    alphas = list(dict.fromkeys(row["alpha"] for row in rows))
    lines = [["whole domain / own mix / with own prior", *(f"alpha {alpha}" for alpha in alphas)]]
    for method in dict.fromkeys(row["method"] for row in rows):
        sign = "" if method == _BASE else "+"
        cells = [row for row in rows if row["method"] == method]
        lines.append([method, *(" / ".join(f"{row[score]:{sign}.1f}" for score in _SCORES) for row in cells)])
    return lines


TABLES: Tables = {
    **{
        f"shift_{features}_{clients}": partial(_shift, f"{features}, {clients} client{plural} a domain")
        for features in ("convolutions", "gradients", "efficientnet")
        for clients, plural in (("one", ""), ("four", "s"))
    },
    **by_name(shift_intervals, alignment_changed, within_private, alignment_rounds, personal_heads),
}
"""By the name in the page's marker: whole domain, own mix and own prior by features and clients, and five more."""
