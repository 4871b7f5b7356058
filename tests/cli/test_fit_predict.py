"""``head fit`` and ``head predict``: from a study's folder to predictions of a file, as in Python."""

import csv
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.engines.network.host import Host, run_releases
from privstats.engines.network.study import LocalTransport, simulated_study
from privstats.engines.network.transport import Deadlines
from privstats.heads.registry import suited
from privstats.workflows.fitting import head_of, release_files, releases_at
from privstats.workflows.predictions import predictions
from tests.made import promise

COHORT = ps.Cohort(2, 2, 2_000)
CELLS = ps.Cells((ps.Numeric("age", (40.0, 60.0)), ps.Categories("sex", ("f", "m"))))
CLASSES = ps.ClassSchema(2, CELLS.width, "NAB", 1.0, class_names=("no", "yes"), transform=(CELLS,))
NUMBERS = (CELLS, ps.transforms.ConstantFeature(1.0))
RIDGE = ps.RidgeSchema(CELLS.width + 1, clip_norm=2**0.5, target_bound=100.0, transform=NUMBERS)


def table(n: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    age, sex = rng.uniform(20, 90, n), rng.choice(["f", "m"], n)
    ill = np.where(rng.random(n) < np.where(age > 60, 0.8, 0.2), "yes", "no")
    return {"id": [f"p{seed}-{row}" for row in range(n)], "age": age.round(1), "sex": sex, "ill": ill}


def write(path: Path, columns: dict[str, Any], separator: str = ",") -> None:
    with path.open("w", newline="") as file:
        rows = csv.writer(file, delimiter=separator)
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))


def course(kind: str) -> Any:
    plan = ps.Plan(schema=CLASSES, cohort=COHORT, privacy=promise(epsilon=8.0))
    if kind == "single":
        return plan
    if kind == "ridge":
        return ps.Rounds.within(replace(plan, schema=RIDGE), 2, expected_records=800)
    return {"rounds": ps.Rounds, "centred": ps.Centred}[kind].within(plan, expected_records=800)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("single", "LDA"), ("rounds", "RefinedSoftmax"), ("centred", "LDA"), ("ridge", "RefinedRidge")],
)
def test_the_releases_of_every_kind_of_session_choose_their_head(kind: str, name: str, tmp_path: Path) -> None:
    shards = [table(400, seed) for seed in range(2)]
    target = "age" if kind == "ridge" else "ill"
    rows = [({each: shard[each] for each in ("age", "sex")}, shard[target]) for shard in shards]
    made: Any = ps.simulate(course(kind), rows, rng=ps.randomness.seeded(0))
    releases = [made] if isinstance(made, ps.Release) else [each for each in made if each is not None]
    for place, release in enumerate(releases):
        release.save(tmp_path / f"{place}.release")
    assert suited([each.plan.schema for each in releases])[0] == name
    assert [file.name for file in release_files([tmp_path])] == [f"{each}.release" for each in range(len(releases))]
    head = head_of(releases_at([tmp_path]))
    assert type(head).__name__ == name
    assert [*head.provenance_.releases] == [each.digest for each in releases]


def test_a_study_goes_from_its_folder_to_predictions_of_a_file(privstats: Any, tmp_path: Path) -> None:
    """The commands that one prints are typed as they are printed."""
    for party in range(2):
        write(tmp_path / f"{party}.csv", table(400, party), ",;"[party])
    new = table(50, 9)
    new["sex"][:12] = "x"
    write(tmp_path / "new.csv", new)
    (tmp_path / "plan.toml").write_text(course("single").to_toml())
    ps.course.write(tmp_path / "study.toml", course("rounds"))
    words = "course rehearse study.toml 0.csv 1.csv --target ill --split 0.2 --out out"
    shown = privstats(*words.split(), cwd=tmp_path, code=0).stdout
    (fit,) = (line.partition(": ")[2] for line in shown.splitlines() if line.startswith("fit a model"))
    done = privstats(*shlex.split(fit)[1:], cwd=tmp_path, code=0)
    assert "epsilon 8" in done.stdout
    assert "exists" in privstats(*shlex.split(fit)[1:], cwd=tmp_path, code=2).stderr
    predict = done.stdout.splitlines()[-1].partition(": ")[2].replace("FILE", "new.csv")
    told = privstats(*shlex.split(predict)[1:], "--keep", "id", cwd=tmp_path, code=0)
    assert "new.csv: " in told.stderr
    assert "12 of 'sex'" in told.stderr
    rows = list(csv.DictReader((tmp_path / "predictions.csv").open()))
    head = ps.heads.load(tmp_path / "model.head")
    X = {name: new[name] for name in ("age", "sex")}
    assert [row["id"] for row in rows] == new["id"]
    assert [row["predicted"] for row in rows] == head.predict(X).tolist()
    assert np.allclose([float(row["probability of yes"]) for row in rows], head.predict_proba(X)[:, 1])
    for score in (line.strip() for line in shown.splitlines() if line.startswith("  privstats score")):
        assert "Score of a head" in privstats(*shlex.split(score)[1:], cwd=tmp_path, code=0).stdout


