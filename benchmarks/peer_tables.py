"""The tables about other systems in benchmarks/peers/numbers.md, from the committed results of ``benchmarks/peers``.

Part of ``benchmarks/tables.py``, which writes them into the page. Bold is a loss of ours to a federated system under
the same kind of promise: behind by more than twice the standard error of the difference.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.measuring import Row, Rows, results
from benchmarks.table import Cells, Tables, by_name, titled

__all__ = ["ALPHAS", "DATA", "TABLES", "choice_gains", "lost", "party_leads", "rows_of"]

DATA: Mapping[str, str] = {
    "digits": "digits",
    "banking77 whole": "BANKING77",
    "cifar10": "CIFAR-10",
    "fmnist": "Fashion-MNIST",
}
PARTY_DATA: Mapping[str, str] = {**DATA, "agnews": "AG News"}
PARTY_EPSILONS = ("1", "3", "8")
ALPHAS = ("0.1", "0.5")
_EXACT, _PRIVATE = "without differential privacy: ", "under differential privacy: "
_OURS, _POOLED = "privstats", "pooled"
_LARGE = 2  # the place of the set whose seconds are shown


def peers_accuracy() -> Cells:
    """Without noise: a row per partition and system, a column per data set."""
    lines = [["alpha", "system", *DATA.values()]]
    for alpha in (None, *ALPHAS):
        found = {data: _exact(data, alpha) for data in DATA}
        for place, name in enumerate(_names(found)):
            cells = [_accuracy(found[data], name, _federated(data)) for data in DATA]
            lines.append([("any" if alpha is None else _short(alpha)) if not place else "", name, *cells])
    return lines


def peers_cost() -> Cells:
    """Rounds, megabytes of all parties in both directions, and processor seconds on one set."""
    found = {data: [*_exact(data, None), *_exact(data, ALPHAS[0])] for data in DATA}
    lines = [
        ["system", "rounds", *(f"MB, {shown}" for shown in DATA.values()), f"seconds, {list(DATA.values())[_LARGE]}"]
    ]
    for name in _names(found):
        rows = [_named(found[data], name) for data in DATA]
        sizes = [_megabytes(row["bytes"]) if row else "–" for row in rows]
        seconds = [f"{row['seconds']:.2g}" if row else "–" for row in rows]
        lines.append([name, str(next(row["rounds"] for row in rows if row)), *sizes, seconds[_LARGE]])
    return lines


def peers_private() -> Cells:
    """With noise, one record protected: a row per data set and system, a column per epsilon."""
    return list(_by_epsilon("record", ALPHAS[:1]))


def peers_private_parties() -> Cells:
    """With noise, a whole party protected: a row per data set, partition and system."""
    return list(_by_epsilon("party", ALPHAS))


def peers_parties() -> Cells:
    """Whole parties by one direction of each and by DP-FedAvg, with a site's rows and without; bold is a loss."""
    lines = [["data", "parties", "alpha", "system", *PARTY_EPSILONS]]
    for (name, parties, alpha), rows in _of_parties():
        lead = [PARTY_DATA[name], str(parties), _short(alpha)]
        for place, row in enumerate(rows):
            rivals = [each for each in rows if _rivals(row["system"], each["system"])]
            cells = [_party_cell(row, rivals, each) for each in PARTY_EPSILONS]
            lines.append([*(lead if not place else [""] * 3), row["system"], *cells])
    return lines


def party_leads(system: str, rivals: str) -> Iterator[tuple[str, float, float]]:
    """For each cell of whole parties the data, and by how much a system leads the better of some others: in points, and
    in standard errors of the difference from the one that is nearest in these.

    Args:
        system: of ours.
        rivals: a regular expression that matches the whole name of each of the others.
    """
    for (name, _, _), rows in _of_parties():
        own = next(row for row in rows if row["system"] == system)
        others = [row for row in rows if re.fullmatch(rivals, row["system"])]
        for epsilon in PARTY_EPSILONS:
            points, errors = zip(*(_lead(own, other, epsilon) for other in others), strict=True)
            yield PARTY_DATA[name], min(points), min(errors)


def choice_gains(choice: str) -> Iterator[tuple[str, float, float]]:
    """For each cell of what else parties could send the data, and what a choice gains over one direction: in points,
    and in standard errors of the gain."""
    for (name, _, _), rows in _of_parties("party_choices", "what else whole parties could send"):
        row = next(row for row in rows if row["choice"] == choice)
        for epsilon in PARTY_EPSILONS:
            gain = row[f"eps {epsilon}"]
            yield PARTY_DATA[name], gain, gain / row[f"se {epsilon}"] if gain else 0.0


