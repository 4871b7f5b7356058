"""Peers are what they are called: identities that each must keep, and numbers that their papers print."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

import privstats as ps
from benchmarks import peer_tables
from benchmarks.data import private_tasks
from benchmarks.measuring import results
from benchmarks.peers import ccvr, dp_fedavg, fedpft, flower, ours, parties, party_choices, scaffold, softmax, story
from benchmarks.peers.compare import summary
from benchmarks.peers.dp_fedavg import DPFedAvg
from benchmarks.peers.engine import on_the_engine
from benchmarks.peers.flower import Federated
from benchmarks.peers.grid import InProcess, size
from benchmarks.peers.interface import DELTA, Outcome, Shards, dealt
from benchmarks.peers.masking import interactive, secagg_plus, split
from benchmarks.peers.one_round import Ensemble
from benchmarks.peers.systems import Search, exact, party_level, private
from benchmarks.tables import DOCS


@pytest.fixture(scope="module")
def digits():
    (task,) = private_tasks(bundled_only=True)
    return dealt(task.transformed(), 5, 0.1, 0)


def alone(shards):
    """The same records as one party's."""
    return Shards((shards.pooled,), shards.X_test, shards.y_test, shards.classes, shards.seed)


def loss(W, shards):
    X, y = shards.pooled
    logits = softmax.scores(W, X).astype(np.float64)
    return float((np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(y)), y]).mean())


def sgd(shards, rounds, rate, local, **more):
    """One party, round after round, without any federation."""
    ((X, y),) = shards.parts
    W = softmax.blank(shards.features, shards.classes)
    for turn in range(1, rounds + 1):
        rng = np.random.default_rng((shards.seed, turn, 0))
        W = softmax.steps(W, (softmax.with_bias(X), y), rate, local, rng, **more)
    return W


def test_parties_hold_every_record_once_and_none_is_empty(digits):
    assert sum(len(y) for _, y in digits.parts) == digits.records == 1347
    many = dealt(digits.split, 60, 0.05, 3)
    assert min(len(y) for _, y in many.parts) >= 1
    rows = np.sort(many.pooled[0].sum(axis=1))
    np.testing.assert_array_equal(rows, np.sort(digits.pooled[0].sum(axis=1)))


def test_peers_are_tuned_on_records_that_they_are_not_fitted_on(digits):
    inner = digits.held_out()
    fitted = {row.tobytes() for row in inner.pooled[0]}
    assert not fitted & {row.tobytes() for row in inner.X_test}
    assert len(inner.y_test) + inner.records == digits.records
    assert digits.held_out(400).records + len(digits.held_out(400).y_test) < 410


def test_scaffold_with_one_party_is_sgd(digits):
    shards = alone(digits)
    W = scaffold.train(scaffold.Scaffold(6, 16.0, 10), shards)
    np.testing.assert_allclose(W, sgd(shards, 6, 16.0, 10), atol=1e-4)


@pytest.mark.ci
def test_scaffold_takes_away_the_drift_that_fedavg_keeps(digits):
    """Many local steps on parties of few classes: with control variates the pooled loss gets lower."""
    drifted, _ = flower.train(Federated(30, 16.0, 50).strategy(5), digits, Federated(30, 16.0, 50))
    corrected = scaffold.train(scaffold.Scaffold(30, 16.0, 50), digits)
    assert loss(corrected, digits) < 0.7 * loss(drifted, digits)


def test_flowers_fedavg_averages_local_steps_by_records(digits):
    peer = Federated(1, 16.0, 10)
    W, moved = flower.train(peer.strategy(5), digits, peer)
    zero = softmax.blank(digits.features, digits.classes)
    local = [
        softmax.steps(zero, (softmax.with_bias(X), y), 16.0, 10, np.random.default_rng((0, 1, place)))
        for place, (X, y) in enumerate(digits.parts)
    ]
    weights = [len(y) / digits.records for _, y in digits.parts]
    np.testing.assert_allclose(W, np.tensordot(weights, local, 1), atol=1e-5)
    assert 2 * 5 * W.nbytes < moved < 2 * 5 * W.nbytes + 10 * 2_000


