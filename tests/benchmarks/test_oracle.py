"""The rival whose setting the test set chooses is DP-GD, with the noise that its promise needs."""

import math

import numpy as np
import pytest

from privstats.contrib.sweep.rivals.private_descent import Recipe

torch = pytest.importorskip("torch", reason="torch is an extra")
from benchmarks.peers import descents, halving, oracle  # noqa: E402 - needs torch
from benchmarks.refinement import gradient  # noqa: E402

MU = 0.8


@pytest.fixture(scope="module")
def split(digits):
    X, X_test, y, y_test = digits
    return X[:400], X_test, y[:400], y_test


@pytest.fixture(scope="module")
def digits():
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, y = load_digits(return_X_y=True)
    return train_test_split(X / np.linalg.norm(X, axis=1, keepdims=True), y, random_state=0)


def setting(rate=4.0, clip=0.3, momentum=0.9, tail=0.5, share=0.0, damping=1.0):
    return torch.tensor([[rate, clip, momentum, tail, share, damping]])


@pytest.mark.parametrize(("tail", "column"), [(0.0, 0), (0.5, 1)])
def test_without_noise_it_is_the_search_of_the_refinement_benchmark(split, tail, column):
    """That search has rows of norm sqrt 2, so half the rate and sqrt 2 times the clip are the same steps."""
    ours = descents.accuracies(descents.Records.of(split, "cpu"), setting(tail=tail), 30, math.inf, [0])
    recipe = Recipe(rate=2.0, clip=0.3 * 2**0.5, momentum=0.9, steps=30, sample=1.0)
    theirs = gradient.train(split, [recipe], 0.0, np.random.default_rng(0))
    assert float(ours[0]) == pytest.approx(float(theirs[0, column]), abs=0.005)


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_a_step_has_the_noise_of_its_promise(split, share):
    """Its noise multiplier is sqrt(T / (1 - share)) / mu, over a sum that one record moves by the clip."""
    records = descents.Records.of(split, "cpu")
    one = setting(rate=1.0, momentum=0.0, tail=0.0, share=share, damping=1e9)
    weights = descents.train(records, one.expand(400, 6), 1, MU, range(400)) * (1e9 if share else 1.0)
    expected = 0.3 / (MU * (1 - share) ** 0.5) / len(records.rows)
    assert float(weights.std(dim=0).mean()) == pytest.approx(expected, rel=0.02)


def test_the_second_moment_has_the_noise_that_its_share_pays_for(split):
    records, chances = descents.Records.of(split, "cpu"), [torch.Generator().manual_seed(seed) for seed in range(300)]
    n, k = records.rows.shape
    exact = records.rows.T @ records.rows
    inverse = records.inverses(exact[None], torch.ones(1))[0]
    torch.testing.assert_close(inverse, torch.linalg.inv(exact * (k / n) + torch.eye(k)), rtol=1e-3, atol=1e-3)
    noise = records.noisy_moments(torch.full((300,), 5.0), chances) - exact
    assert torch.equal(noise, noise.mT)
    assert float(noise.diagonal(dim1=1, dim2=2).std()) == pytest.approx(5.0, rel=0.02)
    assert float(noise[:, 0, 1:].std()) == pytest.approx(5.0 / 2**0.5, rel=0.02)


def test_a_part_of_the_records_has_the_noise_of_all(split):
    records, one = descents.Records.of(split, "cpu"), setting(share=0.4)
    part = records.part(0.25)
    assert len(part.rows) == len(part.labels) == 100
    chances = [torch.Generator().manual_seed(0) for _ in range(2)]
    whole, few = (
        each.noisy_moments(torch.zeros(1), [chance]) for each, chance in zip((records, part), chances, strict=True)
    )
    assert float(few.diagonal(dim1=1, dim2=2).sum()) == pytest.approx(float(whole.diagonal(dim1=1, dim2=2).sum()))
    same = part.part(1.0), one.expand(100, 6), 1, MU, range(100)
    assert float(descents.train(*same).std()) == pytest.approx(float(descents.train(records, *same[1:]).std()), rel=0.1)


def test_gradients_do_not_depend_on_how_many_records_are_multiplied_at_once(split, monkeypatch):
    records = descents.Records.of(split, "cpu")
    settings, seeds = descents.piece(0)[:5], range(5)
    whole = descents.train(records, settings, 10, MU, seeds)
    monkeypatch.setitem(descents._ENTRIES, "cpu", 5 * records.classes * 37)
    torch.testing.assert_close(descents.train(records, settings, 10, MU, seeds), whole, rtol=1e-3, atol=1e-3)


