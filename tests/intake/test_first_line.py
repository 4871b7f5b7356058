"""A first line that is a record is refused by every command that reads a table, and none of its cells is shown."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.intake.csv_dialect import Dialect
from privstats.intake.table_sources import table_file
from privstats.workflows import rehearsal
from tests.cli.test_one_reader import COMMANDS, PRIVACY, SCHEMA, Form
from tests.engines.network.fake import study_of

MARK = "zqxj"  # begins every text of every record, and stands in no word of the library and hardly in a random key
SIZE = 40


def unique(rng: np.random.Generator, size: int) -> list[str]:
    """Names of persons, or notes, no two alike."""
    return [f"{MARK}{word} {place}" for place, word in enumerate(rng.choice(["anna", "bert", "no, pain"], size))]


def recurring(rng: np.random.Generator, size: int) -> list[str]:
    """A column of categories."""
    return [f"{MARK}{value}" for value in rng.choice(["yes", "no", "ward A"], size)]


def first_is_rare(rng: np.random.Generator, size: int) -> list[str]:
    return [f"{MARK}other", *recurring(rng, size - 1)]


def numbers(rng: np.random.Generator, size: int) -> list[str]:
    return [f"90{value:.1f}7" for value in rng.normal(50, 9, size)]


def commas(rng: np.random.Generator, size: int) -> list[str]:
    return [value.replace(".", ",") for value in numbers(rng, size)]


def dates(rng: np.random.Generator, size: int) -> list[str]:
    form = rng.choice(["9019-{1:02d}-{0:02d}", "{0:02d}.{1:02d}.9019", "{0:02d}/{1:02d}/9019"])
    return [form.format(1 + day % 28, 1 + day % 12) for day in rng.integers(0, 999, size).tolist()]


def first_is_a_word(rng: np.random.Generator, size: int) -> list[str]:
    """A column of numbers whose first value is none."""
    return [f"{MARK}haemolysed", *numbers(rng, size - 1)]


def outcome(rng: np.random.Generator, size: int) -> list[str]:
    """A column whose first value is what the commands name with --target."""
    return ["ill", *rng.choice(["ill", "well"], size - 1)]


TEXTS = (unique, recurring, first_is_rare)
COLUMNS = (*TEXTS, numbers, commas, dates, first_is_a_word)
Rows = list[tuple[str, ...]]


def rows_of(rng: np.random.Generator) -> Rows:
    """Records of random columns; half of the tables hold texts alone."""
    kinds = TEXTS if rng.random() < 0.5 else COLUMNS
    columns = [kinds[place](rng, SIZE) for place in rng.integers(0, len(kinds), rng.integers(1, 5))]
    return list(zip(*columns, outcome(rng, SIZE), strict=True))


def separated(separator: str) -> Callable[[Rows], str]:
    return lambda rows: "".join(separator.join(f'"{cell}"' for cell in row) + "\n" for row in rows)


def bare(rows: Rows) -> str:
    return "".join("|".join(row) + "\n" for row in rows)


def named(rows: Rows) -> list[dict[str, str]]:
    return [{"abcdefgh"[place]: cell for place, cell in enumerate(row)} for row in rows]


FORMS: dict[str, Callable[[Rows], str]] = {
    "commas": separated(","),
    "semicolons": separated(";"),
    "tabs": separated("\t"),
    "no quotes": bare,
    "JSON lines": lambda rows: "".join(f"{json.dumps(row)}\n" for row in named(rows)),
    "JSON lists": lambda rows: "".join(f"{json.dumps(row)}\n" for row in rows),
    "JSON": lambda rows: json.dumps(named(rows)),
    "printed JSON": lambda rows: json.dumps(named(rows), indent=2),
    "XML": lambda rows: "".join(f"<r {' '.join(map(str, enumerate(row)))}/>\n" for row in rows),
}  # fmt: skip


def names_alone(privstats: Any, folder: Path, form: Form) -> Any:
    return privstats("plan", "init", "--from", form.name, "--force", *form.words, cwd=folder)


def kept(privstats: Any, folder: Path, form: Form) -> Any:
    words = ("--target", "ill", "--epsilon", "4", "--forms", "--force")
    return privstats("try", form.name, form.name, *words, *form.words, cwd=folder)


def ids(privstats: Any, folder: Path, form: Form) -> Any:
    return privstats("look", form.name, "--plan", "plan.toml", "--key", "patient", *form.words, cwd=folder)


def without_a_plan(privstats: Any, folder: Path, form: Form) -> Any:
    return privstats("plan", "suggest", "--public", form.name, "--target", "ill", *form.words, cwd=folder)


DOORS = {
    **COMMANDS, "plan init --from": names_alone, "try --forms": kept, "look --key": ids,
    "plan suggest without a plan": without_a_plan,
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    study_of(tmp_path, schema=SCHEMA, privacy=PRIVACY)
    (tmp_path / "plan.toml").write_bytes((tmp_path / "study" / "host" / "plan.toml").read_bytes())
    return tmp_path


def told(privstats: Any, folder: Path, door: str, form: Form) -> str:
    """Return all that a command prints, warns of and writes."""
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        done = DOORS[door](privstats, folder, form)
    assert done.returncode != 0 or door == "plan suggest without a plan", (door, form.name)
    new = [path for path in folder.rglob("*") if path.is_file() and before.get(path) != path.stat().st_mtime_ns]
    written = [path.read_text("utf-8", "replace") for path in new if not path.name.startswith(("t.", "other"))]
    return "".join([done.stdout, done.stderr, *(str(each.message) for each in warned), *written])


def check_table(privstats: Any, folder: Path, seed: int) -> None:
    """Write one table in every form, and search what every door tells for a cell of it."""
    rng = np.random.default_rng(seed)
    rows = rows_of(rng)
    cells = {cell for row in rows for cell in row} - {"ill", "well"}
    for form, write in FORMS.items():
        (folder / "t.csv").write_text(write(rows))
        for door in DOORS:
            said = told(privstats, folder, door, Form("t.csv", lambda *_: None))
            assert not [cell for cell in cells if cell in said], (seed, form, door, said)
            assert MARK not in said.lower(), (seed, form, door)


@pytest.mark.parametrize("seed", range(3))
def test_no_door_shows_or_writes_a_cell_of_a_first_record(privstats, folder, seed):
    check_table(privstats, folder, seed)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(3, 60))
def test_no_door_shows_or_writes_a_cell_of_a_first_record_of_many_tables(privstats, folder, seed):
    check_table(privstats, folder, seed)


def refusal(path: Path, dialect: Dialect) -> str:
    """Return why a table's first line may be a record, or why the table cannot be opened."""
    try:
        said = table_file(path, dialect).doubt
    except ps.DataError as error:
        return str(error)
    assert "may be a record" in said
    return said


