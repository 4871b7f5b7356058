"""Three hospitals with an outcome of 7 %: from files to a score by the documented commands, beside scikit-learn.

    python -m benchmarks.inference.three_hospitals --save

Three made-up CSV files with texts and gaps become a plan, a course of rounds, a head and its score over all parties.
Each session runs over the folders that `privstats flower` makes, carried on one machine. Python is used where the pages
use it: for the carrier, and for the head. "Pooled" is scikit-learn on all hospitals' records: its metrics of the same
head, and its own logistic regression.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss, recall_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import privstats as ps
from benchmarks.measuring import Row, Tables, child, command
from privstats.engines.network.host import Host
from privstats.engines.network.study import LocalTransport
from privstats.engines.network.transport import Deadlines
from privstats.moments import RecordFile

__all__ = ["HOSPITALS", "walked"]

HOSPITALS = ("north", "south", "west")
RATE, RECORDS, QUICK = 0.07, 4_000, 700
WARDS = ("surgery", "medicine", "emergency")
COLUMNS = """
columns = [
  { name = "age", kind = "numeric", unit = "years" },
  { name = "sodium", kind = "numeric", unit = "mmol/l", gaps = [-9] },
  { name = "lactate", kind = "numeric", unit = "mmol/l" },
  { name = "ward", kind = "categories", values = ["surgery", "medicine", "emergency"] },
  { name = "smoker", kind = "truth" },
  { name = "ill", kind = "categories", values = ["no", "yes"] },
]
"""
NUMBERS, TEXTS = (0, 1, 2), (3, 4)
SPLIT = 0.25
# One seed for all: nearly every record of these hospitals is different, so no two share a coin.
_SEED = ("--split", str(SPLIT), "--seed", "0")


def options(parser: argparse.ArgumentParser) -> None:
    """What is promised."""
    parser.add_argument("--epsilon", type=float, default=3.0, help="of the course")
    parser.add_argument("--score-epsilon", type=float, default=1.0, help="of the score")


def tables(options: argparse.Namespace) -> Tables:
    """What was run, and a row per measure."""
    with tempfile.TemporaryDirectory() as folder:
        commands, rows = walked(
            Path(folder), QUICK if options.quick else RECORDS, options.epsilon, options.score_epsilon
        )
    yield "commands", [{"command": each} for each in commands]
    yield f"a score at epsilon {options.score_epsilon:g} of a head at epsilon {options.epsilon:g}", rows


def walked(folder: Path, records: int, epsilon: float, score_epsilon: float) -> tuple[list[str], list[Row]]:
    """Walk from files to a score in an empty folder.

    Returns:
        The commands, in order, and a row per measure.
    """
    commands: list[str] = []
    same = {**os.environ, "PYTHONPATH": str(Path(ps.__file__).parents[1])}  # this package, whatever is installed

    def run(*words: str) -> str:
        commands.append(" ".join(["privstats", *words]))
        return child([sys.executable, "-m", "privstats", *words], cwd=folder, env=same)

    for place, name in enumerate(HOSPITALS):
        (folder / f"{name}.csv").write_text(_file(np.random.default_rng(place), records))
    (folder / "columns.toml").write_text(COLUMNS)
    summed, scored = round(len(HOSPITALS) * records * (1 - SPLIT)), round(len(HOSPITALS) * records * SPLIT)
    promise = ("--model", "distributed", "--colluders", "1", "--unit", "record", "--adjacency", "add-remove")
    parties = ("--clients", str(len(HOSPITALS)), "--vanish", "0", *promise, "--delta", "1e-6")
    run(
        *("plan", "init", "plan.toml", "--yes", "--from", "north.csv"),
        *("--public", "columns.toml", "--target", "ill", *parties),
        *("--max-records", str(2 * summed), "--epsilon", f"{epsilon:g}"),
    )
    run("course", "init", "study.toml", "--plan", "plan.toml", "--then", "rounds", "--expected-records", str(summed))
    run("course", "check", "study.toml")
    for name in ("server", *HOSPITALS):
        run("identity", "new", f"{name}.pem")
    keys = [f"{name.title()}={name}.pub" for name in HOSPITALS]
    run("roster", "make", "roster.toml", "--label", "ill", "--server", "server.pub", "--plan", "plan.toml", *keys)
    run("flower", "new", "study.toml", "study", "--roster", "roster.toml")
    shutil.move(folder / "server.pem", folder / "study" / "host" / "identity.pem")
    for name in HOSPITALS:
        home = folder / "study" / name
        shutil.copytree(folder / "study" / "party", home)
        shutil.move(folder / f"{name}.pem", home / "identity.pem")
        run("flower", "records", f"study/{name}", f"{name}.csv", "--target", "ill", *_SEED)
        run("ledger", "open", f"study/{name}/ledger")
        cap = ("--unit", "record", "--adjacency", "add-remove", "--epsilon", f"{epsilon + score_epsilon + 1:g}")
        run("ledger", "cap", f"study/{name}/ledger", "ill", *cap, "--delta", "1e-5")
    _carried(folder, "study")

    nodes = (folder / "study" / "host" / "nodes").glob("*/release.safetensors")
    places = sorted(nodes, key=lambda at: int(at.parent.name))
    head = ps.heads.RefinedSoftmax().fit_releases([ps.Release.load(each) for each in places])
    head.save(folder / "ill.head")

    flagged = ("--threshold", f"{RATE:g}")
    own = json.loads(run("score", "ill.head", "north.csv", "--target", "ill", *_SEED, *flagged, "--json"))
    plan = ("--plan", "score.toml", *parties, "--max-records", str(2 * scored), "--epsilon", f"{score_epsilon:g}")
    run("score", "ill.head", *plan)
    run("plan", "check", "score.toml")
    run("roster", "renew", "roster.toml")
    run("flower", "new", "score.toml", "score", "--roster", "roster.toml")
    run("flower", "renew", "study/host", "score/host")
    for name in HOSPITALS:
        shutil.copytree(folder / "score" / "party", folder / "score" / name)
        run("flower", "renew", f"study/{name}", f"score/{name}")
        run("flower", "records", f"score/{name}", f"{name}.csv", "--target", "ill", *_SEED, "--kept-out")
    _carried(folder, "score")
    release = "score/host/release.safetensors"
    over = json.loads(run("table", release, "--format", "json"))
    return commands, _compared(folder, head, {"own": own["rows"], "over": over["rows"]})


def _carried(folder: Path, study: str) -> None:
    """Carry all messages of a study between its folders, as the tutorial does."""
    nodes = LocalTransport({place: folder / study / name for place, name in enumerate(HOSPITALS)})
    sentence = Host.open(folder / study / "host").run(nodes, Deadlines(), sleep=lambda _: None).sentence
    if not any((folder / study / "host").rglob("release.safetensors")):
        raise RuntimeError(f"the session of {study} ended without a release: {sentence}")


def _file(chance: np.random.Generator, records: int) -> str:
    """A hospital's CSV file: numbers, a text, a truth and the outcome; one cell in twenty is missing."""
    age, sodium = chance.normal(62, 16, records).clip(18, 100), chance.normal(139, 4, records)
    lactate, ward = chance.lognormal(0.4, 0.5, records), chance.integers(0, len(WARDS), records)
    smoker = chance.random(records) < 0.3
    odds = 0.04 * (age - 62) + 0.12 * np.abs(sodium - 139) + 0.6 * (lactate - 1.6) + 0.5 * (ward == 2) + 0.6 * smoker
    low, high = -15.0, 15.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 / (1 + np.exp(-(odds + middle)))).mean() < RATE else (low, middle)
    ill = chance.random(records) < 1 / (1 + np.exp(-(odds + low)))
    columns = [
        [f"{each:.0f}" for each in age],
        [f"{each:.1f}" for each in sodium],
        [f"{each:.2f}" for each in lactate],
        [WARDS[each] for each in ward],
        [("false", "true")[each] for each in smoker.astype(int)],
    ]
    for column in columns:
        for place in np.flatnonzero(chance.random(records) < 0.05):
            column[place] = ""
    lines = zip(*columns, [("no", "yes")[each] for each in ill.astype(int)], strict=True)
    return "\n".join(["age,sodium,lactate,ward,smoker,ill", *(",".join(line) for line in lines)]) + "\n"


