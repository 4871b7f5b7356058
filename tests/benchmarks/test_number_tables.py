"""Tables of results show their gaps and name every attack; a benchmark that dies says why in its last line."""

import re
import sys
from pathlib import Path

import pytest

from benchmarks import attack_tables, refinement_tables, tables
from benchmarks.measuring import Tables, child, command
from threat_models.attack import attacks

TITLE = "accuracy under differential privacy, %: "


@pytest.fixture
def saved(monkeypatch):
    found = {
        "refinement.compare": {
            TITLE + "digits": [
                {"model": "RDA", "eps 1": 90.0, "se 1": 0.25, "eps 8": 91.0, "se 8": 0.1},
                {"model": "full-batch DP-GD", "eps 8": 95.5, "se 8": 0.1},
                {"model": "refined", "eps 1": 89.8, "se 1": 0.2, "eps 8": 95.1, "se 8": 0.1},
            ]
        },
        "heads.compare": {
            TITLE + "digits": [{"model": "privstats LDA", "eps 1": 88.0}],
            "accuracy without noise, %: digits": [{"model": "privstats LDA", "accuracy": 95.0}],
        },
    }
    for module in (tables, refinement_tables):
        monkeypatch.setattr(module, "results", lambda name: found[name])
    return found


def test_gaps_of_the_comparison_are_shown_and_lost_cells_are_bold(saved):
    head, *lines = refinement_tables.refinement_accuracy()
    assert head == ["data", "model", ".1", ".3", "1", "3", "8"]
    assert lines[:3] == [
        ["digits", "RDA", "-", "-", "90.0 ± 0.2", "-", "91.0 ± 0.1"],
        ["", "full-batch DP-GD", "-", "-", "-", "-", "95.5 ± 0.1"],
        ["", "refined", "-", "-", "89.8 ± 0.2", "-", "**95.1** ± 0.1"],
    ]
    assert ["Fashion-MNIST", "not measured", *["-"] * 5] in lines


def test_gaps_of_the_heads_are_shown(saved):
    lines = tables.heads_under_privacy()
    assert ["digits", "LDA", *["not measured"] * 2, "88.0", *["not measured"] * 2] in lines
    assert ["CIFAR-10", "not measured", *["not measured"] * 5] in lines
    lda = next(line for line in tables.heads_without_noise() if line[0].startswith("`LDA`"))
    assert lda[1:3] == ["95.0 / not measured", "not measured / not measured"]


def test_the_table_of_attacks_has_every_attack_that_is_listed_and_names_tests_that_exist():
    _, *lines = attack_tables.facts()
    assert {line[1] for line in lines} == {f"`{attack.name}`" for attack in attacks()}, (
        "add the attack to `facts` of benchmarks/attack_tables.py, and run python -m benchmarks.tables --write"
    )
    there = {path.name for path in (Path(__file__).parents[1] / "threat_models").rglob("test_*.py")}
    assert {name for line in lines for name in re.findall(r"test_\w+\.py", line[-1])} <= there


ROOT = Path(__file__).parents[2]


def dying(code: str) -> Tables:
    yield "before", [{"seconds": 1.0}]
    child([sys.executable, "-c", code])


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("raise ValueError('no such table\\n')", "ended with exit code 1: ValueError: no such table"),
        ("raise SystemExit(3)", "ended with exit code 3: it said nothing"),
        ("import os; os.kill(os.getpid(), 9)", "ended with exit code -9: it said nothing"),
    ],
)
def test_a_benchmark_whose_child_dies_says_why_in_its_last_line(tmp_path, monkeypatch, capfd, code, why):
    monkeypatch.setattr(sys, "argv", ["benchmark", "--json", str(tmp_path / "found.json")])
    with pytest.raises(SystemExit) as stopped:
        command("made up", "about", lambda _: dying(code))
    assert str(stopped.value).startswith("made up failed: RuntimeError: ")
    assert str(stopped.value).endswith(why)
    assert "Traceback" in capfd.readouterr().err
    assert "before" in (tmp_path / "found.json").read_text(), "what was measured before is kept"
