"""A benchmark that dies says why in its last line, whatever it was that died."""

from __future__ import annotations

import argparse
import ast
import sys
from pathlib import Path

import pytest

from benchmarks.measuring import Tables, child, command

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


def test_the_last_line_of_an_error_of_many_lines_is_said(monkeypatch):
    def tables(options: argparse.Namespace) -> Tables:
        raise AssertionError("--- run.log\nwaited 20 s for: the release; party 3: TypeError\n\n")
        yield "never", []

    monkeypatch.setattr(sys, "argv", ["benchmark"])
    with pytest.raises(SystemExit, match=r"^made up failed: AssertionError: waited 20 s for: the release; party 3: Ty"):
        command("made up", "about", tables)


def test_every_benchmark_starts_its_children_where_their_last_words_are_kept():
    """``git`` of one, which it may lack, is no child that measures."""
    starting = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "benchmarks").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "subprocess"
    }
    assert starting == {"benchmarks/measuring.py", "benchmarks/refinement/compare.py"}