def test_predictions_are_written_as_parquet_and_flag_a_class(privstats: Any, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    new = table(40, 3)
    write(tmp_path / "new.csv", new)
    rows = ({name: new[name] for name in ("age", "sex")}, new["ill"])
    made = ps.private_release(CLASSES, promise(epsilon=8.0), *rows, ledger="uncharged")
    made.save(tmp_path / "sums.release")
    privstats("head", "fit", "sums.release", "--head", "ridge", "--out", "m", cwd=tmp_path, code=2)
    privstats("head", "fit", "sums.release", "--head", "lda", "--out", "m", cwd=tmp_path, code=0)
    words = ("head", "predict", "m", "new.csv", "--threshold", "0.01", "--out")
    assert ".parquet" in privstats(*words, "new.txt", cwd=tmp_path, code=2).stderr
    privstats(*words, "new.parquet", cwd=tmp_path, code=0)
    read = parquet.read_table(tmp_path / "new.parquet").to_pydict()
    assert list(read) == ["predicted", "probability of no", "probability of yes"]
    assert all((share >= 0.01) == (name == "yes") for name, share in zip(*[*read.values()][::2], strict=True))


def test_a_record_without_a_number_has_no_prediction(tmp_path: Path) -> None:
    X, y = np.array([[0.0, 0.0], [0.2, 1.0], [1.0, 0.0], [1.2, 1.0]]), np.array([0, 0, 1, 1])
    schema = ps.ClassSchema(2, 2, "NAB", 2.0, feature_names=("dose", "age"))
    head = ps.heads.LDA().fit_release(ps.Release.exact(schema, ps.moments.exact_moments(schema, X, y)))
    (tmp_path / "new.csv").write_text("AGE;dose;id\n0;1,1;7\n1;k.A.;8\n1;0,1;9\n")
    found = predictions(head, ps.moments.RecordFile(tmp_path / "new.csv", separator=";", decimal=","), ["id"])
    assert (found.unread, len(found)) == (1, 3)
    assert found.columns["predicted"] == [1, None, 0]
    assert list(map(str, found.columns["id"])) == ["7", "8", "9"]


def test_a_hosts_folder_is_fitted_as_its_last_line_says(privstats: Any, tmp_path: Path) -> None:
    (tmp_path / "records.py").write_text(
        "from pathlib import Path\nimport numpy as np\n\n\ndef load():\n"
        "    rng = np.random.default_rng(int(Path(__file__).parent.name))\n"
        "    return rng.normal(size=(40, 3)), np.arange(40) % 2\n"
    )
    unit = (ps.transforms.UnitNorm(),)
    plan = ps.Plan(
        schema=ps.ClassSchema(2, 3, "NAB", 1.0, transform=unit),
        cohort=ps.Cohort(3, 2, 300),
        privacy=promise("distributed", epsilon=4.0),
    )
    for name, what in (("alone", plan), ("rounds", ps.Rounds.within(plan, 2, expected_records=120))):
        study, lines = tmp_path / name, list[str]()
        simulated_study(study, what, tmp_path / "records.py")
        nodes = LocalTransport({place: study / "parties" / str(place) for place in range(3)})
        run_releases(Host.open(study / "host"), nodes, Deadlines(), again="", say=lines.append, sleep=lambda _: None)
        command = shlex.split(lines[-1].partition(": ")[2])
        assert command[:3] == ["privstats", "head", "fit"]
        privstats(*command[1:], "--out", f"{name}.head", cwd=tmp_path, code=0)
        by_study = privstats("head", "fit", name, "--out", f"{name}.again", cwd=tmp_path, code=0)
        assert "epsilon 4" in by_study.stdout
    first = next((tmp_path / "rounds" / "host").rglob("*release.safetensors"))
    first.write_bytes((tmp_path / "alone" / "host" / "release.safetensors").read_bytes())
    assert "sign" in privstats("head", "fit", "rounds", "--out", "forged", cwd=tmp_path, code=2).stderr


def test_sums_from_which_no_head_is_built_are_refused(privstats: Any, tmp_path: Path) -> None:
    schema = ps.CountSchema((ps.Bins("age", (0.0, 50.0, 100.0)),), (("age",),))
    made = ps.private_release(schema, promise(), {"age": np.arange(90.0)}, ledger="uncharged")
    made.save(tmp_path / "counts.release")
    assert "privstats table" in privstats("head", "fit", "counts.release", cwd=tmp_path, code=2).stderr
