"""``privstats try``: from two files to a page, and nothing of it can be taken for a study."""

import json
import shlex
from pathlib import Path

import pytest

import privstats as ps
from privstats.cli.parts.declared_columns import read_columns
from tests.workflows.rehearsal.test_run import ward

ASKED = ("--target", "ill", "--epsilon", "20")


@pytest.fixture
def folder(tmp_path):
    for seed, name in enumerate(("north", "south")):
        ward(tmp_path / f"{name}.csv", seed)
    return tmp_path


def said(done):
    return " ".join(done.stdout.split())


def test_what_is_taken_for_public_comes_first(privstats, folder):
    done = privstats("try", "north.csv", "south.csv", *ASKED, cwd=folder, code=0)
    assert done.stdout.startswith("A REHEARSAL: read from the files themselves")
    order = [
        *(
            "epsilon 20, delta 1e-06, add-remove, one record, noise: local",
            "dose, ward, even",
            "values of ward a, b, c",
        ),
        *("classes of ill no, yes", "number of records", "names, ids or free text", "well below 1 / records"),
        *(
            "area under the ROC",
            "north's own records: alone",
            "all together, epsilon 20",
            "bytes that each party sent",
            "next:",
            "privstats flower records STUDY/party north.csv --target ill --split 0.25",
        ),
    ]
    places = [said(done).find(each) for each in order]
    assert -1 not in places
    assert places == sorted(places)
    assert sorted(path.name for path in folder.iterdir()) == ["north.csv", "south.csv", "try.html"]


@pytest.mark.ci
def test_no_cell_of_a_file_is_told_but_the_lists_that_are_said(privstats, folder):
    """Ids, notes and numbers of single records stand neither on the screen nor in a file."""
    done = privstats("try", "north.csv", "south.csv", *ASKED, "--keep", cwd=folder, code=0)
    page, kept = (folder / "try.html").read_text(), (folder / "columns.toml").read_text()
    assert page.count("A REHEARSAL: read from the files themselves") == 2
    assert "--target ill --split 0.25</code><br>in the study, at every party: holds this share out of every sum" in page
    rows = [line.split(",") for line in (folder / "north.csv").read_text().splitlines()[1:-1]]
    canaries = {value for row in rows for value in (row[0], row[1], row[4]) if len(value) > 4}
    assert not [value for value in canaries if value in page or value in done.stdout or value in kept]
    declared = [line for line in kept.splitlines() if line and not line.startswith("#")]
    tables = [("[[columns]]", f'name = "{name}"', 'kind = "?"') for name in ("dose", "ward", "even", "ill")]
    assert declared == [line for table in tables for line in table]
    with pytest.raises(ps.SchemaError, match="columns.toml lacks the kind of dose, ward, even, ill"):
        read_columns(folder / "columns.toml")


ANSWERS = (
    *("--yes", "--clients", "2", "--vanish", "0", "--colluders", "0", "--max-records", "2000", "--model", "central"),
    *("--unit", "record", "--adjacency", "add-remove", "--epsilon", "3", "--delta", "1e-6"),
)
COLUMNS = {"dose": '"numeric"', "ward": '"categories"\nvalues = ["a", "b", "c"]', "even": '"truth"', "ill": '"truth"'}


@pytest.mark.ci
def test_what_is_said_to_come_next_runs_on_what_was_kept(privstats, folder):
    done = privstats("try", "north.csv", "south.csv", *ASKED, "--keep", cwd=folder)
    lines = done.stdout.partition("next:")[2].splitlines()
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("  privstats")]
    assert [each[0] for each in commands] == ["plan", "look", "look"], done.stdout
    assert "--from north.csv</code>" not in (folder / "try.html").read_text()
    kept = folder / "columns.toml"
    text = kept.read_text()
    for name, kind in COLUMNS.items():
        text = text.replace(f'name = "{name}"\nkind = "?"', f'name = "{name}"\nkind = {kind}')
    kept.write_text(text)
    for command, answers in zip(commands, (ANSWERS, (), ()), strict=True):
        privstats(*command, *answers, cwd=folder, code=0)


