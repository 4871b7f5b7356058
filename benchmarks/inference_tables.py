"""The number tables of benchmarks/inference/numbers.md, from the committed results of ``benchmarks/inference``.

Part of ``benchmarks/tables.py``, which writes them into the page.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.measuring import Row
from benchmarks.table import Cells, Shown, Table, Tables, by_name, titled
from privstats.inference import FRAME_COLUMNS

__all__ = ["TABLES"]


def _share(key: str) -> Shown:
    return lambda row: _percent(row[key])


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _unless_refused(shown: Shown, otherwise: str = "-") -> Shown:
    """What a cell says where a model was refused in every run."""

    def cell(row: Row) -> str:
        if row["refused"] == row["runs"]:
            return otherwise
        return shown.format_map(row) if isinstance(shown, str) else shown(row)

    return cell


def _width_of(key: str) -> Shown:
    return lambda row: "-" if row[key] is None else f"{row[key]:.3f}"


def inference_references() -> Cells:
    """benchmarks/inference/numbers.md: our numbers next to those of R, statsmodels and lifelines, without noise."""
    head = ["part", "number", "privstats", "reference", "difference", "of its standard error", "which reference"]
    lines, before = [], ""
    for _, rows in titled("inference.references"):
        for row in sorted(rows, key=lambda each: each["part"]):
            errors = "" if row["in standard errors"] is None else f"{row['in standard errors']:.3f}"
            values = [f"{row['ours']:.6g}", f"{row['theirs']:.6g}", f"{row['difference']:.1g}", errors]
            lines.append([row["part"] if row["part"] != before else "", row["number"], *values, row["reference"]])
            before = row["part"]
    return [head, *lines]


def _half_width(row: Row) -> str:
    return "-" if row["half width"] is None else f"{row['half width']:.3f}"


def inference_cells() -> Cells:
    """benchmarks/raw_tables/numbers.md: contrasts of cells of declared columns."""
    head = ["cuts", "missing", "records", "epsilon", "reported", "reported and missed", "worst cell", "half width"]
    lines = []
    for _, rows in titled("inference.cells"):
        for row in rows:
            about = [str(row["cuts"]), f"{100 * row['gaps']:g} %", f"{row['records']:,}", _epsilon(row)]
            found = [
                _percent(row["reported"]),
                _missed(row),
                _percent(row["worst parameter"]),
                _number(row, "half width"),
            ]
            lines.append([*about, *found])
    return [head, *lines]


def found_cuts() -> Cells:
    """benchmarks/raw_tables/numbers.md: the same behind cut points that were found."""
    head = ["cuts", "records", "epsilon", "reported", "reported and missed", "worst cell", "half width"]
    lines = []
    for _, rows in titled("inference.found_cuts"):
        for row in rows:
            found = [
                _percent(row["reported"]),
                _missed(row),
                _percent(row["worst parameter"]),
                _number(row, "half width"),
            ]
            lines.append([str(row["cuts"]), f"{row['records']:,}", _epsilon(row), *found])
    return [head, *lines]


def inference_peers() -> Cells:
    """benchmarks/inference/numbers.md: other ways on the same records."""
    head = ["table", "way", "version", "epsilon", "reported and missed", "half width", "median error", "bytes", "shows"]
    lines = []
    for title, rows in titled("inference.peers"):
        for place, row in enumerate(rows):
            about = [title.partition(":")[0] if not place else "", row["peer"], row["version"], _epsilon(row)]
            found = [_missed(row), _number(row, "half width"), _number(row, "median error")]
            lines.append([*about, *found, f"{row['bytes']:,}", row["discloses"]])
    return [head, *lines]


def inference_readers() -> Cells:
    """benchmarks/inference/numbers.md: the readers that the first tables leave out."""
    head = ["table", "records", "epsilon", "reported", "reported and missed", "half width"]
    lines = []
    for title, rows in titled("inference.readers"):
        for place, row in enumerate(rows):
            about = [title if not place else "", f"{row['records']:,}", _epsilon(row), _percent(row["reported"])]
            lines.append([*about, _missed(row), _number(row, "half width")])
    return [head, *lines]


def inference_levels() -> Cells:
    """benchmarks/inference/numbers.md: the arm's interval where a declared level has few records, or none."""
    head = [
        "table",
        "epsilon",
        "level",
        "worlds",
        "reported",
        "reported and missed",
        "width over that without the level",
    ]
    lines = []
    for title, rows in titled("inference.levels"):
        whole: dict[float, float] = {}
        for place, row in enumerate(rows):
            whole.setdefault(row["epsilon"], row["half width"])  # the first row does not declare the level
            wide = "-" if row["half width"] is None else f"{row['half width'] / whole[row['epsilon']]:.2f}"
            about = [title if not place else "", _epsilon(row), row["level"], f"{row['runs']:,}"]
            lines.append([*about, _percent(row["reported"]), _missed(row), wide])
    return [head, *lines]


