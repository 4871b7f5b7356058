"""Rows, verdicts and the three forms of a report."""

import ast
import importlib
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import matplotlib.text
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
import threat_models.attacks
from threat_models.adversary import SIGHTS
from threat_models.attack import attacks
from threat_models.bounds import Point, Roc
from threat_models.page import asked, finding_of, render
from threat_models.pictures import draw_all, figures
from threat_models.report import Example, LeakageReport, Row, judge

POINT = Point(0.01, 0.01, 0.3, (0.0, 0.02), (0.2, 0.4))


def row(attack="mean-ratio", **more):
    given = {
        "number": 7, "goal": "membership", "adversary": "sees the published release", "sees": "release",
        "metric": "AUC", "measured": 0.9, "interval": (0.8, 0.95), "baseline": 0.5, "ceiling": 0.58,
        "verdict": "violates ceiling",
        "mu": 0.27, "worlds": 100, **more,
    }  # fmt: skip
    return Row(attack=attack, **given)


def report(*rows, **more):
    return LeakageReport("What an attacker learns", "central noise, one record", rows, **more)


@pytest.mark.parametrize(
    ("interval", "ceiling", "points", "verdict"),
    [
        ((0.6, 0.7), 0.58, (), "violates ceiling"),
        ((0.56, 0.7), 0.58, (), "leaks"),
        ((0.6, 0.7), None, (), "leaks"),
        ((0.45, 0.6), 0.58, (), "no evidence"),
        ((0.3, 0.8), 0.58, (), "underpowered"),
        ((0.45, 0.55), 0.58, (POINT,), "violates ceiling"),
        ((0.45, 0.55), 0.58, (replace(POINT, tpr_interval=(0.03, 0.4)),), "no evidence"),
    ],
)
def test_a_verdict_is_what_the_interval_says(interval, ceiling, points, verdict):
    assert judge(interval, (0.45, 0.55), ceiling, points, ps.dp.Guarantee(0.27)) == verdict


def test_json_has_all_five_in_every_row_and_null_where_there_is_nothing():
    silent = row("differencing", measured=None, interval=None, baseline=None, ceiling=None, verdict="underpowered")
    whole = report(row(points=(POINT,), roc=Roc((0.0, 1.0), (0.5, 1.0), (0.1, 0.1))), silent, row(mu=None))
    document = json.loads(whole.to_json())
    for each in document["rows"]:
        assert {"measured", "interval", "baseline", "ceiling", "verdict"} <= set(each)
        assert "example" not in each
    assert document["violated"] is True
    assert document["rows"][0]["points"][0]["ceiling"] == pytest.approx(ps.dp.Guarantee(0.27).tpr(0.01))
    assert document["rows"][1]["measured"] is None
    assert json.loads(report(row(interval=(0.1, float("inf")))).to_json())["rows"][0]["interval"] == [0.1, None]


def test_markdown_is_one_line_per_row():
    text = report(
        row(), row("quadratic", ceiling=None, interval=None, setting={"records": 30}, note="why")
    ).to_markdown()
    lines = text.splitlines()
    first, second = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines[4:6])
    assert first[1:] == [
        "mean-ratio",
        "release",
        "AUC",
        "0.900",
        "0.800 to 0.950",
        "0.500",
        "0.580",
        "violates ceiling",
    ]
    assert second[1:8] == ["quadratic, records 30", "release", "AUC", "0.900", "-", "0.500", "none"]
    assert "why" in lines[-1]


def test_the_worst_row_gains_most_over_its_baseline():
    assert report().worst is None
    audit = row("canary-audit", goal="audit", interval=(5.0, 6.0))
    assert report(row(), audit, row("quadratic", interval=(0.85, 0.9))).worst.attack == "quadratic"


def test_the_best_attack_of_a_goal_is_one_that_the_promise_bounds():
    unbounded = row("property", goal="inference", interval=(0.9, 0.95), ceiling=None)
    bounded = row("attribute", goal="inference", interval=(0.5, 0.6), ceiling=0.6, verdict="underpowered")
    rows = (row(), unbounded, bounded, row("span-leverage", goal="audit", measured=None, interval=None))
    assert {goal: each.attack for goal, each in report(*rows).worst_by_goal.items()} == {
        "membership": "mean-ratio", "inference": "attribute",
    }  # fmt: skip
    assert finding_of(report(*rows)).measured["inference"].startswith("attribute, AUC ")


EXAMPLE = Example(*(tuple(tuple(float(i + j) for i in range(9)) for j in range(2)) for _ in range(5)))


