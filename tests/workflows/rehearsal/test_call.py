"""A rehearsal of frames is that of the same tables as files: every number, and every byte of the page."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.workflows import rehearsal
from privstats.workflows.rehearsal.run import _sources_of
from tests.workflows.rehearsal.test_run import ward

ASKED: dict[str, Any] = {"target": "ill", "epsilon": 20.0}
NAMES = ("north", "south")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of numbers, gaps, texts, days and a yes or no, without a line that is no record."""
    found = tmp_path_factory.mktemp("wards")
    for seed, name in enumerate(NAMES):
        ward(found / f"{name}.csv", seed, count=400)
        head, *rows, _ = (found / f"{name}.csv").read_text().splitlines()
        days = [f"{row},{'' if k % 11 == 0 else f'2024-{k % 12 + 1:02}-{k % 28 + 1:02}'}" for k, row in enumerate(rows)]
        (found / f"{name}.csv").write_text("\n".join([f"{head},seen", *days]) + "\n")
    return found


def _frames(folder: Path, kind: str) -> dict[str, Any]:
    pandas: Any = pytest.importorskip("pandas")
    frames = {name: pandas.read_csv(folder / f"{name}.csv", parse_dates=["seen"]) for name in NAMES}
    match kind:
        case "polars":
            polars: Any = pytest.importorskip("polars")
            return {name: polars.read_csv(folder / f"{name}.csv", try_parse_dates=True) for name in NAMES}
        case "arrow":
            arrow: Any = pytest.importorskip("pyarrow")
            return {name: arrow.Table.from_pandas(frame) for name, frame in frames.items()}
        case "duckdb":
            duckdb: Any = pytest.importorskip("duckdb")
            return {name: duckdb.connect().read_csv(str(folder / f"{name}.csv"), all_varchar=True) for name in NAMES}
        case "columns":
            return {name: {key: frame[key].to_numpy() for key in frame.columns} for name, frame in frames.items()}
    return frames


@pytest.mark.ci
def test_the_numbers_and_the_page_are_those_of_the_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    pages, facts = [], []
    for tables in ([f"{name}.csv" for name in NAMES], _frames(folder, "pandas")):
        found = replace(ps.rehearse(tables, **ASKED, rng=ps.randomness.seeded(0), page="page.html"), seconds=0.0)
        assert rehearsal.STAMP in Path("page.html").read_text("utf-8")
        rehearsal.write_page(found, "page.html")
        pages.append(Path("page.html").read_text("utf-8"))
        facts.append((rehearsal.facts(found), str(found)))
    assert (facts[0], pages[0]) == (facts[1], pages[1])
    assert "north.csv --plan plan.toml" in pages[1]
    assert 0.6 < facts[0][0]["auc"] < 1
    assert f"all together, epsilon 20: {facts[0][0]['auc']:.3f}" in facts[0][1]


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "duckdb", "columns"])
def test_every_container_is_read_as_the_file_is(folder: Path, kind: str) -> None:
    asked = rehearsal.RehearsalOptions(**ASKED)
    of_files = rehearsal.opened(_sources_of([folder / f"{name}.csv" for name in NAMES], "ill"), asked)
    opened = rehearsal.opened(_sources_of(_frames(folder, kind), "ill"), asked)
    assert (opened.public, opened.course.digest) == (of_files.public, of_files.course.digest)
    for party, other in zip(opened.parties, of_files.parties, strict=True):
        assert (party.name, party.unlabelled, party.broken) == (other.name, other.unlabelled, other.broken)
        assert np.array_equal(party.codes, other.codes, equal_nan=True)
        assert np.array_equal(party.y, other.y)
        assert np.array_equal(party.test, other.test)


TWO = {"dose": [1.0, 2.0], "ill": [0, 1]}


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ([TWO], "needs two tables or more, one for each party: {'north': frame, 'south': frame}"),
        ({"a": TWO, "b": np.eye(3)}, "b is no table with named columns: pass"),
        ([TWO, {0: [1.0], "ill": [1]}], "party 2 is no table with named columns: pass"),
        (
            [TWO, {"dose": [1.0]}],
            r"party 2 has no column 'ill', and a rehearsal needs the same names in every table: .* it has dose",
        ),
        ([TWO, {"dose": [1.0], "ill": [0, 1]}], "the columns of party 2 have different lengths"),
        ({"a": TWO, "b": {"dose": [], "ill": []}}, "b holds no record"),
    ],
)
def test_what_is_no_table_is_refused_in_a_sentence(tables: Any, said: str) -> None:
    with pytest.raises(ps.DataError, match=said):
        ps.rehearse(tables, **ASKED)
