"""The page shows released tables next to those of the rows, and fetches nothing."""

import re

import numpy as np
import pytest
from typer.testing import CliRunner

import privstats as ps
from privstats.contrib.synthetic.command import app
from privstats.contrib.synthetic.distances import Distance
from privstats.contrib.synthetic.page import distance_table, one_way, two_way, write_page
from privstats.contrib.synthetic.rows import NO_INTERVALS, synthetic
from tests.contrib.synthetic.cases import COLUMNS, released

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def rows():
    return synthetic(*released(), rows=500, seed=1, columns=COLUMNS)


def test_a_table_of_the_rows_has_the_shape_of_the_released_one(rows):
    for each in rows.distances:
        assert each.released.shape == each.rows.shape == tuple(map(len, each.cells))
        assert np.isclose(each.rows.sum(), 1)
        assert np.isclose(each.released.sum(), 1)
        assert np.isclose(np.abs(each.rows - each.released).sum() / 2, each.value)


def test_the_pictures_show_both_tables(rows):
    single = next(each for each in rows.distances if each.columns == ("ward",))
    axes = one_way(single).axes[0]
    assert [patch.get_width() for patch in axes.patches] == pytest.approx(single.rows.tolist())
    assert axes.lines[0].get_xdata() == pytest.approx(single.released)
    pair = next(each for each in rows.distances if len(each.columns) == 2)
    left, right = two_way(pair).axes[:2]
    for panel, shares in ((left, pair.released), (right, pair.rows)):
        assert np.allclose(np.asarray(panel.images[0].get_array()), np.sqrt(np.maximum(shares, 0)))


def test_a_picture_of_many_cells_shows_those_that_hold_rows():
    rows, released = np.zeros(306), np.zeros(306)
    rows[210:220], rows[-1] = 0.09, 0.1
    released[[5, 215]] = 0.01, 0.99
    wide = Distance(("x",), 0, 0.1, 0.1, 0.0, 0.2, (tuple(f"c{k}" for k in range(306)),), released, rows, 0.01)
    axes = one_way(wide).axes[0]
    assert [each.get_text() for each in axes.get_yticklabels()] == [*(f"c{k}" for k in range(210, 220)), "c305"]
    assert [patch.get_width() for patch in axes.patches] == pytest.approx([0.09] * 10 + [0.1])


def test_the_page_has_a_picture_of_each_table_and_the_distances(rows, tmp_path):
    write_page(rows, tmp_path / "rows.html")
    html = (tmp_path / "rows.html").read_text()
    last = max(each.session for each in rows.distances)
    pictured = [each for each in rows.distances if len(each.columns) == 1 or each.session == last]
    assert html.count("<figure>") == len(pictured)
    assert NO_INTERVALS in html
    assert "http" not in re.sub('base64,[^"]*', "", html.replace("http-equiv", ""))
    assert all(" x ".join(each.columns) in html for each in pictured)
    assert len(distance_table(rows.distances).rows) == len(rows.distances)


@pytest.mark.ci
def test_the_command_writes_the_page(tmp_path):
    own, releases = released()
    ps.course.write(tmp_path / "study.toml", own)
    names = []
    for place, release in enumerate(releases):
        names.append(str(tmp_path / f"{place}.release"))
        release.save(names[-1])
    words = [str(tmp_path / "study.toml"), *names, "--rows", "50", "--out", str(tmp_path / "rows.csv")]
    done = CliRunner().invoke(app, [*words, "--page", str(tmp_path / "rows.html")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "rows.html").read_text().startswith("<!doctype html>")
