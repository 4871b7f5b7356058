"""What a debugger, a log or an error report would print shows no secret."""

from __future__ import annotations

import pytest

from privstats.errors import LocalProtocolError
from privstats.secagg import messages as wire
from privstats.secagg.material import ClientSecrets
from tests.secagg.cohorts import Cohort, cohort_of, play_until, read


def secrets_of(cohort: Cohort) -> list[bytes]:
    """Everything of client 0 that nobody else may know while the session runs."""
    root = bytes(cohort.clients[0]._state.root)
    material = ClientSecrets(root)
    return [root, material.seed, material._mask_key, *cohort.clients[0]._state.held.values()]


def shown(value: object) -> str:
    return repr(value) + str(value)


def leaks(text: str, secret: bytes) -> bool:
    return repr(secret)[2:-1] in text or secret.hex() in text


def test_reprs_of_machines_states_and_vectors_show_no_secret() -> None:
    cohort = cohort_of()
    outbox = play_until(cohort, "unmask")
    client, server = cohort.clients[0], cohort.server
    secrets = secrets_of(cohort)
    assert len(secrets) > 3
    vector = cohort.parameters.ring.encode(cohort.values[0])
    text = "".join(
        shown(each)
        for each in (client, client._state, client._secrets(), cohort.identities[0], server, server._state, vector)
    )
    assert not any(leaks(text, secret) for secret in [*secrets, bytes(server._state.secret)])
    assert repr(vector) == f"RingVector(size={vector.ring.size})"
    ((_, answer),) = client.receive(outbox[0])
    unmask = read(answer, wire.Unmask)
    assert not any(leaks(shown(unmask), secret) for secret in (unmask.seed, unmask.shares))
    assert shown(unmask).startswith("Unmask(sender=0)")


def test_errors_of_a_misused_client_show_no_secret() -> None:
    cohort = cohort_of()
    play_until(cohort, "unmask")
    secrets = secrets_of(cohort)
    with pytest.raises(LocalProtocolError) as caught:
        cohort.clients[0].export(b"short")
    assert not any(leaks(shown(caught.value), secret) for secret in secrets)
