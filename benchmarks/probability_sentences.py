"""Sentences of the pages of measurements about probabilities and clips, counted from the committed results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from benchmarks.measuring import Row, results, standard_error
from benchmarks.raw_tables import cards, widths
from benchmarks.raw_tables.mean_probability import FRESH, TITLE
from benchmarks.refinement_tables import clip_gaps
from benchmarks.table import titled
from privstats.inference.head_curves import STEADY

__all__ = ["MAKERS"]

_PAIR = 2
_OURS, _START, _EPSILONS, _NEAR = "ours", "AUC: ", (1.0, 3.0), 0.02
_BEYOND = f"beyond {_NEAR}".replace("0.", ".")


def raw_tables_losses_standing() -> str:
    """Log loss of the recipe beside LDA, DP-EBM and a clip of .3."""
    least = {rival: [line for line, gaps in _losses(rival) if np.mean(gaps) > 0] for rival in ("LDA", "DP-EBM")}
    total = len(list(_losses("LDA")))
    beside = " and ".join(
        f"{total - len(lines)} of {total} lines against {'`LDA` about a noisy mean' if rival == 'LDA' else rival}"
        + (f" (not on {_listed(lines)})" if lines else "")
        for rival, lines in least.items()
    )
    lower, higher = _sides(_losses("a clip of .3"))
    return (
        f"Ours has the lower log loss on {beside}. Beside a clip of .3 it is lower by two standard errors on "
        f"{len(lower)} lines and higher on {len(higher)}" + (f" ({_listed(higher)})." if higher else ".")
    )


def discriminant_ranks() -> str:
    """LDA's log loss beside that of the rate alone, and its log loss and AUC beside those of rounds."""
    rates = {each["data"]: float(each["positive"]) for each in results("raw_tables.probabilities")["tables"]}
    found = {(row["way"], line): row for line, row in _lines()}
    parts = []
    for epsilon in _EPSILONS:
        lines = [line for way, line in found if way == "LDA" and line[1] == epsilon]
        worse = [data for data, _ in lines if found["LDA", (data, epsilon)]["loss"] > _entropy(rates[data])]
        ours = [data for data, _ in lines if found[_OURS, (data, epsilon)]["loss"] > _entropy(rates[data])]
        behind = np.mean([np.mean(found[_OURS, line]["aucs"]) - np.mean(found["LDA", line]["aucs"]) for line in lines])
        parts.append(
            f"at epsilon {epsilon:g} the log loss of `LDA` is above that of the class's share alone on {len(worse)} of "
            f"{len(lines)} raw tables ({len(ours)} for `RefinedSoftmax`), and its AUC is {_digits(float(behind))} "
            "below that of `RefinedSoftmax` in the mean"
        )
    return f"A{'; '.join(parts)[1:]}."


def _entropy(rate: float) -> float:
    return -rate * math.log(rate) - (1 - rate) * math.log1p(-rate)


def cards_ratio() -> float:
    """Return the largest ratio of what points alone miss to what the card prints, rounded up to a tenth."""
    rows = results("raw_tables.cards")[cards.TITLE]
    return math.ceil(10 * max(float(row["ratio"]) for row in rows)) / 10


def raw_tables_cards_standing() -> str:
    """How near scorecards are to their heads, and what the sum of their points misses."""
    rows = results("raw_tables.cards")[cards.TITLE]
    names = dict.fromkeys(row["data"] for row in rows)
    releases = max(row["releases"] for row in rows)
    apart = max(row[name] for row in rows for name in ("card, most", "query, most"))
    bound = 10.0 ** math.ceil(math.log10(apart))
    least, most = min(row["missed, least"] for row in rows), max(row["missed, most"] for row in rows)
    return (
        f"On {len(names)} tables ({', '.join(names)}) at epsilon {cards.EPSILON:g}, {releases} releases of each head, "
        f"scores differed from the head's, and SQL from the scores, by less than {bound:.0e}. Points with $k = 1$ "
        f"missed by {least:.2f} to {most:.2f} in log odds, at most {cards_ratio():.1f} times what is "
        "printed: root mean squares over the training records."
    )


