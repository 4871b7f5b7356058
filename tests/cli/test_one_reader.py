"""Every command that takes a table reads it by one reader: what a value says does not depend on who asks."""

import json
import runpy
import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import typer

import privstats as ps
from privstats.cli.main import COMMANDS as EVERY_COMMAND
from tests.engines.network.fake import study_of

SIZE = 60
RNG = np.random.default_rng(0)
X = (RNG.normal(size=(SIZE, 2)) + 2 * np.eye(2)[np.arange(SIZE) % 2]).round(3)
LABELS = ("no", "yes")
ROWS = [(dose, "sön", size, LABELS[place % 2]) for place, (size, dose) in enumerate(X.tolist())]
PRIVACY = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=4.0, delta=1e-5)
SCHEMA = ps.ClassSchema(2, 2, "NAB", 4.0, feature_names=("Größe", "dose"), class_names=LABELS)
DIALECT = ("--encoding", "cp1252", "--separator", ";", "--decimal", ",")
CHOSEN = {
    "clients": 5, "vanish": 0, "colluders": 1, "max-records": 900,
    "model": "central", "unit": "record", "adjacency": "add-remove", "epsilon": 1, "delta": 1e-6,
}  # fmt: skip


def german(path: Path, rows: list[tuple]) -> None:
    """As a spreadsheet of a German clinic writes it; the header has other letters than the plan."""
    lines = ["DOSE;note;größe;Ill", *(";".join(str(value).replace(".", ",") for value in row) for row in rows)]
    path.write_bytes("\r\n".join(lines).encode("cp1252"))


def plain(path: Path, rows: list[tuple]) -> None:
    lines = ["dose,note,Größe,ill", *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines), "utf-8-sig")  # with a byte-order mark


def parquet(path: Path, rows: list[tuple]) -> None:
    pyarrow, write = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = zip(*rows, strict=True)
    write.write_table(pyarrow.table(dict(zip(("dose", "note", "Größe", "ill"), columns, strict=True))), path)


@dataclass(frozen=True)
class Form:
    """A file's name, how it is written, and the party's words for that."""

    name: str
    write: Callable[[Path, list[tuple]], None]
    words: tuple[str, ...] = ()


FORMS = {"german": Form("t.csv", german, DIALECT), "plain": Form("t.csv", plain), "parquet": Form("t.parquet", parquet)}


def sweep(privstats, folder: Path, form: Form):
    words = ("--target", "ill", "--split", "0.25", "--head", "LDA", "--epsilon", "4", "--repeats", "2")
    return privstats("sweep", "plan.toml", form.name, *words, *form.words, cwd=folder)


def suggest(privstats, folder: Path, form: Form):
    words = ("--plan", "plan.toml", "--public", form.name, "--target", "ill", "--json")
    return privstats("plan", "suggest", *words, *form.words, cwd=folder)


def init(privstats, folder: Path, form: Form):
    words = ("--yes", "--force", "--from", form.name, "--public-file", "--target", "ill", "--drop", "note")
    chosen = [word for name, value in CHOSEN.items() for word in (f"--{name}", str(value))]
    done = privstats("plan", "init", "new.toml", *words, *chosen, *form.words, cwd=folder)
    return done if done.returncode else replace(done, stdout=(folder / "new.toml").read_text().lower())


def records(privstats, folder: Path, form: Form):
    """The sums of the file that the party's script names then."""
    done = privstats("flower", "records", "study/party 0", form.name, "--target", "ill", *form.words, cwd=folder)
    if done.returncode:
        return done
    file = runpy.run_path(str(folder / "study" / "party 0" / "records.py"))["load"]()
    found = file.read(SCHEMA.feature_names, unreadable="leave out")
    sums = ps.measure(SCHEMA, found.X, found.y, unreadable="leave out")
    return replace(done, stdout=f"{sums.N.tolist()} {sums.A.tolist()} {sums.B.tolist()}")


