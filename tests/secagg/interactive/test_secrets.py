"""What a debugger, a log or an error report would print shows no secret."""

import io
import pprint
from collections.abc import Iterator
from typing import get_args

import msgspec
import pytest
from rich.console import Console
from rich.pretty import pretty_repr

from privstats.errors import LocalProtocolError
from privstats.secagg.interactive import messages
from privstats.secagg.interactive import state as states
from tests.secagg.interactive.cohorts import Cohort, cohort_of, play_until, read
from tests.secagg.interactive.inside import inside


def secrets_of(cohort: Cohort) -> list[bytes]:
    """Everything of client 0 that nobody else may know while the session runs."""
    state = inside(cohort.clients[0]).state
    own = inside(cohort.clients[0]).secrets().revealed(state.transcript)
    return [bytes(state.root), bytes(state.kem_secret), own, *state.held.values()]


def shown(value: object) -> str:
    """By every printer that one meets."""
    console = Console(file=io.StringIO(), width=10_000)
    console.print(value, [value])
    printed = console.file.getvalue()
    return repr(value) + str(value) + f"{value}" + pprint.pformat(value) + pretty_repr(value) + printed


def leaks(text: str, secret: bytes) -> bool:
    return repr(secret)[2:-1] in text or secret.hex() in text


def structs() -> Iterator[type[msgspec.Struct]]:
    """Every message and state class there is."""
    for module in (messages, states):
        for each in vars(module).values():
            if isinstance(each, type) and issubclass(each, msgspec.Struct) and each is not msgspec.Struct:
                yield each


def filled(kind: type[msgspec.Struct]) -> msgspec.Struct:
    """An instance whose every field says so."""
    return kind(*(f"the secret in {each.name}" for each in msgspec.structs.fields(kind)))


@pytest.mark.parametrize("kind", sorted(set(structs()), key=str), ids=lambda kind: kind.__name__)
def test_no_message_and_no_state_shows_a_field_to_any_printer(kind: type[msgspec.Struct]) -> None:
    """msgspec gives every struct a ``__rich_repr__`` that shows all of it, whatever its ``__repr__`` says."""
    value = filled(kind)
    assert "secret" not in shown(value)
    assert list(value.__rich_repr__()) == []
    assert kind.__name__ in shown(value)


def test_the_walk_meets_them_all() -> None:
    names = {kind.__name__ for kind in structs()}
    assert {"ClientState", "ServerState", *(kind.__name__ for kind in get_args(messages.Wire))} <= names


def test_reprs_of_machines_states_and_vectors_show_no_secret() -> None:
    cohort = cohort_of()
    outbox = play_until(cohort, "unmask")
    client, server = cohort.clients[0], cohort.server
    secrets = secrets_of(cohort)
    assert len(secrets) > 3
    vector = cohort.parameters.ring.encode(cohort.values[0])
    text = "".join(
        shown(each)
        for each in (
            client,
            inside(client).state,
            inside(client).secrets(),
            inside(client).channel(),
            cohort.identities[0],
            server,
            inside(server).state,
            vector,
        )
    )
    assert not any(leaks(text, secret) for secret in [*secrets, bytes(inside(server).state.secret)])
    assert repr(vector) == f"RingVector(size={vector.ring.size})"
    ((_, answer),) = client.receive(outbox[0])
    unmask = read(cohort, 0, answer, messages.Unmask)
    assert not any(leaks(shown(unmask), secret) for secret in (unmask.self_key, unmask.shares))


def test_errors_of_a_misused_client_show_no_secret() -> None:
    cohort = cohort_of()
    play_until(cohort, "unmask")
    secrets = secrets_of(cohort)
    with pytest.raises(LocalProtocolError) as caught:
        cohort.clients[0].export(b"short")
    assert not any(leaks(shown(caught.value), secret) for secret in secrets)