def rare_outcome() -> Cells:
    """benchmarks/heads/numbers.md: the AUC of a rare outcome by the bins of its score."""
    head = ["outcome", "bins", "AUC pooled", "AUC", "width", "predicted width", "covered"]
    lines = []
    for title, rows in titled("inference.rare_outcome"):
        for place, row in enumerate(rows):
            numbers = [f"{row[name]:.3f}" for name in ("AUC pooled", "AUC", "width", "predicted width")]
            lines.append([title if not place else "", row["bins"], *numbers, f"{100 * row['covered']:.0f} %"])
    return [head, *lines]


def three_hospitals() -> Cells:
    """benchmarks/heads/numbers.md: a score over three hospitals beside scikit-learn on their pooled records."""
    head = ["measure", "over all", "95 % interval", "scikit-learn, pooled"]
    head += ["own file of one", "95 % interval", "scikit-learn, that file", "scikit-learn's model, pooled"]
    lines = []
    (rows,) = [rows for title, rows in titled("inference.three_hospitals") if title.startswith("a score")]
    for row in rows:
        cells = [row["measure"], _or_none(row, "over all"), _between(row, "low", "high"), f"{row['pooled']:.4f}"]
        cells += [_or_none(row, "own file"), _between(row, "own low", "own high"), f"{row['own, scikit-learn']:.4f}"]
        lines.append([*cells, f"{row['pooled model']:.4f}"])
    return [head, *lines]


def _or_none(row: Row, name: str) -> str:
    return "-" if row[name] is None else f"{row[name]:.4f}"


def _between(row: Row, low: str, high: str) -> str:
    return "-" if row[low] is None else f"{row[low]:.3f} to {row[high]:.3f}"


def inference_head_scores() -> Cells:
    """benchmarks/heads/numbers.md: the score of a head against its population, and against the same records pooled."""
    head = ["head", "measure", "epsilon", "reported", "reported and missed", "missed the pooled number", "half width"]
    lines = []
    for title, rows in titled("inference.head_scores"):
        for place, row in enumerate(rows):
            about = [title if not place else "", row["measure"], _epsilon(row), _percent(row["reported"])]
            lines.append([*about, _percent(row["missed"]), _percent(row["missed pooled"]), _number(row, "half width")])
    return [head, *lines]


def inference_persons() -> Cells:
    """benchmarks/inference/numbers.md: averaged persons beside rows that are taken for records."""
    head = ["about", "epsilon", "averages missed", "half width", "rows as records missed", "their half width"]
    lines = []
    for title, rows in titled("inference.persons"):
        for place, (averaged, rows_of) in enumerate(zip(rows[::2], rows[1::2], strict=True)):
            about = [title if not place else "", _epsilon(averaged)]
            ends = [_number(averaged, "half width"), _percent(rows_of["missed"]), _number(rows_of, "half width")]
            lines.append([*about, _percent(averaged["missed"]), *ends])
    return [head, *lines]