def rehearse(privstats, folder: Path, form: Form):
    """What it took for public, and the areas that no noise is in."""
    other = f"other{Path(form.name).suffix}"
    shutil.copy(folder / form.name, folder / other)
    words = ("--target", "ill", "--epsilon", "4", "--drop", "note", "--test", "0.4", "--json", *form.words)
    done = privstats("try", form.name, other, *words, cwd=folder)
    if done.returncode:
        return done
    found = json.loads(done.stdout)
    kept = {name: found[name] for name in ("auc_no_privacy", "auc_alone", "assumed_public")}
    kept["assumed_public"] = [each for each in kept["assumed_public"] if " is written: " not in each]
    return replace(done, stdout=str(kept).lower())


def rehearse_course(privstats, folder: Path, form: Form):
    """The exact sums of what a course is then run over."""
    unit = replace(SCHEMA, clip_norm=1.0, transform=(ps.transforms.UnitNorm(),))
    plan = ps.Plan(schema=unit, cohort=ps.Cohort(2, 2, 900), privacy=PRIVACY)
    ps.course.write(folder / "course.toml", ps.Centred.within(plan))
    words = ("course.toml", form.name, form.name, "--target", "ill", "--out", "out", "--force")
    with patch.object(ps, "simulate", wraps=ps.simulate) as run:
        done = privstats("course", "rehearse", *words, *form.words, cwd=folder)
    if done.returncode:
        return done
    shards = [ps.measure(SCHEMA, *shard, unreadable="leave out") for shard in run.call_args.args[1]]
    assert shards[0] == shards[1]
    return replace(done, stdout=f"{shards[0].N.tolist()} {shards[0].A.tolist()} {shards[0].B.tolist()}")


