"""The number tables of benchmarks/refinement/numbers.md, from the committed results of ``benchmarks/refinement``.

Part of ``benchmarks/tables.py``, which writes them into the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from benchmarks.measuring import Row, Rows, results, standard_error
from benchmarks.table import Cells, Shown, Table, Tables, by_name, titled

__all__ = [
    "DATA",
    "EPSILONS",
    "RIVALS",
    "SETS",
    "TABLES",
    "gained",
    "oracle_rows",
    "oracle_side",
    "peers_rows",
    "regressions_behind",
    "standing",
    "trained_of",
]

DATA: Mapping[str, str] = {
    "digits": "digits",
    "banking77": "BANKING77, 128-d",
    "banking77 whole": "BANKING77, 384-d",
    "cifar10": "CIFAR-10",
    "fmnist": "Fashion-MNIST",
    "mnist5k": "MNIST, 3,750 records",
    "letter": "Letter, 256 random features",
    "agnews": "AG News",
}
SETS = {**DATA, "clinc150": "CLINC150"}
_TITLE = "accuracy under differential privacy, %: "
EPSILONS = ("0.1", "0.3", "1", "3", "8")
_PEERS = ("Opacus DP-SGD", "full-batch DP-GD")
RIVALS = ("DP-GD", "DP-GD, by forest", "DP-FC")
_REFINED = "refined, as it comes"
_LOST = 0.3  # points below the best of the others from which on a cell counts as lost


def peers_rows(data: str) -> Rows:
    """RDA and what others train under privacy on one data set; where one was not measured its row is empty."""
    rows = _accuracy_rows(data)
    wanted = ("RDA", "diffprivlib GaussianNB", "Opacus DP-SGD", "full-batch DP-GD")
    return [rows.get(model, {"model": model}) for model in wanted] if rows else []


def _accuracy_rows(data: str) -> dict[str, Row]:
    rows = results("refinement.compare").get(f"{_TITLE}{data}", [])
    return {row["model"]: row for row in rows}


def refinement_accuracy() -> Cells:
    """Every model on every data set; cells of refinement that lose to another by more than .3 are bold."""
    lines = [["data", "model", *_heads()]]
    measured = {data: _accuracy_rows(data) for data in DATA}
    fullest = max(measured.values(), key=len)
    models = list(fullest)
    for data, shown in DATA.items():
        rows = {model: measured[data].get(model, {}) for model in models} if measured[data] else {"not measured": {}}
        others = [row for model, row in rows.items() if not model.startswith("refined")]
        best = {e: max((float(row.get(f"eps {e}", -math.inf)) for row in others), default=0.0) for e in EPSILONS}
        for place, (model, row) in enumerate(rows.items()):
            ours = model.startswith("refined")
            cells = [_cell(row, e, ours and row.get(f"eps {e}", math.inf) < best[e] - _LOST) for e in EPSILONS]
            lines.append([shown if not place else "", model, *cells])
    return lines


def refinement_clips() -> Cells:
    """The clip of residuals of a fit on exact rows, and of rounds under noise; the rule's clip is bold."""
    clips = ("clip 0.3", "clip 0.5", "clip 0.7", "clip 1", "logistic regression")
    lines = [["rows", "data", "classes", "epsilon", "s", *clips]]
    for _, rows in titled("refinement.clips"):
        for row in rows:
            signal = f"{row['s']:.0f}" if "s" in row else "-"
            about = [row["rows"], row["data"], str(row["classes"]), f"{row.get('epsilon', 'none')}", signal]
            cells = {way: _clip(row, way) for way in clips}
            lines.append([*about, *(f"**{cell}**" if way == row.get("rule") else cell for way, cell in cells.items())])
    return lines