@pytest.mark.ci
def test_files_are_read_as_each_is_written_and_the_next_commands_say_so_letter_by_letter(privstats, tmp_path):
    """In folders of their own, one with semicolons, decimal commas, CRLF and another encoding."""
    for seed, name in enumerate(("north", "south")):
        (tmp_path / "a ward").mkdir(exist_ok=True)
        ward(tmp_path / "a ward" / f"{name}.csv", seed)
    south = tmp_path / "a ward" / "south.csv"
    text = south.read_text().replace(",", ";").replace(".", ",").replace("note 7", "Größe").replace("dose", "DOSE", 1)
    south.write_bytes(text.replace("\n", "\r\n").encode("cp1252"))
    names = ("a ward/south.csv", "a ward/north.csv")
    done = privstats("try", *names, *ASKED, "--drop", "even", cwd=tmp_path, code=0)
    assert "--encoding cp1252 --separator ';' --decimal ," in said(done)
    lines = [line.strip() for line in done.stdout.partition("next:")[2].splitlines() if line.startswith("  privstats")]
    written = "'a ward/south.csv' --encoding cp1252 --separator ';' --decimal ,"
    assert lines == [
        f"privstats plan init plan.toml --from {written} --drop even",
        f"privstats plan init plan.toml --from {written} --public columns.toml --target ill",
        f"privstats look {written} --plan plan.toml",
        "privstats look 'a ward/north.csv' --plan plan.toml",
    ]
    shown = privstats(*shlex.split(lines[0])[1:], "--yes", cwd=tmp_path).stdout
    assert "even" not in shown.replace("--drop even", ""), "a dropped column is no column of the study"
    kinds = {"DOSE": '"numeric"', "ward": COLUMNS["ward"], "ill": COLUMNS["ill"]}
    asked = [f'[[columns]]\nname = "{name}"\nkind = {kind}\n' for name, kind in kinds.items()]
    (tmp_path / "columns.toml").write_text("\n".join(asked))
    for line, answers in zip(lines[1:], (ANSWERS, (), ()), strict=True):
        privstats(*shlex.split(line)[1:], *answers, cwd=tmp_path, code=0)


@pytest.mark.ci
@pytest.mark.parametrize("name", ["[/red]m", "[bold red]m[/]", "$\\q$"])
def test_a_name_of_a_column_is_text_on_the_screen_and_in_the_picture(privstats, folder, name):
    for path in folder.glob("*.csv"):
        path.write_text(path.read_text().replace("dose", name, 1))
    done = privstats("try", "north.csv", "south.csv", "--target", "ill", "--epsilon", "0.1", cwd=folder, code=0)
    assert name in done.stdout.partition("how faintly cut points are seen")[2], done.stdout


@pytest.mark.ci
def test_the_plan_on_the_page_says_nothing_that_was_read_or_chosen_here(privstats, folder):
    privstats("try", "north.csv", "south.csv", *ASKED, "--delta", "1e-7", cwd=folder)
    page = (folder / "try.html").read_text()
    plan = page[page.index("<pre") : page.index("</pre>")]
    assert all(word in plan for word in ("epsilon = 20.0", "delta = 1e-07", "clients = 2"))
    assert plan.count("&#34;?&#34;") == 3 + 2 + 3, "kinds of columns; classes, records; unit, adjacency, model"
    assert not [word for word in ("yes", "add-remove", "local", "1398") if word in plan]


@pytest.mark.ci
def test_a_page_of_a_rehearsal_is_replaced_and_another_file_is_not(privstats, folder):
    words = ("try", "north.csv", "south.csv", *ASKED, "--json")
    (folder / "try.html").write_text("mine")
    assert "try.html exists" in privstats(*words, cwd=folder).stderr
    assert (folder / "try.html").read_text() == "mine"
    assert privstats(*words, "--force", cwd=folder).returncode == 0
    first = (folder / "try.html").read_text()
    assert privstats(*words, cwd=folder).returncode == 0
    assert (folder / "try.html").read_text() != first


