"""The number tables of benchmarks/raw_tables/numbers.md, from the committed results of ``benchmarks/raw_tables``.

Part of ``benchmarks/tables.py``, which writes them into the page. Every verdict is of differences split by split: ahead
or behind by two standard errors of their mean, level otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.measuring import Row, Rows, results, standard_error
from benchmarks.raw_tables import cards, penalty, widths
from benchmarks.table import Cells, Tables, by_name

__all__ = ["OURS", "TABLES", "Lead", "leads", "named", "out_of_reach", "said", "standing"]

OURS, WHOLE = "signs and ramp", "whole"
EBM, EBM_WHOLE = "DP-EBM", "DP-EBM, whole"
_OURS, _RIVALS, _PROBABILITIES = "raw_tables.cells", "raw_tables.rivals", "raw_tables.probabilities"
_LOSSES = "raw_tables.losses"
_MEAN = "mean probability less the rate"
_PAIRS = "AUC and log loss without pairs and with them"
_RARE, _RARE_BY_EPSILON = "AUC and log loss by the share of positives", "AUC and log loss by epsilon"
_HEADS = {"rounds": "RefinedSoftmax", "LDA": "LDA", "ridge": "RidgeClassifier"}
_OF_HEADS = tuple(f"{head}: AUC, log loss" for head in _HEADS.values())
_OVER_ROUNDS = ("LDA over rounds", "RidgeClassifier over rounds")
_HALF, _DIM = "half for the counts", 5.0
_TITLE, _ABOUT = "AUC: ", "tables"
_EXACT = ("boosting", "boosting, whole", "the same rows, no privacy")
_FEW, _ALL = 10, 25  # splits from which on a way is shown and judged, and how many there are to be


@dataclass(frozen=True)
class Lead:
    """How far one way is ahead of another on a table: mean and standard error over the splits that both have.

    Attributes:
        data, role: the table's name, and what it was used for before.
        gap, error: of the AUC.
        splits: how many both have.
    """

    data: str
    role: str
    gap: float
    error: float
    splits: int

    @property
    def side(self) -> int:
        """1 ahead, -1 behind, 0 level."""
        return (self.gap > 2 * self.error) - (self.gap < -2 * self.error)

    @property
    def word(self) -> str:
        """Ahead, behind or level."""
        return ("behind", "level", "ahead")[self.side + 1]

    def __str__(self) -> str:
        said = f"{_signed(self.gap)} ± {_digits(self.error)}, {self.word}"
        return f"**{said}**" if self.side < 0 else said


def about() -> Rows:
    """The tables that were run on, the untouched ones first."""
    return list(results(_RIVALS)[_ABOUT])


def row_of(data: str, way: str, epsilon: float | None) -> Row | None:
    """A way's AUCs on a table; None where it was not run on enough splits to be judged."""
    for result in (_OURS, _RIVALS):
        for row in results(result).get(_TITLE + data, []):
            if row["way"] == way and row["epsilon"] == epsilon and len(row["aucs"]) >= _FEW:
                found: Row = row
                return found
    return None


def leads(way: str, rival: str, epsilon: float) -> Iterator[Lead]:
    """Of one way over another at an epsilon, on every table where both have enough splits."""
    for each in about():
        if (lead := _lead(each, way, rival, epsilon)) is not None:
            yield lead


def _lead(table: Row, way: str, rival: str, epsilon: float) -> Lead | None:
    ours, theirs = (row_of(table["data"], name, None if name in _EXACT else epsilon) for name in (way, rival))
    if ours is None or theirs is None:
        return None
    both = min(len(ours["aucs"]), len(theirs["aucs"]))
    gaps = np.subtract(ours["aucs"][:both], theirs["aucs"][:both])
    return Lead(table["data"], table["role"], float(gaps.mean()), standard_error(gaps), both)


def standing(found: Iterable[Lead]) -> str:
    """How often ahead, level and behind."""
    sides = [lead.side for lead in found]
    return f"ahead on {sides.count(1)}, level on {sides.count(0)}, behind on {sides.count(-1)} of {len(sides)}"


def said() -> str:
    """The untouched tables at epsilon 1 in a sentence: like with like, and as the goal has it."""
    same, whole, handicapped = (
        standing(lead for lead in leads(way, rival, 1.0) if lead.role == "new")
        for way, rival in ((OURS, EBM), (WHOLE, EBM_WHOLE), (OURS, EBM_WHOLE))
    )
    return (
        f"At epsilon 1 ours is, against DP-EBM on the same records with the same gaps, {same} untouched tables; with "
        f"whole records for both, {whole}. With a tenth of the cells missing for ours alone it is {handicapped}."
    )


