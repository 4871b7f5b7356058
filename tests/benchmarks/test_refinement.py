"""What refinement is compared with is what it says: clipped gradients, and the same course in real numbers."""

import argparse
import dataclasses
import json
import math
import statistics
from functools import partial

import numpy as np
import pytest

import privstats as ps
from benchmarks.data import private_tasks
from benchmarks.measuring import results
from benchmarks.refinement import calibration, clips, exactness, gradient, least_squares, regression, story
from benchmarks.refinement.kept import Records
from benchmarks.refinement.library import CENTRAL, DISTRIBUTED, course_of, played
from benchmarks.refinement.prototype import class_release
from benchmarks.refinement_tables import DATA
from benchmarks.tables import DOCS
from privstats.contrib.sweep.rivals.dp_sgd import DP_GD, DP_SGD
from privstats.contrib.sweep.rivals.private_descent import Recipe, linear, noise_multiplier, trained
from privstats.dp.gaussian import gaussian_mu
from privstats.estimates.recipes import SoftmaxRecipe
from privstats.estimates.softmax import SoftmaxWhitening
from privstats.randomness import seeded


@pytest.fixture(scope="module")
def digits():
    (task,) = private_tasks(bundled_only=True)
    return task.transformed()


def descended(X, y, recipe):
    """The definition, a record at a time: clipped gradients of the cross entropy, heavy ball."""
    rows = np.hstack([X, np.ones((len(X), 1))])
    W = velocity = np.zeros((int(y.max()) + 1, rows.shape[1]))
    for _ in range(recipe.steps):
        total = np.zeros_like(W)
        for x, label in zip(rows, y, strict=True):
            p = np.exp(W @ x) / np.exp(W @ x).sum()
            own = np.outer(p - np.eye(len(W))[label], x)
            total += own * min(1, recipe.clip / np.linalg.norm(own))
        velocity = recipe.momentum * velocity + total / len(rows)
        W = W - recipe.rate * velocity
    return W


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_without_noise_many_recipes_at_once_are_clipped_gradient_descent(digits, momentum):
    X, X_test, y, y_test = digits
    recipes = [Recipe(rate, clip, momentum, 4, 1.0) for rate in (0.5, 4.0) for clip in (0.3, 1.0)]
    split = (X[:80], X_test, y[:80], y_test)
    scores = gradient.train(split, recipes, 0.0, np.random.default_rng(0))[:, 0]
    tests = np.hstack([X_test, np.ones((len(X_test), 1))])
    for recipe, score in zip(recipes, scores, strict=True):
        guess = (tests @ descended(X[:80], y[:80], recipe).T).argmax(axis=1)
        assert score == pytest.approx((guess == y_test).mean(), abs=0.005)


def test_a_part_of_the_records_stands_for_all_with_the_noise_of_all(digits):
    """With the noise of a million records the same hundred rows teach as without noise."""
    X, X_test, y, y_test = digits
    split, recipes = (X[:100], X_test, y[:100], y_test), [Recipe(4.0, 1.0, 0.0, 20, 1.0)]
    exact, many, few = (
        float(gradient.train(split, recipes, noise, np.random.default_rng(0), records=records)[0, 0])
        for noise, records in ((0.0, 100), (20.0, 10**6), (20.0, 100))
    )
    assert many == pytest.approx(exact, abs=0.01)
    assert few < exact - 0.1


@pytest.mark.nightly
@pytest.mark.slow
def test_full_batches_compose_as_gaussians_and_sampled_ones_need_less_noise():
    assert noise_multiplier(1.0, 1e-5, 1.0, 100) == pytest.approx(10 / gaussian_mu(1.0, 1e-5))
    pytest.importorskip("opacus")
    assert noise_multiplier(1.0, 1e-5, 0.1, 100) < 0.2 * noise_multiplier(1.0, 1e-5, 1.0, 100)


def test_the_three_ways_sum_the_same_gradient(digits):
    X, _, y, _ = digits
    recipe = SoftmaxRecipe(10, 64, len(X), gaussian_mu(1.0, 1e-5))
    whitening = SoftmaxWhitening.of(class_release(recipe, X, y, np.random.default_rng(0)))
    weights = np.random.default_rng(1).standard_normal((10, 65))
    sums = [way(whitening, weights) for way in exactness.ways(digits, 1.0).values()]
    (real, kappa), *others = sums
    for G, k in others:
        assert np.linalg.norm(G - real) < 2e-3 * np.linalg.norm(real)
        assert k == pytest.approx(kappa, rel=2e-3)
    np.testing.assert_allclose(others[0][0], real, atol=1e-9)