def full_report():
    roc = Roc((0.0, 0.1, 1.0), (0.1, 0.5, 1.0), (0.1, 0.1))
    return report(
        row(verdict="leaks", roc=roc),
        row("quadratic", verdict="leaks", roc=roc, mu=None, ceiling=None),
        row("repeated-releases", sees="releases", verdict="no evidence", mu=0.5),
        row("differencing", sees="releases", metric="rebuilt", example=EXAMPLE, verdict="leaks", note="<b>exact</b>"),
        row("canary-audit", goal="audit", metric="mu of N", interval=(0.2, float("inf"))),
        row("span-leverage", measured=None, interval=None, metric="-", verdict="underpowered", note="needs S"),
        seed=3,
    )


@pytest.mark.ci
def test_every_picture_that_the_rows_allow_is_drawn(tmp_path):
    assert set(figures(full_report())) == {"matrix", "roc", "reconstruction"}
    axes = figures(full_report())["roc"].axes[0]
    for side in (axes.xaxis, axes.yaxis):
        assert [side.get_minor_formatter()(share, 0) for share in (0.02, 0.3, 0.5)] == ["2 %", "", "50 %"]
        assert [side.get_major_formatter()(share, 0) for share in (0.001, 0.1, 1)] == ["0.1 %", "10 %", "100 %"]
    paths = draw_all(full_report(), tmp_path)
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths.values())
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.png" for name in paths}


@pytest.mark.parametrize("axis", ["records", "epsilon", "dropouts", "releases"])
def test_a_sweep_is_drawn_over_its_axis(axis):
    rows = [row(setting={axis: value}, points=(POINT,), verdict="leaks") for value in (1.0, 4.0, 30.0)]
    free = [row("quadratic", setting={axis: value}, mu=None, ceiling=None, points=(POINT,)) for value in (1.0, 4.0)]
    same = [replace(each, attack="differencing") for each in rows]
    other = [row("informed", setting={axis: value}, mu=0.5, ceiling=0.7, points=(POINT,)) for value in (1.0, 4.0)]
    (axes,) = figures(report(*rows, *same, *free, *other, features=6))[f"over-{axis}"].axes
    labels = axes.get_legend_handles_labels()[1]
    assert [label for label in labels if "ceiling" in label] == ["ceiling", "ceiling, informed"]
    assert ("TPR" in axes.get_ylabel()) == (axis == "releases")
    marks = [text.get_text().strip() for text in axes.texts]
    assert marks == (["d = 6", "d²/2 = 18"] if axis == "records" else [])


ON_A_PHONE = 343  # CSS pixels that 375 leave a picture


def drawings():
    """Every kind of drawing, with the longest names."""
    scene = [row("four-samples", metric=f"SSIM > .9, {way}", example=EXAMPLE) for way in ("off", "partly off", "on")]
    plain = full_report()
    found = figures(replace(plain, rows=(*plain.rows, *scene, row("rotation-on-the-grid"), row("repeated-releases"))))
    swept = [row(setting={"records": value}, points=(POINT,)) for value in (1.0, 4.0, 30.0)]
    return found | figures(report(*swept, features=6))


@pytest.mark.ci
def test_the_text_of_a_drawing_can_be_read_on_a_phone_and_none_is_cut():
    from matplotlib.text import Text as Word

    found = drawings()
    assert set(found) == {"matrix", "roc", "reconstruction", "samples", "over-records"}
    for name, figure in found.items():
        figure.draw_without_rendering()
        shown = [text for text in figure.findobj(Word) if text.get_text().strip() and text.get_visible()]
        assert min(text.get_fontsize() for text in shown) * ON_A_PHONE / (72 * figure.get_figwidth()) > 8.8, name
        whole, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
        assert min(whole.x0, whole.y0) > -0.05, name
        assert (whole.x1, whole.y1) < (width + 0.05, height + 0.05), name


def test_marks_out_of_sight_are_not_drawn():
    rows = [row(setting={"records": value}, mu=None, ceiling=None) for value in (1.0, 3.0)]
    (axes,) = figures(report(*rows, features=64))["over-records"].axes
    assert not axes.texts


def test_without_a_guarantee_there_is_no_ceiling_to_draw():
    bare = row(roc=Roc((0.0, 1.0), (0.5, 1.0), (0.1, 0.1)), mu=None, ceiling=None)
    (axes,) = figures(report(bare))["roc"].axes
    assert axes.get_legend_handles_labels()[1] == ["guessing", "mean-ratio"]