def frame_columns() -> Cells:
    """docs/reference/inference.md: what the columns of every ``to_frame`` are called and hold."""
    lines = ([f"`{name}`", column.meaning, column.unit] for name, column in FRAME_COLUMNS.items())
    return [["column", "what it holds", "unit"], *lines]


def inference_standardised() -> Cells:
    """benchmarks/inference/numbers.md: public ranges beside those that a first session finds."""
    head = [
        "ranges",
        "records",
        "epsilon",
        "reported",
        "reported and missed",
        "worst slope",
        "half width",
        "median error",
    ]
    lines = []
    for title, rows in titled("inference.standardised"):
        for place, row in enumerate(rows):
            about = [title if not place else "", f"{row['records']:,}", _epsilon(row), _percent(row["reported"])]
            found = [_missed(row), _percent(row["worst parameter"])]
            lines.append([*about, *found, _number(row, "half width"), _number(row, "median error")])
    return [head, *lines]


def inference_hazards() -> Cells:
    """benchmarks/inference/numbers.md: intervals of hazard ratios."""
    head = ["events", "records", "epsilon", "runs", "reported", "reported and missed", "worst ratio", "half width"]
    lines = []
    for title, rows in titled("inference.hazards")[:2]:
        for place, row in enumerate(rows):
            about = [title if not place else "", f"{row['records']:,}", _epsilon(row), str(row["runs"])]
            found = [
                _percent(row["reported"]),
                _missed(row),
                _percent(row["worst parameter"]),
                _number(row, "half width"),
            ]
            lines.append([*about, *found])
    return [head, *lines]


def inference_proportionality() -> Cells:
    """benchmarks/inference/numbers.md: how often proportionality is rejected at .05."""
    head = ["ratio", "records", "epsilon", "reported", "rejected"]
    lines = []
    for title, rows in titled("inference.hazards")[2:4]:
        for place, row in enumerate(rows):
            about = [title if not place else "", f"{row['records']:,}", _epsilon(row)]
            lines.append([*about, _percent(row["reported"]), _percent(row["rejected"])])
    return [head, *lines]


def inference_cox() -> Cells:
    """benchmarks/inference/numbers.md: grouped hazards beside Cox's model on data that lifelines brings."""
    head = ["data", "persons", "events", "bins", "largest distance in standard errors", "standard errors over Cox's"]
    lines = []
    ((_, rows),) = titled("inference.hazards", "beside Cox's model")
    for row in rows:
        ends = f"{row['least error ratio']:.2f} to {row['largest error ratio']:.2f}"
        distance = f"{row['standard errors from Cox']:.2f}"
        lines.append([row["data"], f"{row['records']:,}", str(row["events"]), str(row["bins"]), distance, ends])
    return [head, *lines]


def inference_leaving() -> Cells:
    """benchmarks/inference/numbers.md: hazard ratios and their tests where two arms leave at rates of their own."""
    head = ["world", "log ratio", "records", "months a bin", "epsilon", "reported", "arm missed", "95 % of it"]
    lines = []
    for title, rows in titled("inference.hazards")[4:8]:
        for place, row in enumerate(rows):
            about = [title if not place else "", f"{row['log ratio']:g}", f"{row['records']:,}"]
            about += [str(row["months a bin"]), _epsilon(row), _percent(row["reported"]), _percent(row["arm missed"])]
            found = (_percent(row[name]) for name in ("age missed", "log-rank rejects", "proportionality rejects"))
            lines.append([*about, _ends_of(row), *found])
    return [[*head, "age missed", "log-rank rejects", "proportionality rejects"], *lines]


def inference_causes() -> Cells:
    """benchmarks/inference/numbers.md: cause-specific ratios."""
    head = ["records", "epsilon", "releases", "reported", "reported and missed", "worst", "95 % of it", "half width"]
    ((_, rows),) = titled("inference.hazards", "one cause")
    lines = []
    for row in rows:
        about = [f"{row['records']:,}", _epsilon(row), f"{row['runs']:,}", _percent(row["reported"]), _missed(row)]
        lines.append([*about, _percent(row["worst parameter"]), _ends_of(row), _half_width(row)])
    return [head, *lines]