def test_fedavg_with_one_party_is_sgd_and_fedprox_pulls_to_where_the_round_began(digits):
    shards, peer = alone(digits), Federated(2, 4.0, 10)
    with_two = Shards(shards.parts * 2, shards.X_test, shards.y_test, shards.classes, 0)  # Flower wants two nodes
    free, _ = flower.train(peer.strategy(2), with_two, peer)
    pulled, _ = flower.train(Federated(2, 4.0, 10, 0.1).strategy(2), with_two, peer)
    hardly, _ = flower.train(Federated(2, 4.0, 10, 1e-9).strategy(2), with_two, peer)
    np.testing.assert_allclose(hardly, free, atol=1e-5)
    assert np.linalg.norm(pulled) < 0.8 * np.linalg.norm(free)


def test_dp_fedavg_clips_every_partys_update_and_pays_for_it(digits):
    np.random.seed(0)
    peer = DPFedAvg(8.0, 0.01, 1, 16.0, 20)
    assert peer.fit(digits).unit == "party"
    quiet = dp_fedavg.DifferentialPrivacyServerSideFixedClipping(Federated(1, 16.0, 20).strategy(5), 0.0, 0.01, 5)
    W, _ = flower.train(quiet, digits, Federated(1, 16.0, 20), alike=True)
    assert np.linalg.norm(W) <= 0.01 * (1 + 1e-5)
    plain, _ = flower.train(Federated(1, 16.0, 20).strategy(5), digits, Federated(1, 16.0, 20), alike=True)
    assert np.linalg.norm(plain) > 0.1


def test_stacked_dp_fedavg_is_flowers(digits):
    """All parties at once in arrays, for the search of its best recipe, against Flower's messages, round by round."""
    peer = DPFedAvg(8.0, 0.3, 3, 16.0, 5)
    quiet = dp_fedavg.DifferentialPrivacyServerSideFixedClipping(Federated(3, 16.0, 5).strategy(5), 0.0, 0.3, 5)
    W, _ = flower.train(quiet, digits, Federated(3, 16.0, 5), alike=True)
    descent = parties.Descent(digits)
    np.testing.assert_allclose(descent.weights(peer, None), W, atol=1e-5)
    noise = descent.weights(replace(peer, rounds=1), np.random.default_rng(0)) - descent.weights(
        replace(peer, rounds=1), None
    )
    assert noise.std() == pytest.approx(replace(peer, rounds=1).multiplier * 0.3 / 5, rel=0.1)


def test_choices_in_floats_start_from_what_a_party_sends(digits):
    X, y = digits.parts[0]
    descended = party_choices.descended((X, y), 10)
    sent = ps.measure(ps.PartySchema(10, 64), X, y).real().P
    np.testing.assert_allclose(descended / np.linalg.norm(descended), sent, atol=1e-3)


def test_a_recipe_is_read_as_it_was_printed():
    peer = DPFedAvg(8.0, 0.3, 3, 16.0, 5)
    assert DPFedAvg(8.0, *parties._recipe(str(peer))) == peer


def test_rows_of_as_many_draws_stay_and_others_are_scored_at_their_recipes(digits):
    """A longer run of ours searches no recipe anew, and compares draws of one number alone."""
    draws = [parties.Draw(replace(digits, seed=seed)) for seed in range(2)]
    saved = list(parties.rows_of(draws, parties.GRID[:2]))
    again = {row["system"]: row for row in parties.rows_of(draws, (), saved)}
    assert again == {row["system"]: row for row in saved}
    few = [{**row, "eps 8": -1.0, "draws": 1} for row in saved if row["system"].startswith("DP-")]
    plain = next(row for row in saved if row["system"] == "FedAvg, no promise, centred")
    scored = {row["system"]: row for row in parties.rows_of(draws, (), [*few, plain])}
    assert scored == again
    assert len({plain[f"eps {epsilon:g}"] for epsilon in parties.EPSILONS}) == 1
    assert all(plain["eps 8"] > row["eps 1"] for row in saved if row != plain)


