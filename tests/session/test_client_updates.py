"""The updates of a client: what may leave is bounded, noised and paid for, whatever the update is."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import privstats as ps
from privstats import randomness
from privstats.dp import Ledger, gaussian_epsilon, gaussian_mu
from privstats.errors import DataError, LedgerError, PlanError, RandomnessError
from privstats.session.client_updates import ClientUpdates
from threat_models.audits.canary import lower_bounds

SHAPES = {"b": (2,), "W": (2, 3)}
PUBLIC = {"shapes": SHAPES, "clip_norm": 1.5, "epsilon": 8.0, "delta": 1e-5, "rounds": 4}
ZEROS = {"W": np.zeros((2, 3)), "b": np.zeros(2)}


def updates(**changes):
    return ClientUpdates(**{**PUBLIC, **changes})


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "ledger")
    made.set_cap("weights", unit="client", adjacency="replace-one", epsilon=8.0, delta=1e-5)
    return made


def released(ledger, update, seed=0, **changes):
    return updates(**changes).released(update, ledger, "weights", randomness.seeded(seed), allow_reproducible=True)


def whole(sent):
    return np.concatenate([sent["W"].ravel(), sent["b"]])


class TestPromise:
    def test_rounds_add_up_to_the_promise_and_no_further_one_leaves(self, ledger):
        for number in range(4):
            released(ledger, ZEROS, number)
        account = ledger.account("weights")
        assert account.spent == pytest.approx(8.0, rel=1e-6)
        assert account.spent <= 8.0 * (1 + 1e-9)
        assert all(entry.released is not None and len(entry.upload) == 32 for entry in account.entries)
        with pytest.raises(LedgerError, match="account 'weights' would reach epsilon .* nothing was spent"):
            released(ledger, ZEROS, 4)
        assert ledger.account("weights") == account

    @pytest.mark.parametrize("rounds", [1, 7, 100])
    def test_the_price_of_a_round_is_the_whole_one_over_the_root(self, rounds):
        one = updates(rounds=rounds)
        assert one.noise.mu * math.sqrt(rounds) == pytest.approx(gaussian_mu(8.0, 1e-5), rel=1e-9)
        assert one.noise.mu * math.sqrt(rounds) <= gaussian_mu(8.0, 1e-5)
        assert one.sigma == pytest.approx(2 * 1.5 / one.noise.mu), "any data for any other: twice the clip norm"

    def test_an_account_per_record_is_refused_because_one_record_turns_the_whole_update(self, tmp_path):
        """Under add-remove it would be charged half of what it costs."""
        made = Ledger.create(tmp_path / "another")
        made.set_cap("weights", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-5)
        with pytest.raises(LedgerError, match="must be per client under replace-one"):
            released(made, ZEROS)
        made.set_cap("weights", unit="client", adjacency="add-remove", epsilon=8.0, delta=1e-5)
        with pytest.raises(LedgerError, match="must be per client under replace-one"):
            released(made, ZEROS)
        with pytest.raises(LedgerError, match="no account 'other'"):
            updates().released(ZEROS, made, "other")
        assert made.account("weights").entries == ()

    def test_each_call_is_a_round_of_its_own(self, ledger):
        first, again = released(ledger, ZEROS, 1), released(ledger, ZEROS, 2)
        assert not np.array_equal(whole(first), whole(again))
        assert len(ledger.account("weights").entries) == 2

    def test_noise_is_the_systems_unless_a_test_says_otherwise(self, ledger):
        with pytest.raises(RandomnessError, match="rng is reproducible"):
            updates().released(ZEROS, ledger, "weights", randomness.seeded(0))
        assert ledger.account("weights").entries == (), "a call that is refused spends nothing"


LARGE = st.floats(allow_nan=True, allow_infinity=True, width=64)


@given(W=arrays.arrays(np.float64, (2, 3), elements=LARGE), b=arrays.arrays(np.float64, (2,), elements=LARGE))
def test_no_update_moves_the_whole_numbers_by_more_than_the_clip(W, b):
    """Two updates differ by at most 2 C, in exact integers, with NaN, infinity, subnormal and huge entries."""
    one = updates()
    grid = one._quantized(one._row({"W": W, "b": b}))
    assert sum(int(step) ** 2 for step in grid) <= (1 << 20) ** 2
    row = np.concatenate([W.ravel(), b])  # names in order: "W" before "b"
    if not np.isfinite(row).all():
        assert not grid.any(), "an update that cannot be read counts as nothing"
    elif math.hypot(*row) <= 1.5:
        np.testing.assert_allclose(grid * 1.5 / (1 << 20), row, atol=1.5 / (1 << 20))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64, bool])
def test_no_kind_of_number_decides_what_leaves(ledger, dtype):
    values = np.array([[1, 0, 1], [0, 1, 0]])
    sent = released(ledger, {"W": values.astype(dtype), "b": np.zeros(2, dtype)})
    same = updates().released(
        {"W": values.astype(np.float64), "b": np.zeros(2)},
        ledger,
        "weights",
        randomness.seeded(0),
        allow_reproducible=True,
    )
    assert {name: (array.dtype, array.shape) for name, array in sent.items()} == {
        "W": (np.dtype(np.float32), (2, 3)),
        "b": (np.dtype(np.float32), (2,)),
    }
    np.testing.assert_array_equal(whole(sent), whole(same))


@pytest.mark.parametrize(
    ("update", "why"),
    [
        ({}, "has others"),
        ({**ZEROS, "count": np.zeros(1)}, "has others"),
        ({**ZEROS, "b": np.zeros(3)}, r"b has shape \(3,\) and must have \(2,\)"),
        ({**ZEROS, "b": np.array(["one", "two"])}, "b is no array of real numbers"),
        ({**ZEROS, "b": np.array(["1", "2"])}, "b is no array of real numbers"),
        ({**ZEROS, "b": [[1.0], [2.0, 3.0]]}, "b is no array of real numbers"),
        ({**ZEROS, "b": [10**400, 0]}, "b is no array of real numbers"),
        ({**ZEROS, "b": np.array([1j, 0])}, "b is no array of real numbers"),
        ({**ZEROS, "b": np.ma.masked_array([5.0, 0.0], [True, False])}, "b is no array of real numbers"),
    ],
)
def test_another_form_is_refused_before_anything_is_spent(ledger, update, why):
    with pytest.raises(DataError, match=why) as refusal:
        released(ledger, update)
    assert "nothing was spent" in str(refusal.value)
    assert ledger.account("weights").entries == ()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"shapes": {}}, "shapes must name the arrays"),
        ({"shapes": {"W": [2, 0]}}, r"shapes\['W'\] must be a list of integers above 0"),
        ({"shapes": {"W": 6}}, r"shapes\['W'\] must be a list"),
        ({"clip_norm": 0.0}, "clip_norm must be a number"),
        ({"epsilon": 0.0}, "epsilon must be between"),
        ({"delta": 0.0}, "delta = 0"),
        ({"rounds": 0}, "rounds must be an integer"),
        ({"rounds": True}, "rounds must be an integer"),
        ({"rounds": 10**9}, "nothing but noise"),
    ],
)
def test_a_value_out_of_range_is_named(changes, why):
    with pytest.raises((PlanError, ps.SchemaError), match=why):
        updates(**changes)


def test_the_digest_holds_every_public_value():
    changes = [{"shapes": {"W": (8,)}}, {"clip_norm": 2.0}, {"epsilon": 4.0}, {"delta": 1e-6}, {"rounds": 5}]
    digests = {updates(**each).digest for each in ({}, *changes)}
    assert len(digests) == 6
    assert updates().digest == updates(shapes={"W": [2, 3], "b": [2]}).digest


def test_an_audit_of_what_leaves_finds_the_price_of_a_round_and_no_more():
    """The worst pair, u and -u far beyond the clip, told apart by the projection on u: bounds at 99.9 %."""
    one = updates(shapes={"W": (4,)}, epsilon=30.0, rounds=2)
    direction, rng = np.array([0.5, -0.5, 0.5, 0.5]), randomness.seeded(7)

    def scores(update, many):
        row = one._row({"W": update})
        return np.array([one._noisy(row, rng)["W"] @ direction for _ in range(many)])

    bounds = lower_bounds(scores(-1e6 * direction, 1500), scores(1e6 * direction, 1500), 0.999, 1e-5)
    assert 0.75 * one.noise.mu < bounds.mu <= one.noise.mu
    assert bounds.epsilon <= gaussian_epsilon(one.noise.mu, 1e-5)