def test_what_is_shaded_is_above_every_ceiling_where_they_cross():
    """A pure promise of a larger mu allows less at few false positives."""
    roc = Roc((0.0, 1.0), (0.5, 1.0), (0.1, 0.1))
    kept = ps.dp.Guarantee(0.6), ps.dp.Guarantee(0.7, pure=1.2)
    assert kept[0].tpr(0.001) > kept[1].tpr(0.001)
    assert kept[0].tpr(0.3) < kept[1].tpr(0.3)
    (axes,) = figures(report(*(row(roc=roc, mu=each.mu, pure=each.pure) for each in kept)))["roc"].axes
    (shade,) = axes.collections
    lowest = {}
    for rate, place in shade.get_paths()[0].vertices:
        lowest[rate] = min(place, lowest.get(rate, 1.0))
    assert all(place >= max(each.tpr(rate) for each in kept) - 1e-12 for rate, place in lowest.items())


def test_vectors_that_are_no_square_are_not_drawn():
    assert "reconstruction" not in figures(report(row(example=replace(EXAMPLE, truth=((1.0, 2.0),)))))


class Text(HTMLParser):
    """The words of a page."""

    def __init__(self, html):
        super().__init__()
        self.words = []
        self.feed(html)

    def handle_data(self, data):
        self.words.append(data)


def page(whole):
    html = render(whole)
    return html, " ".join(" ".join(Text(html).words).split())


def test_the_page_says_measured_declared_and_combined_in_sentences():
    html, text = page(full_report())
    assert html.count("data:image/png;base64,") == 3
    assert "width=device-width" in html
    assert "@media print" in html
    assert "This must not happen: do not release" in text  # the canary row
    assert "Releases of the same records add up" in text
    assert "<b>exact</b>" in text  # shown as it was written, not as markup
    assert "No attacker, whatever it knows, can have an AUC above 0.580" in text


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([], "Nothing was measured"),
        ([row(verdict="leaks", ceiling=None)], "One attack learned something that nothing was promised about."),
        ([row(verdict="leaks"), row("b", verdict="leaks")], "2 attacks learned something"),
        ([row(verdict="no evidence", ceiling=None)], "There is no ceiling: a better attack may learn more"),
        ([row(verdict="no evidence")], "No attack in this table learned anything"),
    ],
)
def test_the_headline_fits_the_rows(rows, sentence):
    assert sentence in page(report(*rows))[1]


MUTE = {"verdict": "underpowered", "interval": (0.28, 0.9), "measured": 0.6}


def test_too_few_trials_are_said_and_not_taken_for_no_leak():
    """Width .62 with 8 trials: 1.25 (.62 / .2)^2 times as many, 97, make it .2; in two digits, rounded up."""
    whole = report(row(**MUTE), row("b", **MUTE), trials=8)
    text = page(whole)[1]
    said = "Too few trials to tell: 2 of 2 attacks say nothing with --trials 8; about 97 would."
    assert said in text
    assert said in whole.to_markdown()
    assert "learned anything that could be seen" not in text
    assert 'class="box warn"' in render(whole)
    document = json.loads(whole.to_json())
    assert (document["undecided"], document["trials_needed"]) == (["b", "mean-ratio"], 97)


def test_too_few_trials_tell_no_baseline_either():
    """Eight trials gave guessing .575, which was the ceiling: a reader took it for what anybody knows anyway."""
    mute = row(**MUTE | {"baseline": 0.575, "ceiling": 0.58})
    whole = report(mute, row("b", verdict="no evidence", baseline=0.51), trials=8)
    for text in (page(whole)[1], whole.to_markdown()):
        assert "not known" in text
        assert "0.575" not in text
        assert "0.510" in text
    assert "without the release not known" in page(report(mute, trials=8))[1]
    assert json.loads(whole.to_json())["rows"][0]["baseline"] == 0.575
    assert row(measured=None, interval=None, baseline=None, verdict="underpowered").without == "-"


def test_attacks_that_say_nothing_are_counted_beside_those_that_do():
    some = page(report(row("a", **MUTE), row(verdict="no evidence"), trials=50))[1]
    assert "1 of 2 attacks says nothing with --trials 50" in some
    assert "No other attack in this table learned anything" in some
    both = page(report(row("a", **MUTE), row(verdict="leaks"), trials=50))[1]
    assert "1 of 2 attacks says nothing" in both
    assert "One attack learned something, and no more than was promised." in both
    whole = report(row(verdict="no evidence"), row("b", measured=None, interval=None, verdict="underpowered"), trials=8)
    assert (whole.doubt, whole.needed) == ("", 0)  # an attack that does not apply needs no trials
    assert 'class="box"' in render(whole)