def _of_parties(
    benchmark: str = "parties", about: str = "whole parties protected"
) -> list[tuple[tuple[str, int, str], Rows]]:
    """Data, parties and alpha with the rows of whole parties, in the order of the page."""

    def key(title: str) -> tuple[str, int, str]:
        name, parties, alpha = title.split(", ")
        return name, int(parties.split()[0]), alpha.split()[1]

    found = [(key(title), rows) for title, rows in titled(f"peers.{benchmark}", f"{about}, accuracy in %: ")]
    return sorted(found, key=lambda each: (list(PARTY_DATA).index(each[0][0]), *each[0][1:]))


def _lead(row: Row, other: Row, epsilon: str) -> tuple[float, float]:
    """By how much a row is ahead of another, in points and in standard errors of the difference."""
    points = row[f"eps {epsilon}"] - other[f"eps {epsilon}"]
    return points, points / math.hypot(row[f"se {epsilon}"], other[f"se {epsilon}"])


def peers_party_choices() -> Cells:
    """What else whole parties could send: accuracy of one direction, and what each other choice gains over it."""
    lines = [["data", "parties", "alpha", "sent", *PARTY_EPSILONS]]
    for (name, parties, alpha), rows in _of_parties("party_choices", "what else whole parties could send"):
        lead = [PARTY_DATA[name], str(parties), _short(alpha)]
        for place, row in enumerate(rows):
            shown = "{:+.1f} ± {:.1f}" if place else "{:.1f} ± {:.1f}"
            cells = [shown.format(row[f"eps {each}"], row[f"se {each}"]) for each in PARTY_EPSILONS]
            lines.append([*(lead if not place else [""] * 3), row["choice"], *cells])
    return lines


def peers_tuning() -> Cells:
    """What was tried for each system, and what was taken, at the harder partition."""
    lines = [["system", "tried", *DATA.values()]]
    found = {data: rows_of(_EXACT, data, ALPHAS[0]) for data in DATA}
    for name in _names(found):
        rows = [_named(found[data], name) for data in DATA]
        search = next(row["search"] for row in rows if row)
        if search != "nothing":
            lines.append([name, search, *(row["settings"] if row else "–" for row in rows)])
    return lines


def peers_masking() -> Cells:
    """The same vector of 20 parties under three protocols."""
    (rows,) = (rows for title, rows in results("peers.compare").items() if title.startswith("masking one vector"))
    lines = [["entries", "protocol", "MB, all parties", "bytes over those of the vectors", "seconds", "largest error"]]
    for place, row in enumerate(rows):
        entries = f"{row['entries']:,}" if not place or rows[place - 1]["entries"] != row["entries"] else ""
        share, seconds = f"{row['bytes over those of the vectors']:.2f}", f"{row['seconds']:.2g}"
        error = f"{row['largest error']:.1g}" if row["largest error"] else "0"
        lines.append([entries, row["protocol"], _megabytes(row["bytes"]), share, seconds, error])
    return lines


def peers_regression() -> Cells:
    """Root mean squared errors of a regression on one feature."""
    (rows,) = (rows for title, rows in results("peers.compare").items() if title.startswith("regression on one"))
    epsilons = sorted({row["epsilon"] for row in rows if row["epsilon"] is not None})
    lines = [["model", *(_short(f"{epsilon:g}") for epsilon in epsilons), "no noise"]]
    for model in dict.fromkeys(row["model"] for row in rows):
        found = {row["epsilon"]: row for row in rows if row["model"] == model}
        cells = [_regression(rows, found[epsilon]) if epsilon in found else "" for epsilon in epsilons]
        lines.append([model, *cells, f"{found[None]['RMSE']:.1f}" if None in found else ""])
    return lines


def peers_engine() -> Cells:
    """The same FedAvg twice."""
    (rows,) = (rows for title, rows in results("peers.compare").items() if title.startswith("FedAvg on Flower"))
    lines = [["driven by", "rounds", "accuracy", "wall seconds", "largest difference of a weight"]]
    for row in rows:
        apart = row.get("largest difference of a weight")
        cells = [str(row["rounds"]), f"{row['accuracy']:.2f}", f"{row['wall seconds']:.2g}"]
        lines.append([row["driven by"], *cells, "" if apart is None else f"{apart:.1e}"])
    return lines


def rows_of(start: str, data: str, alpha: str) -> Rows:
    """The rows of one data set and partition."""
    rows: Rows = results("peers.compare").get(f"{start}{data}, alpha {alpha}", [])
    return [row for row in rows if "accuracy" in row]


def _exact(data: str, alpha: str | None) -> Rows:
    """Without noise, what a partition changes; for None what it does not."""
    rows = rows_of(_EXACT, data, alpha or ALPHAS[0])
    return [row for row in rows if row["partition"] == (alpha is not None)]


def _federated(data: str) -> Rows:
    """Everything without noise that keeps records where they are, under both partitions."""
    rows = [row for alpha in ALPHAS for row in rows_of(_EXACT, data, alpha)]
    return [row for row in rows if _POOLED not in row["system"]]


