"""What GH-OFL's heads cost: accuracy, memory and time of low-rank QDA, fitting, and the size of an upload.

Memory is that of the fitted rule as this library holds it, time is of this processor, an upload is what the schema
sends. Tables 5, 6 and 8.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.measuring import Rows, Tables, least_seconds, peak_bytes
from benchmarks.papers.cells import Cell, Sheet
from benchmarks.papers.gaps import above, gap_sheet
from benchmarks.papers.gh import published
from benchmarks.papers.gh.accuracy import MAKERS, SEEDS
from benchmarks.papers.sets import Features, corrupted_fashion, nearest_to, released
from privstats import heads

__all__ = ["fitting", "low_rank", "overheads", "predicting", "sketches", "uploads"]

_NO_DATA = "no package installs this data set"
_PREDICTED = 1_000


def _published_low_rank(rank: int) -> Callable[[], Any]:
    return lambda: heads.LowRankQDA(rank=rank, basis="features", residual="diagonal", pooled_weight=0.0, shrinkage=None)


_BASE, _OWN = "NB-diag", "DLR-QDA (r=16), of this library"
_LOW_RANK: Mapping[str, Callable[[], Any]] = {
    _BASE: heads.NaiveBayes,
    "LDA": lambda: heads.LDA(shrinkage=0.05),
    "QDA_full": lambda: heads.QDA(shrinkage=0.1),
    "DLR-QDA (r=4)": _published_low_rank(4),
    "DLR-QDA (r=8)": _published_low_rank(8),
    "DLR-QDA (r=16)": _published_low_rank(16),
    _OWN: heads.LowRankQDA,
}


def low_rank(*, quick: bool) -> Tables:
    """Table 5: accuracy, memory and time of the low-rank family; relative to naive Bayes, as printed."""
    sheet = Sheet(published.PAPER, "Table 5", "low-rank QDA: accuracy, %; memory and time, naive Bayes = 1")
    gaps = gap_sheet(sheet, _BASE)
    cells: list[Cell] = []
    further: list[Cell] = []
    for place, data in enumerate(("CIFAR-100", "AG_NEWS")):
        features, column = nearest_to(data, quick=quick), f"{data} Acc."
        fitted = _fitted(features)
        found, printed = _accuracies(features, fitted), {name: row[place] for name, row in published.LOW_RANK.items()}
        cells += [sheet.nearest(name, column, text, found[name], features.said) for name, text in printed.items()]
        cells.append(sheet.cell(_OWN, column, None, found[_OWN]))
        further += above(gaps, _BASE, printed, found, column)
        if not place:
            cells += _relative(sheet, features, fitted, quick=quick)
    ten = nearest_to("CIFAR-10", quick=quick)
    for name, values in _accuracies(ten, _fitted(ten)).items():
        cells.append(sheet.cell(name, f"{ten.name} Acc.", None, values))
    for name, texts in published.LOW_RANK.items():
        cells.append(sheet.absent(name, "DBPEDIA-14 Acc.", texts[2], _NO_DATA))
    yield sheet.rows(cells)
    yield gaps.rows(further)


def _fitted(features: Features) -> dict[str, Any]:
    release = released(features, "NAS")
    return {name: make().fit_release(release) for name, make in _LOW_RANK.items()}


def _accuracies(features: Features, fitted: Mapping[str, Any]) -> dict[str, list[float]]:
    return {name: [100 * head.score(features.split[1], features.split[3])] for name, head in fitted.items()}


def _relative(sheet: Sheet, features: Features, fitted: Mapping[str, Any], *, quick: bool) -> Iterator[Cell]:
    rows = features.split[1][:_PREDICTED]
    seconds = least_seconds(
        {name: lambda head=head: head.predict(rows) for name, head in fitted.items()},  # type: ignore[misc]
        2 if quick else 5,
        time.process_time,
    )
    memory = {name: _numbers(head.rule_) for name, head in fitted.items()}
    why = f"C = {features.classes}, d = {rows.shape[1]}, the rule as this library holds it; the paper's are not C d^2"
    for name in fitted:
        printed = published.LOW_RANK.get(name, (None,) * 5)
        yield sheet.cell(name, "Mem (rel.)", printed[3], memory[name] / memory[_BASE], why=why)
        pace = seconds[name] / seconds[_BASE]
        yield sheet.cell(name, "Time (rel.)", printed[4], pace, why="another processor and another implementation")


def _numbers(rule: Any) -> int:
    """Bytes of the arrays that a fitted rule holds."""
    held = (getattr(rule, field.name) for field in fields(rule))
    return sum(array.nbytes for array in held if isinstance(array, np.ndarray))


def fitting(*, quick: bool) -> tuple[str, Rows]:
    """Table 8, top: seconds and memory of fitting from a release, on one core where the paper has a GPU."""
    sheet = Sheet(published.PAPER, "Table 8, top", "fitting on CIFAR-100: minutes, and GB", better="lower")
    features = nearest_to("CIFAR-100", quick=quick)
    names = {"GH-OFL-NB (diag)": "GH-NBdiag", "GH-OFL-LDA": "GH-LDA", "GH-OFL-QDA-full": "GH-QDAfull"}
    names |= {"GH-OFL-FisherMix": "FisherMix", "GH-OFL-Proto-Hyper": "Proto-Hyper"}
    made = {row: MAKERS[name] for row, name in names.items() if not quick or "N" in row[7:9]}
    made["GH-OFL-DLR-QDA (r=8)"] = ("NAS", lambda _: heads.LowRankQDA(rank=8))
    cells = []
    for row, (statistics, make) in made.items():
        release = released(features, statistics)
        start = time.process_time()
        make(0).fit_release(release)
        minutes = (time.process_time() - start) / 60
        peak, _ = peak_bytes(lambda make=make, release=release: make(0).fit_release(release))  # type: ignore[misc]
        said = f"one core, no GPU, no encoding; {features.said}"
        time_printed, memory_printed = published.TABLE_8_TOP[row]
        cells.append(sheet.nearest(row, "GPU time (min)", time_printed, minutes, said))
        cells.append(sheet.nearest(row, "GPU mem (GB)", memory_printed, peak / 1e9, said))
    return sheet.rows(cells)


def predicting(*, quick: bool) -> tuple[str, Rows]:
    """Table 8, bottom, "head cost": milliseconds for the scores of one sample, alone and among a thousand."""
    features = nearest_to("CIFAR-100", quick=quick)
    rows = features.split[1][:_PREDICTED]
    made = {name: MAKERS[name] for name in MAKERS if not quick or name.startswith("GH-NB")}
    fitted = {name: make(0).fit_release(released(features, sent)) for name, (sent, make) in made.items()}
    found: list[dict[str, Any]] = [{"head": name} for name in fitted]
    for column, batch in (("alone, ms a sample", rows[:1]), ("among a thousand, ms a sample", rows)):
        tasks = {name: lambda head=head, batch=batch: head.predict(batch) for name, head in fitted.items()}
        seconds = least_seconds(tasks, 2 if quick else 20, time.process_time)
        for row in found:
            row[column] = 1e3 * seconds[row["head"]] / len(batch)
    return f"GH-OFL, Table 8, head cost: on {features.said}, one core; the paper's are 0.05 to 25", found


def overheads() -> tuple[str, Rows]:
    """Figure 3: what each head of Table 1 asks a client for, at C = 10 and k = 256."""
    sizes = {name: _plan(10, 256, sent).layout.size for name, (sent, _) in MAKERS.items()}
    rows = [
        {"head": name, "uploaded": ", ".join(MAKERS[name][0]), "numbers": size, "KB": size * 4 / 1024}
        for name, size in sizes.items()
    ]
    return "GH-OFL, Figure 3: upload of a client by head, C = 10, k = 256", rows


def uploads(*, quick: bool) -> tuple[str, Rows]:
    """Tables 6 and 8: numbers that a client sends, their kilobytes as float32, and what masking makes of them."""
    sheet = Sheet(published.PAPER, "Tables 6 and 8", "upload of one client", better="lower")
    cells: list[Cell] = []
    C, k = 100, 256
    formulas = {
        "NB-diag (RP k): C (1 + 2k)": ("NAD", C * (1 + 2 * k)),
        "LDA (RP k): C (1 + k) + k (k + 1) / 2": ("NAB", C * (1 + k) + k * (k + 1) // 2),
        "QDA (RP k): C (1 + k + k (k + 1) / 2)": ("NAS", C * (1 + k + k * (k + 1) // 2)),
    }
    for row, (statistics, numbers) in formulas.items():
        plan = _plan(C, k, statistics)
        cells.append(sheet.cell(row, "numbers at C = 100, k = 256", str(numbers), plan.layout.size))
    for dimension, (statistics, by_classes, _) in published.TABLE_8.items():
        if quick and dimension > 128:
            continue
        for classes, (kilobytes, megabytes) in by_classes.items():
            plan, row = (
                _plan(classes, dimension, statistics),
                f"RP-{dimension} ({', '.join(statistics)}), C = {classes}",
            )
            size = plan.layout.size * 4 / 1024
            cells.append(sheet.cell(row, "Upload KB", kilobytes, size))
            cells.append(sheet.cell(row, "Total MB", megabytes, 10 * size / 1024, why=_ROUNDED))
            wire = plan.masking.upload_bytes / 1024
            cells.append(sheet.cell(row, "KB on the wire: exact integers, masked, ten clients", None, wire))
    return sheet.rows(cells)


_ROUNDED = "the paper multiplied the kilobytes that it had rounded"


def _plan(classes: int, features: int, statistics: str) -> ps.Plan:
    """Ten clients and 50,000 records, as on CIFAR-100."""
    return ps.Plan(
        schema=ps.ClassSchema(classes, features, statistics, clip_norm=1.0),
        cohort=ps.Cohort(clients=10, min_survivors=10, max_records=50_000),
        privacy=ps.NoPrivacy(),
    )


def sketches(*, quick: bool) -> tuple[str, Rows]:
    """Table 8, bottom: accuracy by RP dimension, five projections; the paper changes the statistics along with it."""
    sheet = Sheet(published.PAPER, "Table 8, bottom", "test accuracy by RP dimension, %", better="higher")
    made = None if quick else corrupted_fashion()
    features = nearest_to("SVHN", quick=quick) if made is None else made[0]
    width = features.split[0].shape[1]
    cells: list[Cell] = []
    for dimension, (statistics, _, (vision, text)) in published.TABLE_8.items():
        fitting_dimension = dimension if dimension < width else width * dimension // 1024
        behind = [features.projected(fitting_dimension, seed) for seed in (SEEDS[:2] if quick else SEEDS)]
        row = f"RP-{dimension} ({', '.join(statistics)})"
        said = f"{features.said}, projected to {fitting_dimension}"
        allowed = [_allowed(each, statistics) for each in behind]
        cells.append(sheet.nearest(row, "C100 Acc.", vision, allowed, f"{said}; {_HEAD_OF[statistics]}"))
        cells.append(_of_texts(sheet, row, statistics, dimension, text, quick=quick))
        cells.append(sheet.cell(f"RP-{dimension} (N, A, B)", "LDA", None, [_allowed(each, "NABD") for each in behind]))
    whole = [_allowed(features, "NABD")]
    cells.append(sheet.cell(f"no projection, {width} features (N, A, B)", "LDA", None, whole))
    return sheet.rows(cells)


def _of_texts(sheet: Sheet, row: str, statistics: str, dimension: int, text: str, *, quick: bool) -> Cell:
    """The same on AG News; features that are fewer than the projection's stay as they are."""
    features = nearest_to("AG_NEWS", quick=quick)
    width = features.split[0].shape[1]
    if dimension >= width:
        said = f"{features.said}, not projected; {_HEAD_OF[statistics]}"
        return sheet.nearest(row, "AGN Acc.", text, _allowed(features, statistics), said)
    behind = [features.projected(dimension, seed) for seed in (SEEDS[:2] if quick else SEEDS)]
    said = f"{features.said}, projected to {dimension}; {_HEAD_OF[statistics]}"
    return sheet.nearest(row, "AGN Acc.", text, [_allowed(each, statistics) for each in behind], said)


_HEAD_OF = {
    "NABD": "LDA",
    "NAD": "naive Bayes, the only head of these sums",
    "NA": "nearest mean, the only rule of these sums",
}


def _allowed(features: Features, statistics: str) -> float:
    """Accuracy in percent of what the statistics allow."""
    X_test, y_test = features.split[1], features.split[3]
    if statistics == "NA":
        moments = released(features, "NA").moments
        means = moments.A / moments.N[:, None]
        scores = X_test @ means.T - np.square(means).sum(axis=1) / 2
        return 100 * float((scores.argmax(axis=1) == y_test).mean())
    _, make = MAKERS["GH-LDA" if statistics == "NABD" else "GH-NBdiag"]
    head = make(0).fit_release(released(features, "NAB" if statistics == "NABD" else "NAD"))
    return 100 * float(head.score(X_test, y_test))