def inference_forecasts() -> Cells:
    """benchmarks/inference/numbers.md: what forecasts of hazard ratios promise, beside what is reported."""
    head = ["design", "records", "epsilon", "forecast: reported", "forecast: half width"]
    lines = []
    for title, rows in titled("inference.forecasts"):
        for place, row in enumerate(rows):
            about = [title if not place else "", f"{row['records']:,}", _epsilon(row)]
            width = row["forecast half width"]
            promised = [
                f"{row['forecast reported']} of {row['forecast draws']}",
                "-" if width is None else f"{width:.3f}",
            ]
            reported = f"{_percent(row['reported of the worst'])} of {row['runs']:,}"
            lines.append([*about, *promised, reported, _half_width(row), _missed(row)])
    return [[*head, "reported", "half width", "reported and missed"], *lines]


def inference_strata() -> Cells:
    """benchmarks/inference/numbers.md: ratios with a baseline for each stratum."""
    head = ["records", "epsilon", "releases", "reported", "reported and missed", "worst", "95 % of it", "half width"]
    lines = []
    for _, rows in titled("inference.hazards", "two strata"):
        for row in rows:
            about = [f"{row['records']:,}", _epsilon(row), f"{row['runs']:,}", _percent(row["reported"]), _missed(row)]
            about += [_percent(row["worst parameter"]), _ends_of(row), _half_width(row)]
            lines.append([*about, *(_percent(row[name]) for name in ("check reported", "proportionality rejects"))])
    return [[*head, "check reported", "proportionality rejects"], *lines]


def inference_columns() -> Cells:
    """benchmarks/inference/numbers.md: how often each column's proportionality is rejected at .05."""
    start = "each column's proportionality, "
    head = ["world", "records", "epsilon", "releases", "reported", "arm rejected", "age rejected", "95 % of it"]
    lines, before = [], ""
    for title, rows in titled("inference.hazards", start):
        world = title.partition(":")[0]
        for row in rows:
            about = [world if world != before else "", f"{row['records']:,}", _epsilon(row), f"{row['runs']:,}"]
            shares = (_percent(row[name]) for name in ("reported", "arm rejected", "age rejected"))
            lines.append([*about, *shares, _ends_of(row)])
            before = world
    return [head, *lines]


def inference_repeated() -> Cells:
    """benchmarks/inference/numbers.md: cells that missed often, on other records."""
    head = [
        "cell",
        "worst of its first runs",
        "parameter",
        "releases",
        "reported",
        "missed",
        "95 % of it",
        "above the truth",
    ]
    lines = []
    for title, rows in titled("inference.repeated"):
        for place, row in enumerate(rows):
            first = f"{_percent(row['first missed'])} of {row['first runs']}"
            about = [title, first] if not place else ["", ""]
            about += [row["parameter"], f"{row['runs']:,}", _percent(row["reported"]), _percent(row["missed"])]
            lines.append([*about, _ends_of(row), _percent(row["above"])])
    return [head, *lines]


def inference_stretched() -> Cells:
    """benchmarks/inference/numbers.md: printed assumptions at their edge, and the worst parameter of each world."""
    head = [
        "table",
        "assumed",
        "world",
        "records",
        "epsilon",
        "runs",
        "reported",
        "reported and missed",
        "worst",
        "95 % of it",
    ]
    lines = []
    for title, rows in sorted(titled("inference.stretched"), key=lambda each: each[0].startswith("beyond")):
        for place, row in enumerate(rows):
            about = [title if not place else "", row["assumed"], row["world"], f"{row['records']:,}", _epsilon(row)]
            found = [f"{row['runs']:,}", _percent(row["reported"]), _missed(row)]
            found += [_percent(row["worst parameter"]), _ends_of(row)]
            lines.append([*about, *found])
    return [head, *lines]


