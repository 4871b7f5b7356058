"""Every reader of a head gives one answer, whether the head was fitted here, loaded, pickled; a clone is refused."""

import pickle
import re
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from typer.testing import CliRunner

import privstats as ps
from privstats import heads
from privstats.cli import score
from privstats.heads.registry import HEADS
from privstats.randomness import seeded
from tests.heads.conftest import quick

CELLS = ps.Cells((ps.Numeric("age", (40.0, 65.0)), ps.Truth("smoker"), ps.Categories("ward", ("A", "B", "C"))))
N = 400
PRIVACY = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-6)
COHORT = ps.Cohort(clients=2, min_survivors=2, max_records=N)


def _records() -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    age, smoker = rng.normal(55, 15, N), rng.integers(0, 2, N)
    table = pd.DataFrame({"age": age, "smoker": smoker, "ward": rng.choice(["A", "B", "D"], N)})
    table.loc[rng.random(N) < 0.1, "age"] = np.nan
    ill = rng.random(N) < 1 / (1 + np.exp(1.0 - 0.04 * (age - 55) - smoker))
    return table, np.where(ill, "ill", "well")


TABLE, Y = _records()
DOSES = 0.02 * TABLE["age"].fillna(55).to_numpy() + TABLE["smoker"].to_numpy()


def _simulated(course: Any, y: Any) -> Any:
    return ps.simulate(course, [(TABLE.iloc[k::2], y[k::2]) for k in range(2)], rng=seeded(0))


def _of_classes(name: str, **options: Any) -> tuple[Any, Any]:
    entry, head = HEADS[name], quick(name)
    statistics = "NA" + ("B" if "B" in entry.any_of else "S") + entry.beside_B
    schema = ps.ClassSchema(2, CELLS.width, statistics, 1.0, transform=(CELLS,), class_names=("ill", "well"))
    plan = ps.Plan(schema=schema, cohort=COHORT, privacy=PRIVACY)
    if entry.after_rounds:
        releases = _simulated(ps.Rounds.within(plan, 2, expected_records=N, **options), Y)
        return head.fit_releases(releases), releases
    release = _simulated(plan, Y)
    return head.fit_release(release), release


def _of_targets(name: str) -> tuple[Any, Any]:
    rows = (CELLS, ps.transforms.ConstantFeature(1.0))
    schema = ps.RidgeSchema(clip_norm=2**0.5, target_bound=4.0, transform=rows)
    plan = ps.Plan(schema=schema, cohort=COHORT, privacy=PRIVACY)
    if HEADS[name].after_rounds:
        releases = _simulated(ps.Rounds.within(plan, 2, expected_records=N), DOSES)
        return quick(name).fit_releases(releases), releases
    release = _simulated(plan, DOSES)
    return quick(name).fit_release(release), release


def _of_parties(name: str) -> tuple[Any, Any]:
    return quick(name).fit(np.random.default_rng(0).normal(size=(N, 3)), Y), None


FITS: Mapping[str, Callable[[str], tuple[Any, Any]]] = {
    "classes": _of_classes,
    "ridge": _of_targets,
    "parties": _of_parties,
}
FURTHER: Mapping[str, Callable[[], tuple[Any, Any]]] = {
    "RefinedSoftmax, calibrated": lambda: _of_classes("RefinedSoftmax", calibrated=True),
    "RefinedSoftmax, of a module": lambda: _of_classes("RefinedSoftmax", module="adapter/2"),
    "LDA, behind a mean": lambda: _centred(),
}


def _centred() -> tuple[Any, Any]:
    schema = ps.ClassSchema(2, CELLS.width, "NAB", 1.0, transform=(CELLS,), class_names=("ill", "well"))
    plan = ps.Plan(schema=schema, cohort=COHORT, privacy=PRIVACY)
    releases = _simulated(ps.Centred.within(plan, expected_records=N, calibrated=True), Y)
    return heads.LDA().fit_release(releases), releases


CARDS: dict[int, tuple[Any, Any]] = {}
"""Each head with its scorecard, by the head's identity: six readers read one card."""


def _card(head: Any, releases: Any) -> Any:
    if id(head) not in CARDS:
        CARDS[id(head)] = head, ps.inference.scorecard(head, releases, draws=2)
    return CARDS[id(head)][1]


def _module(head: Any) -> Any:
    torch = pytest.importorskip("torch")
    rows = np.asarray(head.preprocessing_.ordered(_rows(head)), np.float64)
    return heads.to_module(head)(torch.tensor(rows)).numpy()


def _onnx(head: Any, path: Any) -> bytes:
    pytest.importorskip("onnx")
    head.to_onnx(path / "head.onnx")
    return (path / "head.onnx").read_bytes()


