"""What the coordinator hands out holds what stands in the template, and the published values of its plan."""

import os
from importlib.resources import files
from pathlib import Path

import pytest

import privstats as ps
from privstats.engines.network.folder_documents import COURSES, read_documents
from privstats.engines.network.study import _tree, write_study
from privstats.errors import PrivstatsError, SchemaError
from privstats.secagg import Identity, Roster
from tests import made
from tests.course.cases import CLIENTS, OF_CELLS, plan_of
from tests.engines.network.fake import study_of

TEMPLATE = files("privstats.engines.flower").joinpath("template")


def test_what_an_installer_left_beside_the_template_is_not_handed_out(tmp_path: Path) -> None:
    for name in ("a/one.py", "a/__pycache__/one.pyc", "b/c/two.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    assert dict(_tree(tmp_path)) == {"a/one.py": b"a/one.py", "b/c/two.py": b"b/c/two.py"}


def test_published_values_go_with_the_plan(tmp_path: Path) -> None:
    given = study_of(tmp_path).host
    (given / "plan.values").write_bytes(b"the values")
    write_study(given / "plan.toml", given / "roster.toml", tmp_path / "new", TEMPLATE)
    assert [path.read_bytes() for path in sorted((tmp_path / "new").rglob("*.values"))] == [b"the values"] * 2


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    given = study_of(tmp_path).host
    with pytest.raises(PrivstatsError, match="cannot make .*: Not a directory; name another folder"):
        write_study(given / "plan.toml", given / "roster.toml", given / "plan.toml" / "study", TEMPLATE)


def test_a_plan_whose_cut_points_are_open_is_not_handed_out_alone(tmp_path: Path) -> None:
    given = study_of(tmp_path).host
    (given / "plan.toml").write_text(plan_of(OF_CELLS, model="distributed").to_toml())
    with pytest.raises(SchemaError, match=r"are open: run Binned, which estimates them \(`privstats course init`\)"):
        write_study(given / "plan.toml", given / "roster.toml", tmp_path / "new", TEMPLATE)
    assert not (tmp_path / "new").exists()


def test_every_file_of_a_course_of_a_course_is_handed_out(tmp_path: Path) -> None:
    """Each folder reads the course that was distributed, with the one that follows its cut points."""
    course = ps.Binned.within(plan_of(OF_CELLS, model="distributed"), "rounds", expected_records=600)
    ps.course.write(tmp_path / "mine.toml", course)
    people = [Identity.generate(os.urandom).public for _ in range(CLIENTS + 1)]
    Roster.numbered(people[1:], server=people[0], label="cuts", counter=0).save(tmp_path / "roster.toml")
    write_study(tmp_path / "mine.toml", tmp_path / "roster.toml", tmp_path / "new", TEMPLATE)
    for home in ("host", "party"):
        assert {*COURSES} & {path.name for path in (tmp_path / "new" / home).iterdir()} == {
            "course.toml",
            "course.then.toml",
            "course.then.first.toml",
        }
        assert read_documents(tmp_path / "new" / home)[0] == course


def test_what_was_declared_is_handed_out_and_a_folder_that_says_otherwise_is_of_another_course(tmp_path: Path) -> None:
    """Parties join by the digest, which a party computes from its own folder."""
    schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome={"relapse": (0, 1)}, probability=0.5)
    declared = ps.course.Analysis(("relapse",), date="2026-11-23")
    cohort = ps.Cohort(CLIENTS, CLIENTS, 600)
    course = ps.Effect.start(schema, cohort, made.promise("distributed"), analysis=declared)
    ps.course.write(tmp_path / "mine.toml", course)
    people = [Identity.generate(os.urandom).public for _ in range(CLIENTS + 1)]
    Roster.numbered(people[1:], server=people[0], label="trial", counter=0).save(tmp_path / "roster.toml")
    write_study(tmp_path / "mine.toml", tmp_path / "roster.toml", tmp_path / "new", TEMPLATE)
    party = tmp_path / "new" / "party"
    assert read_documents(party)[0] == course
    text = (party / "course.toml").read_text()
    (party / "course.toml").write_text(text.replace("2026-11-23", "2026-11-24"))
    assert read_documents(party)[0].digest != course.digest
