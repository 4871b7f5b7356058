"""What others make of raw tables, and what this library's pages said before it took them as they are.

    python -m benchmarks.raw_tables.rivals --save --keep              # go on with what is not there yet
    PRIVSTATS_DIFFPRIVLIB=PYTHON python -m benchmarks.raw_tables.rivals --save --keep

Every rival is told what nobody knows: the true range of each number, the true median for its gaps where it refuses
them, the list of each category. diffprivlib 0.6.6 imports no scikit-learn from 1.6 on, so it runs in an interpreter of
its own, which has diffprivlib and scikit-learn 1.5; without PRIVSTATS_DIFFPRIVLIB it is left out.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier

from benchmarks.measuring import child, command
from benchmarks.raw_tables.known import Known
from benchmarks.raw_tables.running import DELTA, Way, Ways, options, tables_of
from benchmarks.raw_tables.sets import Split
from privstats import heads
from privstats.errors import PrivstatsError

__all__ = ["DIFFPRIVLIB", "WAYS", "coded_numbers", "ebm_gaps", "ebm_scores", "logistic_scores"]

Array: TypeAlias = NDArray[np.float64]
Scored: TypeAlias = Callable[[Known, Split, float], Array]

DIFFPRIVLIB = os.environ.get("PRIVSTATS_DIFFPRIVLIB", "")
_SCRIPT = Path(__file__).with_name("logistic_peer.py")


def ebm_scores(
    known: Known, split: Split, train: pd.DataFrame, test: pd.DataFrame, epsilon: float, delta: float = DELTA
) -> Array:
    """DP-EBM's probabilities of the test records."""
    from interpret.privacy import DPExplainableBoostingClassifier

    kinds = ["continuous" if category is None else "nominal" for category in known.book.values()]
    bounds = {place: known.ranges[name] for place, name in enumerate(known.book) if name in known.ranges}
    model = DPExplainableBoostingClassifier(
        feature_names=list(known.book),
        feature_types=kinds,
        privacy_bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        random_state=split.seed,
        n_jobs=1,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of categories that the private list left out
        model.fit(known.filled(train), split.y)
        return np.asarray(model.predict_proba(known.filled(test))[:, 1])


def _ebm(known: Known, split: Split, train: pd.DataFrame, test: pd.DataFrame, epsilon: float) -> Array:
    return ebm_scores(known, split, train, test, epsilon)


def ebm_whole(known: Known, split: Split, epsilon: float) -> Array:
    """DP-EBM with whole records and true ranges."""
    return _ebm(known, split, split.whole, split.whole_test, epsilon)


def ebm_gaps(known: Known, split: Split, epsilon: float) -> Array:
    """DP-EBM with true ranges, and the true median for each number that is missing."""
    return _ebm(known, split, split.gaps, split.gaps_test, epsilon)


def _boosting(known: Known, split: Split, train: pd.DataFrame, test: pd.DataFrame) -> Array:
    kinds = [category is not None for category in known.book.values()]
    model = HistGradientBoostingClassifier(categorical_features=kinds, random_state=split.seed)
    model.fit(coded_numbers(known, train), split.y)
    return np.asarray(model.predict_proba(coded_numbers(known, test))[:, 1])


def coded_numbers(known: Known, columns: pd.DataFrame) -> Array:
    """Numbers, and categories as places in their lists; NaN for gaps and what no list has."""
    coded = {
        name: columns[name].astype(float)
        if category is None
        else columns[name].map({value: float(place) for place, value in enumerate(category.values)})
        for name, category in known.book.items()
    }
    return np.asarray(pd.DataFrame(coded), np.float64)


def boosting_whole(known: Known, split: Split) -> Array:
    """Boosted trees without privacy, whole records."""
    return _boosting(known, split, split.whole, split.whole_test)


def boosting_gaps(known: Known, split: Split) -> Array:
    """Boosted trees without privacy, a tenth of the cells missing."""
    return _boosting(known, split, split.gaps, split.gaps_test)


def _ranged(rows: tuple[Array, Array, Any], epsilon: float) -> Array:
    """Columns brought to -1 to 1 and rows to norm 1 by ``RefinedSoftmax``; .5 where no model comes of it."""
    X, X_test, y = rows
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few records, one class: what this way has to live with
            head = heads.RefinedSoftmax().fit_private(
                X,
                y,
                epsilon=epsilon,
                delta=DELTA,
                adjacency="add-remove",
                classes=(0, 1),
                expected_records=max(len(y), 1),
                ledger="uncharged",
            )
            return np.asarray(head.predict_proba(X_test)[:, 1])
    except PrivstatsError:
        return np.full(len(X_test), 0.5)


def ranges_whole(known: Known, split: Split, epsilon: float) -> Array:
    """This library's earlier way: true ranges, whole records."""
    rows = known.scaled(split.whole), known.scaled(split.whole_test), split.y
    return _ranged(rows, epsilon)


def ranges_wide(known: Known, split: Split, epsilon: float) -> Array:
    """This library's earlier way: upper ends guessed ten times too far, whole records."""
    rows = known.scaled(split.whole, 10.0), known.scaled(split.whole_test, 10.0), split.y
    return _ranged(rows, epsilon)


def ranges_dropped(known: Known, split: Split, epsilon: float) -> Array:
    """This library's earlier way: true ranges, records with a gap left out."""
    kept = split.gaps.notna().all(axis=1).to_numpy()
    rows = known.scaled(split.gaps[kept]), known.scaled(split.gaps_test), split.y[kept]
    return _ranged(rows, epsilon)


def logistic(known: Known, splits: Sequence[Split], epsilon: float) -> list[Array]:
    """The probabilities of diffprivlib's logistic regression."""
    return [expit(each) for each in logistic_scores(known, splits, epsilon)]


def logistic_scores(known: Known, splits: Sequence[Split], epsilon: float) -> list[Array]:
    """diffprivlib's logistic regression in its own interpreter: whole records, true ranges, the true largest norm."""
    arrays: dict[str, Any] = {"epsilon": epsilon}
    rows = [(known.scaled(split.whole), known.scaled(split.whole_test)) for split in splits]
    arrays["norm"] = max(float(np.linalg.norm(X, axis=1).max()) for each in rows for X in each)
    for place, (split, (X, X_test)) in enumerate(zip(splits, rows, strict=True)):
        arrays |= {f"X{place}": X, f"T{place}": X_test, f"y{place}": split.y, f"seed{place}": split.seed}
    with tempfile.TemporaryDirectory() as folder:
        asked, told = Path(folder) / "asked.npz", Path(folder) / "told.npz"
        np.savez(asked, **arrays)
        alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        child([DIFFPRIVLIB, str(_SCRIPT), str(asked), str(told)], env=alone, cwd=folder)
        with np.load(told) as scores:
            return [np.asarray(scores[f"s{place}"]) for place in range(len(splits))]


def _each(scored: Scored) -> Way:
    return lambda known, splits, epsilon: [scored(known, split, epsilon) for split in splits]


def _exact(scored: Callable[[Known, Split], Array]) -> Way:
    return lambda known, splits, _: [scored(known, split) for split in splits]


def _there() -> Mapping[str, str]:
    """Why ways that need something else are left out here."""
    missing = {} if find_spec("interpret") else dict.fromkeys(("DP-EBM, whole", "DP-EBM"), "needs interpret-core")
    return missing if DIFFPRIVLIB else {**missing, "diffprivlib, whole": "needs PRIVSTATS_DIFFPRIVLIB"}


WAYS = Ways(
    private={
        "DP-EBM, whole": _each(ebm_whole),
        "DP-EBM": _each(ebm_gaps),
        "ranges, whole": _each(ranges_whole),
        "ranges ten times too wide, whole": _each(ranges_wide),
        "ranges, gaps left out": _each(ranges_dropped),
        "diffprivlib, whole": logistic,
    },
    exact={"boosting, whole": _exact(boosting_whole), "boosting": _exact(boosting_gaps)},
    left_out=_there(),
)
"""By name; "whole" ways are given the tables without the tenth of cells that others miss."""


if __name__ == "__main__":
    command("raw_tables.rivals", __doc__, lambda chosen: tables_of(WAYS, "raw_tables.rivals", chosen), options)