def _served(head: Any, path: Any) -> dict[str, Any]:
    """The outputs of the head's ONNX file, by name."""
    runtime, rows = pytest.importorskip("onnxruntime"), np.asarray(head.preprocessing_.ordered(_rows(head)), np.float64)
    session = runtime.InferenceSession(_onnx(head, path), providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return {name: each.tolist() for name, each in zip(names, session.run(None, {"rows": rows}), strict=True)}


def _queried(card: Any) -> Any:
    with sqlite3.connect(":memory:") as base:
        TABLE.to_sql("visits", base, index=False)
        return pd.read_sql_query(card.sql("visits"), base)["log_odds"].to_numpy()


def _drawn(card: Any) -> str:
    return str([(each.get_title(loc="left"), [line.get_xydata() for line in each.lines]) for each in card.plot().axes])


def _command(head: Any, path: Any) -> str:
    """What `privstats score` prints of the holder's own records."""
    head.save(path / "scored.head")
    if head.preprocessing_.cells is None:
        records = [str(path / "records.npz")]
        np.savez(records[0], X=_rows(head), y=Y)
    else:
        records = [str(path / "records.csv"), "--target", "sick"]
        TABLE.assign(sick=_y(head)).to_csv(records[0], index=False)
    ended = CliRunner().invoke(score.app, [str(path / "scored.head"), *records, "--json"])
    if ended.exception is not None:
        raise ended.exception
    return ended.stdout


def _rows(head: Any) -> Any:
    return TABLE if head.preprocessing_.cells is not None else np.random.default_rng(0).normal(size=(N, 3))


def _y(head: Any) -> Any:
    return Y if hasattr(head, "classes_") else DOSES


READERS: Mapping[str, Callable[[Any, Any, Any], Any]] = {
    "predict": lambda head, *_: head.predict(_rows(head)),
    "predict from .3 on": lambda head, *_: head.predict(_rows(head), threshold=0.3),
    "predict from the prevalence on": lambda head, *_: head.predict(_rows(head), threshold="prevalence"),
    "predict_proba": lambda head, *_: head.predict_proba(_rows(head)),
    "decision_function": lambda head, *_: head.decision_function(_rows(head)),
    "score": lambda head, *_: head.score(_rows(head), _y(head)),
    "log_likelihood": lambda head, *_: heads.log_likelihood(head, _rows(head), Y),
    "calibration error": lambda head, *_: heads.expected_calibration_error(head, _rows(head), Y),
    "model card": lambda head, *_: head.card(),
    "repr": lambda head, *_: repr(head),
    "to_module": lambda head, *_: _module(head),
    "to_onnx": lambda head, _, path: _onnx(head, path),
    "score session": lambda head, *_: ps.Scoring(head).schema,
    "privstats score": lambda head, _, path: _command(head, path),
    "scorecard": lambda head, releases, _: str(_card(head, releases)),
    "rows of the scorecard": lambda head, releases, _: _card(head, releases).to_rows(),
    "explanation": lambda head, releases, _: str(_card(head, releases).explain(TABLE.iloc[0])),
    "probabilities of the scorecard": lambda head, releases, _: _card(head, releases).predict_proba(TABLE),
    "query of the scorecard": lambda head, releases, _: _queried(_card(head, releases)),
    "plot of the scorecard": lambda head, releases, _: _drawn(_card(head, releases)),
}


def _answer(reader: Any, head: Any, releases: Any, path: Any) -> Any:
    """What the reader gives, or its refusal in words; a fault that is no refusal passes on."""
    try:
        found = reader(head, releases, path)
    except ps.PrivstatsError as refusal:
        return f"{type(refusal).__name__}: {refusal}"
    except (AttributeError, TypeError) as fault:
        lacks = re.search(
            "has no attribute '(predict_proba|predict_log_proba|decision_function|classes_|to_onnx)'", str(fault)
        )
        no_threshold = "unexpected keyword argument 'threshold'" in str(fault)
        if hasattr(head, "classes_") or not (lacks or no_threshold):
            raise
        return "a regression"
    return found.tolist() if isinstance(found, np.ndarray) else found


@pytest.fixture(scope="module")
def fitted() -> Any:
    known: dict[str, tuple[Any, Any]] = {}

    def of(name: str) -> tuple[Any, Any]:
        if name not in known:
            known[name] = FURTHER[name]() if name in FURTHER else FITS[HEADS[name].task](name)
        return known[name]

    return of


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*HEADS, *FURTHER])
def test_every_reader_answers_alike_of_a_fitted_a_loaded_and_a_pickled_head(
    name: str, fitted: Any, tmp_path: Any
) -> None:
    head, releases = fitted(name)
    head.save(tmp_path / "head")
    others = {"loaded": heads.load(tmp_path / "head"), "pickled": pickle.loads(pickle.dumps(head))}
    for what, reader in READERS.items():
        answer = _answer(reader, head, releases, tmp_path)
        for how, other in others.items():
            assert _answer(reader, other, releases, tmp_path) == answer, f"{what} of the {how} head"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*HEADS, *FURTHER])
def test_no_reader_answers_of_a_clone(name: str, fitted: Any, tmp_path: Any) -> None:
    head, releases = fitted(name)
    for what, reader in READERS.items():
        with pytest.raises((NotFittedError, ps.PrivstatsError, AttributeError)):
            pytest.fail(f"{what}: {reader(clone(head), releases, tmp_path)}") if what != "repr" else clone(head).rule_


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*HEADS, *FURTHER])
def test_an_onnx_file_answers_as_the_head(name: str, fitted: Any, tmp_path: Any) -> None:
    head, _ = fitted(name)
    found = _served(head, tmp_path)
    if "probabilities" in found:
        np.testing.assert_allclose(found["probabilities"], head.predict_proba(_rows(head)), atol=1e-6)
        assert found["label"] == head.predict(_rows(head)).tolist()
    elif hasattr(head, "classes_"):
        assert found["label"] == head.predict(_rows(head)).tolist()
    else:
        np.testing.assert_allclose(np.ravel(found["scores"]), head.predict(_rows(head)), atol=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["LDA", "RefinedSoftmax", "RefinedSoftmax, calibrated", "LDA, behind a mean"])
def test_a_scorecard_and_its_query_answer_as_the_head(name: str, fitted: Any) -> None:
    head, releases = fitted(name)
    card, wanted = _card(head, releases), logit(head.predict_proba(TABLE)[:, 1])
    np.testing.assert_allclose(card.scores(TABLE)[:, 0], wanted, atol=1e-8)
    np.testing.assert_allclose(_queried(card), wanted, atol=1e-8)
