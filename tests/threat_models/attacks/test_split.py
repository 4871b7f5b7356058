"""A lying leader unmasks nobody on the one upload's machines, and somebody on each double that lacks one rule."""

import numpy as np
import pytest

from privstats.plan import check_plausible
from privstats.randomness import seeded
from privstats.secagg import Helper, HelperKeys, Identity, Panel
from privstats.secagg.upload.client import Client
from privstats.secagg.upload.masking_scheme import Streams, masked_tiles
from threat_models.attack import attacks, attacks_named
from threat_models.attacks import ring_wrap, split
from threat_models.attacks.heads import ridge_sums
from threat_models.attacks.split import LIES, Uploads
from threat_models.attacks.unmasking import tried
from threat_models.data import synthetic_pool
from threat_models.evaluate import Effort, evaluate, matrix

from ..conftest import plan_of, promise

SEATS = [Identity(bytes([place]) * 32).public.hex() for place in (1, 2, 3)]


def split_plan(privacy=None):
    return plan_of(privacy, protocol="split", panel=SEATS)


class Replicated(Streams):
    """Every helper has the same seed, so that any one of them may vanish."""

    def hide(self, vector, secret, sender):
        _, seeds = super().hide(vector, secret, sender)
        return masked_tiles(vector, minus=[self._stream(seeds[0], sender)]), [seeds[0]] * len(seeds)


class ReplicatingClient(Client):
    def _bind(self, *args):
        super()._bind(*args)
        self._scheme = Replicated(self.parameters.ring, self.parameters.helpers, self._context)


class Forgetful(Helper):
    def _wipe(self, end):
        """It stays as it was."""


class Restored(HelperKeys):
    """Keys that a backup brings back whenever they are wanted."""

    def take(self, **how):
        private = super().take(**how)
        self._private = bytearray(private)
        return private


class Unlocked(Helper):
    receive = Helper.receive.__wrapped__


def any_panel(run, offers):
    return Panel(tuple(offer.identity for offer in offers), tuple(offers))


DOUBLES = {
    "two lists": {"client": ReplicatingClient},
    "second answer": {"helper": Forgetful},
    "second life": {"keys": Restored},
    "unpinned panel": {"panel_of": any_panel},
    "two threads": {"helper": Unlocked},
}


@pytest.mark.parametrize("lie", LIES)
def test_no_lie_unmasks_a_client_of_the_machines_as_shipped(lie):
    assert not any(tried(LIES[lie], Uploads(seeded(k))) for k in range(3))


@pytest.mark.parametrize("lie", LIES)
def test_every_lie_unmasks_a_client_of_its_weakened_double(lie):
    assert all(tried(LIES[lie], Uploads(seeded(k), **DOUBLES[lie])) for k in range(3))


@pytest.mark.parametrize("lie", LIES)
def test_a_double_lacks_the_one_rule_only(lie):
    """Every other lie fails on it, except that a helper which answers twice also answers two threads."""
    others = set(LIES) - {lie} - ({"two threads"} if lie == "second answer" else set())
    assert not any(tried(LIES[other], Uploads(seeded(1), **DOUBLES[lie])) for other in others)


def test_the_rows_say_that_nothing_ever_comes_out_and_one_success_is_a_violation(monkeypatch):
    few = {"unpinned panel": LIES["unpinned panel"]}
    monkeypatch.setattr(split, "LIES", few)
    pool, attack = synthetic_pool(split_plan(), seeded(0)), attacks_named(["split-lies"])
    rows = evaluate(split_plan(), attack, pool, Effort(trials=8, seed=1)).rows
    assert [row.metric for row in rows] == list(few)
    assert {(row.measured, row.ceiling, row.verdict) for row in rows} == {(0.0, 0.0, "no evidence")}
    monkeypatch.setattr(split, "LIES", {"told": lambda run: run.values[0]})
    assert evaluate(split_plan(), attack, pool, Effort(trials=8, seed=1)).violated


def test_each_protocol_is_lied_to_by_its_own_attack():
    """A plan's report never shows lies to machines that the plan does not use."""
    of_graphs = {"several-lists", "searched-graph"}
    here = {"protocol-lies", "recorded", *of_graphs}, {"split-lies", *of_graphs}
    for plan, refused in zip((split_plan(), plan_of()), here, strict=True):
        silent = {each.name for each in attacks() if each.goal == "unmasking" and each.refusal(plan)}
        assert silent == refused


def test_every_attack_runs_on_a_split_plan(monkeypatch):
    """By everybody who could: none crashes, none claims a violation, and what is not played says why."""
    monkeypatch.setattr(split, "LIES", {"unpinned panel": LIES["unpinned panel"]})
    plan = split_plan(promise())
    chosen = attacks_named(["split-lies", "protocol-lies", "mean-ratio", "ring-wrap", "sum-check"])
    report = matrix(plan, chosen, synthetic_pool(plan, seeded(0)), Effort(trials=8, records=2, seed=1))
    assert not report.violated
    assert all(row.note for row in report.rows if row.metric == "-")


def checked(plan, trials=120):
    return evaluate(
        plan, attacks_named(["sum-check"]), synthetic_pool(plan, seeded(0)), Effort(trials=trials, seed=1)
    ).rows[0]


def test_a_client_that_fills_the_sum_learns_nothing_of_one_record():
    row = checked(split_plan(promise(epsilon=0.1)))
    assert row.verdict in ("no evidence", "underpowered")
    assert 0.3 < row.measured < 0.7


def test_a_check_on_the_exact_sum_tells_the_record(monkeypatch):
    """The broken double: the check before the noise."""
    honest = ring_wrap.session.release

    def check_first(plan, total, survivors, rng, **how):
        check_plausible(plan, total.lift())
        return honest(plan, total, survivors, rng, **how)

    monkeypatch.setattr(ring_wrap.session, "release", check_first)
    assert checked(split_plan(promise(epsilon=0.1))).verdict == "violates ceiling"


def test_weights_that_are_nothing_at_every_penalty_give_back_what_was_taken_for_true():
    """A model of two records whose classes have one mean: no equation, and no crash."""
    sums = ridge_sums([1.0, 2.0], np.zeros((2, 3, 1)), prior=np.eye(3))
    assert np.array_equal(sums.G, np.eye(3))
    assert sums.condition == np.inf