def inference_robust_price() -> Cells:
    """benchmarks/inference/numbers.md: what robust errors cost beside the model's."""
    head = ["regression", "records", "epsilon", "budget for J"]
    head += ["seconds", "seconds, robust", "reported", "reported, robust", "width"]
    lines = []
    for title, rows in titled("inference.robust_price"):
        for place, row in enumerate(rows):
            about = [title if not place else "", f"{row['records']:,}", _epsilon(row), f"{100 * row['share']:.0f} %"]
            seconds = [f"{row[name]:.3f}" for name in ("seconds", "seconds, robust")]
            reported = [_percent(row[name]) for name in ("reported", "reported, robust")]
            lines.append([*about, *seconds, *reported, "-" if row["width"] is None else f"x {row['width']:.2f}"])
    return [head, *lines]


def inference_risks() -> Cells:
    """benchmarks/inference/numbers.md: risks at a time and incidence by cause, missed by month."""
    months = ["month 3", "month 12", "month 24"]
    lines = []
    for _, rows in titled("inference.by_arm")[:2]:
        for row in rows:
            hazards = ", ".join(f"{rate:g}" for rate in row["hazards"])
            about = [row["what"], f"{row['records']:,}", _epsilon(row), hazards]
            lines.append([*about, *(_percent(row[month]) for month in months)])
    return [["what", "records", "epsilon", "hazards a month", *months], *lines]


def inference_real() -> Cells:
    """benchmarks/inference/numbers.md: columns of real data sets."""
    head = [
        "columns",
        "errors",
        "epsilon",
        "`cov_type`",
        "reported",
        "reported and missed",
        "worst parameter",
        "half width",
    ]
    ((_, rows),) = titled("inference.real")
    lines = []
    for row in rows:
        about = [row["columns"], row["errors"], _epsilon(row), row["cov_type"], _percent(row["reported"])]
        lines.append([*about, _missed(row), _percent(row["worst parameter"]), _number(row, "half width")])
    return [head, *lines]


def _ends_of(row: Row) -> str:
    return f"{100 * row['low end']:.1f} to {100 * row['high end']:.1f}"


def _epsilon(row: Row) -> str:
    return "no noise" if row["epsilon"] is None else f"{row['epsilon']:g}"


def _missed(row: Row) -> str:
    if "not run" in row:
        return str(row["not run"])
    return "no interval" if row["reported and missed"] is None else _percent(row["reported and missed"])


def _number(row: Row, key: str) -> str:
    return "-" if row.get(key) is None else f"{row[key]:.4f}"