def score(privstats, folder: Path, form: Form):
    sums = ps.measure(SCHEMA, X, np.array(LABELS * (SIZE // 2)))
    ps.heads.LDA().fit_release(ps.Release.exact(SCHEMA, sums)).save(folder / "ill.head")
    return privstats("score", "ill.head", form.name, "--target", "ill", "--json", *form.words, cwd=folder)


def look(privstats, folder: Path, form: Form):
    return privstats("look", form.name, "--plan", "plan.toml", "--target", "ill", *form.words, cwd=folder)


COMMANDS = {
    "try": rehearse, "sweep": sweep, "plan suggest": suggest, "plan init": init, "flower records": records,
    "course rehearse": rehearse_course, "score": score, "look": look,
}  # fmt: skip
if "sweep" not in EVERY_COMMAND:  # of another room
    del COMMANDS["sweep"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    study_of(tmp_path, schema=SCHEMA, privacy=PRIVACY)
    shutil.copy(tmp_path / "study" / "host" / "plan.toml", tmp_path / "plan.toml")
    return tmp_path


def takers() -> Iterator[tuple[str, set[str]]]:
    """Yield every command with the option that names a table's target, and its options; those of contrib, too."""
    for command, app in EVERY_COMMAND.items():
        found = typer.main.get_command(app)
        inner = getattr(found, "commands", None)
        for name, each in ({command: found} if inner is None else inner).items():
            options = {option: param.type.name for param in each.params for option in param.opts}
            if options.get("--target") == "text" and "--dialect" not in options:  # sql names a data base, and no file
                yield (command if inner is None else f"{command} {name}"), set(options)


def test_no_command_reads_tables_in_another_way():
    found = dict(takers())
    assert set(found) == set(COMMANDS), "a command that takes a table: try it below"
    for name in COMMANDS:
        assert {"--encoding", "--separator", "--decimal"} <= found[name], name


@pytest.mark.ci
@pytest.mark.parametrize("name", COMMANDS)
def test_a_table_says_the_same_however_it_is_written(privstats, folder, name):
    said = {}
    for kind, form in FORMS.items():
        form.write(folder / form.name, ROWS)
        done = COMMANDS[name](privstats, folder, form)
        assert done.returncode == 0, (kind, done.stderr)
        said[kind] = done.stdout.replace(form.name, "t")
    assert said["german"] == said["plain"] == said["parquet"]
    assert said["plain"].strip()


@pytest.mark.ci
@pytest.mark.parametrize("word", ["none", "NA", "", "NaN"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_word_for_nothing_is_a_gap_to_every_command(privstats, folder, name, word):
    """To one command "none" was a gap and to another a class."""
    rows = [(dose, note, size, word if place == 7 else label) for place, (dose, note, size, label) in enumerate(ROWS)]
    plain(folder / "t.csv", rows)
    done = COMMANDS[name](privstats, folder, FORMS["plain"])
    if name == "plan init":  # of a public file, whose gaps are no class
        assert "".join(done.stdout.split()).count('class_names=["no","yes",]') == 1, done
        return
    if name == "look":
        assert "1.7%" in next(line for line in done.stdout.splitlines() if line.strip().startswith("ill ")), done
        return
    if name == "try":
        assert "classes of ill: no, yes'" in done.stdout, done
        return
    if name in ("flower records", "course rehearse"):  # under a promise nothing is refused for one record
        assert done.stdout.startswith("[30, 29]"), done
        return
    if name == "score":  # of own records, of which one without a label is left out and counted
        assert "t.csv: 1 of the records cannot be read" in " ".join(done.stderr.split()), done
        return
    assert (done.returncode, "has missing values in ill" in " ".join(done.stderr.split())) == (2, True), done.stderr
    assert len(done.stderr.splitlines()) == 1


CANARY = "canary"
CELLS = ps.Cells((ps.Numeric("dose", (0.0, 1.0)), ps.Categories("ward", ("a", "b"))))
DECLARED = ps.ClassSchema(2, CELLS.width, "NA", 1.0, class_names=LABELS, transform=(CELLS,))


@pytest.mark.parametrize(
    "broken", ["as it is", "no names", "a stray quote", "another separator", "no text", "no label"]
)
@pytest.mark.parametrize(
    "words",
    [
        ("flower", "records", "study/party 0", "t.csv", "--target", "ill"),
        ("flower", "records", "study/party 0", "t.csv", "--target", "dose"),
        ("flower", "records", "study/party 0", "t.csv", "--target", "absent"),
        ("plan", "init", "--from", "t.csv", "--force"),
        ("plan", "init", "--from", "t.csv", "--public", "c.toml", "--target", "ill", "--yes"),
        ("look", "t.csv", "--plan", "absent.toml"),
    ],
    ids=" ".join,
)
def test_no_path_but_look_and_try_tells_a_cell(privstats, tmp_path, words, broken):
    """Texts of all cells are canaries: what commands print, how they end and what they write is searched for it."""
    study_of(tmp_path, schema=DECLARED, privacy=PRIVACY)
    rows = [f"{CANARY}{place},{place},{CANARY}" for place in range(9)]
    header = "" if broken == "no names" else "dose,ward,ill\n"
    text = header + "\n".join([*rows, *{"a stray quote": [f'"{CANARY},1,2']}.get(broken, [])])
    text = text.replace(",", ";") if broken == "another separator" else text
    text = text.replace(f",{CANARY}\n", ",\n") if broken == "no label" else text
    (tmp_path / "t.csv").write_bytes(text.encode() + (b"\n\xff\xfecanary,\xff,\xff" if broken == "no text" else b""))
    (tmp_path / "c.toml").write_text('[[columns]]\nname = "dose"\nkind = "numeric"\n')
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        done = privstats(*words, cwd=tmp_path)
    assert CANARY not in done.stdout + done.stderr + "".join(str(each.message) for each in said)
    written = [path for path in tmp_path.rglob("*") if path.is_file() and before.get(path) != path.stat().st_mtime_ns]
    assert not [path for path in written if CANARY.encode() in path.read_bytes()]


def test_under_a_promise_no_value_changes_how_a_command_ends(privstats, tmp_path):
    """A file of odd values of every kind is taken as a plain one is: the server sees who is absent."""
    study_of(tmp_path, schema=DECLARED, privacy=PRIVACY)
    ended = []
    for odd in (
        "",
        "x",
        "1.5",
        "True",
        "007",
        "1e3",
        "9007199254740993",
        "inf",
        "9999-12-31",
        "2020-01-01T00:00+02:00",
    ):
        rows = [f"{place / 9},a,{LABELS[place % 2]}" for place in range(9)]
        (tmp_path / "t.csv").write_text("\n".join(["dose,ward,ill", *rows, f"{odd},{odd},{odd}"]))
        done = privstats("flower", "records", "study/party 0", "t.csv", "--target", "ill", cwd=tmp_path)
        ended.append((done.returncode, done.stdout))
    assert (set(ended), ended[0][0]) == ({ended[0]}, 0)
