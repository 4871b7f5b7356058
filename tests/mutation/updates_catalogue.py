"""The deliberate bugs of a client's updates of a model: rows as in ``catalogue``, which takes them."""

from dataclasses import replace
from typing import Any

import numpy as np

from privstats import dp
from privstats.session.client_updates import ClientUpdates
from tests.mutation.mutant import Mutant, bug
from tests.mutation.planting import member

_UPDATES = "tests/session/test_client_updates.py::"


def _not_clipped(self: ClientUpdates, row: Any) -> Any:
    return np.rint(np.nan_to_num(row, posinf=0, neginf=0).clip(-1e12, 1e12) * self.schema.scale).astype(np.int64)


def _any_account(ledger: dp.Ledger, account: str) -> None:
    ledger.account(account)


def _as_if_absent(self: ClientUpdates, epsilon: float) -> dp.Privacy:
    return replace(right_promise(self, epsilon), adjacency="add-remove")


def _half_the_noise(self: ClientUpdates, row: Any, rng: Any) -> Any:
    noise = dp.draw_share(self.noise, self._layout, rng) // 2
    return self._arrays((self._quantized(row) + noise) / self.schema.scale)


right_promise = ClientUpdates._promise

UPDATES_MUTANTS: dict[str, Mutant] = {
    "updates not clipped": bug("an update leaves at any length, with the noise of a short one",
        member(ClientUpdates, "_quantized", _not_clipped),
        _UPDATES + "test_no_update_moves_the_whole_numbers_by_more_than_the_clip"),
    "updates priced as absent": bug(
        "the noise of an update is sized for a client that sends nothing, and every client sends something",
        member(ClientUpdates, "_promise", _as_if_absent),
        _UPDATES + "TestPromise::test_the_price_of_a_round_is_the_whole_one_over_the_root[1]"),
    "updates charged per record": bug("an account per record takes an update for half of its price",
        member(ClientUpdates, "_require_account", staticmethod(_any_account)),
        _UPDATES + "TestPromise::test_an_account_per_record_is_refused_because_one_record_turns_the_whole_update"),
    "updates from half the noise": bug("an update leaves with half of the noise that its ledger was charged for",
        member(ClientUpdates, "_noisy", _half_the_noise),
        _UPDATES + "test_an_audit_of_what_leaves_finds_the_price_of_a_round_and_no_more"),
}  # fmt: skip