def out_of_reach() -> str:
    """The untouched tables whose gaps cost more than privacy does."""
    trees, rows = (
        [lead.data for lead in leads(way, EBM_WHOLE, 1.0) if lead.role == "new" and lead.side < 0]
        for way in (_EXACT[0], _EXACT[2])
    )
    return (
        f"Once a tenth of the cells is missing, boosted trees **without privacy** are behind DP-EBM with whole records "
        f"on {_listed(trees)}, and a logistic regression **without privacy** on the very rows that ours are made of, "
        f"with given cuts, on {_listed(rows)}."
    )


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names) or "none"


def named(data: str) -> str:
    """A table's name, with a star where something was chosen on it."""
    role = next(each["role"] for each in about() if each["data"] == data)
    return data + {"new": "", "seen": " °", "tuned": " *"}[role]


def raw_tables_sets() -> Cells:
    """What was asked of which table."""
    head = ["table", "from", "records", "numbers", "categories", "its own gaps", "share asked for"]
    return [
        head,
        *(
            [
                named(each["data"]),
                each["source"],
                f"{each['records']:,}",
                str(each["numbers"]),
                str(each["categories"]),
                f"{each['own gaps']:,}",
                f"{100 * each['positive']:.0f} %",
            ]
            for each in about()
        ),
    ]


def _beside(epsilon: float) -> Cells:
    """Ours and DP-EBM, with like records and as the goal has it; boosting without privacy."""
    head = [
        "table",
        "ours",
        "DP-EBM",
        "ours over it",
        "ours, whole",
        "DP-EBM, whole",
        "ours over it",
        "ours, a tenth missing, over DP-EBM, whole",
    ]
    return [head, *(_beside_line(each, epsilon) for each in about())]


def _beside_line(table: Row, epsilon: float) -> list[str]:
    data = table["data"]
    line = [named(data)]
    for way, rival in ((OURS, EBM), (WHOLE, EBM_WHOLE)):
        line += [_auc(data, way, epsilon), _auc(data, rival, epsilon), _shown(_lead(table, way, rival, epsilon))]
    return [*line, _shown(_lead(table, OURS, EBM_WHOLE, epsilon))]


def raw_tables_others() -> Cells:
    """What else there is at epsilon 1, and trees without privacy."""
    private = ("ranges, whole", "ranges ten times too wide, whole", "ranges, gaps left out", "diffprivlib, whole")
    head = ["table", "ours", *private, "boosting, no privacy", "the same, whole"]
    return [
        head,
        *(
            [
                named(each["data"]),
                _auc(each["data"], OURS, 1.0),
                *(_auc(each["data"], way, 1.0) for way in private),
                _auc(each["data"], "boosting", None),
                _auc(each["data"], "boosting, whole", None),
            ]
            for each in about()
        ),
    ]


def _probabilities(epsilon: float) -> Cells:
    """AUC, log loss and mean probability less the rate: ours, with the old clip, calibrated, LDA and DP-EBM."""
    ways = ("ours", "a clip of .3", "calibrated", "LDA", "DP-EBM")
    document, lines = results(_PROBABILITIES), []
    for each in document[_ABOUT]:
        rows = {row["way"]: row for row in document.get(_TITLE + each["data"], []) if row["epsilon"] == epsilon}
        if rows:
            least = min(row["loss"] for row in rows.values())
            cells = [_auc_and_loss(rows[way], least) if way in rows else "-" for way in ways]
            lines.append([each["data"], _digits(each["positive"]), _signed(rows["ours"]["gap"]), *cells])
    return [["table", "rate", "ours: mean p less the rate", *(f"{way}: AUC, log loss" for way in ways)], *lines]


def _mean_probability(*, fresh: bool) -> Cells:
    """Where the mean probability departs from the rate: its parts, and what chance and noise explain."""
    parts = ("rounds", "clip", "discriminant", "link", "gradient")
    head = ["table", "epsilon", "test records", "training records", *parts, "one release", "noise, as predicted"]
    lines = []
    for row in _mean_rows(fresh=fresh):
        means = [f"{_signed(row[name])} ± {_digits(row[f'{name}, se'])}" for name in ("tested", "trained")]
        spreads = [_digits(row[name]) for name in ("predicted", "chance")]
        release = row.get("release", float(np.std(row["by split"], ddof=1)))
        ends = [_digits(release), *spreads, _signed(row["trained by the rate"])]
        lines.append([row["data"], _short(row["epsilon"]), *means, *(_signed(row[part]) for part in parts), *ends])
    return [[*head, "chance of the test records", "with the training rate"], *lines]