@pytest.mark.ci
def test_scripts_get_one_object(privstats, folder):
    done = privstats("try", "north.csv", "south.csv", *ASKED, "--json", "--out", "p.html", cwd=folder, code=0)
    found = json.loads(done.stdout)
    assert 0.5 < found["auc"] <= 1
    assert 0.8 < found["auc_no_privacy"] <= 1
    assert set(found["auc_alone"]) == {"north", "south"}
    assert "classes of ill: no, yes" in found["assumed_public"]
    assert found["seconds"] > 0
    assert (folder / "p.html").is_file()


@pytest.mark.ci
def test_ids_that_lost_a_character_in_decoding_are_nobodys_and_counted(privstats, folder):
    for name in ("north", "south"):
        first, *rows = (folder / f"{name}.csv").read_text().splitlines()[:241]
        lines = [f"{('Weber', 'Müller')[place % 2]} {place},{row}" for place, row in enumerate(rows)]
        (folder / f"{name}.csv").write_text("\n".join([f"whose,{first}", *lines]), "latin-1")
    asked = (*ASKED, "--persons", "whose", "--encoding", "utf-8")
    privstats("try", "north.csv", "south.csv", *asked, cwd=folder, code=0)
    unowned = "records without an id, excluded</td><td>238<"  # every other one; two of these have no class
    assert unowned in (folder / "try.html").read_text()


@pytest.mark.ci
def test_the_example_brings_two_hospitals(privstats, tmp_path):
    done = privstats("try", "--example", "--target", "ill", "--epsilon", "3", "--json", cwd=tmp_path, code=0)
    assert json.loads(done.stdout)["auc"] > 0.7
    assert sorted(path.name for path in tmp_path.iterdir()) == ["north.csv", "south.csv", "try.html"]
    (tmp_path / "north.csv").write_text("mine")
    again = privstats("try", "--example", "--target", "ill", "--epsilon", "3", "--force", cwd=tmp_path)
    assert (again.returncode, "north.csv exists and is another file" in again.stderr) == (2, True)
    assert (tmp_path / "north.csv").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["north.csv", *ASKED], "a rehearsal needs two files or more, one for each party; or --example"),
        (["north.csv", "--example", *ASKED], "--example has its own files"),
        (["north.csv", "nowhere.csv", *ASKED], "no such file"),
        (["north.csv", "south.csv", *ASKED, "--separator", ";"], "its first line is one name with ',' in it"),
        (["north.csv", "south.csv", *ASKED, "--model", "magic"], "model"),
        (["north.csv", "south.csv", *ASKED, "--persons", "nobody"], "has no column 'nobody'"),
        (["north.csv", "south.csv", *ASKED, "--out", "north.csv"], "north.csv exists; name another file"),
        (["north.csv", "south.csv", "--target", "ill"], "--epsilon"),
    ],
)
def test_what_cannot_be_tried_is_one_sentence_and_no_file(privstats, folder, words, told):
    done = privstats("try", *words, cwd=folder, code=2)
    assert told in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not (folder / "try.html").exists()


def test_the_bundled_files_are_what_their_program_writes(tmp_path):
    """Their columns and shares, for the last digits of exp differ between machines."""
    from benchmarks import hospitals

    for name, hospital in hospitals.HOSPITALS.items():
        bundled = (Path(ps.__file__).parent / "workflows" / "rehearsal" / f"{name}.csv").read_text().splitlines()
        rows = hospitals.rows(hospital)
        assert bundled[0] == ",".join(hospitals.HEADER)
        assert len(bundled) == 1 + len(rows) == 1 + hospital.records
        ill = sum(line.endswith(",yes") for line in bundled)
        assert abs(ill - sum(row[-1] == "yes" for row in rows)) <= 2
        assert 0.05 < ill / len(rows) < 0.2