_RELEASE: dict[str, Shown] = {"records": "{records:,}", "epsilon": "{epsilon:g}"}
_INTERVALS: dict[str, Shown] = {
    "reported": _unless_refused(_share("reported"), "refused"),
    "reported and missed": _unless_refused(_share("reported and missed")),
    "naive covers": _unless_refused(_share("naive covers")),
    "half width": _unless_refused(_half_width),
    "without noise": "{without noise:.3f}",
}
_ENDS: dict[str, Shown] = {
    "reported": _share("reported"),
    "reported and missed": _share("reported and missed"),
    "95 % of it": _ends_of,
    "half width": lambda row: "-" if row["half width"] is None else f"{row['half width']:.4f}",
}
_WORLD: dict[str, Shown] = {"world": "{world}", "estimand": "{estimand}"}
_RUNS: dict[str, Shown] = {"runs": "{runs:,}"}
_OF_EFFECTS: dict[str, Shown] = _WORLD | _RELEASE | _RUNS | _ENDS
_QUESTIONS: dict[str, Shown] = {
    "rows": "{rows}",
    "reported": _share("reported"),
    "reported and missed": _share("reported and missed"),
    "worst row": _share("worst row"),
    "95 % of it": _ENDS["95 % of it"],
    "half width": _ENDS["half width"],
}
_COVERED: dict[str, Shown] = {
    **_RELEASE,
    **_RUNS,
    **{name: _QUESTIONS[name] for name in ("reported", "reported and missed", "worst row", "95 % of it")},
}
_LATE: dict[str, Shown] = {
    "times": "{times}",
    **_RELEASE,
    **_RUNS,
    "reported": _share("reported"),
    "missed": _share("reported and missed"),
    "worst": _share("worst point"),
    "rejected": _share("rejected"),
    "95 %": _ends_of,
    "entry ignored: missed": _share("entry ignored misses"),
    "rejected then": _share("entry ignored rejects"),
}
_CLUSTERS: dict[str, Shown] = {
    "clusters": "{clusters:,}",
    "spread": "{spread:g}",
    "factor": "{factor:g}",
    "epsilon": "{epsilon:g}",
    **_RUNS,
    **_ENDS,
    "rows of patients: missed": _share("rows of patients miss"),
}
_RATES: dict[str, Shown] = {"world": "{world}", "errors": "{errors}", **_COVERED, "half width": _ENDS["half width"]}
_NEGATIVE: dict[str, Shown] = {
    "alpha": "{alpha:g}",
    **_RELEASE,
    **_RUNS,
    **{
        f"{name}: {what}": _share(f"{name}: {what}")
        for name in ("robust", "quasi-Poisson")
        for what in ("reported", "worst row")
    },
    **{f"{name}: half width": _width_of(f"{name}: half width") for name in ("robust", "quasi-Poisson")},
    "pooled": "{pooled:.3f}",
}
_EXACT: dict[str, Shown] = {
    "records": "{records:,}",
    "epsilon": lambda row: "exact" if row["epsilon"] is None else f"{row['epsilon']:g}",
}
_WEIGHED: dict[str, Shown] = {
    "alpha": "{alpha:g}",
    "declared": lambda row: "none" if row["declared"] is None else f"{row['declared']:g}",
    **_COVERED,
    **_EXACT,
    "half width": _ENDS["half width"],
}
_WEIGHTS: dict[str, Shown] = {
    name: _WEIGHED[name] for name in ("alpha", "declared", "records", "epsilon", "half width")
}
_ALPHA: dict[str, Shown] = {
    "world": "{world}",
    "alpha": "{alpha:g}",
    **_EXACT,
    "counts cut": lambda row: f"{100 * row['cut']:.2g} %",
    **_RUNS,
    "reported": _share("reported"),
    "missed": _share("missed"),
    "95 % of it": _ends_of,
    "median estimate": lambda row: "-" if row["median"] is None else f"{row['median']:.2f}",
    "median interval": lambda row: (
        "-" if row["median"] is None else f"{row['median low']:.2f} to {row['median high']:.2f}"
    ),
    **{
        f"{name}: {what}": _share(f"{name}: {what}")
        for name in ("robust", "quasi-Poisson")
        for what in ("reported", "worst row")
    },
}
_MEANS: dict[str, Shown] = {
    "world": "{world}",
    **_EXACT,
    **_RUNS,
    "reported": _share("reported"),
    **{f"{name}: missed": _share(f"{name}: missed") for name in ("mean a", "mean b", "difference", "ratio")},
    **{f"{name}: missed": _share(f"{name}: missed") for name in ("follow-up a", "follow-up b")},
    "95 % of the worst": _ends_of,
}
_CURVES: dict[str, Shown] = {
    "hazard per bin": "{hazard:.1f}",
    **_EXACT,
    **_RUNS,
    "bins": "{bins}",
    "missed": _share("missed"),
    "last bin": _share("last bin"),
    "worst bin": _share("worst bin"),
    "95 % of the worst": _ends_of,
    "half width of the last": "{half width of the last:.3f}",
    "below 20 at risk: missed": lambda row: "-" if (share := row["fewer at risk: missed"]) is None else _percent(share),
}
_CLAIMS: dict[str, Shown] = {
    "claim": "{claim}",
    **_EXACT,
    **_RUNS,
    "reported": _share("reported"),
    "shown": _share("shown"),
    "95 % of it": _ends_of,
    "more often shown": _share("more often shown"),
}
_LOOKS: dict[str, Shown] = {
    "looks": "{looks}",
    "spending": "{spending}",
    **_RELEASE,
    **_RUNS,
    "noise": _share("noise"),
    "all looks reported": _share("reported"),
    "missed": _share("missed"),
    "95 % of it": _ends_of,
    "crossed": _share("crossed"),
    "usual levels": _share("usual levels"),
    "information alone": _share("information alone"),
}
_FAMILIES: dict[str, Shown] = {
    "primary": _share("primary"),
    "secondary": _share("secondary"),
    "secondary, unadjusted": _share("secondary, unadjusted"),
    "95 % of the worse": _ENDS["95 % of it"],
}
_DECLARED = "inference.declared"
_SITES: dict[str, Shown] = {
    "sites": "{sites}",
    "records each": "{records each}",
    "groups": "{groups}",
    "epsilon": "{epsilon:g}",
    "deviations differ by": "{deviations differ by:.1f}",
    "sd of effects": "{deviation between sites:g}",
    "rejected": _share("rejected"),
    "95 % of it": _ends_of,
    "sd reported": "{site sd:.3f}",
    "I2": _share("I2"),
    "mean missed": _share("mean missed"),
}
_ARMS: dict[str, Shown] = {
    "outcome": "{outcome}",
    "of the others": "{of the others:g}",
    "true ratio": "{true ratio:g}",
    **_RELEASE,
    **{name: _share(name) for name in ("treated", "others", "difference", "ratio")},
}
_ADJUSTED: dict[str, Shown] = {
    "outcome": "{outcome}",
    "of the columns": "{of columns}",
    "probability": "{probability:g}",
    **_RELEASE,
    **{name: _share(name) for name in ("reported", "treated", "others")},
    "width": "{width:.2f}",
}
_BALANCE: dict[str, Shown] = {
    **_RELEASE,
    "spread of age": "{spread:g}",
    "years between the arms": "{apart:g}",
    "reported": _share("reported"),
    "reported and missed": _share("reported and missed"),
    "half width": lambda row: "-" if row["half width"] is None else f"{row['half width']:.2f}",
}
_RISKS: dict[str, Shown] = {"risk": "{risk:g}", "ratio": "{ratio:g}", "probability": "{probability:g}"}
_RESULT, _EFFECTS, _BY_SITE = "inference.coverage", "inference.effects", "inference.effects_by_site"