def refinement_clip_gaps() -> Cells:
    """Other clips over the rule's under noise: the score, and the log loss, which is better where it falls."""
    clips = ("clip 0.3", "clip 0.5", "clip 0.7", "clip 1")
    lines = [["data", "epsilon", "rule", *clips]]
    for title, rows in titled("refinement.clips"):
        for row in rows if title == "rounds under noise" else ():
            cells = ("-" if way == row["rule"] else _clip_gap(row, way) for way in clips)
            lines.append([row["data"], f"{row['epsilon']:g}", row["rule"].removeprefix("clip "), *cells])
    return lines


def _clip_gap(row: Row, way: str) -> str:
    return ", ".join(
        f"{np.mean(gaps):+.3f} ± {standard_error(gaps):.3f}" for gaps in (clip_gaps(row, way, part) for part in _PARTS)
    )


_PARTS = ("scores", "losses")


def clip_gaps(row: Row, way: str, part: str) -> list[float]:
    """By split, a clip's scores or log losses less those of the rule's clip."""
    found: list[float] = np.subtract(row[f"{way}, {part}"], row[f"{row['rule']}, {part}"]).tolist()
    return found


def _clip(row: Row, way: str) -> str:
    """AUC of two classes or accuracy of more, and the log loss."""
    if way not in row:
        return "-"
    spread = row[f"{way}, se"]
    return f"{row[way]:.3f}" + (f" ± {spread:.3f}" if spread is not None else "") + f", {row[f'{way}, loss']:.3f}"


def refinement_standing() -> Cells:
    """Ours before and after a mean first, and both tuned peers; what :func:`standing` or :func:`gained` finds lost is
    bold."""
    lines = [["data", "epsilon", "LDA, before", "LDA behind a mean, after", "refined", *_PEERS]]
    for data, shown in DATA.items():
        rows = _accuracy_rows(data)
        for epsilon in EPSILONS:
            behind = _cell(_centred(data), epsilon, gained(data, epsilon) < 0)
            refined = _cell(rows["refined"], epsilon, standing(data, epsilon) < 0)
            peers = (_cell(rows[peer], epsilon) for peer in _PEERS)
            lead = [shown if epsilon == EPSILONS[0] else "", _short(float(epsilon))]
            lines.append([*lead, _cell(rows["LDA"], epsilon), behind, refined, *peers])
    return lines


def standing(data: str, epsilon: str) -> int:
    """1 where refinement is ahead of the better tuned peer, -1 where it is behind, 0 within a standard error of the
    difference."""
    rows = _accuracy_rows(data)
    own, best = rows["refined"], max((rows[peer] for peer in _PEERS), key=lambda row: float(row[f"eps {epsilon}"]))
    return _side(
        own[f"eps {epsilon}"] - best[f"eps {epsilon}"], math.hypot(own[f"se {epsilon}"], best[f"se {epsilon}"])
    )


def gained(data: str, epsilon: str) -> int:
    """1 where a mean first gains accuracy over one release, -1 where it loses, 0 within a standard error of the gain,
    draw by draw."""
    row = _centred(data)
    return _side(row[f"gain {epsilon}"], row[f"gain se {epsilon}"])


def _side(gap: float, error: float) -> int:
    return (gap > error) - (gap < -error)


def _centred(data: str) -> Row:
    return next(row for row in results("heads.centred")[f"accuracy, %: {data}"] if row["model"] == "LDA, centred")


def refinement_oracle() -> Cells:
    """Gradient descent whose setting the test set chose: the chosen score, and the same setting on fresh noise; ours.

    A cell of ours is bold where a repeated winner is ahead by more than a standard error of the difference.
    """
    lines = [["data", "epsilon", *(f"{way}: settings, chosen, repeated" for way in RIVALS), "refined"]]
    for data, found in oracle_rows().items():
        for place, (epsilon, rows) in enumerate(found.items()):
            cells = [_searched(rows[way]) if way in rows else "-" for way in RIVALS]
            shown = SETS.get(data, data) if not place else ""
            lines.append([shown, _short(epsilon), *cells, _repeated(rows[_REFINED], bold=oracle_side(rows) < 0)])
    return lines


