"""Every type that a public door's signature admits is one that it reads."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.intake import typed_calls
from tests.lacking import needs

ALIKE = {
    "lists": "",
    "arrays": "",
    "sparse": "",
    "batches": "",
    "tensors": "torch",
    "polars_frames": "polars",
    "pandas_frames": "pandas",
    "relations": "duckdb",
}


@pytest.mark.parametrize("name", ALIKE)
def test_each_container_that_type_checks_has_the_same_sums(name):
    if ALIKE[name]:
        needs(ALIKE[name])
    assert getattr(typed_calls, name)() == typed_calls.lists()


def test_a_file_that_type_checks_has_the_same_sums(tmp_path):
    assert typed_calls.files(tmp_path) == typed_calls.lists()


def test_a_function_of_a_users_own_passes_records_on():
    assert typed_calls.passed_on(typed_calls.ROWS, typed_calls.LABELS) == typed_calls.lists()


def test_columns_persons_and_a_release_run_as_they_type_check():
    assert typed_calls.columns_by_name().records == 3
    assert typed_calls.persons().persons == 2
    assert typed_calls.released().plan.schema == typed_calls.SCHEMA


def test_the_types_of_containers_import_no_optional_library():
    code = (
        "import sys, privstats.intake.accepted as a; "
        "print(*sorted({'torch', 'pandas', 'polars', 'pyarrow', 'duckdb'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""