def lost(row: Row, others: Sequence[Row]) -> bool:
    """Whether a row of ours is behind another system's, by more than twice the standard error of the difference."""
    return any(
        other["accuracy"] - row["accuracy"] > 2 * math.hypot(_error(row, "accuracy"), _error(other, "accuracy"))
        for other in others
        if not other["system"].startswith(_OURS)
    )


def _by_epsilon(unit: str, alphas: Sequence[str]) -> Iterator[list[str]]:
    epsilons = sorted({row["epsilon"] for row in rows_of(_PRIVATE, "digits", alphas[0]) if row["unit"] == unit})
    more = len(alphas) > 1
    yield ["data", *(["alpha"] * more), "system", *(_short(f"{each:g}") for each in epsilons)]
    for data, shown in DATA.items():
        for alpha in alphas:
            rows = [row for row in rows_of(_PRIVATE, data, alpha) if row["unit"] == unit]
            for place, name in enumerate(_names({data: rows})):
                same = [[row for row in rows if row["epsilon"] == each] for each in epsilons]
                lead = shown if not place and alpha == alphas[0] else ""
                which = [_short(alpha) if not place else ""] * more
                yield [lead, *which, name, *(_accuracy(each, name, each) for each in same)]


def _named(rows: Rows, name: str) -> Row | None:
    return next((row for row in rows if row["system"] == name), None)


def _names(found: Mapping[str, Rows]) -> Sequence[str]:
    return list(dict.fromkeys(row["system"] for rows in found.values() for row in rows))


def _accuracy(rows: Rows, name: str, rivals: Rows) -> str:
    """Mean and standard error over seeds; bold where ours is behind a rival."""
    row = _named(rows, name)
    if row is None:
        return "–"
    spread = f" ± {_error(row, 'accuracy'):.1f}" if row["seeds"] > 1 else ""
    shown = f"{row['accuracy']:.1f}{spread}"
    return f"**{shown}**" if name.startswith(_OURS) and lost(row, rivals) else shown


def _rivals(system: str, other: str) -> bool:
    """Whether the other is another's, and both know a site's rows or neither does."""
    return (
        other.startswith("DP-FedAvg")
        and len({each.endswith(("centred", "site's rows")) for each in (system, other)}) == 1
    )


def _party_cell(row: Row, rivals: Rows, epsilon: str) -> str:
    """Bold where ours is behind by more than twice the standard error of the difference."""
    shown = f"{row[f'eps {epsilon}']:.1f} ± {row[f'se {epsilon}']:.1f}"
    behind = any(_lead(row, each, epsilon)[1] < -2 for each in rivals)
    return f"**{shown}**" if row["system"].startswith(_OURS) and behind else shown


def _regression(rows: Rows, row: Row) -> str:
    """Bold where ours is worse than OpenDP by more than twice the standard error of the difference."""
    (other,) = (each for each in rows if each["epsilon"] == row["epsilon"] and each["model"] != row["model"])
    error = math.hypot(row["sd"], other["sd"]) / math.sqrt(row["draws"])
    shown = f"{row['RMSE']:.1f} ± {row['sd'] / math.sqrt(row['draws']):.1f}"
    ours = row["model"].startswith(_OURS)
    return f"**{shown}**" if ours and row["RMSE"] - other["RMSE"] > 2 * error else shown


def _error(row: Row, name: str) -> float:
    """The standard error over seeds."""
    return float(row[f"sd {name}"]) / math.sqrt(row["seeds"])


def _megabytes(size: float) -> str:
    return f"{size / 1e6:.2g}" if size < 1e8 else f"{size / 1e6:.0f}"


def _short(number: str) -> str:
    return number.lstrip("0")


_CELLS = {"digits": "digits", "agnews": "AG News", "cifar10": "CIFAR-10", "banking77 whole": "BANKING77"}


def sweep_recipes() -> Cells:
    """The recipes of the sweep's federated rivals, on held-out training records."""
    found = titled("peers.sweep_recipes", "recipes on held-out training records, accuracy in %: ")
    cells = [name for name in found[0][1][0] if ", " in name]
    heads = [f"{_CELLS[data]}, {alpha}" for data, alpha in (name.split(", ") for name in cells)]
    lines = [["method", "recipe", *heads, "behind the best, mean"]]
    for method, rows in found:
        for place, row in enumerate(rows):
            shown = f"**{row['recipe']}**" if row["chosen"] else row["recipe"]
            scores = [f"{row[name]:.1f}" for name in cells]
            lines.append([method if not place else "", shown, *scores, f"{row['behind']:.2f}"])
    return lines


TABLES: Tables = by_name(
    *(peers_accuracy, peers_cost, peers_private, peers_private_parties, peers_parties, peers_party_choices),
    *(peers_tuning, peers_masking, peers_regression, peers_engine, sweep_recipes),
)
"""By the name in the page's marker."""
