"""The checker recomputes what a declared table makes of a row: its width, its steps and its norm."""

import json
from dataclasses import replace

import pytest
import tomli_w

import privstats as ps
from privstats.review.certificate_checker import Refused, _is_short, _width, check
from tests.made import refused
from tests.plan.every_kind import CELLS, certified, with_tables


def changed(at=None, **keys):
    _, _, tables, document = certified("cells")
    table = tables["schema"]["transform"][0]
    (table if at is None else table["columns"][at]).update(keys)
    return tomli_w.dumps(tables), with_tables(document, tables)


@pytest.mark.parametrize("ramp", [False, True])
@pytest.mark.parametrize("signs", [1, 7, 12])
def test_its_width_is_the_librarys(ramp, signs):
    cells = replace(CELLS, ramp=ramp, signs=signs)
    step = json.loads(json.dumps(ps.transforms.to_builtins((cells,))))
    assert _width({"transform": step, "task": "classes"}) == cells.width
    constant = [*step, {"kind": "constant-feature", "value": 1.0}]
    assert _width({"transform": constant, "task": "sites"}) == cells.width + 2
    assert _is_short(step[0])


def test_a_plan_may_leave_its_features_out_where_columns_are_declared():
    plan, text, tables, document = certified("cells")
    del tables["schema"]["features"]
    short = tomli_w.dumps(tables)
    assert ps.Plan.from_toml(short) == plan
    assert check(short, json.dumps(document)) == check(text, json.dumps(document))


@pytest.mark.parametrize(
    ("at", "keys"),
    [
        (None, {"signs": 8}),  # another width
        (None, {"ramp": False}),
        (None, {"bits": 7}),  # too coarse
        (None, {"bits": 10**15}),  # which nobody could raise 4 to
        (None, {"signs": True}),
        (0, {"edges": [float(edge) for edge in range(9)]}),
        (5, {"values": [1, 2, 3, 4]}),
        (3, {"kind": "numbers"}),
        (3, {"kind": "dates"}),
    ],
)
def test_another_width_or_step_is_refused(at, keys):
    refused(Refused, "", check, *changed(at, **keys))


def test_cells_behind_another_map_are_refused():
    _, _, tables, document = certified("cells")
    tables["schema"]["transform"].insert(0, {"kind": "unit-norm"})
    refused(Refused, "", check, tomli_w.dumps(tables), with_tables(document, tables))


def test_cells_whose_signs_are_said_to_be_above_zero_are_refused():
    """Nothing clips them there, and the bound of a record that is replaced would be half."""
    _, _, tables, document = certified("cells")
    tables["schema"]["nonnegative"] = True
    refused(Refused, "contradict each other", check, tomli_w.dumps(tables), with_tables(document, tables))
