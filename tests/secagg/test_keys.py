"""Keys: derived ones differ by purpose, and no source of entropy may give less than it was asked for."""

import pytest

from privstats.errors import LocalProtocolError
from privstats.secagg import Identity, Server
from privstats.secagg.keys import derive, draw
from tests.secagg.interactive.cohorts import Cohort


def test_a_purpose_and_a_salt_make_a_key_of_their_own() -> None:
    keys = {derive(b"k" * 32, label, salt=salt) for label in ("one", "other") for salt in (b"", b"s" * 32)}
    assert len(keys) == 4
    assert len(derive(b"k" * 32, "one", size=64)) == 64


@pytest.mark.parametrize("length", [0, 31, 33])
def test_entropy_of_another_length_is_refused_wherever_it_is_drawn(cohort: Cohort, length: int) -> None:
    def entropy(_: int) -> bytes:
        return bytes(length)

    draws = [
        lambda: draw(entropy, 32),
        lambda: Identity.generate(entropy),
        lambda: Server(**cohort.place(), entropy=entropy),
        lambda: cohort.client(0, entropy=entropy),
        lambda: cohort.server.export(b"k" * 32, entropy=entropy),
    ]
    for attempt in draws:
        with pytest.raises(LocalProtocolError, match=f"got {length}: give os.urandom"):
            attempt()