_MISSING = "inference.missing_outcomes"
_OBSERVED: dict[str, Shown] = {
    **_RELEASE,
    **_RUNS,
    "observed": lambda row: f"{100 * row['observed']:.0f} %",
    "kept": lambda row: f"{100 * row['kept']:.0f} %",
    **_ENDS,
    "complete cases miss": _share("complete cases missed"),
}

_CARDS: Mapping[str, Shown] = {
    "records": "{records:,}",
    "epsilon": "{epsilon:g}",
    "columns": "{columns}",
    "cuts": "{cuts}",
    "in their bands": lambda row: _percent(row["held"]),
    "half width": "{half width:.2f}",
    "off the exact points": "{off:.2f}",
}

TABLES: Tables = {
    "inference_coverage": Table(_RESULT, "regression, central: 95 % intervals", _RELEASE | _INTERVALS),
    "inference_models": Table(_RESULT, "regression by trust model", _RELEASE | {"model": "{model}"} | _INTERVALS),
    "inference_survival": Table(
        _RESULT,
        "Kaplan-Meier, central",
        _RELEASE | {"reported": _share("reported"), "reported and missed": _share("reported and missed")},
    ),
    "inference_trials": Table(
        _EFFECTS, "trials", {"world": "{world}", "probability": "{probability:g}"} | _RELEASE | _RUNS | _ENDS
    ),
    "inference_confounded": Table(_EFFECTS, "overlap weights, confounded", _OF_EFFECTS),
    "inference_differing": Table(_EFFECTS, "overlap weights, differing", _OF_EFFECTS),
    "inference_adjusted": Table(_EFFECTS, "adjusted differences, all and treated", _OF_EFFECTS),
    "inference_beyond": Table(_EFFECTS, "beyond the trim", _OF_EFFECTS),
    "inference_few": Table(_EFFECTS, "few records, six columns", _OF_EFFECTS),
    "card_bands": Table("inference.card_bands", "points in their bands", _CARDS),
    "inference_questions": Table(_DECLARED, "trials", _WORLD | _RELEASE | _QUESTIONS),
    "inference_questions_overlap": Table(_DECLARED, "overlap weights", _WORLD | _RELEASE | _QUESTIONS),
    "inference_questions_all": Table(_DECLARED, "all records", _WORLD | _RELEASE | _QUESTIONS),
    "inference_interactions": Table("inference.interactions", "", _COVERED, ("what", lambda rest: rest)),
    "inference_missing_values": Table("inference.missing_values", "shares", _COVERED),
    "inference_late_ratios": Table(
        "inference.late_entry", "hazard ratios", _COVERED | {"entry ignored: missed": _share("entry ignored misses")}
    ),
    "inference_subdistribution": Table(
        "inference.subdistribution",
        "ratios",
        {"leaving": "{leaving:g}"} | _COVERED | {"cause-specific: missed": _share("cause-specific misses")},
    ),
    "inference_clusters": Table("inference.clusters", "effects", _CLUSTERS),
    "inference_crossovers": Table("inference.clusters", "crossover trials", _RELEASE | _RUNS | _ENDS),
    "inference_negative_binomial": Table("inference.rates", "negative binomial counts", _NEGATIVE),
    "inference_alpha": Table("inference.dispersion", "estimated alpha", _ALPHA),
    "inference_weights": Table("inference.dispersion", "rounds that declare alpha", _WEIGHTS),
    "inference_weighed": Table("inference.dispersion", "rounds that declare alpha", _WEIGHED),
    "inference_restricted_means": Table("inference.margins", "restricted means and follow-up", _MEANS),
    "inference_many_events": Table("inference.margins", "curves with many events a bin", _CURVES),
    "inference_false_claims": Table("inference.margins", "claims that are false", _CLAIMS),
    "inference_rates": Table("inference.rates", "rates and multiples", _RATES),
    "inference_late_entry": Table("inference.late_entry", "curves and tests", _LATE),
    "inference_looks": Table("inference.looks", "no effect", _LOOKS),
    "inference_looks_effect": Table("inference.looks", "an effect", _LOOKS),
    "inference_families": Table(_DECLARED, "families without an effect", _WORLD | _RELEASE | _FAMILIES),
    "inference_same": Table(_BY_SITE, "the same effect at all sites", _SITES),
    "inference_sites": Table(_BY_SITE, "effects that differ between sites", _SITES),
    "inference_ratios": Table(_BY_SITE, "ratios of risks", _RISKS | _RELEASE | _ENDS),
    "inference_places": Table(
        _BY_SITE, "probabilities by place", {"probabilities": "{probabilities}"} | _RELEASE | _ENDS
    ),
    "inference_missing": Table(_MISSING, "a fourth missing", _OBSERVED),
    "inference_missing_elsewhere": Table(_MISSING, "other worlds", {"world": "{world}"} | _OBSERVED),
    **by_name(found_cuts, inference_cells, inference_peers, inference_readers, inference_levels, inference_real),
    **by_name(inference_head_scores, inference_persons, frame_columns, rare_outcome, three_hospitals),
    "inference_arms": Table("inference.by_arm", "both measures and both arms", _ARMS),
    "inference_adjusted_arms": Table("inference.by_arm", "adjusted means by arm", _ADJUSTED),
    "inference_balance": Table("inference.by_arm", "balance", _BALANCE),
    **by_name(inference_leaving, inference_causes, inference_stretched, inference_robust_price, inference_risks),
    **by_name(inference_strata, inference_columns, inference_repeated, inference_forecasts),
    **by_name(
        inference_references, inference_standardised, inference_hazards, inference_proportionality, inference_cox
    ),
}
"""By the name in the page's marker: regressions, survival, cells, peers, other readers, real columns."""
