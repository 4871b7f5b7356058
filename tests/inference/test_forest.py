"""Forest and balance plots: a mark for each reported row, the name alone for another; words that a phone shows."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.errors import ReleaseError
from privstats.inference import Balance
from privstats.inference.forest import ForestRow, forest_rows
from privstats.randomness import seeded
from tests.hazard import worlds as hazards
from tests.inference import test_effects as effects
from tests.inference.test_regression import exact, records

NARROW = 375  # pixels of a phone


@pytest.fixture(scope="module")
def ratios() -> Any:
    return ps.inference.hazards(hazards.played(hazards.course_of(4_000, 8.0), hazards.world(4_000), 1))


def table_of(n: int, epsilon: float) -> Any:
    rng = np.random.default_rng(n)
    return ps.inference.effect(effects.played(effects.course_of(n, epsilon), *effects.world(n, rng), seeded(n)))


def words_of(figure: Any) -> list[str]:
    panels = [panel for panel in figure.axes if panel.get_yaxis().get_ticks_position() == "left"]
    return [label.get_text() for panel in panels for label in panel.get_yticklabels()]


def is_read_on_a_phone(figure: Any) -> bool:
    """No word below 9 pixels, none beyond the picture, and no number on an axis touches the next."""
    from matplotlib.text import Text

    figure.draw_without_rendering()
    for axes in figure.axes:
        boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
        inside = [box for box in boxes if axes.bbox.x0 - 1 <= (box.x0 + box.x1) / 2 <= axes.bbox.x1 + 1]
        assert all(left.x1 + 2 < right.x0 for left, right in pairwise(inside))
    pixels = NARROW / (figure.get_size_inches()[0] * 72)
    shown = [each for each in figure.findobj(Text) if each.get_visible() and each.get_text().strip()]
    whole = figure.get_tightbbox()
    inside = whole.x0 > -0.05 and whole.x1 < figure.get_size_inches()[0] + 0.05
    return bool(inside and min(each.get_fontsize() for each in shown) * pixels >= 9)


def test_rows_of_hazards_are_ratios_beside_1_and_an_untold_row_has_no_mark(ratios: Any, tmp_path: Any) -> None:
    rows = forest_rows(ratios)
    assert [row.name for row in rows] == list(hazards.NAMES)
    assert [row.value for row in rows] == pytest.approx(list(ratios.hazard_ratios))
    assert [row.group for row in rows] == ["exploratory"] * 3
    figure = ps.inference.plot_forest(ratios, tmp_path / "forest.svg")
    assert figure.axes[0].get_xscale() == "log"
    assert figure.get_supxlabel() == "hazard ratio, 95 % intervals"
    assert words_of(figure) == list(hazards.NAMES)
    assert is_read_on_a_phone(figure)
    assert (tmp_path / "forest.svg").read_text().count("<svg") == 1


def test_effects_by_name_with_one_that_noise_hides() -> None:
    reported, hidden = table_of(2_000, 3.0), table_of(60, 0.01)
    assert not hidden.reported
    figure = ps.inference.plot_forest({"progression after a year": reported, "died": hidden})
    axes, numbers = figure.axes
    assert [label.get_text() for label in numbers.get_yticklabels()][1] == "not reported"
    marks = [line for line in axes.get_lines() if line.get_marker() == "s"]
    assert [mark.get_xdata()[0] for mark in marks] == [pytest.approx(reported.estimate)]
    assert words_of(figure)[0] == "progression after\na year"
    assert is_read_on_a_phone(figure)
    with pytest.raises(ReleaseError, match="noise hides every row"):
        ps.inference.plot_forest(hidden)


def test_a_forest_has_one_scale(ratios: Any) -> None:
    X, y = records()
    with pytest.raises(ReleaseError, match="of one kind"):
        ps.inference.plot_forest({"a": ratios, "b": ps.inference.ols(exact(X, y))})
    with pytest.raises(ReleaseError, match="of one kind"):
        ps.inference.plot_forest({})
    with pytest.raises(ReleaseError, match="end its name"):
        ps.inference.plot_forest(ratios, "forest.docx")
    slopes = forest_rows({"north": ps.inference.ols(exact(X, y))})
    assert all(row.name.startswith("north: ") for row in slopes)
    assert "north: const" not in [row.name for row in slopes]


def test_numbers_have_the_digits_that_their_interval_has() -> None:
    assert ForestRow("a", 0.11294, 0.09776, 0.12801, "").text == "0.113 (0.098 to 0.128)"
    assert ForestRow("a", -151.2, -180.4, -122.0, "").text == "-151 (-180 to -122)"
    assert ForestRow("a", math.nan, -math.inf, math.inf, "").text == "not reported"


def test_balance_has_the_largest_difference_on_top_and_no_mark_for_what_is_not_told() -> None:
    nan, inf = math.nan, math.inf
    names, reported = ("age", "sex", "bmi"), np.array([True, False, True])
    ends = np.array([-0.02, -inf, -0.3]), np.array([0.06, inf, -0.2])
    balance = Balance(names, np.full((3, 2), 1.0), np.array([0.02, nan, -0.25]), *ends, reported)
    figure = ps.inference.plot_balance(balance)
    assert words_of(figure) == ["bmi", "age", "sex"]
    marks = [line for line in figure.axes[0].get_lines() if line.get_marker() == "o"]
    assert [(mark.get_xdata()[0], mark.get_ydata()[0]) for mark in marks] == [(-0.25, 0), (0.02, 1)]
    assert is_read_on_a_phone(figure)
    assert not figure.legends
    frame = balance.to_frame().set_index("variable")
    assert frame.loc["bmi", "smd"] == -0.25
    assert not frame.loc["sex", "reported"]


def test_survival_by_arm_has_the_ratio_and_its_interval_in_a_corner(ratios: Any) -> None:
    figure = ratios.plot()
    words = figure.axes[0].get_legend()
    low, high = ratios.ratio_int()[0]
    assert (
        words.get_title().get_text() == f"hazard ratio of arm\n{ratios.hazard_ratios[0]:.2f} ({low:.2f} to {high:.2f})"
    )
    assert [each.get_text() for each in words.get_texts()] == ["arm 0", "arm 1"]
    assert figure.axes[0].get_xlabel() == "months"
    assert is_read_on_a_phone(figure)


def test_a_notebook_shows_ratios_as_the_table_does(ratios: Any) -> None:
    assert "<strong>A hazard ratio is not a causal effect" in ratios._repr_html_()


@pytest.fixture(scope="module")
def declared() -> Any:
    """Two outcomes in two subgroups, of which one outcome was declared as primary."""
    schema = ps.EffectSchema.of(
        effects.RANGES,
        treatment="arm",
        outcome={"relapse": (-1, 1), "death": (-1, 1)},
        probability=0.5,
        subgroups=(ps.Bins("x0", (-1, 0, 1)),),
    )
    analysis = ps.course.Analysis(primary=("relapse",), subgroups=("x0",))
    course = effects.course_of(2_000, 8.0, schema, analysis=analysis)
    X, y = effects.world(2_000, np.random.default_rng(3))
    releases = effects.played(course, X, np.c_[y, y[::-1]], seeded(3))
    return ps.inference.effects(releases, course)


def test_what_was_declared_stands_apart_from_what_is_exploratory(declared: Any) -> None:
    figure = ps.inference.plot_forest(declared.named)
    panels = [axes for axes in figure.axes if axes.get_title(loc="left")]
    titles = [axes.get_title(loc="left") for axes in panels]
    assert titles == ["declared: primary", "declared: secondary", "exploratory"]
    assert [len(axes.get_yticklabels()) for axes in panels] == [1, 2, 3]
    assert is_read_on_a_phone(figure)


def test_a_paper_is_told_what_was_declared_and_how_it_was_adjusted(declared: Any) -> None:
    said = ps.inference.methods(declared)
    assert all(fact in said for fact in (declared.course.digest, "primary, relapse;", "secondary, relapse by x0"))
    assert "Holm's method" in said
    text = declared.summary().as_text()
    assert all(name in text for name in declared.named)


def test_balance_after_weighting_stands_below_the_one_before() -> None:
    ends = np.array([0.2, -0.3]), np.array([0.3, -0.2])
    after = np.array([[0.01, -0.02, 0.04], [np.nan, -np.inf, np.inf]])
    both = np.array([True, True])
    balance = Balance(("age", "bmi"), np.ones((2, 2)), np.array([0.25, -0.26]), *ends, both, weighted=after)
    figure = ps.inference.plot_balance(balance)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["before weighting", "after weighting"]
    squares = [line for line in figure.axes[0].get_lines() if line.get_marker() == "s"]
    assert [mark.get_xdata()[0] for mark in squares] == [0.01]
    assert 1 < squares[0].get_ydata()[0] < 1.5
    assert is_read_on_a_phone(figure)