def _searched(row: Row) -> str:
    """Settings, those of them that trained, those that trained on all records, where these are fewer; the scores."""
    counts = [*trained_of(row)]
    counts.append(row.get("on all records", counts[-1]))
    shown = " > ".join(f"{count:,}" for count in dict.fromkeys(counts))
    return f"{shown}; {row['chosen']:.1f}, {_repeated(row)}"


def trained_of(row: Row) -> tuple[int, int]:
    """Return how many settings a search considered, and how many it trained: all, where no forest chose."""
    return row["settings"], row.get("trained", row["settings"])


def oracle_rows() -> dict[str, dict[float, dict[str, Row]]]:
    """Return rows of the search by the test set, by data set, epsilon and model, where a rival has ended."""
    found: dict[str, dict[float, dict[str, Row]]] = {}
    for data, rows in titled("peers.oracle", "DP-GD chosen by the test set, accuracy in %: "):
        by_epsilon: dict[float, dict[str, Row]] = {}
        for row in rows:
            by_epsilon.setdefault(row["epsilon"], {})[row["model"]] = row
        ended = {epsilon: models for epsilon, models in by_epsilon.items() if set(RIVALS) & set(models)}
        found |= {data: ended} if ended else {}
    return found


def oracle_side(rows: Mapping[str, Row]) -> int:
    """1 where refinement is ahead of the best rival's repeated winner, -1 where it is behind, 0 within a standard error
    of the difference."""
    ours, best = rows[_REFINED], max((rows[way] for way in RIVALS if way in rows), key=lambda row: row["repeated"])
    return _side(ours["repeated"] - best["repeated"], math.hypot(ours["se"], best["se"]))


def refinement_elsewhere() -> Cells:
    """The winners on divisions of the same records whose test rows did not choose them, and ours beside them."""
    lines = [["data", "epsilon", "rival", "lead on its own test rows", "on others", "refined there", "lead there"]]
    own = oracle_rows()
    for data, rows in titled(
        "peers.oracle", "the winner on other divisions into training and test records, accuracy in %: "
    ):
        for row in rows:
            found = own[data][row["epsilon"]]
            ahead = found[row["model"]]["repeated"] - found[_REFINED]["repeated"]
            numbers = (f"{row['rival']:.1f}", f"{row['refined']:.1f}", f"{row['lead']:+.2f} ± {row['se']:.2f}")
            lines.append([SETS.get(data, data), _short(row["epsilon"]), row["model"], f"{ahead:+.2f}", *numbers])
    return lines


def oracle_steps() -> Cells:
    """One step of settings that train side by side, over its two matrix products alone."""
    lines = [["data", "settings side by side", "its two products", "a step", "step over products"]]
    for data, (row,) in titled("peers.oracle", "one step of DP-GD over its two matrix products: "):
        times = (f"{row[each]:.0f} ms" for each in ("ms of the products", "ms of the step"))
        lines.append([SETS.get(data, data), f"{row['settings side by side']}", *times, f"{row['step / products']:.2f}"])
    return lines


def refinement_exact() -> Cells:
    """A softmax without noise on rows as they are and on whitened rows, refinement without noise, and what the leading
    tenth of directions holds."""
    shown = ("rows as they are", "whitened rows", "refined", "refined, training")
    lines = [["data", *shown, "rows in leading directions", "class means there"]]
    leading = dict(titled("peers.oracle", "in the tenth of directions with the largest second moments, %: "))
    for data, (row,) in titled("peers.oracle", "softmax without noise, accuracy in %: "):
        held = (f"{leading[data][0][each]:.0f} %" for each in ("rows", "class means"))
        lines.append([SETS.get(data, data), *(f"{row[each]:.1f}" for each in shown), *held])
    return lines


def _repeated(row: Row, *, bold: bool = False) -> str:
    mean = f"{row['repeated']:.1f}"
    return f"{f'**{mean}**' if bold else mean} ± {row['se']:.1f}"


