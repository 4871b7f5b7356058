"""Every kind of plan and of course through every command of a review: an answer, or one sentence with the command."""

import re
from pathlib import Path
from typing import Any

import pytest

import privstats as ps
from privstats.cli.look import _columns_of, _plan_of
from privstats.course import write
from privstats.course.kinds import KINDS as COURSES
from privstats.errors import PlanError
from privstats.kinds import KINDS
from tests.course.test_kinds import SAMPLES as COURSE_SAMPLES
from tests.schema.test_contract import SAMPLES as SCHEMAS
from tests.schema.test_contract import plan_of, published

ATTACKS = ("informed", "ridge-one-record", "likelihood-ratio", "likeliest-unit")
COMMANDS: dict[str, list[str]] = {
    "plan check": ["FILE"],
    "plan show": ["FILE"],
    "plan suggest": ["--plan", "FILE"],
    "plan certify": ["FILE", "--out", "certificate.json", "--checker", "checker.py", "--force"],
    "plan diff": ["FILE", "FILE"],
    "audit budget": ["FILE"],
    "audit course": ["FILE", "--trials", "100", "--asks", "1", "--seed", "1"],
    "attack list": ["FILE"],
    "attack run": ["FILE", *(f"--attack={name}" for name in ATTACKS), "--trials", "8", "--seed", "1"],
    "report": ["FILE", "--out", "page"],
    "report --evidence": ["FILE", "--out", "page"],
    "course check": ["FILE"],
    "course show": ["FILE"],
    "look": ["table.csv", "--plan", "FILE"],
    "score --plan": ["score.toml", "FILE"],
}
"""What follows each command; FILE is the plan's or the course's."""
OTHERS = {  # what a file of a plan or of a course is refused at, with the command that answers
    "plan": {"audit course": "audit budget", "course check": "plan check", "course show": "plan check"},
    "course": {
        "plan check": "course check",
        "plan show": "course check",
        "plan diff": "course check",
        "audit budget": "audit course",
        "attack run": "audit course",
        "attack list": "audit course",
        "plan suggest": "course check",
    },
}
EVERYWHERE = {"look": "plan init --public", "score --plan": "plan check"}
"""What a file is refused at where it declares no columns, and because it is no head."""
NO_PROMISE = {"alignment"}
"""Samples of courses without a promise, which nothing certifies or contradicts."""


def columns_in(path: Path) -> list[str]:
    """The columns that a plan or a course declares, which ``look`` compares with a file's."""
    plan, declared = _plan_of(path)
    try:
        return [each.name for each in declared or _columns_of(plan, path)]
    except PlanError:
        return []


def file_of(what: str, kind: str, folder: Path) -> str:
    if what == "course":
        course: Any = COURSE_SAMPLES[kind]
        write(folder / "study.toml", course)
        return "study.toml"
    schema = next(schema for schema in SCHEMAS if schema.task == kind)
    (folder / "plan.toml").write_text(plan_of(schema).to_toml())
    values = published(schema)
    if values is not None:
        values.save(ps.schema.public_values.values_path(folder / "plan.toml"))
    return "plan.toml"


CASES = [
    *(("plan", kind) for kind in KINDS),
    *(("course", name) for name, row in COURSES.items() if row.promise is not None),
]


@pytest.mark.parametrize(("what", "kind"), CASES, ids=lambda each: str(each))
def test_every_cell_is_an_answer_or_one_sentence(what: str, kind: str, privstats: Any, tmp_path: Path) -> None:
    file, cells = file_of(what, kind, tmp_path), {}
    columns = columns_in(tmp_path / file)
    (tmp_path / "table.csv").write_text(f"{','.join(columns or 'a')}\n{','.join('1' for _ in columns or 'a')}\n")
    for command, more in COMMANDS.items():
        words = [file if word == "FILE" else word for word in more]
        first, *flags = command.split(" --")
        done = privstats(*first.split(), *(f"--{flag}" for flag in flags), *words, cwd=tmp_path)
        said = " ".join((done.stdout + done.stderr).split())
        assert "Traceback" not in said, (command, said)
        assert "this is a bug" not in said, (command, said)
        assert not re.search(r"\bfor a [AEIOU]\w*Schema", said), (command, said)
        cells[command] = (done.returncode, said)
    refused = {command: said for command, (code, said) in cells.items() if code}
    assert all(code in (0, 2) for code, _ in cells.values()), cells
    expected = {**OTHERS[what], **EVERYWHERE}
    if columns:
        del expected["look"]
    if kind == "stream":
        expected["plan certify"] = "audit course"
    if kind in NO_PROMISE:
        expected = {**expected, "plan certify": "", "audit course": ""}
    assert set(refused) == set(expected), refused
    for command, said in refused.items():
        assert expected[command] in said, (command, said)
