"""``privstats table``: its forms, its exit codes."""

from __future__ import annotations

import json

import pytest

from tests.inference.test_regression import exact, noisy, records


@pytest.fixture
def folder(tmp_path):
    X, y = records()
    exact(X, y, feature_names=("age", "dose", "site")).save(tmp_path / "exact.privstats")
    noisy(X, y, 1.0).save(tmp_path / "noisy.privstats")
    return tmp_path


def test_a_release_becomes_a_table(privstats, folder):
    done = privstats("table", "exact.privstats", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "dose" in done.stdout
    assert "told and misses" in done.stdout


@pytest.mark.parametrize(("form", "begins"), [("csv", ",coef"), ("html", "<table>"), ("latex", r"\begin{tabular}")])
def test_every_form(privstats, folder, form, begins):
    done = privstats("table", "exact.privstats", "--format", form, cwd=folder)
    assert done.stdout.startswith(begins)


def test_json_is_one_object_with_finite_numbers_or_null(privstats, folder):
    done = privstats("table", "noisy.privstats", "--format", "json", cwd=folder)
    facts = json.loads(done.stdout)
    assert {row["name"] for row in facts["rows"]} == {"const", "x0", "x1", "x2"}
    assert all(row["low"] is None for row in facts["rows"] if not row["told"])


def test_columns_are_chosen_by_name(privstats, folder):
    done = privstats("table", "exact.privstats", "--column", "dose", "--column", "age", cwd=folder)
    assert "2 of 3 released columns" in done.stdout


def test_nothing_told_is_exit_code_1(privstats, folder):
    assert privstats("table", "noisy.privstats", "--alpha", "0.000001", cwd=folder).returncode == 1


def test_a_wrong_column_is_exit_code_2_and_a_sentence(privstats, folder):
    done = privstats("table", "exact.privstats", "--column", "height", cwd=folder)
    assert done.returncode == 2
    assert "it has age, dose, site" in done.stderr