def refinement_of_parties() -> Cells:
    """Test MSE between parties: one release, six rounds, 24 rounds."""
    ways = ("one release, Wiener", "refined, T = 6, distributed", "refined, T = 24, distributed")
    lines = [["test error: one release / 6 / 24 rounds", ".3", "1", "3"]]
    for data, rows in titled("refinement.regression", "test MSE under differential privacy: "):
        by_model = {row["model"]: row for row in rows}
        cells = (" / ".join(f"{by_model[way][f'eps {e}']:.3f}".lstrip("0") for way in ways) for e in ("0.3", "1", "3"))
        lines.append([data, *cells])
    return lines


def refinement_regression() -> Cells:
    """Test MSE of regressions; refined ones that lose by more than their standard error are bold."""
    lines = [["data", "model", *_heads()]]
    for data, rows in titled("refinement.regression", "test MSE under differential privacy: "):
        lost = set(_behind(rows))
        for place, row in enumerate(rows):
            cells = (_error(row[f"eps {e}"], row[f"se {e}"], (row["model"], e) in lost) for e in EPSILONS)
            lines.append([data if not place else "", row["model"], *cells])
    return lines


def regressions_behind(model: str) -> list[tuple[str, str]]:
    """Data and epsilons at which a refined regression loses by more than its standard error."""
    found = titled("refinement.regression", "test MSE under differential privacy: ")
    return [(data, e) for data, rows in found for name, e in _behind(rows) if name == model]


def _behind(rows: Rows) -> Iterator[tuple[str, str]]:
    others = [row for row in rows[:-1] if not row["model"].startswith("refined")]
    for row in (row for row in rows if row["model"].startswith("refined")):
        for e in EPSILONS:
            if row[f"eps {e}"] - row[f"se {e}"] > min(other[f"eps {e}"] for other in others):
                yield row["model"], e


def _error(mean: float, spread: float, bold: bool) -> str:
    digits = 1 - math.floor(math.log10(spread))
    shown = f"{mean:.{digits}f}".lstrip("0")
    error = f"{spread:.{digits}f}".lstrip("0")
    return f"**{shown}** ± {error}" if bold else f"{shown} ± {error}"


def _less_real(way: str) -> str:
    return f"{{{way} less real:+.2f}} ± {{se {way}:.2f}}"


def refinement_rounds() -> Cells:
    """What more rounds gain on held-out training records."""
    rows = results("refinement.more_rounds")["held-out training records, %"]
    beyond = [key for key in rows[0] if key.endswith("beyond it")]
    lines = [["data", *(_short(float(e)) for e in EPSILONS)]]
    for data in dict.fromkeys(row["data"] for row in rows):
        for T in (key.split()[2] for key in beyond):
            own = {f"{row['epsilon']:g}": row for row in rows if row["data"] == data}
            cells = (f"{own[e][f'T = {T} beyond it']:+.2f} ± {own[e][f'se {T}']:.2f}" for e in EPSILONS)
            lines.append([f"{DATA[data]}, T = {T}", *cells])
    return lines


def refinement_floor() -> Cells:
    """What whitening as far as noise allows gains, and at what floor; only where it is not whitening by half."""
    rows = results("refinement.floor")["gain by the floor of the whitening"]
    epsilons = list(dict.fromkeys(row["epsilon"] for row in rows))
    lines = [["data", *(_short(epsilon) for epsilon in epsilons)]]
    for data in dict.fromkeys(row["data"] for row in rows):
        own = [row for row in rows if row["data"] == data]
        if any("gain" in row for row in own):
            lines.append([DATA.get(data, data), *map(_floored, own)])
    return lines


def _floored(row: Row) -> str:
    return f"{row['gain']:+.2f} ± {row['se']:.2f} ({row['floor']:.2f})" if "gain" in row else "same"


def heads_threads() -> Cells:
    """benchmarks/heads/numbers.md: heads of many classes with one BLAS thread and with two."""
    found = titled("heads.threads", "fits with ")
    names = [key for key in found[0][1][0] if key != "head"]
    lines = [["classes x features", "head", *names]]
    for title, rows in found:
        for place, row in enumerate(rows):
            seconds = (f"{row[name]:.1f}" if name in row else "not measured" for name in names)
            lines.append([title.split(",")[0].replace(" classes", "") if not place else "", row["head"], *seconds])
    return lines