def test_cells_of_whole_parties_are_counted_by_the_nearest_rival(monkeypatch):
    def row(system, *accuracies):
        cells = {f"eps {e}": a for e, a in zip(("1", "3", "8"), accuracies, strict=True)}
        return {"system": system, **cells, **{f"se {e}": 1.0 for e in ("1", "3", "8")}}

    rows = [
        row("ours", 10, 20, 30),
        row("DP, centred", 9, 25, 20),
        row("DP, one, centred", 2, 21, 29),
        row("DP", *[99] * 3),
    ]
    found = {f"{parties.TITLE}fmnist, {count} parties, alpha 0.1": rows for count in (100, 20)}
    monkeypatch.setattr("benchmarks.table.results", lambda name: found)
    leads = list(peer_tables.party_leads("ours", "DP(, one)?, centred"))
    assert [points for _, points, _ in leads] == [1, -5, 1] * 2
    assert [errors for _, _, errors in leads] == pytest.approx([each / math.sqrt(2) for each in (1, -5, 1)] * 2)
    assert [line[1] for line in peer_tables.peers_parties()[1::4]] == ["20", "100"]


@pytest.mark.parametrize("epsilon", [0.3, 8.0])
def test_flowers_own_accountant_agrees_with_the_noise_of_dp_fedavg(epsilon):
    """Its Renyi accountant is an upper bound of the exact composition that the noise is sized by."""
    pytest.importorskip("dp_accounting")
    from flwr.supercore import privacy_accounting as accounting
    from flwr.supercore.privacy_accounting.rdp_accountant import RdpAccountant

    peer = DPFedAvg(epsilon, 1.0, 10, 4.0, 5)
    relation, sampling = accounting.NeighboringRelation, accounting.SamplingMethod
    config = accounting.PrivacyConfig(DELTA, 20, relation.ADD_OR_REMOVE_ONE, sampling.NO_AMPLIFICATION)
    accountant = RdpAccountant(config)
    accountant.compose(accounting.GaussianPrivacyEvent(peer.multiplier, 20, 20), 10)
    assert epsilon <= accountant.get_epsilon(DELTA) < 1.2 * epsilon


def test_fedpft_sends_as_many_numbers_as_fedcgs_counts():
    """FedCGS, section on communication: (2 d + 1) K C = 102,500 for ResNet18 on CIFAR-10."""
    assert 10 * fedpft.numbers(512, 10, "diag") == 102_500
    assert fedpft.numbers(3, 1, "full") == 1 + 3 + 6
    assert fedpft.numbers(3, 2, "spherical") == 2 * (1 + 3 + 1)