def raw_tables_widths_standing() -> str:
    """How many sessions of scores have the printed width, and how many intervals hold the AUC of held-out records."""
    rows = results("raw_tables.widths")[widths.TITLE]
    parts = []
    for words, chosen in (
        (f"{STEADY:,} records or more", [row for row in rows if row["records"] >= STEADY]),
        ("fewer", [row for row in rows if row["records"] < STEADY]),
    ):
        shown, near = (sum(row[name] for row in chosen) for name in ("shown", "near"))
        least, most = (
            pick(row[end] for row in chosen if row["shown"]) for pick, end in ((min, "least"), (max, "most"))
        )
        parts.append(f"of {words}, {near} of {shown} sessions ({least:.2f} to {most:.2f} of the printed width)")
    held, sessions = (sum(row[name] for row in rows) for name in ("held", "sessions"))
    return (
        f"Now {held} of {sessions} intervals hold the AUC of the held-out records. The printed width is met to within "
        f"a quarter, {'; '.join(parts)}."
    )


def raw_tables_calibration_standing() -> str:
    """What a calibration gains over the recipe, by epsilon."""
    parts = []
    for epsilon in _EPSILONS:
        found = [(line, gaps) for line, gaps in _losses("calibrated") if line[1] == epsilon]
        means = [float(np.mean(gaps)) for _, gaps in found]
        lower, higher = _sides(found)
        mean = f"{_signed(-float(np.mean(means)))} ± {_digits(standard_error(means))}"
        parts.append(
            f"at epsilon {epsilon:g} its log loss is lower on {sum(each > 0 for each in means)} of {len(means)} tables"
            f", by two standard errors on {len(higher)}, and higher by as much on {len(lower)} ({mean} in the mean)"
        )
    return f"A further session for a temperature, at 1 % of mu², is level: {'; '.join(parts)}."


def raw_tables_rate_standing() -> str:
    """On how many lines of the tables of probabilities the mean is near its rate."""
    rows = {line: row for line, row in _lines() if row["way"] == _OURS}
    beyond = {line: row for line, row in rows.items() if abs(row["gap"]) > _NEAR}
    clear = [line for line, row in beyond.items() if abs(row["gap"]) - 2 * standard_error(row["gaps"]) > _NEAR]
    said = f"Its mean probability is within .02 of the rate on {len(rows) - len(beyond)} of {len(rows)} lines"
    if not beyond:
        return f"{said}; the farthest is {_gap(*max(rows.items(), key=lambda item: abs(item[1]['gap'])))}."
    named = ", ".join(_gap(line, row) for line, row in beyond.items())
    return said + f" (not on {named}), and beyond it by two standard errors on {_listed(clear) or 'none'}."


def _gap(line: tuple[str, float], row: Row) -> str:
    return f"{_listed([line])}: {_signed(row['gap'])} ± {_digits(standard_error(row['gaps']))}"


def raw_tables_mean_standing() -> str:
    """The recipe beside the link alone on the tables of the list."""
    return _mean_standing(_mean_rows(fresh=False))


def raw_tables_mean_fresh_standing() -> str:
    """The recipe beside the link alone on tables that chose nothing."""
    return _mean_standing(_mean_rows(fresh=True))


def raw_tables_corrections_standing() -> str:
    """Every free correction beside the link alone."""
    rows = _mean_rows(fresh=False)
    ways = {"newton": "the Newton step", "weighted": "weighted", "held": "a held mean score", "matched": "the recipe"}
    parts = []
    for way, name in ways.items():
        lower, higher = _moved(rows, way)
        near = sum(abs(row[f"{way}, gap"]) > _NEAR for row in rows)
        parts.append(f"{name} {len(higher)}, {len(lower)} and {near}")
    return (
        f"Lines of {len(rows)} on which the log loss is higher than that of the link alone by more than its standard "
        f"error, on which it is lower, and which are {_BEYOND}: {'; '.join(parts)}."
    )


def raw_tables_noise_standing() -> str:
    """How well the card's noise predicts the spread over releases of one split."""
    ratios = [row["predicted"] / row["noise"] for row in results("raw_tables.mean_probability")[TITLE] if row["noise"]]
    return (
        f"The card's number is {min(ratios):.1f} to {max(ratios):.1f} times the spread over releases of one split, in "
        f"the median {float(np.median(ratios)):.1f} times"
    )


def refinement_clips_standing() -> str:
    """benchmarks/refinement/numbers.md: the rule's clip beside .3, or beside .7 where it is .3."""
    rows = dict(titled("refinement.clips"))["rounds under noise"]
    parts = []
    for name, chosen in _CLIP_GROUPS.items():
        group = [row for row in rows if chosen(row)]
        others = [(row, "clip 0.7" if row["rule"] == "clip 0.3" else "clip 0.3") for row in group]
        sides = {part: [_side(clip_gaps(row, other, part)) for row, other in others] for part in ("scores", "losses")}
        parts.append(
            f"{name}, {len(group)} lines: log loss lower on {sides['losses'].count(1)} and higher on "
            f"{sides['losses'].count(-1)}, score higher on {sides['scores'].count(-1)} and lower on "
            f"{sides['scores'].count(1)}"
        )
    return f"The rule's clip beside .3, or beside .7 where it is .3, by two standard errors: {'; '.join(parts)}."