def heads_pooling() -> Cells:
    """benchmarks/heads/numbers.md: RDA's own pooled weight beside fixed ones."""
    rows = results("heads.pooling")["accuracy of RDA by pooled weight, %"]
    weights = [key for key in rows[0] if key not in ("data", "per class", "auto", "chosen")]
    lines = [["data", "records per class", "its own choice", "weight chosen", *(f"w = {w}" for w in weights)]]
    for row in rows:
        cells = (f"{row[key]:.1f}" for key in weights)
        lines.append([DATA[row["data"]], str(row["per class"]), f"{row['auto']:.1f}", f"{row['chosen']:.2f}", *cells])
    return lines


def _kilobytes(way: str) -> Shown:
    return lambda row: f"{row[f'bytes {way}'] / 1e3:,.1f}"


def _epsilon(row: Row) -> str:
    return _short(row["epsilon"])


def _heads() -> list[str]:
    return [_short(float(e)) for e in EPSILONS]


def _short(epsilon: float) -> str:
    return f"{epsilon:g}".lstrip("0")


def _cell(row: Row, epsilon: str, lost: bool = False) -> str:
    if f"eps {epsilon}" not in row:
        return "-"
    mean, error = row[f"eps {epsilon}"], row.get(f"se {epsilon}")
    spread = "" if error is None else f" ± {error:.1f}"
    return f"**{mean:.1f}**{spread}" if lost else f"{mean:.1f}{spread}"


_LOOPBACK: Mapping[str, Shown] = {
    "protocol": "{protocol}",
    "session": lambda row: (row["node"] if row["nodes"] == 1 else "round, mean of {nodes}").format_map(row),
    "entries": "{entries:,}",
    "bits": "{bits}",
    **{f"kB {way}": _kilobytes(way) for way in ("up", "down", "told")},
    "ms of a party": lambda row: f"{1e3 * row['seconds of a party']:.1f}",
    "s of all": "{seconds:.2f}",
}
_TOLD: Mapping[str, Shown] = {
    "data": lambda row: DATA[row["data"]],
    "kB in 8 bytes, every round": lambda row: f"{row['8 bytes, every round'] / 1e3:,.0f}",
    "kB packed, each value once": lambda row: f"{row['packed, each once'] / 1e3:,.0f}",
}
_EXACTNESS: Mapping[str, Shown] = {
    "data": lambda row: DATA[row["data"]],
    "epsilon": _epsilon,
    "real numbers": "{real numbers:.1f}",
    "symmetric map less that": _less_real("symmetric"),
    "integers less that": _less_real("integers"),
}
_CALIBRATION: Mapping[str, Shown] = {
    "epsilon": _epsilon,
    "model": "{model}",
    **{name: f"{{{name}:.1f}}" for name in ("accuracy", "mean confidence")},
    "calibration error": "{calibration error:.1f} ± {se:.1f}",
    "log-likelihood": "{log-likelihood:.2f}",
    "temperature": "{temperature:.2f}",
}


def _with_loss(row: Row, epsilon: str) -> str:
    """Accuracy, and what it loses against all records."""
    own = f"{row[f'eps {epsilon}']:.1f}"
    return (
        own if row["silent of 20"] == "none" else f"{own} ({row[f'lost {epsilon}']:+.1f} ± {row[f'se {epsilon}']:.1f})"
    )


_MISSING: Mapping[str, Shown] = {
    "silent of 20": "{silent of 20}",
    **{epsilon.lstrip("0"): partial(_with_loss, epsilon=epsilon) for epsilon in ("0.1", "0.3", "1")},
}
_TAIL: Mapping[str, Shown] = {
    "model": "{model}",
    **{_short(float(e)): partial(_cell, epsilon=e) for e in EPSILONS},
}


