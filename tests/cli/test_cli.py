"""The command line: help that is enough, one sentence for bad input, files that appear whole."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer

import privstats as ps
from privstats.cli.main import app

COMMANDS = typer.main.get_command(app)
PROGRAM = Path(sys.executable).with_name("privstats")


def refused(done, *expected):
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    for words in expected:
        assert words in done.stderr
    return done


def test_alone_it_prints_five_commands_with_which_people_begin_and_each_is_one(privstats, tmp_path):
    done = privstats(cwd=tmp_path, code=0)
    begun = [line.split("  ")[1].split() for line in done.stdout.splitlines() if line.startswith("  privstats ")]
    assert len(begun) == 5
    assert all(len(line) <= 86 for line in done.stdout.splitlines())
    for _, *words in begun:
        named = [word for word in words if word.islower() and "." not in word and not word.isdigit()]
        options = [word for word in named if word.startswith("--")]
        helped = privstats(*(word for word in named if word not in (*options, "ill")), "--help", cwd=tmp_path, code=0)
        assert all(option in helped.stdout for option in options)


def test_every_command_stands_in_the_list_of_what_a_person_came_for(privstats, tmp_path):
    text = privstats("--help", cwd=tmp_path).stdout
    lists = [line for line in text.splitlines() if re.fullmatch(r"[A-Z]\w+:", line)]
    listed = COMMANDS.list_commands(None)
    attacker = [f"{name.capitalize()}:" for name in ("audit", "attack") if name in listed]
    assert lists == ["Options:", "Begin:", "Plan:", "Run:", "Read:", *attacker, "Keep:"]
    assert [text.count(f"\n  {name} ") for name in listed] == [1] * len(listed)
    assert re.search(r"^Keep:(\n  .*)+", text, re.MULTILINE)[0].count("\n  ledger ") == 1
    assert "--install-completion" in text
    for name in {"course", "stream"} & {*listed}:
        assert "--install-completion" not in privstats(name, "--help", cwd=tmp_path).stdout


def test_what_only_scripts_use_is_in_no_list_and_answers_all_the_same(privstats, tmp_path):
    assert "\n  admit" not in privstats("course", "--help", cwd=tmp_path).stdout
    assert privstats("course", "admit", "--help", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(("typed", "completed"), [("pl", "plan"), ("plan ch", "check"), ("plan check --js", "--json")])
def test_a_shell_completes_commands_and_options(privstats, tmp_path, monkeypatch, typed, completed):
    monkeypatch.setenv("_PRIVSTATS_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"privstats {typed}")
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split())))
    done = privstats(cwd=tmp_path)
    assert (done.returncode, done.stdout.split()) == (0, [completed])


@pytest.mark.skipif(not (shutil.which("bash") and PROGRAM.exists()), reason="needs bash and the installed command")
def test_bash_completes_with_what_is_printed_for_it(privstats, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "shellingham.detect_shell", lambda: ("bash", "bash")
    )  # else the shell above this process, if any
    printed = privstats("--show-completion", "bash", cwd=tmp_path).stdout
    (function,) = re.findall(r"complete .*-F (\w+) privstats", printed)
    program = f"{printed}\nCOMP_WORDS=(privstats led) COMP_CWORD=1; {function} {PROGRAM}\necho ${{COMPREPLY[*]}}"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("ledger\n", "")


@pytest.mark.parametrize("words", [(), ("plan",)])
def test_a_list_of_commands_has_their_whole_sentences(privstats, tmp_path, monkeypatch, words):
    monkeypatch.setenv("COLUMNS", "80")
    text = " ".join(privstats(*words, "--help", cwd=tmp_path).stdout.split())
    group = COMMANDS.get_command(None, *words) if words else COMMANDS
    commands = [group.get_command(None, name) for name in group.list_commands(None)]
    for command in commands:
        assert command.hidden or f"{command.name} {command.get_short_help_str(1_000)}" in text
    assert "..." not in text.replace("[ARGS]...", "")


def test_plan_init_check_show(privstats, tmp_path):
    assert privstats("plan", "init", cwd=tmp_path).returncode == 0
    checked = privstats("plan", "check", "plan.toml", cwd=tmp_path, code=0)
    assert "epsilon 1 at delta 1e-05" in checked.stdout
    assert "plan.toml is consistent." in checked.stdout
    loose = (tmp_path / "plan.toml").read_text().replace("delta = 1e-5", "delta = 0.1")
    (tmp_path / "loose.toml").write_text(loose)
    warned = privstats("plan", "check", "loose.toml", cwd=tmp_path).stdout
    assert warned.endswith("loose.toml is consistent, with 1 warning: see above.\n")
    shown = json.loads(privstats("plan", "show", "plan.toml", cwd=tmp_path).stdout)
    assert shown["digest"] == ps.Plan.read(tmp_path / "plan.toml").digest
    assert [row["statistic"] for row in shown["budget"]["rows"]] == ["N", "A", "B"]


def test_the_example_has_the_shares_that_are_suggested_for_it(privstats, tmp_path):
    privstats("plan", "init", cwd=tmp_path)
    np.save(tmp_path / "public.npy", np.random.default_rng(0).standard_normal((60, 64)))
    suggest = ("plan", "suggest", "--public", "public.npy")
    shown = privstats(*suggest, "--plan", "plan.toml", cwd=tmp_path).stdout
    written = re.search(r"shares = .*?}", (tmp_path / "plan.toml").read_text())[0]
    assert f"[privacy]\n{written}" in shown
    found = json.loads(privstats(*suggest, "--plan", "plan.toml", "--json", cwd=tmp_path).stdout)
    assert found["shares"] == {"N": 0.02, "A": 0.52, "B": 0.46}
    assert "shares" not in privstats(*suggest, cwd=tmp_path).stdout, "no plan, no budget to share"


def test_the_module_is_the_command_line(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "privstats", "--version"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.strip() == f"privstats {ps.__version__}"


def test_a_missing_report_extra_is_named_before_the_work_starts(privstats, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = refused(
        privstats("try", "--example", "--target", "ill", "--epsilon", "3", cwd=tmp_path),
        "pip install 'privstats[report]'",
    )
    assert not done.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "command", [["plan", "check"], ["plan", "show"], ["audit", "noise"], ["audit", "canary"], ["sweep", "data.npz"]]
)
def test_a_plan_that_no_machine_can_run_is_one_sentence_everywhere(privstats, tmp_path, command):
    """With a billion classes `audit noise` ended in a traceback out of memory."""
    privstats("plan", "init", cwd=tmp_path)
    plan = tmp_path / "plan.toml"
    plan.write_text(plan.read_text().replace("classes = 10 ", "classes = 1000000000 "))
    words = [command[0], "plan.toml", command[1]] if command[0] == "sweep" else [*command, "plan.toml"]
    refused(privstats(*words, cwd=tmp_path), "520,000,016,640 bytes", "maximum 4,294,967,296", "lower features")


@pytest.mark.parametrize("words", [("plan", "check"), ("release", "show"), ("ledger", "show"), ("flower", "status")])
def test_attack_a_files_name_moves_no_cursor_and_forges_no_line(privstats, tmp_path: Path, words) -> None:
    finished = privstats(*words, "there\x1b[2J\x1b]0;owned\x07\nerror: all is well", cwd=tmp_path, code=2)
    assert "\x1b" not in finished.stderr
    assert r"there\x1b[2J\x1b]0;owned\x07\nerror: all is well" in finished.stderr
    assert "\x07" not in finished.stdout + finished.stderr
    assert len(finished.stderr.splitlines()) == 1


def test_attack_a_name_in_a_sentence_of_success_is_escaped_too(privstats, tmp_path: Path) -> None:
    finished = privstats("ledger", "open", "my\x1b[2J\u202eledger", cwd=tmp_path, code=0)
    assert r"wrote my\x1b[2J\u202eledger; open an account" in finished.stderr