def _pooled(folder: Path, names: Sequence[str], head: Any, *, kept_out: bool) -> tuple[Any, NDArray[np.bool_]]:
    """The records of some hospitals that were summed, or those that were not, and who is ill."""
    from privstats.transforms import Cells

    cells: Any = next(step for step in head.preprocessing_.transform if isinstance(step, Cells))
    files = (RecordFile(folder / f"{name}.csv", "ill", split=SPLIT, kept_out=kept_out) for name in names)
    read = [file.read(cells, unreadable="leave out", texts=True) for file in files]
    codes = np.concatenate([np.asarray(each.X) for each in read])
    return codes, np.concatenate([np.asarray(each.y) for each in read]) == "yes"


def _compared(folder: Path, head: Any, found: Mapping[str, Sequence[Row]]) -> list[Row]:
    """What the commands print beside scikit-learn's numbers on pooled records."""
    from privstats.intake.tables import Codes

    X, y = _pooled(folder, HOSPITALS, head, kept_out=False)
    T, t = _pooled(folder, HOSPITALS, head, kept_out=True)
    own_X, own_y = _pooled(folder, HOSPITALS[:1], head, kept_out=True)
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    texts = make_pipeline(SimpleImputer(strategy="constant", fill_value=-1), OneHotEncoder(handle_unknown="ignore"))
    columns = ColumnTransformer([("numbers", numbers, list(NUMBERS)), ("texts", texts, list(TEXTS))])
    model = make_pipeline(columns, LogisticRegression(max_iter=1_000)).fit(X, y)
    at = {name: _threshold(rows) for name, rows in found.items()}
    of_head, of_own = (head.predict_proba(Codes(rows, {}))[:, 1] for rows in (T, own_X))
    pooled, alone = _measures(t, of_head, at["over"]), _measures(own_y, of_own, at["own"])
    theirs = _measures(t, model.predict_proba(T)[:, 1], float(y.mean()))
    over, own = _estimates(found["over"]), _estimates(found["own"])
    none = (None, None, None)
    return [
        {
            "measure": name,
            "over all": over.get(name, none)[0],
            "low": over.get(name, none)[1],
            "high": over.get(name, none)[2],
            "pooled": pooled[name],
            "own file": own.get(name, none)[0],
            "own low": own.get(name, none)[1],
            "own high": own.get(name, none)[2],
            "own, scikit-learn": alone[name],
            "pooled model": theirs[name],
        }
        for name in pooled
    ]


