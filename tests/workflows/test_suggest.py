"""Guidance from public data: it sees what clipping and a coarse grid cost, and suggests neither."""

import json
import warnings

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import privstats as ps
from privstats.cli.parts.suggest import suggest as command
from privstats.workflows.suggest import suggest

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 4, 2000)
X = RNG.normal(size=(2000, 8)) + RNG.normal(size=(4, 8))[Y]


def test_more_clipping_and_coarser_grids_lose_more():
    found = suggest(X, Y)
    errors = [choice.covariance_error for choice in found.clips]
    assert errors == sorted(errors, reverse=True)
    assert [choice.clipped for choice in found.clips] == sorted((c.clipped for c in found.clips), reverse=True)
    assert found.clips[-1].clipped == 0
    assert found.clips[-1].covariance_error < 1e-3
    assert found.grids[0].covariance_error > found.grids[-1].covariance_error
    assert found.clips[-1].accuracy == pytest.approx(found.reference, abs=0.01)


def test_the_suggestion_is_the_smallest_clip_within_tolerance():
    found = suggest(X, Y, tolerance=0.01)
    best = max(choice.accuracy for choice in found.clips)
    for choice in found.clips:
        if choice.clip_norm < found.clip_norm:
            assert choice.accuracy < best - 0.01
    assert found.grid_bits >= 12


def test_without_labels_at_most_one_record_in_twenty_is_clipped():
    found = suggest(X)
    assert found.reference is None
    chosen = next(choice for choice in found.clips if choice.clip_norm == found.clip_norm)
    assert chosen.clipped <= 0.05
    assert chosen.accuracy is None


def test_the_transform_comes_first():
    found = suggest(X, Y, transform=(ps.transforms.UnitNorm(),))
    assert ([choice.clip_norm for choice in found.clips], found.clips[0].clipped) == ([1.0], 0)


def test_a_column_that_makes_most_of_the_norm_is_named_with_the_transforms():
    with warnings.catch_warnings(action="error"):
        found = suggest(X * (1, 1, 1, 1, 1, 1000, 1, 1), Y)
    assert found.remarks[0].startswith("column 5, counted from 0, holds 100.0% of the squared norms")
    assert "transforms.Scale" in found.remarks[0]
    assert suggest(X).remarks == ()


def test_a_clip_norm_that_shortens_most_records_is_remarked_on():
    found = suggest(X, Y, tolerance=1.0)
    assert found.clips[0].clipped > 0.5
    assert [f"shortens {found.clips[0].clipped:.1%}" in each for each in found.remarks] == [True]


def test_the_command_prints_the_remarks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X * (1000, 1, 1, 1, 1, 1, 1, 1))
    app = typer.Typer()
    app.command()(command)
    shown = CliRunner().invoke(app, ["--public", "x.npy"]).stdout
    assert "column 0, counted from 0, holds 100.0% of the squared norms" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        (X[:5], Y[:5], "at least 20 records"),
        (X[:, 0], Y, "shape"),
        (np.where(X > 1, np.nan, X), Y, "NaN"),
        (X.astype(str)[:, :1], Y, "shape|real"),
        (np.array([["a", "b"]] * 30), None, "real numbers"),
        (X, Y[:9], "like X"),
        (X, Y.astype(float), "integers"),
        (X, np.zeros(2000, int), "one class only"),
        (np.zeros((30, 3)), None, "zero everywhere"),
    ],
)
def test_data_that_cannot_guide_are_refused(features, labels, message):
    with pytest.raises(ps.DataError, match=message):
        suggest(features, labels)


def test_the_command_prints_tables_and_json(tmp_path):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", Y)
    app = typer.Typer()
    app.command()(command)
    files = ["--public", str(tmp_path / "X.npy"), "--labels", str(tmp_path / "y.npy")]
    shown = CliRunner().invoke(app, files)
    assert shown.exit_code == 0
    assert "lost" in shown.stdout
    assert "grid_bits = 12" in shown.stdout
    told = json.loads(CliRunner().invoke(app, [*files, "--json"]).stdout)
    assert told["clip_norm"] == suggest(X, Y).clip_norm
    unlabelled = CliRunner().invoke(app, files[:2])
    assert unlabelled.exit_code == 0
    assert "lost" not in unlabelled.stdout
