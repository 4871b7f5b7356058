"""Every private fit, recorded and replayed on neighbours; a fit that looks at its records beside the sums is found."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.errors import PlanError
from privstats.heads.registry import HEADS
from tests.heads.conftest import quick
from threat_models.audits.replay import audit_replay

RNG = np.random.default_rng(3)
Y = np.arange(240) % 3
X = 2 * np.eye(3, 5)[Y] + 0.4 * RNG.normal(size=(240, 5))
FITTED = [name for name, entry in HEADS.items() if entry.closed_form and entry.task != "parties"]
HOSTILE = [np.full(5, 1e300), np.zeros(5), np.array([-5e-324, 1e9, 0, 0, 0])]


def promise(adjacency: str = "add-remove", epsilon: float = 2.0, delta: float = 1e-5) -> ps.Privacy:
    return ps.Privacy(model="central", unit="record", adjacency=adjacency, epsilon=epsilon, delta=delta)


def terms_of(name: str, adjacency: str) -> dict[str, Any]:
    terms: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "adjacency": adjacency, "ledger": "uncharged"}
    terms |= {"clip_norm": 1.0 if name == "RefinedSoftmax" else 4.0, "max_records": 300}
    terms |= {"target_bound": 3.0} if HEADS[name].task == "ridge" else {"classes": [0, 1, 2]}
    return terms | ({"expected_records": 240} if HEADS[name].after_rounds else {})


def fit_of(name: str, adjacency: str) -> Any:
    head = quick(name).set_params(**{"rounds": 2} if HEADS[name].after_rounds else {})
    return partial(head.fit_private, **terms_of(name, adjacency))


def exchanged(row: Any, label: int) -> tuple[Any, Any]:
    rows, labels = X.copy(), Y.copy()
    rows[7], labels[7] = row, label
    return rows, labels


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FITTED)
def test_a_private_fit_is_made_of_its_noisy_sums(name: str) -> None:
    added = [(np.vstack([X, [row]]), np.append(Y, 2)) for row in (*HOSTILE, 4 * np.eye(5)[4])]
    report = audit_replay(fit_of(name, "add-remove"), (X, Y), [(X[1:], Y[1:]), *added], promise())
    assert not report.violated, report.rows
    swapped = [exchanged(row, 0) for row in (*HOSTILE, -X[7])]
    report = audit_replay(fit_of(name, "replace-one"), (X, Y), swapped, promise("replace-one"))
    assert not report.violated, report.rows
    assert max(row[3] for row in report.rows) > 0.1  # type: ignore[type-var, operator]


def test_open_cut_points_are_found_from_noisy_sums_alone() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"age": 60 + 9 * X[:, 0], "ward": np.array(["a", "b", "c"])[Y], "smokes": Y % 2})
    columns = (ps.Numeric("age"), ps.Categories("ward", ("a", "b", "c")), ps.Truth("smokes"))
    terms = terms_of("LDA", "add-remove") | {"clip_norm": None, "columns": columns, "expected_records": 240}
    wild = pandas.concat([table, pandas.DataFrame({"age": ["eighty"], "ward": [7], "smokes": [None]})])
    report = audit_replay(
        partial(ps.heads.LDA().fit_private, **terms), (table, Y), [(wild, np.append(Y, 1))], promise()
    )
    assert not report.violated, report.rows
    assert report.rows[0][1] > 1  # type: ignore[operator]


def standardised(rows: Any, labels: Any) -> Any:
    return fit_of("LDA", "add-remove")((rows - rows.mean(axis=0)) / rows.std(axis=0), labels)


def by_size(rows: Any, labels: Any) -> Any:
    return ps.heads.LDA().fit_private(rows, labels, **terms_of("LDA", "add-remove") | {"max_records": len(rows)})


def once_more(rows: Any, labels: Any) -> Any:
    for _ in range(2):
        head = fit_of("LDA", "add-remove")(rows, labels)
    return head


class Remembering:
    """A head whose file says how many records there were."""

    def __init__(self, rows: Any, labels: Any) -> None:
        self.head, self.rows = fit_of("LDA", "add-remove")(rows, labels), len(rows)

    def save(self, path: Any) -> None:
        self.head.save(path)
        path.write_bytes(path.read_bytes() + str(self.rows).encode())


@pytest.mark.parametrize(
    ("fit", "column"),
    [(standardised, 3), (by_size, 2), (once_more, 3), (Remembering, 5)],
    ids=lambda each: str(each)[:24],
)
def test_a_fit_that_looks_beside_the_sums_or_asks_too_often_is_found(fit: Any, column: int) -> None:
    far = np.vstack([X, [np.full(5, 1e4)]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = audit_replay(fit, (X, Y), [(far, np.append(Y, 2))], promise())
    (row,) = report.rows
    assert report.violated
    assert row[3] > row[4] if column == 3 else not row[column]  # type: ignore[operator]


@pytest.mark.parametrize("changes", [{"delta": 0.0}, {"model": "distributed"}], ids=str)
def test_only_the_servers_gaussian_noise_can_be_replayed(changes: dict[str, Any]) -> None:
    privacy = replace(promise(), **changes)
    with pytest.raises(PlanError, match="give model='central' and a delta above 0"):
        audit_replay(fit_of("LDA", "add-remove"), (X, Y), [], privacy)