_CLIP_GROUPS: Mapping[str, Callable[[Row], bool]] = {
    "tables of cells": lambda row: row["rows"] == "cells",
    "two classes of other rows": lambda row: row["rows"] != "cells" and row["classes"] == _PAIR,
    "embeddings of more classes": lambda row: row["rows"] != "cells" and row["classes"] > _PAIR,
}


def _side(gaps: Sequence[float]) -> int:
    mean, two = float(np.mean(gaps)), 2 * standard_error(gaps)
    return (mean > two) - (mean < -two)


def _mean_standing(rows: Sequence[Row]) -> str:
    alone, both = ([(_line(row), row[name]) for row in rows if abs(row[name]) > _NEAR] for name in ("alone", "tested"))
    lower, higher = _moved(rows, "matched")
    spread = " to ".join(_digits(math.sqrt(np.mean([row[name] ** 2 for row in rows]))) for name in ("alone", "tested"))
    losses = _signed(float(np.mean([row["matched, loss"] for row in rows])))
    return (
        f"On these {len(rows)} lines the link alone is {_BEYOND} on {_counted(alone)}, and the recipe on "
        f"{_counted(both)}. The root mean square of the deviation goes from {spread}. The log loss moves by {losses} "
        f"in the mean; by more than its standard error it is lower on {len(lower)} lines and higher on {len(higher)}"
        + (f" ({_listed(higher)})." if higher else ".")
    )


def _counted(lines: Sequence[tuple[tuple[str, float], float]]) -> str:
    if not lines:
        return "none"
    named = ", ".join(f"{data} at {epsilon:g} by {gap:+.3f}".replace("0.", ".") for (data, epsilon), gap in lines)
    return f"{len(lines)} ({named})"


def _moved(rows: Sequence[Row], way: str) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
    """Lines on which a correction has the lower and the higher log loss by more than its standard error."""
    sides = [
        (row[f"{way}, loss"] > row[f"{way}, loss, se"]) - (row[f"{way}, loss"] < -row[f"{way}, loss, se"])
        for row in rows
    ]
    return _where(rows, sides, -1), _where(rows, sides, 1)


def _where(rows: Sequence[Row], sides: Sequence[int], side: int) -> list[tuple[str, float]]:
    return [_line(row) for row, each in zip(rows, sides, strict=True) if each == side]


def _line(row: Row) -> tuple[str, float]:
    return row["data"], row["epsilon"]


def _mean_rows(*, fresh: bool) -> list[Row]:
    return [row for row in results("raw_tables.mean_probability")[TITLE] if (row["data"] in FRESH) == fresh]


def _lines() -> Iterator[tuple[tuple[str, float], Row]]:
    for title, rows in results("raw_tables.probabilities").items():
        for row in rows if title.startswith(_START) else ():
            yield (title.removeprefix(_START), row["epsilon"]), row


def _losses(rival: str) -> Iterator[tuple[tuple[str, float], list[float]]]:
    """By line the log loss of ours less that of a rival, split by split."""
    found: Mapping[tuple[str, tuple[str, float]], Row] = {(row["way"], line): row for line, row in _lines()}
    for (way, line), row in found.items():
        if way == _OURS:
            yield line, np.subtract(row["losses"], found[rival, line]["losses"]).tolist()


def _sides(
    found: Iterable[tuple[tuple[str, float], list[float]]],
) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
    """Lines on which differences are below and above 0 by two standard errors of their mean."""
    judged = [(line, float(np.mean(gaps)), 2 * standard_error(gaps)) for line, gaps in found]
    return [line for line, mean, two in judged if mean < -two], [line for line, mean, two in judged if mean > two]


def _listed(lines: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f"{data} at {epsilon:g}" for data, epsilon in lines)


def _signed(value: float) -> str:
    return ("-" if value < 0 else "+") + _digits(abs(value))


def _digits(value: float) -> str:
    return f"{value:.4f}".removeprefix("0")


MAKERS = (
    discriminant_ranks,
    raw_tables_losses_standing,
    raw_tables_widths_standing,
    raw_tables_cards_standing,
    raw_tables_calibration_standing,
    raw_tables_rate_standing,
    raw_tables_mean_standing,
    raw_tables_mean_fresh_standing,
    raw_tables_corrections_standing,
    raw_tables_noise_standing,
    refinement_clips_standing,
)
"""By their names, which stand in the page."""