def _measures(y: NDArray[np.bool_], shares: NDArray[np.float64], threshold: float) -> dict[str, float]:
    """scikit-learn's, where the second class is predicted from one half on, or from a threshold."""
    said, flagged = shares > 0.5, shares >= threshold
    return {
        "accuracy": float(accuracy_score(y, said)),
        "balanced accuracy": float(balanced_accuracy_score(y, said)),
        "AUC": float(roc_auc_score(y, shares)),
        "sensitivity": float(recall_score(y, flagged)),
        "specificity": float(recall_score(~y, ~flagged)),
        "log loss": float(log_loss(y, shares)),
        "mean probability": float(shares.mean()),
        "rate": float(y.mean()),
    }


def _threshold(rows: Sequence[Row]) -> float:
    """Where the printed sensitivity is read."""
    name = next(row["metric"] for row in rows if row["metric"].startswith("sensitivity from "))
    return float(name.split()[2])


def _estimates(rows: Sequence[Row]) -> dict[str, tuple[Any, Any, Any]]:
    """By the measure's first words the estimate and its interval; of two classes each has one."""
    return {
        str(row["metric"]).split(" from ")[0]: (row["estimate"], row["conf_low"], row["conf_high"])
        for row in rows
        if row["metric"] != "recall"
    }


if __name__ == "__main__":
    command("inference.three_hospitals", __doc__, tables, options)
