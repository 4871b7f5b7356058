"""The frozen records of ``vectors/measure.json``, which clients in other languages read too, measured here again."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from tests.moments.frozen_measure import counted

FROZEN = json.loads((Path(__file__).parent / "vectors" / "measure.json").read_text("utf-8"))


def schema_of(case):
    table = {key: value for key, value in case["schema"].items() if key not in ("task", "transform")}
    return ps.kinds.KINDS[case["schema"]["task"]](**table)


def rows_of(hexed):
    return np.array([[struct.unpack(">d", bytes.fromhex(each))[0] for each in row] for row in hexed])


@pytest.mark.parametrize("start", range(0, 400, 100))
def test_rows_have_their_frozen_integers(start):
    for case in FROZEN["rows"][start : start + 100]:
        schema, X = schema_of(case), rows_of(case["X"])
        y = rows_of(case["y"]) if schema.task == "ridge" else case["y"]
        assert ps.encoding.flatten(ps.moments.exact_moments(schema, X, y)).tolist() == case["vector"]


@pytest.mark.parametrize(("kind", "cases"), [("counts", 100), ("numbers", 60)])
def test_counts_and_numbers_have_their_frozen_integers_together_and_alone(kind, cases):
    assert len(FROZEN[kind]) == cases
    for case in FROZEN[kind]:
        assert counted(schema_of(case), case["records"]) == case["vector"]


def test_the_cases_hold_what_tells_arithmetics_apart():
    numbers = np.concatenate([rows_of(case["X"]).ravel() for case in FROZEN["rows"]])
    assert (abs(numbers) > 1e300).any()
    assert ((numbers != 0) & (abs(numbers) < 1e-307)).any()
    values = [value for case in FROZEN["counts"] for values in case["records"].values() for value in values]
    assert {type(value) for value in values} == {int, float, str, type(None)}