def _corrections(*, fresh: bool) -> Cells:
    """Free corrections of the mean probability: the deviation, and the log loss less that of the link alone."""
    ways = {
        "newton": "Newton step",
        "weighted": "the step, weighted",
        "held": "mean score held",
        "matched": "last gradient matched: the recipe",
    }
    lines = []
    for row in _mean_rows(fresh=fresh):
        cells = [
            f"{_signed(row[f'{way}, gap'])}, {_lost(row[f'{way}, loss'])} ± {_lost(row[f'{way}, loss, se'])[1:]}"
            for way in ways
        ]
        lines.append([row["data"], _short(row["epsilon"]), _signed(row["alone"]), *cells])
    return [["table", "epsilon", "link alone", *(f"{name}: deviation, log loss" for name in ways.values())], *lines]


def _mean_rows(*, fresh: bool) -> Rows:
    from benchmarks.raw_tables.mean_probability import FRESH

    return [row for row in results("raw_tables.mean_probability")[_MEAN] if (row["data"] in FRESH) == fresh]


def raw_tables_widths() -> Cells:
    """The printed width of an AUC's interval, and that of sessions of scores."""
    lines = [
        [
            row["data"],
            row["head"],
            f"{row['records']:,}",
            _digits(row["share"]),
            _short(row["epsilon"]),
            _digits(row["auc"]),
            *(f"{row[name]:.2f}" for name in ("printed", "width")),
            f"{row['near']} of {row['shown']}",
            f"{row['held']} of {row['sessions']}",
        ]
        for row in results("raw_tables.widths")[widths.TITLE]
    ]
    head = ["table", "head", "records scored", "share", "epsilon", "AUC held out", "printed width", "width in sessions"]
    return [[*head, "within a quarter", "intervals that hold the AUC"], *lines]


def raw_tables_cards() -> Cells:
    """Scorecards next to their heads: what they return, and what points alone miss."""
    head = ["table", "head", "columns", "releases", "card less head", "query less card", "rate"]
    head += ["mean probability", "by points alone", "points alone miss", "printed", "most over printed"]
    lines = [
        [
            row["data"],
            row["head"],
            str(row["columns"]),
            str(row["releases"]),
            *(f"{row[name]:.0e}" if row[name] else "0" for name in ("card, most", "query, most")),
            *(_digits(row[name]) for name in ("rate", "probability", "probability by points")),
            f"{row['missed, least']:.2f} to {row['missed, most']:.2f}",
            f"{row['printed']:.2f}",
            f"{row['ratio']:.2f}",
        ]
        for row in results("raw_tables.cards")[cards.TITLE]
    ]
    return [head, *lines]


def raw_tables_rare() -> Cells:
    """Rounds, the discriminant and least squares where few records are positive."""
    lines = []
    for row in results("raw_tables.rare")[_RARE]:
        thinned = row["data"] if row["own"] else f"{row['data']}, thinned"
        lines.append([thinned, f"{row['records']:,}", _digits(row["rate"]), *_beside_rounds(row)])
    return [["table", "records", "rate", *_OF_HEADS, *_OVER_ROUNDS], *lines]


def raw_tables_by_epsilon() -> Cells:
    """The same heads on two tables, by epsilon."""
    rows = results("raw_tables.rare")[_RARE_BY_EPSILON]
    lines = [[row["data"], _short(row["epsilon"]), _digits(row["rate"]), *_beside_rounds(row)] for row in rows]
    return [["table", "epsilon", "rate", *_OF_HEADS, *_OVER_ROUNDS], *lines]


def _beside_rounds(row: Row) -> list[str]:
    cells = [f"{_digits(row[way])}, {_digits(row[f'{way}, loss'])}" for way in _HEADS]
    leads = [Lead(row["data"], "", row[f"{way}, lead"], row[f"{way}, se"], row["splits"]) for way in ("LDA", "ridge")]
    return [*cells, *map(str, leads)]


def raw_tables_penalty() -> Cells:
    """AUC of logistic regressions and least squares without privacy, by their penalty."""
    ways = {f"C {c:g}": f"logistic, C {_short(c)}" for c in penalty.LOGISTIC}
    ways |= {f"alpha {alpha:g}": f"squares, alpha {_short(alpha)}" for alpha in penalty.SQUARES}
    lines = []
    for row in results("raw_tables.penalty")[penalty.TITLE]:
        cells = [f"{_digits(np.mean(row[way]))} ± {_digits(row[f'{way}, se'])}" for way in ways]
        per_entry = f"{row['positives'] / row['entries']:.1f}"
        lines.append([row["data"], _digits(row["rate"]), str(row["entries"]), per_entry, *cells])
    return [["table", "rate", "entries", "positives per entry", *ways.values()], *lines]