def test_what_is_kept_between_rounds_gives_the_integers_of_measure(digits):
    """Two courses in turn, so that another map must throw out the rows of the one before."""
    X, _, y, _ = digits
    records, seen = Records(X, y, 2), 0
    for seed in range(2):
        course = course_of(digits, 1.0, 1e-5, 2)
        releases = []
        while (plan := course.next(releases)) is not None:
            parts = [records.measured(plan, k) for k in range(2)]
            for k, part in enumerate(parts):
                assert part == ps.measure(plan.schema, X[k::2], y[k::2], published=plan.published)
                assert part.records == len(X[k::2])
                seen += 1
            releases.append(ps.session.aggregate_unmasked(plan, parts, seeded(seed)))
    assert seen == 12


def weights(layer):
    return [each.detach().numpy() for each in layer.parameters()]


def found_best(model):
    """The recipes that the search found, one for every data set and epsilon of a usual sweep."""
    searched = [each for schedule in (*gradient.FULL_BATCH, *gradient.SAMPLED) for each in gradient.grid(schedule)]
    by_words = {str(each): each for one in searched for each in (one, dataclasses.replace(one, tail=True))}
    tables = [under_privacy(data) for data in DATA if data != "agnews"]  # which was measured later
    found = [row for rows in tables for row in rows if row["model"] == model]
    return [by_words[row[f"recipe {epsilon}"]] for row in found for epsilon in ("0.3", "1", "3", "8")]


@pytest.mark.parametrize(("own", "model"), [(DP_SGD, "Opacus DP-SGD"), (DP_GD, "full-batch DP-GD")])
def test_the_recipe_of_a_sweep_is_the_middle_of_what_the_search_found(own, model):
    cells = found_best(model)
    assert len(cells) == 7 * 4
    for field in ("clip", "momentum", "steps", "sample"):
        assert getattr(own, field) == statistics.mode(getattr(each, field) for each in cells)
    assert sum(each.tail == own.tail for each in cells) >= 14
    full = [each.rate * each.clip / (1 - each.momentum) for each in (own, *cells)]
    assert full[0] == pytest.approx(statistics.median(full[1:]))


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_opacus_takes_the_step_that_recipes_are_searched_with(digits, momentum):
    """Without noise and with all records in the batch the two are one descent, weights and all."""
    pytest.importorskip("opacus")
    X, _, y, _ = digits
    recipe = Recipe(8.0, 0.3, momentum, 5, 1.0)
    weight, bias = weights(trained(partial(linear, 64, 10), X, y, recipe, math.inf, 0.0, seed=0))
    np.testing.assert_allclose(np.hstack([weight, bias[:, None]]), descended(X, y, recipe), atol=2e-4)


@pytest.mark.ci
@pytest.mark.slow
def test_opacus_adds_the_noise_that_recipes_are_searched_with(digits):
    """noise times clip over the records, on every weight."""
    pytest.importorskip("opacus")
    X, _, y, _ = digits
    weight, _ = weights(trained(partial(linear, 64, 10), X, y, Recipe(1.0, 0.3, 0.0, 1, 1.0), 1e-3, 1e-5, seed=0))
    noise = noise_multiplier(1e-3, 1e-5, 1.0, 1)
    assert noise > 100
    assert float(weight.std()) == pytest.approx(noise * 0.3 / len(X), rel=0.1)


def test_silent_clients_are_missing_from_their_node_alone(digits):
    X, _, y, _ = digits
    course = course_of(digits, 8.0, 1e-5, 2, DISTRIBUTED)
    releases = played(course, X, y, DISTRIBUTED, seed=0)
    assert [len(release.survivors) for release in releases] == [18, 18, 18]
    central = played(course_of(digits, 8.0, 1e-5, 2), X, y, CENTRAL, seed=0)
    assert central[0].moments.N.sum() == pytest.approx(len(X), abs=60)
    assert releases[0].moments.N.sum() == pytest.approx(0.9 * len(X), abs=60)


@pytest.mark.parametrize("sample", [1.0, 0.5])
def test_without_noise_descent_on_squares_ends_at_least_squares(sample):
    problem = regression.PROBLEMS[1]
    X, X_test, y, y_test = problem.clipped(0)
    recipe = least_squares.Recipe(0.1, 1.0, 0.9, sample, 3_000)
    rng, split = np.random.default_rng(0), (X, X_test, y, y_test)
    last, tail = least_squares.descended(problem.bounds, split, [recipe], 0.0, rng)
    least = np.linalg.lstsq(X, y, rcond=None)[0]
    for weights in (last[0], tail[0]):
        assert np.square(y - X @ weights).mean() < 1.03 * np.square(y - X @ least).mean()