def _gained(row: Row, score: str) -> str:
    gain, spread = row[f"{score} gain"], row[f"{score} se"]
    same = abs(gain) < 0.005 and spread < 0.005
    return f"{row[score]:.1f}, same" if same else f"{row[score]:.1f} {gain:+.2f} ± {spread:.2f}"


_RARE_DATA = {
    "Nursery": "Nursery",
    "cifar10, long tail": "CIFAR-10, long tail",
    "fmnist, long tail": "Fashion-MNIST, long tail",
    **DATA,
}
_RARE: Mapping[str, Shown] = {
    "data": lambda row: _RARE_DATA[row["data"]],
    "epsilon": _epsilon,
    "draws": "{draws}",
    'balanced accuracy, priors="uniform"': partial(_gained, score="balanced"),
    'accuracy, priors="counts"': partial(_gained, score="accuracy"),
}
_ROUND: Mapping[str, Shown] = {
    "records": "{records:,}",
    "features": "{features}",
    "classes": "{classes}",
    "first round, s": "{round:.2f}",
    "its products, s": "{products:.2f}",
    "further round, s": "{again:.2f}",
    "step of DP-GD, s": "{step:.2f}",
    "first over its products": "{floors:.1f}",
    "first over a step": "{steps:.1f}",
    "further over a step": "{steps again:.1f}",
}
_TUNED_WAYS = ("ours", "ours, ranges", "DP-EBM", "diffprivlib", "DP-GD, tuned", "Opacus, tuned")


def refinement_tables() -> Cells:
    """AUC and balanced accuracy of ours and of peers; what is behind the best peer by more than an error is bold."""
    lines = [["table", "epsilon", *_TUNED_WAYS]]
    for (data, epsilon), found in _tuned().items():
        best = max((row for way, row in found.items() if not way.startswith("ours")), key=lambda row: float(row["AUC"]))
        cells = [_ranked(row, best, ours=way.startswith("ours")) for way, row in found.items()]
        lines.append([data if epsilon == min(e for d, e in _tuned() if d == data) else "", _short(epsilon), *cells])
    return lines


def _tuned() -> dict[tuple[str, float], dict[str, Row]]:
    """By table and epsilon the rows, in the order of the ways."""
    rows = results("raw_tables.tuned")["tuned peers on raw tables"]
    found = {(row["data"], row["epsilon"], row["way"]): row for row in rows}
    places = dict.fromkeys((row["data"], row["epsilon"]) for row in rows)
    return {place: {way: found[(*place, way)] for way in _TUNED_WAYS} for place in places}


def _ranked(row: Row, best: Row, *, ours: bool) -> str:
    auc = f"{row['AUC']:.1f}"
    behind = best["AUC"] - row["AUC"] > math.hypot(row["AUC se"], best["AUC se"])
    return f"**{auc}** / {row['balanced']:.1f}" if ours and behind else f"{auc} / {row['balanced']:.1f}"


_FEW_MODELS = ("refined softmax", "without its ridge", "LDA", "RDA", "logistic regression")
_FEW: Mapping[str, Shown] = {
    "data": lambda row: DATA[row["data"]],
    "features": "{features}",
    "records": "{records:,}",
    **{name: f"{{{name}:.1f}} ± {{se {name}:.1f}}" for name in _FEW_MODELS},
}
_SMALL: Mapping[str, Shown] = {
    "columns": "{columns}",
    "spectrum falls by the power": "{power:g}",
    "records": "{records:,}",
    "n mu": "{n mu:.0f}",
    "filters": "{filters:.3f}",
    "schedule": "{fixed steps:.3f}",
    "change, %": "{change, %:+.0f} ± {se:.0f}",
}
_MEANS: Mapping[str, Shown] = {
    **{name: _SMALL[name] for name in ("columns", "spectrum falls by the power", "records", "n mu")},
    "the mean's part of squares": "{mean's part:.1f}",
    "without a mean": "{without a mean:.3f}",
    "with a mean": "{with a mean:.3f}",
    "change, %": _SMALL["change, %"],
}
_UNLEARNABLE: Mapping[str, Shown] = {
    "records": "{records:,}",
    "columns": "{columns}",
    "epsilon": _epsilon,
    "n mu": "{n mu:.0f}",
    "targets": "{targets}",
    **{
        name: f"{{{name}:.3f}} ± {{se {name}:.3f}}"
        for name in ("mean of one release", "one release", "T = 4", "T = 24")
    },
}


