"""Mutants by the date: what is edited, that each edit still loads, and that a mutant's tests are those of its lines."""

import ast
from pathlib import Path

import pytest

from tests.mutation.drawn import running
from tests.mutation.drawn.edits import edits_of
from tests.mutation.drawn.running import Drawn, drawn, fates

ROOT = Path(__file__).parents[2]
SOURCE = '''
"""Not 3 < 4."""
LIMIT: tuple[int, 3] = 1

def room(values: list[int], most: int = 8) -> bool:
    if values is None or not values:
        raise ValueError(f"at most {most - 1:03d}")
    check(values)
    return sum(values) ** 2 <= -most and "a" + "b" == "ab"
'''


def test_edits_are_those_of_what_runs() -> None:
    found = {(edit.before, edit.after) for edit in edits_of(SOURCE)}
    assert found == {
        ("1", "(2)"),
        ("8", "(9)"),
        ("values is None or not values", "(values is None and (not values))"),
        ("values is None or not values", "(not (values is None or not values))"),
        ("values is None", "(values is not None)"),
        ("not values", "(values)"),
        ('raise ValueError(f"at most {most - 1:03d}")', "pass"),
        ("check(values)", "pass"),
        ('sum(values) ** 2 <= -most and "a" + "b" == "ab"', "(sum(values) ** 2 <= -most or 'a' + 'b' == 'ab')"),
        ("sum(values) ** 2 <= -most", "(sum(values) ** 2 < -most)"),
        ("sum(values) ** 2", "(sum(values) * 2)"),
        ("2", "(3)"),
        ("-most", "(most)"),
        ('"a" + "b" == "ab"', "('a' + 'b' != 'ab')"),
    }


@pytest.mark.ci
def test_every_drawn_mutant_loads_and_differs_and_a_seed_names_them() -> None:
    mutants = drawn(80, 20261123)
    assert mutants == drawn(80, 20261123) != drawn(80, 20261124)
    assert len({mutant.file for mutant in mutants}) > 40
    for mutant in mutants:
        source = (ROOT / mutant.file).read_text()
        changed = mutant.edit.applied(source)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source)), mutant.told


def test_equivalent_mutants_are_of_files_as_they_are() -> None:
    for (file, before, after), why in running.equivalents().items():
        assert (before, after) in {(edit.before, edit.after) for edit in edits_of((ROOT / file).read_text())}, file
        assert why


@pytest.mark.ci
def test_a_mutant_dies_of_the_tests_of_its_lines_lives_through_others_and_may_be_out_of_reach() -> None:
    file = "privstats/kinds/counts.py"
    (edit,) = [each for each in edits_of((ROOT / file).read_text()) if each.before == "cells > self.max_cells"]
    mutant = Drawn(file, edit)
    killer = "tests/schema/test_schema.py::test_tables_have_at_most_as_many_cells_as_a_vector_of_counts_may"
    for tests, word in (
        ([killer], "killed"),
        (["tests/mutation/test_drawn.py::" + _NOTHING], "lived"),
        ([], "unreached"),
    ):
        (fate,) = fates([mutant], {file: {edit.line: tests}}, workers=1)
        assert fate.word == word


def test_nothing_of_the_library() -> None:
    """What a mutant lives through."""


_NOTHING = test_nothing_of_the_library.__name__
