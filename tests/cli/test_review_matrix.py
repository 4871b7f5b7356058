"""Every kind of plan and of course through every command of a review: an answer, or one sentence with the command."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.cli.look import _columns_of, _plan_of
from privstats.cli.parts.plan_tasks import TASKS as ANNOUNCED
from privstats.cli.parts.questions import questions
from privstats.course import write
from privstats.course.kinds import COURSE_KINDS
from privstats.errors import PlanError
from privstats.kinds import KINDS
from privstats.randomness import seeded
from privstats.workflows.readers import possible
from privstats.workflows.tables import READERS
from tests.course.test_kinds import SAMPLES as COURSE_SAMPLES
from tests.schema.test_contract import SAMPLES as SCHEMAS
from tests.schema.test_contract import plan_of, published
from threat_models.audits.course import invented
from threat_models.evaluate import sessions_of

ATTACKS = ("informed", "ridge-one-record", "likelihood-ratio", "likeliest-unit", "synthetic-record")
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
        "plan suggest": "course check",
    },
}
EVERYWHERE = {"look": "plan init --public", "score --plan": "plan check"}
"""What a file is refused at where it declares no columns, and because it is no head."""
PROGRAM = "the certificate's program"
"""The checker that ``plan certify`` writes, run without this library."""
PROMISE = "--model central --unit record --adjacency add-remove --epsilon 3 --delta 1e-6"
PARTIES = f"--clients 3 --vanish 1 --colluders 0 --max-records 5000 {PROMISE}"
TASKS = {
    "classes": f"--classes 2 --features 3 --clip-norm 2 {PARTIES}",
    "ridge": f"--features 3 --clip-norm 2 --target-bound 2 {PARTIES}",
    "effect": "--ranges age=20:90,smoking=never/former --treatment arm=placebo/drug --outcome recovered=no/yes "
    f"--probability 0.5 {PARTIES}",
    "hazard": "--ranges age=20:90,arm=placebo/drug --times continuous --bins months=0,6,12,24 --event died=no/yes "
    f"--expected-events 900 {PARTIES}",
    "rates": f"--ranges treated=0:1,age=20:90 --exposure years=5 --target-bound 8 --rate 0.4 {PARTIES}",
    "score": f"--head ill.head {PARTIES}",
    "survey": "--questions age=18:40:60:80,smokes=yes/no --tables age*smokes --panel leader.pub,helper.pub "
    "--organisations Ulm,Bonn --registrar Trier --registrar-key trier.pub --page Kiel --most-runs 1 "
    "--clients 2000 --vanish 1500 --colluders 50 --epsilon 1 --delta 1e-6",
    **({"rows": f"--public columns.toml {PARTIES}"} if "rows" in ANNOUNCED else {}),
}
"""What ``plan init --task`` asks for beyond the task."""
NO_PROMISE = {"alignment"}
"""Samples of courses without a promise, which nothing certifies or contradicts."""


COLUMNS = """
[[columns]]
name = "smoker"
kind = "truth"

[[columns]]
name = "stage"
kind = "categories"
values = ["I", "II"]
"""


def columns_in(path: Path) -> list[str]:
    """The columns that a plan or a course declares, which ``look`` compares with a file's."""
    plan, declared, _ = _plan_of(path)
    try:
        return [each.name for each in declared or _columns_of(plan, path)]
    except PlanError:
        return []


def file_of(what: str, kind: str, folder: Path, privstats: Any) -> str:
    if what == "course":
        course: Any = COURSE_SAMPLES[kind]
        write(folder / "study.toml", course)
        return "study.toml"
    if what == "plan init":
        for name in ("leader", "helper", "trier"):
            (folder / f"{name}.pub").write_text(ps.secagg.Identity.generate(os.urandom).public_pem)
        ps.heads.LDA().fit(np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2).save(folder / "ill.head")
        (folder / "columns.toml").write_text(COLUMNS)
        privstats("plan", "init", "plan.toml", "--yes", "--task", kind, *TASKS[kind].split(), cwd=folder, code=0)
        return "plan.toml"
    schema = next(schema for schema in SCHEMAS if schema.task == kind)
    (folder / "plan.toml").write_text(plan_of(schema).to_toml())
    values = published(schema)
    if values is not None:
        values.save(ps.schema.public_values.values_path(folder / "plan.toml"))
    return "plan.toml"