@pytest.mark.ci
@pytest.mark.parametrize(("shape", "records"), [("full", 4_000), ("diag", 4_000), ("spherical", 4_000), ("full", 3)])
def test_fedpfts_single_gaussians_have_the_moments_of_the_records(shape, records):
    rng = np.random.default_rng(0)
    rows = (rng.standard_normal((records, 5)) @ rng.standard_normal((5, 5)) + 3).astype(np.float32)
    drawn = np.concatenate([fedpft.FedPFT(1, shape, 1.0).synthetic(rows, 1, rng) for _ in range(80_000 // records)])
    S = np.cov(rows.T, bias=True)
    wanted = {"full": S, "diag": np.diag(np.diag(S)), "spherical": np.eye(5) * np.trace(S) / 5}[shape]
    np.testing.assert_allclose(drawn.mean(axis=0), rows.mean(axis=0), atol=0.1)
    np.testing.assert_allclose(np.cov(drawn.T, bias=True), wanted, atol=0.06 * np.trace(S))


def test_ccvr_puts_the_parties_moments_together_to_those_of_all_records(digits):
    N, means, covariances = ccvr.moments_of_all(digits)
    X, y = digits.pooled
    for label in range(10):
        rows = X[y == label].astype(np.float64)
        assert N[label] == len(rows)
        np.testing.assert_allclose(means[label], rows.mean(axis=0), atol=1e-12)
        np.testing.assert_allclose(covariances[label], np.cov(rows.T), atol=1e-12)


def test_the_ensemble_of_one_party_is_its_model(digits):
    shards = alone(digits)
    X, y = shards.parts[0]
    W = softmax.blank(shards.features, 10)
    W = softmax.steps(W, (softmax.with_bias(X), y), 16.0, 50, np.random.default_rng((0, 0)))
    assert Ensemble(16.0, 50, True).fit(shards).score == shards.accuracy(softmax.scores(W, shards.X_test))


def test_ours_is_the_same_whoever_holds_what(digits):
    other = dealt(digits.split, 5, 100.0, 1)
    first, second = (ours.OneShot("LDA").fit(each) for each in (digits, other))
    assert first.score == second.score
    assert math.isinf(first.epsilon)
    assert first.bytes > 5 * 4 * (10 + 640 + 64 * 65 // 2)


def test_protocols_sum_the_same_vector_and_only_ours_exactly():
    found = {way.__name__: way(4, 50) for way in (secagg_plus, interactive, split)}
    assert found["interactive"].error == found["split"].error == 0
    step = 2 * 50 / 2**22  # SecAgg+ rounds each of the four up or down to steps of its range over its levels
    assert 0 < found["secagg_plus"].error < 4 * 2 * step


def test_messages_weigh_their_arrays_at_least(digits):
    grid = InProcess(flower.app(digits), 5)
    content = flower.RecordDict({"arrays": flower.ArrayRecord([np.zeros(1000, np.float32)])})
    assert 4_000 < size(content) < 5_000
    assert grid.sent == 0


def test_a_search_takes_the_best_and_fits_no_peer_twice(digits):
    class Counted:
        fits = 0

        def __init__(self, score, rounds=50):
            self._score, self.rounds = score, rounds

        def fit(self, shards):
            type(self).fits += 1
            return Outcome(self._score, 0, 0.0, 1)

    search, peers = Search(digits), [Counted(score, 5) for score in (3.0, 9.0, 1.0, 2.0)]
    assert search.best(peers) is peers[1]
    assert search.best(peers) is peers[1]
    assert Counted.fits == 4
    assert search.best(peers[:1]) is peers[0]


def test_every_system_says_how_it_was_tuned():
    systems = [*exact(), *private(1.0), *party_level(1.0)]
    assert len({system.key for system in systems}) == len(systems) > 15
    assert all(system.search for system in systems)


def test_a_summary_has_the_spread_over_seeds():
    row = summary([Outcome(90.0, 10, 1.0, 3, 1.0, "record"), Outcome(92.0, 14, 2.0, 3, 1.0, "record")])
    assert row["accuracy"] == 91.0
    assert row["sd accuracy"] == pytest.approx(math.sqrt(2))
    assert (row["bytes"], row["rounds"], row["epsilon"], row["unit"], row["seeds"]) == (12.0, 3, 1.0, "record", 2)
    with pytest.raises(ValueError, match="unpack"):
        summary([Outcome(90.0, 10, 1.0, 3), Outcome(92.0, 14, 2.0, 4)])


@pytest.mark.nightly
def test_opendps_noise_keeps_its_epsilon():
    pytest.importorskip("opendp")
    from benchmarks.peers import regression

    for runs in (1, 2):
        scale = regression.opendp_scale(0.5, runs)
        assert regression._model(scale, runs).measurement.map(1) == pytest.approx(0.5, rel=1e-6)


@pytest.mark.ci
def test_the_picture_has_every_system_and_both_pages(tmp_path):
    pytest.importorskip("matplotlib")
    row = {"sd accuracy": 1.0, "epsilon": None, "unit": "", "bytes": 1e5}
    noisy = {"sd accuracy": 1.0, "unit": "record", "bytes": 1e5}
    names = ("privstats LDA", "FedAvg (Flower), 50 rounds", "pooled LDA")
    document = {
        "without differential privacy: digits, alpha 0.1": [
            {**row, "system": name, "accuracy": 90.0 + place} for place, name in enumerate(names)
        ],
        "under differential privacy: digits, alpha 0.1": [
            {**noisy, "system": "privstats LDA", "epsilon": e, "accuracy": 80.0} for e in (1.0, 8.0)
        ],
    }
    (tmp_path / "results.json").write_text(json.dumps(document))
    light, dark = story.draw(tmp_path / "results.json", tmp_path / "figures")
    assert light.stat().st_size > 10_000
    assert dark.read_bytes() != light.read_bytes()
    above, below = story.figure(document, story.THEMES["dark"]).axes
    assert {text.get_text() for text in above.texts} == {"privstats LDA", "FedAvg, 50 rounds", "pooled LDA"}
    assert [text.get_text() for text in below.get_legend().get_texts()] == ["privstats LDA"]
    heights = [text.get_position()[1] for text in above.texts]
    assert all(a > b + 0.05 for a, b in itertools.pairwise(heights))


def test_the_page_says_what_the_results_say():
    """Every comparison that its prose makes; its numbers are the tables'."""
    for data in peer_tables.DATA:
        exact = [row for alpha in ("0.1", "0.5") for row in peer_tables.rows_of(story.EXACT, data, alpha)]
        federated = [row for row in exact if "pooled" not in row["system"] and "privstats" not in row["system"]]
        ours_of = {row["system"]: row for row in exact if "privstats" in row["system"]}
        assert ours_of["privstats RDA"]["accuracy"] > max(row["accuracy"] for row in federated)
        single = [row for row in federated if row["system"] in ("O-FedAvg, 1 round", "ensemble")][:2]
        assert all(row["accuracy"] < ours_of["privstats LDA"]["accuracy"] - 10 for row in single)
        for name in ("privstats LDA", "privstats FisherMix"):
            late = [row for row in federated if row["system"].startswith(("SCAFFOLD", "FedAvg"))]
            assert peer_tables.lost(ours_of[name], late)
        noisy = peer_tables.rows_of(story.PRIVATE, data, "0.1")
        by = {(row["system"], row["epsilon"]): row["accuracy"] for row in noisy}
        for (name, epsilon), accuracy in by.items():
            if name == "privstats refined, T = 4":
                assert accuracy > by["DP-SGD (Opacus), pooled", epsilon]
        assert by["DP-FedAvg (Flower), per party", 8.0] > by["privstats LDA, per party", 8.0]
        if data in ("cifar10", "fmnist"):
            assert by["privstats LDA", 1.0] < by["DP-SGD (Opacus), pooled", 1.0]
    exact = {row["system"]: row for row in peer_tables.rows_of(story.EXACT, "banking77 whole", "0.1")}
    assert max(exact, key=lambda name: exact[name]["bytes"]) == "privstats RDA"
    small, plain = exact["FedPFT, diagonal"], exact["privstats LDA"]
    assert small["bytes"] < exact["privstats RDA"]["bytes"] / 50
    assert small["bytes"] < plain["bytes"]
    assert small["accuracy"] > plain["accuracy"]
    masks = results("peers.compare")["masking one vector of 20 parties"]
    large = {row["protocol"]: row for row in masks if row["entries"] == 1_000_000}
    assert large["SecAgg+ (Flower)"]["seconds"] > 8 * large["interactive"]["seconds"]
    assert large["SecAgg+ (Flower)"]["bytes over those of the vectors"] > 1.9
    assert {row["largest error"] for row in masks if "Flower" not in row["protocol"]} == {0.0}


def test_the_pictures_in_the_page_are_of_the_committed_results():
    image = pytest.importorskip("PIL.Image")
    for name in story.THEMES:
        with image.open(DOCS / "images" / f"peers-{name}.png") as picture:
            assert picture.text[story.SOURCE] == story.digest(results("peers.compare"))


@pytest.mark.nightly
def test_the_simulation_engine_ends_at_the_weights_of_the_grid(digits):
    pytest.importorskip("ray")
    peer = Federated(2, 16.0, 5)
    here, _ = flower.train(peer.strategy(5), digits, peer)
    np.testing.assert_allclose(on_the_engine(digits, peer), here, atol=1e-5)  # replies are added as they come