def _beside_descent(row: Row) -> str:
    """The change and its error in percent; bold where it is a loss of more than that error."""
    shown, error = f"{row['change, %']:+.1f}", f"± {row['se']:.1f}"
    return f"**{shown}** {error}" if row["change, %"] > row["se"] else f"{shown} {error}"


_MANY: Mapping[str, Shown] = {
    "data": "{data}",
    "epsilon": _epsilon,
    "full-batch DP-GD": "{DP-GD:.4f}",
    "refined, T = 24": "{refined:.4f}",
    "change, %": _beside_descent,
}
_BY_DATA = ("data", lambda name: DATA[name])


def _beside_linear(row: Row, model: str) -> str:
    """Accuracy; bold where linear scores are ahead by more than what counts as lost."""
    shown = f"{row[model]:.1f}"
    spread = f" ± {row[f'se {model}']:.1f}" if f"se {model}" in row else ""
    return f"**{shown}**{spread}" if row[model] < row["linear"] - _LOST else f"{shown}{spread}"


_MODULES: Mapping[str, Shown] = {
    "epsilon": lambda row: "no DP" if row["epsilon"] is None else _epsilon(row),
    **{name: partial(_beside_linear, model=name) for name in ("linear", "adapter/32", "mlp/32")},
}

TABLES: Tables = {
    **by_name(refinement_standing, refinement_accuracy, refinement_regression, refinement_rounds, refinement_floor),
    **by_name(refinement_tables, refinement_of_parties, refinement_clips, refinement_clip_gaps),
    **by_name(heads_threads, heads_pooling, refinement_oracle, refinement_elsewhere, oracle_steps, refinement_exact),
    "refinement_few": Table("refinement.few_records", "accuracy from few records", _FEW),
    "refinement_small": Table("refinement.small_cohorts", "test MSE of regressions of small cohorts", _SMALL),
    "refinement_unlearnable": Table("refinement.unlearnable", "test error over that of", _UNLEARNABLE),
    "refinement_many": Table("refinement.many_draws", "test MSE of a regression's rounds", _MANY),
    "refinement_means": Table("refinement.small_cohorts", "test MSE of regressions of records with a mean", _MEANS),
    "refinement_exactness": Table("refinement.exactness", "", _EXACTNESS),
    "refinement_loopback": Table(
        "refinement.loopback", "bytes and seconds of a course's nodes on the loopback: ", _LOOPBACK, _BY_DATA
    ),
    "module_rounds": Table(
        "refinement.module_rounds",
        "accuracy under differential privacy with a hidden layer, %: ",
        _MODULES,
        ("data", lambda name: {"products": "sign of a product", **DATA}.get(name, "AG News")),
    ),
    "refinement_told": Table("refinement.loopback", "bytes of the published values that a party is told", _TOLD),
    "refinement_calibration": Table("refinement.calibration", "calibration: ", _CALIBRATION, _BY_DATA),
    "heads_calibration": Table("heads.calibration", "calibration: ", _CALIBRATION, _BY_DATA),
    "refinement_missing": Table("refinement.missing", "accuracy with missing records, %: ", _MISSING, _BY_DATA),
    "refinement_round_speed": Table("refinement.round_speed", "processor seconds of a round", _ROUND),
    "refinement_rare": Table("refinement.rare", "gain by a curvature of each class", _RARE),
    "refinement_tail": Table("refinement.probabilities", "balanced accuracy under a long tail, %: ", _TAIL, _BY_DATA),
}
"""By the name in the page's marker."""
