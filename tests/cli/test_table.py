"""``privstats table``: its forms, its exit codes."""

from __future__ import annotations

import json

import numpy as np
import pytest

import privstats as ps
from tests.inference import test_sites as sites
from tests.inference.test_counts import exact as counted
from tests.inference.test_counts import people
from tests.inference.test_regression import exact, noisy, records
from tests.inference.test_score import LOGISTIC, course_of, played, world


@pytest.fixture
def folder(tmp_path):
    X, y = records()
    exact(X, y, feature_names=("age", "dose", "site")).save(tmp_path / "exact.privstats")
    noisy(X, y, 1.0).save(tmp_path / "noisy.privstats")
    counted(people()).save(tmp_path / "counts.privstats")
    sites.release_of(sites.world(sites.SIZES)).save(tmp_path / "sites.privstats")
    sites.intercepts(sites.clinics(0.3)).save(tmp_path / "pulls.privstats")
    schema = ps.ClassSchema(2, 3, "NAD", 2.0, class_names=("old", "new"))
    labels = np.where(y > 0.2, "new", "old")
    ps.Release.exact(schema, ps.measure(schema, X, labels)).save(tmp_path / "classes.privstats")
    return tmp_path


READERS = {
    "km": ("counts.privstats", "--time", "months", "--event", "died", "--by", "sex"),
    "proportions": ("counts.privstats", "--column", "sex"),
    "table-one": ("classes.privstats",),
    "fixed-effects": ("sites.privstats",),
    "mixed": ("pulls.privstats",),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("form", ["text", "csv", "latex", "html"])
def test_every_reader_writes_every_form(privstats, folder, reader, form):
    done = privstats("table", *READERS[reader], "--reader", reader, "--format", form, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80 or form != "text"
    assert "told and misses" in done.stdout or form == "csv"


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_writes_numbers(privstats, folder, reader):
    done = privstats("table", *READERS[reader], "--reader", reader, "--format", "json", cwd=folder)
    facts = json.loads(done.stdout)
    assert facts["reader"] == reader
    assert len(facts["rows"]) >= 2


def test_rounds_are_read_together(privstats, folder):
    names = []
    for place, release in enumerate(played(course_of(LOGISTIC, 2_000, 8.0), *world(2_000), 1)):
        names.append(f"{place}.privstats")
        release.save(folder / names[-1])
    done = privstats("table", *names, "--reader", "logit", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Logistic regression" in done.stdout
    assert privstats("table", *names, cwd=folder).stdout == done.stdout
    assert "takes one release" in privstats("table", *names, "--reader", "ols", cwd=folder).stderr
    assert "poisson" in privstats("table", *names, "--reader", "poisson", cwd=folder).stderr


def test_a_reader_names_what_it_misses(privstats, folder):
    assert "--time" in privstats("table", "counts.privstats", "--reader", "km", cwd=folder).stderr
    assert "--column" in privstats("table", "counts.privstats", "--reader", "proportions", cwd=folder).stderr
    assert "RidgeSchema" in privstats("table", "counts.privstats", "--reader", "ols", cwd=folder).stderr


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
    hidden = privstats("table", "noisy.privstats", "--format", "json", "--alpha", "0.000001", cwd=folder)
    assert [row["coef"] for row in json.loads(hidden.stdout)["rows"]] == [None] * 4


def test_columns_are_chosen_by_name(privstats, folder):
    done = privstats("table", "exact.privstats", "--column", "dose", "--column", "age", cwd=folder)
    assert "2 of 3 released columns" in done.stdout


def test_nothing_told_is_exit_code_1(privstats, folder):
    assert privstats("table", "noisy.privstats", "--alpha", "0.000001", cwd=folder).returncode == 1


def test_a_wrong_column_is_exit_code_2_and_a_sentence(privstats, folder):
    done = privstats("table", "exact.privstats", "--column", "height", cwd=folder)
    assert done.returncode == 2
    assert "it has age, dose, site" in done.stderr


def test_without_a_reader_the_first_that_fits_is_taken(privstats, folder):
    for release, title in (
        ("exact", "Linear regression"),
        ("classes", "Means by group"),
        ("sites", "Regression with fixed site effects"),
    ):
        done = privstats("table", f"{release}.privstats", cwd=folder)
        assert done.stdout.startswith(title), done.stdout + done.stderr
    assert "--reader km needs --time and --event" in privstats("table", "counts.privstats", cwd=folder).stderr


def test_a_curve_is_drawn_beside_its_table(privstats, folder):
    words = ("table", *READERS["km"], "--figure", "km.svg")
    done = privstats(*words, "--times", "continuous", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "<svg" in (folder / "km.svg").read_text()
    assert "end its name in" in privstats(*words[:-1], "km.docx", cwd=folder).stderr
    assert "has none" in privstats("table", "exact.privstats", "--figure", "km.svg", cwd=folder).stderr
