"""The room that a ledger prints after releases."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.dp import calibrate
from privstats.dp.ledger.accounts import Account, LedgerState
from privstats.dp.ledger.records import Capped, Spent
from privstats.dp.ledger.rules import room
from tests import made

EPSILONS, DELTAS = st.floats(0.05, 20), st.floats(1e-9, 1e-4)


def account(epsilon: float, delta: float, *mus: float) -> Account:
    cap = Capped(at="now", dataset="ward", unit="record", adjacency="add-remove", epsilon=epsilon, delta=delta)
    spent = {"at": "now", "dataset": "ward", "plan": "d1ce", "what": "release", "model": "central", "parts": ()}
    return LedgerState.of([cap, *(Spent(run=f"{k:02x}", mu=mu, **spent) for k, mu in enumerate(mus))]).account("ward")  # type: ignore[arg-type]


@given(EPSILONS, DELTAS, st.sampled_from(["NA", "NAB", "NAS"]))
def test_a_cap_that_one_release_spends_whole_has_no_room_left(epsilon: float, delta: float, statistics: str) -> None:
    noise = calibrate(
        ps.ClassSchema(3, 4, statistics, 1.0), made.promise(epsilon=epsilon, delta=delta), honest_shares=1
    )
    assert room(account(epsilon, delta, noise.mu)) == "no room for another release"


@given(EPSILONS, st.floats(1e-9, 1e-6))
def test_a_hundredth_of_the_caps_mu_is_room(epsilon: float, delta: float) -> None:
    whole = account(epsilon, delta).mu_cap
    assert "room for one more release of at most epsilon" in room(account(epsilon, delta, whole * (1 - 1e-4) ** 0.5))