@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=4), st.integers(8, 5000))
def test_trials_that_are_needed_are_more_than_there_were(widths, trials):
    rows = [row(str(place), **MUTE | {"interval": (0.0, width)}) for place, width in enumerate(widths)]
    needed = report(*rows, trials=trials).needed
    assert needed >= 2 * trials
    assert needed >= trials * (max(widths) / 0.2) ** 2


@pytest.mark.parametrize(("module", "name"), [("matplotlib", "matplotlib"), ("jinja2", "jinja2")])
def test_a_missing_extra_is_one_sentence(monkeypatch, module, name):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ps.MissingExtraError, match=f"{name}.*privstats\\[report\\]"):
        render(full_report())


ATTACKS = Path(threat_models.attacks.__file__).parent
IN_OTHER_WORDS = {"audits", "unmasking"}
"""Modules of attacks whose rows are said by their goal, whatever the metric is."""


def metrics_of(source: str, namespace: dict[str, object]) -> Iterator[object]:
    """The metric of every row that a module makes: its text, or the code where that is no constant."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id="Score"), args=[value, *_]):
                yield said(value, namespace)
            case ast.Call(func=ast.Attribute(attr="_row"), args=[ast.Constant() as value, *_]):
                yield said(value, namespace)
            case ast.keyword(arg="metric", value=value) if ast.unparse(value) not in ("metric", "score.metric"):
                yield said(value, namespace)


def said(value: ast.expr, namespace: dict[str, object]) -> object:
    match value:
        case ast.Constant():
            return value.value
        case ast.Name(id=name) if name in namespace:
            return namespace[name]
        case ast.JoinedStr(values=[ast.FormattedValue(value=first), *_]):
            return said(first, namespace)
    return ast.unparse(value)


def test_every_metric_of_our_attacks_has_words():
    """Another package's attack is shown by the name that its metric has."""
    without, scanned = [], 0
    for path in (*ATTACKS.glob("*.py"), ATTACKS.parent / "game.py", ATTACKS.parent / "reconstruction.py"):
        module = importlib.import_module(".".join(path.relative_to(ATTACKS.parents[1]).with_suffix("").parts))
        found = set() if path.stem in IN_OTHER_WORDS else set(metrics_of(path.read_text("utf-8"), vars(module)))
        without += [f"{path.name}: {metric}" for metric in found if asked(row(metric=metric)) == metric]
        scanned += len(found)
    assert without == [], "give it words in _METRICS of threat_models/page.py"
    assert scanned > 10
    assert asked(row(metric="sites found")) == "sites found"


def test_what_leaks_without_a_promise_is_counted_apart():
    text = render(report(row(verdict="leaks", ceiling=None), row("other", verdict="leaks", ceiling=0.9)))
    assert "One attack learned something, and no more than was promised." in text
    assert "One attack learned something that nothing was promised about." in text
    assert "leaks, within the promise" in text


def test_no_evidence_needs_an_interval_that_reaches_the_baseline():
    assert judge((0.5, 0.6), (0.45, 0.58), None) == "no evidence"
    assert judge((0.57, 0.75), (0.4, 0.58), None) == "underpowered"


def test_an_attack_that_does_not_apply_is_hatched_and_one_that_was_not_played_is_blank():
    axes = figures(report(row(measured=None, interval=None)))["matrix"].axes[0]
    assert [patch.get_hatch() for patch in axes.patches] == ["////", None, None, None, None]


def test_words_of_the_matrix_are_read_on_a_phone_and_stand_apart():
    """343 pixels wide: ten of them for a word, and no heading over its neighbour; every attack and sight."""
    rows = [row(attack.name, sees=sees) for attack in attacks() for sees in SIGHTS]
    figure = figures(report(*rows))["matrix"]
    figure.draw_without_rendering()
    axes, (width, _) = figure.axes[0], figure.get_size_inches()
    words = [text for text in figure.findobj(matplotlib.text.Text) if text.get_text().strip()]
    assert min(text.get_fontsize() for text in words) * 343 / (72 * width) >= 10
    heads = [label.get_window_extent() for label in axes.get_xticklabels()]
    assert all(left.x1 < right.x0 for left, right in pairwise(heads))
    assert figure.get_tightbbox().x0 >= 0
    assert {text.get_color() for text in axes.texts} == {"white"}  # on the dark red of a violated ceiling