def test_every_run_keeps_what_was_measured_before(monkeypatch):
    """No code of today measures that row again."""
    before, today = ({"model": name, "eps 3": 0.1} for name in ("refined, T = 24, before", "refined, T = 24"))
    title = regression.TITLE + "diabetes"
    monkeypatch.setattr(regression, "results", lambda _: {title: [today, before]})
    run = partial(argparse.Namespace, quick=False, data=[], epsilons=[3.0], draws=1, models=[])
    assert dict(regression.tables(run(keep=False))) == {title: [before]}
    assert dict(regression.tables(run(keep=True))) == {title: [before, today]}


@pytest.mark.parametrize("problem", regression.PROBLEMS, ids=lambda problem: problem.name)
def test_problems_keep_their_bounds_and_cut_little(problem):
    X, X_test, y, y_test = problem.clipped(0)
    raw, _, targets, _ = problem.draw(0)
    assert np.linalg.norm(X, axis=1).max() <= problem.bounds.row
    assert np.abs(y).max() <= problem.bounds.target
    assert (np.linalg.norm(raw, axis=1) > problem.bounds.row).mean() < 0.3
    assert (np.abs(targets) > problem.bounds.target).mean() < 0.05
    assert (X.shape[1], len(X_test)) == (X_test.shape[1], len(y_test))


def under_privacy(data):
    return results("refinement.compare")[f"accuracy under differential privacy, %: {data}"]


def test_the_figures_of_the_first_page_are_of_the_committed_results(tmp_path):
    image = pytest.importorskip("PIL.Image")
    rows = {
        data: results("refinement.compare")[f"accuracy under differential privacy, %: {data}"] for data in story.PANELS
    }
    for data in story.PANELS:
        for theme in story.THEMES:
            with image.open(DOCS / "images" / f"epsilon-{data.partition(' ')[0]}-{theme}.png") as picture:
                assert picture.text[story.SOURCE] == story.digest(rows[data])
    (axes,) = story.panel("digits", rows["digits"], story.THEMES["light"]).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "privstats, with refinement rounds",
        "privstats, one release",
        "DP-SGD (Opacus, tuned)",
        "DP-GD (tuned)",
    ]


def test_the_reliability_diagrams_are_of_the_committed_results():
    image = pytest.importorskip("PIL.Image")
    found = calibration.diagrams(results("refinement.calibration"))
    with image.open(DOCS / "images" / "reliability.png") as picture:
        assert picture.text[story.SOURCE] == story.digest([found])
    for rows in found.values():
        for model in (calibration.BEFORE, calibration.AFTER):
            bins = [row for row in rows if row["model"] == model]
            assert len(bins) > 5
            assert all(0 <= row[share] <= 1 for row in bins for share in ("confidence", "hits"))


def test_what_the_first_page_says_of_its_figures_is_so():
    for data in story.PANELS:
        at = {row["model"]: row for row in under_privacy(data)}
        for epsilon in ("0.1", "0.3", "1", "3"):
            rivals = (at[model][f"eps {epsilon}"] for model in ("LDA", "Opacus DP-SGD", "full-batch DP-GD"))
            assert at["refined"][f"eps {epsilon}"] > max(rivals)


@pytest.mark.ci
def test_a_row_of_clips_with_enough_splits_is_kept_and_another_is_measured(monkeypatch, tmp_path):
    rows = [{"data": name, "splits": 4 if name == "titanic" else 8} for name in clips.RAW]
    path = tmp_path / "clips.json"
    path.write_text(json.dumps({clips.EXACT: rows}))
    monkeypatch.setattr(clips, "_rows_of", lambda name, count: range(count))
    monkeypatch.setattr(clips, "_exact", lambda name, splits: {"data": name, "splits": len(splits)})
    chosen = argparse.Namespace(keep=True, quick=False, parts=["tables"], splits=8, epsilons=[1.0], json=path)
    saved, measured = clips.tables(argparse.Namespace(**vars(chosen), minutes=None))
    assert saved == (clips.EXACT, rows)
    assert measured == (clips.EXACT, [{"data": name, "splits": 8} for name in clips.RAW])