def test_a_setting_has_its_own_noise_whatever_trains_beside_it(split):
    records, settings = descents.Records.of(split, "cpu"), descents.piece(3)[:4]
    together = descents.train(records, settings, 5, MU, [1, 2, 3, 4])
    torch.testing.assert_close(descents.train(records, settings[2:3], 5, MU, [3]), together[2:3], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("way", ["all records", "halving", "forest"])
def test_a_search_that_was_stopped_goes_on_where_it_was(split, monkeypatch, way):
    """It is stored after each batch, and every comparison is stored with it."""
    records = descents.Records.of(split, "cpu")
    if way == "forest":
        monkeypatch.setattr(halving, "AT_RANDOM", 100)
        monkeypatch.setattr(halving, "_GENERATION", 100)
        monkeypatch.setattr(halving, "_PROMISING", 10)
    if way == "halving":
        monkeypatch.setattr(halving, "_STAGES", {0: (halving.Rung(0.5, 8), halving.Rung(1.0, 3))})
    rungs = halving.rungs_of(records)
    (*_, whole) = halving.going_on(records, MU, halving.Search.of(rungs, None), 200, forest=way == "forest")
    search, stops = halving.Search.of(rungs, None), 0
    while (after := next(halving.going_on(records, MU, search, 200, forest=way == "forest"), None)) is not None:
        search, stops = halving.Search.of(rungs, after.row(rungs)), stops + 1
    assert stops >= (5 if way == "halving" else 4)
    assert (search.settings, search.trained) == (200, 110 if way == "forest" else 200)
    for ours, theirs in zip(search.stages, whole.stages, strict=True):
        assert list(ours) == list(theirs)
        for each in ours:
            assert ours[each] == pytest.approx(theirs[each], abs=0.01)
    (*_, more) = halving.going_on(records, MU, search, 300, forest=way == "forest")
    assert max(more.stages[0].values()) >= max(search.stages[0].values())


def test_a_forest_chooses_settings_near_the_best_of_those_that_were_scored():
    """The planted score falls with the distance of rate and clip from one place."""

    def score(number):
        rate, clip, *_ = descents.setting_of(number, preconditioned=False).tolist()
        return -abs(math.log(rate / 8.0)) - abs(math.log(clip / 0.2))

    kept = {each: [score(each)] for each in sorted(range(700), key=score)[-60:]}
    begun = range(700, 2_800)
    chosen = halving.promising(kept, begun)
    assert len(chosen) == len({*chosen} & {*begun}) == 105
    best = sorted(begun, key=score)[-20:]
    assert len({*best} & {*chosen}) >= 18


def test_a_search_by_forest_goes_on_from_the_same_settings_of_another_search():
    """A search of more settings holds others as well."""
    row = halving.Search(700, ({1: [0.5]}, {}, {}), 2.0, 700).row(halving._STAGES[0])
    tables = {
        count: {oracle.SEARCH + "digits": [{"epsilon": 1.0, "model": "DP-GD", **row, "settings": count}]}
        for count in (700, 1_400)
    }
    known, larger = (oracle._Stored(tables[count], "digits").search(1.0, oracle.FOREST) for count in (700, 1_400))
    assert known is not None
    assert halving.Search.of(halving._STAGES[0], known) == halving.Search(700, ({1: [0.5]}, {}, {}), 2.0, 700)
    assert larger is None


def test_a_search_with_other_stages_begins_anew_with_what_it_scored_on_all_records(split):
    row = halving.Search(100, ({1: [0.5]}, {1: [0.25]}, {1: [0.75]}), 2.0, 100).row(halving._STAGES[0])
    assert halving.Search.of(halving._STAGES[0], row).settings == 100
    assert halving.Search.of(halving._STAGES[20_000], row) == halving.Search(0, ({}, {1: [0.5]}, {}, {}))
    assert halving.Search.of(halving._STAGES[0], None) == halving.Search(0, ({},) * 3)


def test_the_winner_is_repeated_on_fresh_noise(split):
    records = descents.Records.of(split, "cpu")
    (*_, search) = halving.going_on(records, MU, halving.Search.of(halving.rungs_of(records), None), 100)
    found = halving.best(records, search)
    assert found["settings"] == found["trained"] == found["on all records"] == 100
    assert found["selection's gain"] == pytest.approx(found["chosen"] - found["repeated"])
    first, finalists, winners = search.stages
    assert len(first) == len(finalists) == 20
    assert [len(scores) for scores in winners.values()] == [10]
    (winner,) = winners
    assert not {*winners[winner]} <= {*finalists[winner], *first[winner]}


def test_a_winner_is_scored_on_divisions_that_did_not_choose_it(split, monkeypatch):
    monkeypatch.setattr(oracle, "_DIVISIONS", 3)
    found = oracle._elsewhere(split, 3.0, 7, "cpu", preconditioned=False)
    assert (found["setting"], found["divisions"]) == (7, 3)
    assert found["lead"] == pytest.approx(found["rival"] - found["refined"])
    assert found["refined"] > 100 / len(set(split[3]))
    assert found["se"] > 0
