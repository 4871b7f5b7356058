"""A stream between machines: totals equal measuring afresh, whoever is away, is killed or lies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from privstats.errors import SessionEndedError
from tests.engines.flower.courses.streams import Ward, exact


def test_twenty_epochs_with_parties_away_and_one_unlearned_are_measuring_afresh(tmp_path: Path) -> None:
    ward = Ward(tmp_path, exact(20))
    away = {3: (1,), 4: (1,), 7: (0, 4), 11: (2,), 12: (3,), 16: (0,)}
    for epoch in range(20):
        for party in range(5):
            if party != 4 or epoch < 9:
                ward.bring(party, 2, list(ward.inside[party])[:1] if epoch % 2 else ())
        if epoch == 9:
            ward.bring(4, 0, list(ward.inside[4]))  # the whole client is unlearned
        here = tuple(party for party in range(5) if party not in away.get(epoch, ()))
        assert ward.epoch(away.get(epoch, ())) == (here,)
        if epoch in (0, 2, 6, 10, 13, 19):  # nobody owes anything
            assert np.array_equal(ward.total(), ward.afresh())
    assert ward.inside[4] == {}
    for party in range(5):
        (entry,) = ward.account(party).entries
        assert entry.nodes == 20
        assert len(entry.begun) == 20 - sum(party in each for each in away.values())
    with pytest.raises(SessionEndedError, match="epoch 19 of 20 ended, and with it the stream"):
        ward.net.run()