def ran(command: str, words: list[str], privstats: Any, folder: Path) -> tuple[int, str]:
    """Return a cell: the exit code of a command, and all that it printed."""
    if command == PROGRAM:
        done: Any = subprocess.run([sys.executable, "-S", "-I", *words], cwd=folder, capture_output=True, text=True)
    else:
        first, *flags = command.split(" --")
        done = privstats(*first.split(), *(f"--{flag}" for flag in flags), *words, cwd=folder)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def test_every_task_of_plan_init_is_in_the_matrix() -> None:
    (task,) = (question for question in questions() if question.name == "task")
    assert set(TASKS) == set(task.choices)


CASES = [
    *(("plan init", task) for task in TASKS),
    *(("plan", kind) for kind in KINDS),
    *(("course", name) for name, row in COURSE_KINDS.items() if row.promise is not None),
]


ROWS = [
    *(
        pytest.param(*case, [*COMMANDS][place % 2 :: 2], id=f"{'-'.join(case)}, every second command")
        for place, case in enumerate(CASES)
    ),
    *(pytest.param(*case, [*COMMANDS], id="-".join(case), marks=pytest.mark.nightly) for case in CASES),
]
"""Every file by day with half of the commands, and each command with half of the files; all by night."""


@pytest.mark.parametrize(("what", "kind", "commands"), ROWS)
def test_every_cell_is_an_answer_or_one_sentence(
    what: str, kind: str, commands: list[str], privstats: Any, tmp_path: Path
) -> None:
    file, cells = file_of(what, kind, tmp_path, privstats), dict[str, tuple[int, str]]()
    columns = columns_in(tmp_path / file)
    (tmp_path / "table.csv").write_text(f"{','.join(columns or 'a')}\n{','.join('1' for _ in columns or 'a')}\n")
    for command in commands:
        words = [file if word == "FILE" else word for word in COMMANDS[command]]
        cells[command] = ran(command, words, privstats, tmp_path)
    if cells.get("plan certify", (None, ""))[0] == 0:
        cells[PROGRAM] = ran(PROGRAM, ["checker.py", file, "certificate.json"], privstats, tmp_path)
    for command, (_, said) in cells.items():
        assert "Traceback" not in said, (command, said)
        assert "this is a bug" not in said, (command, said)
        assert not re.search(r"\bfor a [AEIOU]\w*Schema", said), (command, said)
    refused = {command: said for command, (code, said) in cells.items() if code}
    assert all(code in (0, 2) for code, _ in cells.values()), cells
    expected = {**OTHERS["course" if what == "course" else "plan"], **EVERYWHERE}
    if columns:
        del expected["look"]
    if what == "plan init" and kind in (
        "effect",
        "hazard",
        "rates",
    ):  # their values are released by sessions of a course
        expected["attack run"] = "privstats course init"
    if kind == "stream":
        expected["plan certify"] = "audit course"
    if kind in NO_PROMISE:
        expected = {**expected, "plan certify": "", "audit course": ""}
    assert set(refused) == set(expected) & set(cells), refused
    for command, said in refused.items():
        assert expected[command] in said, (command, said)


@pytest.mark.parametrize("kind", [name for name, row in COURSE_KINDS.items() if row.promise is not None])
def test_the_plan_of_every_session_is_checked(kind: str, privstats: Any, tmp_path: Path) -> None:
    """An effect's sums of outcomes ended in a traceback."""
    for place, plan in sessions_of(COURSE_SAMPLES[kind], 0).items():
        path = tmp_path / f"{place}.toml"
        path.write_text(plan.to_toml())
        if plan.published is not None:
            plan.published.save(ps.schema.public_values.values_path(path))
        code, said = ran("plan check", [path.name], privstats, tmp_path)
        assert (code, "Traceback" in said, "this is a bug" in said) == (0, False, False), said


def test_a_head_of_every_kind_is_scored_by_a_plan_or_refused_in_one_sentence(privstats: Any, tmp_path: Path) -> None:
    words = ["fitted.head", "--plan", "score.toml", "--clients", "3", "--max-records", "900", *PROMISE.split()]
    cells = {}
    for kind in KINDS:
        plan = plan_of(next(schema for schema in SCHEMAS if schema.task == kind))
        heads = [name for name in possible(plan) if name not in READERS]
        if heads:
            release = invented(plan, seeded(0))
            getattr(ps.heads, heads[0])().fit_release(release).save(tmp_path / "fitted.head")
            cells[kind] = ran("score", [*words, "--force"], privstats, tmp_path)
    assert {kind: code for kind, (code, _) in cells.items()} == {"classes": 0, "ridge": 2, "party-softmax": 0}
    assert "privstats table RELEASE" in cells["ridge"][1]
