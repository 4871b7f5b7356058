"""One bug of the table, another with every commit: ``.ci/run`` plants it, and the nightly run all.

PRIVSTATS_TURN chooses the part of the table; without it the commit that is checked out does.
"""

import argparse
import json
import re
import subprocess
import sys
from inspect import signature

import pytest

from benchmarks import mutation
from privstats.errors import PlanError
from tests import seers
from tests.mutation import measuring
from tests.mutation.__main__ import verdict
from tests.mutation.catalogue import MUTANTS
from tests.mutation.measuring import audits_under, failures_under, objections, turn
from tests.mutation.plans import plan_of
from tests.mutation.planting import name_in, planted

NAMES = list(MUTANTS)
CHOSEN = NAMES[turn() % len(NAMES)]


@pytest.mark.ci
@pytest.mark.parametrize("name", [CHOSEN])
def test_a_bug_is_seen_by_its_unit_test_and_its_audits(name, record_property):
    record_property("mutant", name)
    print(f"turn {turn()}: {name}")
    assert failures_under(name)
    wanted = MUTANTS[name].audits
    assert all(report.violated for report in audits_under(name, wanted).values())


def test_the_table_is_long_enough_and_most_of_it_is_seen_by_audits():
    assert len(MUTANTS) >= 25
    assert sum(bool(mutant.audits) for mutant in MUTANTS.values()) >= 20
    assert all(mutant.tests for mutant in MUTANTS.values())


def test_every_test_that_the_table_names_exists():
    """Where a seer is renamed, removed or left to the night, nobody would see the bug until its turn comes."""
    named = {node.partition("[")[0] for mutant in MUTANTS.values() for node in mutant.tests}
    for file, _, function in (node.partition("::") for node in named):
        text = (measuring.ROOT / file).read_text("utf-8")
        name = function.rpartition("::")[2]
        assert not function or f"def {name}(" in text, f"{file}::{function}"
        nightly = rf"@pytest\.mark\.nightly\n(?: *@.*\n)* *def {name}\("  # which no bug's run selects
        assert not function or not re.search(nightly, text), f"{file}::{function} is marked nightly"


@pytest.mark.ci
def test_every_case_that_the_table_names_is_collected():
    """``[effect]`` of a seer is a case of its parameters: pytest refuses a node that it cannot find."""
    named = {node for mutant in MUTANTS.values() for node in mutant.tests if "[" in node}
    command = [sys.executable, "-m", "pytest", "-q", "-o", "addopts=", "-m", "not nightly", "--collect-only", *named]
    done = subprocess.run(command, cwd=measuring.ROOT, capture_output=True, text=True, check=False)
    assert named <= {*done.stdout.splitlines()}, done.stdout + done.stderr


@pytest.mark.ci
def test_every_bug_is_seen_by_a_test_of_the_readme_and_every_file_of_its_list_has_one():
    """``-m seer`` leaves out what is marked nightly: no bug loses its last seer by that."""
    command = [sys.executable, "-m", "pytest", "-q", "-o", "addopts=", "-m", seers.MARK, "--collect-only"]
    done = subprocess.run(command, cwd=measuring.ROOT, capture_output=True, text=True, check=False)
    counted = [line for line in done.stdout.splitlines() if line.startswith("tests/") and "::" in line]
    run = {node.partition("[")[0] for node in counted} | {node.partition("::")[0] for node in counted}
    lost = [name for name, bug in MUTANTS.items() if run.isdisjoint(test.partition("[")[0] for test in bug.tests)]
    assert lost == [], done.stderr
    assert [node for node in seers.MET if node not in run] == []
    assert {node.partition("::")[0] for node in run} == {node.partition("::")[0] for node in seers.nodes()}


TENTHS = pytest.mark.parametrize("names", [NAMES[tenth::10] for tenth in range(10)], ids=range(10))
"""A tenth of the table at a time: a case for each bug takes longer than what it does."""


@TENTHS
def test_every_bug_can_be_planted_and_leaves_no_trace(names):
    """A bug whose name has gone from the library would be seen by nobody and say nothing."""
    for name in names:
        owners = [(owner, key, vars(owner)[key]) for owner, key, _ in MUTANTS[name].edits()]
        with planted(MUTANTS[name].edits):
            assert owners, name
            assert all(vars(owner)[key] is not before for owner, key, before in owners), name
        assert all(vars(owner)[key] is before for owner, key, before in owners), name


@TENTHS
def test_every_bug_takes_the_arguments_of_what_it_replaces(names):
    """Else it is a TypeError, which every test sees, and not the bug that the table names."""
    for owner, key, bug in (edit for name in names for edit in MUTANTS[name].edits()):
        right = vars(owner)[key]
        for arguments in _calls(right) if callable(right) and callable(bug) else ():
            signature(bug).bind(*arguments.args, **arguments.kwargs)


def _calls(function):
    """Call it with all arguments, and with those that have no default."""
    parameters = signature(function).parameters.values()
    single = [each for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    for some in single, [each for each in single if each.default is each.empty]:
        yield signature(function).bind_partial(
            *(None for each in some if each.kind is not each.KEYWORD_ONLY),
            **{each.name: None for each in some if each.kind is each.KEYWORD_ONLY},
        )


def test_a_bug_leaves_when_the_block_fails_and_a_lost_name_is_an_error():
    edits = name_in("privstats.plan.plan", "calibrate", lambda right: None)
    with pytest.raises(TypeError), planted(edits):
        plan_of("central")
    assert not objections("central", ("budget",))["budget"].violated
    with pytest.raises(LookupError, match="nothing to be planted in"), planted(list):
        raise PlanError("never reached")


def test_the_verdict_names_what_is_not_seen_as_it_should_be():
    good = [{"bug": name, "unit tests": "test_x", "audits": ", ".join(MUTANTS[name].audits)} for name in MUTANTS]
    assert verdict(good) == ""
    name = next(name for name, mutant in MUTANTS.items() if mutant.audits)
    assert name in verdict([{"bug": name, "unit tests": "", "audits": ", ".join(MUTANTS[name].audits)}])
    assert name in verdict([{"bug": name, "unit tests": "test_x", "audits": ""}])


def test_a_row_that_cannot_be_measured_says_why_and_counts_as_unseen(monkeypatch):
    def broken(mutant):
        raise TypeError("an argument too many")

    monkeypatch.setattr(measuring, "failures_under", broken)
    row = measuring.seen("shares for all")
    assert row["evidence"] == "not measured: TypeError: an argument too many"
    assert "shares for all" in verdict([row])


def test_rows_that_were_kept_are_not_measured_again(tmp_path):
    kept = [{"bug": name, "unit tests": "test_x", "audits": ""} for name in NAMES[:2]]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in kept))
    chosen = argparse.Namespace(quick=False, bug=NAMES[1::-1], jobs=1, rows=path)
    assert dict(mutation.tables(chosen)) == {mutation.TITLE: kept[::-1]}


def test_the_turn_follows_the_environment_or_the_commit(monkeypatch):
    monkeypatch.setenv("PRIVSTATS_TURN", "5")
    assert turn() == 5
    monkeypatch.delenv("PRIVSTATS_TURN")
    assert turn() == turn()
    monkeypatch.setenv("PATH", "")
    assert turn() == 0