def raw_tables_pairs() -> Cells:
    """Pairs of columns over none, where the public rule turns them on."""
    lines = []
    for row in results("raw_tables.pairs")[_PAIRS]:
        if row["on"]:
            aucs = Lead(row["data"], "", row["aucs, gap"], row["aucs, se"], row["splits"])
            loss = f"{_lost(row['losses, gap'])} ± {_lost(row['losses, se'])[1:]}"
            base = f"{_digits(np.mean(row['additive, aucs']))}, {_digits(np.mean(row['additive, losses']))}"
            passed = " ".join(str(round(each)) for each in row["pairs, passed"])
            lines.append([row["data"], _short(row["epsilon"]), f"{row['signal']:.0f}", base, str(aucs), loss, passed])
    return [["table", "epsilon", "s", "without pairs", "AUC with pairs", "log loss with pairs", "pairs"], *lines]


def _auc_and_loss(row: Row, least: float) -> str:
    loss = _digits(row["loss"])
    return f"{_digits(row['mean'])} ± {_digits(row['se'])}, {f'**{loss}**' if row['loss'] == least else loss}"


def raw_tables_ramp() -> Cells:
    """What the ramp beside the signs gains, by head and epsilon, and one head over the other with it: AUC, log loss."""
    compared = {
        "refined softmax": ("signs and ramp", "signs"),
        "LDA": ("signs and ramp, LDA", "signs, LDA"),
        "refined softmax over LDA": ("signs and ramp", "signs and ramp, LDA"),
    }
    columns = [
        (f"{name}, {_short(epsilon)}", ways, epsilon)
        for name, ways in compared.items()
        for epsilon in (1.0, 3.0)
        if any(leads(*ways, epsilon))
    ]
    lines = [
        [
            named(each["data"]),
            *(_with_loss(each, *ways, epsilon) for _, ways, epsilon in columns),
        ]
        for each in about()
    ]
    return [["table", *(name for name, _, _ in columns)], *lines]


def raw_tables_cuts() -> Cells:
    """What finding the cut points costs at epsilon 1, and what moving all numbers and misstating n do to it."""
    ways = ("given cuts", "moved", "ten times the records")
    head = ["table", "r", "ours", *(name for way in ways for name in (way, f"{way}, over ours"))]
    lines = []
    for each in about():
        cells = [named(each["data"]), f"{_resolution(each['data'], 1.0):.0f}", _auc(each["data"], OURS, 1.0)]
        for way in ways:
            cells += [_auc(each["data"], way, 1.0), _shown(_lead(each, way, OURS, 1.0))]
        lines.append(cells)
    return [head, *lines]


def raw_tables_dim() -> Cells:
    """What counts of half of mu^2 do at epsilon .3 where a full cell is less than 5 deviations of its noise."""
    head = ["table", "r", "ours", "half for the counts", "over ours", "given cuts", "over ours"]
    lines = []
    for each in about():
        if _resolution(each["data"], 0.3) < _DIM and row_of(each["data"], _HALF, 0.3) is not None:
            cells = [named(each["data"]), f"{_resolution(each['data'], 0.3):.1f}", _auc(each["data"], OURS, 0.3)]
            for way in (_HALF, "given cuts"):
                cells += [_auc(each["data"], way, 0.3), _shown(_lead(each, way, OURS, 0.3))]
            lines.append(cells)
    return [head, *lines]


def raw_tables_goals() -> Cells:
    """What was to be reached, what was measured, and whether it was."""
    return [["goal", "measured", "verdict"], *_against_goals(), *_moved_goals(), *_stated_goals()]


def _against_goals() -> Iterator[list[str]]:
    asked = {
        "epsilon 1, untouched tables, a tenth missing here, DP-EBM with whole records": (OURS, EBM_WHOLE),
        "the same, DP-EBM with the same gaps and true medians": (OURS, EBM),
        "the same, both with whole records": (WHOLE, EBM_WHOLE),
    }
    for goal, (way, rival) in asked.items():
        found = [lead for lead in leads(way, rival, 1.0) if lead.role == "new"]
        sides = [lead.side for lead in found]
        met = len(sides) - sides.count(-1) >= 9 and sides.count(1) >= 5  # of ten
        yield [f"{goal}: not behind on 9 of 10, ahead on 5", standing(found), _verdict(met, found)]