@pytest.mark.parametrize("seed", range(200))
def test_a_row_of_names_is_known_from_a_record(tmp_path, seed):
    """The same records with names are a table, in every separator; a part of a folder without names is none."""
    rng = np.random.default_rng(seed)
    rows = rows_of(rng)
    names = ("Na", "place of birth", "t3", "CRP <24h>", "outcome")[-len(rows[0]) :]
    separator = rng.choice([",", ";", "\t"])
    write = separated(separator)
    (tmp_path / "b").mkdir()
    (tmp_path / "a.csv").write_text(write([names, *rows]))
    (tmp_path / "b" / "a.csv").write_text(write([names, *rows]))
    (tmp_path / "b" / "b.csv").write_text(write(rows))
    (tmp_path / "c.csv").write_text(write([names]))
    dialect = Dialect(separator=separator)
    assert table_file(tmp_path / "a.csv", dialect).doubt == ""
    assert table_file(tmp_path / "c.csv", dialect).doubt == ""
    for place in ("b/b.csv", "b"):
        assert MARK not in refusal(tmp_path / place, dialect)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_frame_whose_names_are_a_record_is_refused(tmp_path, library):
    """So reads a library a file without names, unless one tells it."""
    frames = pytest.importorskip(library)
    rows = list(zip(unique(np.random.default_rng(1), SIZE), outcome(np.random.default_rng(1), SIZE), strict=True))
    columns = dict(zip(rows[0], zip(*rows[1:], strict=True), strict=True))
    columns = {name: list(values) for name, values in columns.items()}
    frame = frames.table(columns) if library == "pyarrow" else frames.DataFrame(columns)
    with pytest.raises(ps.DataError, match="the row of names of party 1 may be a record") as refused:
        ps.rehearse([frame, frame], target="ill", epsilon=3)
    assert MARK not in str(refused.value)
    pytest.importorskip("pyarrow")
    place = tmp_path / "t.parquet"
    if library == "pandas":
        frame.to_parquet(place)
        with pytest.raises(ps.DataError, match=r"t.parquet may be a record") as refused:
            ps.rehearse([place, place], target="ill", epsilon=3)
        assert MARK not in str(refused.value)


def test_a_refusal_names_another_separator_once(tmp_path):
    path = tmp_path / "german.csv"
    path.write_text("name;ill\n" + "".join(f"{each};ja\n" for each in unique(np.random.default_rng(0), SIZE)))
    for call in (
        lambda: next(iter(ps.moments.RecordFile(path, "ill").batches())),
        lambda: rehearsal.opened([ps.moments.RecordFile(path, "ill")] * 2, rehearsal.RehearsalOptions("ill", 3.0)),
    ):
        with pytest.raises(ps.DataError, match="set --separator") as refusal:
            call()
        assert str(refusal.value).count("set --separator") == 1