def _moved_goals() -> Iterator[list[str]]:
    """Columns inside one octave beside given cuts, where r, a full cell in noise deviations, is 20 or more."""
    for epsilon in (1.0, 3.0):
        found = [lead for lead in leads("moved", "given cuts", epsilon) if _resolution(lead.data, epsilon) >= 20]
        yield [
            f"columns moved to 1,000 ± 1, epsilon {epsilon:g}: within .02 of given cuts where a cell is 20 deviations",
            _worst(found),
            _verdict(all(lead.gap >= -0.02 for lead in found), found),
        ]


def _stated_goals() -> Iterator[list[str]]:
    for epsilon in (0.3, 1.0, 3.0):
        found = list(leads("ten times the records", OURS, epsilon))
        goal = f"records stated ten times too many, epsilon {epsilon:g}: costs .03 at most"
        yield [goal, _worst(found), _verdict(all(lead.gap >= -0.03 for lead in found), found)]


def _resolution(data: str, epsilon: float) -> float:
    """r: records to fit on over the noise of one count, as ``Binned.signal_to_noise`` has it."""
    from benchmarks.raw_tables.running import DELTA
    from privstats.dp import gaussian_mu

    table = next(each for each in about() if each["data"] == data)
    noise = math.sqrt(4 * table["numbers"] / 0.2) / gaussian_mu(epsilon, DELTA)
    return float(0.75 * table["records"] / noise)


def _worst(found: Sequence[Lead]) -> str:
    if not found:
        return "-"
    least = min(found, key=lambda lead: lead.gap)
    return f"worst of {len(found)}: {_signed(least.gap)} ± {_digits(least.error)} on {least.data}"


def _verdict(met: bool, found: Sequence[Lead]) -> str:
    return "not run" if not found else "met" if met else "**missed**"


def _auc(data: str, way: str, epsilon: float | None) -> str:
    """AUC with its error, and the log loss."""
    row = row_of(data, way, epsilon)
    if row is None:
        return "-"
    splits = f" ({len(row['aucs'])})" * (len(row["aucs"]) < _ALL)
    losses = _losses(data, way, epsilon)
    loss = f", {_digits(float(np.mean(losses)))}" if losses else ""
    return f"{_digits(row['mean'])} ± {_digits(row['se'])}{splits}{loss}"


def _losses(data: str, way: str, epsilon: float | None) -> Sequence[float]:
    """Log losses of today's recipe, split by split; none where it was not run."""
    rows = results(_LOSSES).get(_TITLE + data, [])
    return next((row["losses"] for row in rows if (row["way"], row["epsilon"]) == (way, epsilon)), [])


def _with_loss(table: Row, way: str, rival: str, epsilon: float) -> str:
    """A lead, and by how much today's log loss is above the rival's."""
    lead = _lead(table, way, rival, epsilon)
    ours, theirs = (_losses(table["data"], each, epsilon) for each in (way, rival))
    if lead is None or not len(ours) == len(theirs) > 1:
        return _shown(lead)
    gaps = np.subtract(ours, theirs)
    return f"{lead}, {_lost(float(gaps.mean()))} ± {_lost(standard_error(gaps))[1:]}"


def _shown(lead: Lead | None) -> str:
    return "-" if lead is None else str(lead)


def _digits(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _signed(value: float) -> str:
    return ("-" if value < 0 else "+") + _digits(abs(value))


def _lost(value: float) -> str:
    """A difference of log losses, which is smaller than others."""
    return ("-" if value < 0 else "+") + f"{abs(value):.4f}".removeprefix("0")


def _short(epsilon: float) -> str:
    return f"{epsilon:g}".removeprefix("0")


TABLES: Tables = {
    **by_name(raw_tables_sets, raw_tables_others, raw_tables_cuts, raw_tables_dim, raw_tables_ramp, raw_tables_goals),
    **by_name(raw_tables_pairs, raw_tables_rare, raw_tables_by_epsilon, raw_tables_penalty, raw_tables_widths),
    **by_name(raw_tables_cards),
    "raw_tables_mean_probability": partial(_mean_probability, fresh=False),
    "raw_tables_mean_probability_fresh": partial(_mean_probability, fresh=True),
    "raw_tables_corrections": partial(_corrections, fresh=False),
    "raw_tables_corrections_fresh": partial(_corrections, fresh=True),
    "raw_tables_probabilities_at_one": partial(_probabilities, 1.0),
    "raw_tables_probabilities_at_three": partial(_probabilities, 3.0),
    "raw_tables_at_one": partial(_beside, 1.0),
    "raw_tables_at_three": partial(_beside, 3.0),
    "raw_tables_at_a_third": partial(_beside, 0.3),
}
"""By the name in the page's marker: tables, ours beside DP-EBM, others, the ramp, the goals."""
