"""No field of a message can be changed unseen: the other end refuses it, but for what is the sender's own to say.

Read from the structs, so that a field that is added to a message is here before anybody thinks of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest

from privstats.errors import RemoteProtocolError
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.parameters import STEP_NAMES
from privstats.secagg.interactive.state import STEPS, WITH_LAYERS
from tests.secagg.interactive.cohorts import Cohort, cohort_of, forge, lie, play_until, read

LIAR = VICTIM = 2
LEVELS = (2, 3)
ITS_OWN = {
    (messages.Share, "boxes"),  # sealed for others, who find them unusable
    (messages.Check, "failed"),  # nobody else knows what it could use
    (messages.CheckWithCommitment, "failed"),
    (messages.CheckWithCommitment, "commitment"),  # binds itself alone
    (messages.Dealers, "dealers"),  # one left out counts as one that never shared, and is in no list of survivors
    (messages.Mask, "vector"),  # masking proves nothing about inputs
    (messages.Adverts, "proof"),  # leads to another transcript, under which nothing opens
    (messages.Deliver, "boxes"),  # each costs the shares of one owner, which the client says
    (messages.Deliver, "commitments"),
    (messages.Deliver, "responses"),
    (messages.Deliver, "challenges"),
}
"""Fields of which no receiver can know better at once, and why."""


def fields_of(kinds: dict[str, type[msgspec.Struct]]) -> Iterator[tuple[str, type[msgspec.Struct], str]]:
    for step, kind in kinds.items():
        for field in kind.__struct_fields__:
            yield step, kind, field


ANSWERS = list(fields_of({step: row.answers for step, row in STEPS.items()}))
LAYERED = list(fields_of(WITH_LAYERS))
OPENINGS = list(fields_of({step: row.opens for step, row in STEPS.items()}))


def changed(message: Any, field: str) -> Any:
    """The message with another value in one field, of the same type."""
    value = getattr(message, field)
    if isinstance(value, int):
        other: Any = value + 1
    elif isinstance(value, tuple):
        other = value[:-1] if value else (0,)
    else:
        other = bytes([value[0] ^ 1]) + bytes(value[1:])
    return msgspec.structs.replace(message, **{field: other})


def received(cohort: Cohort, message: Any, *, at_server: bool) -> None:
    """Send it as the liar does: with the right tag where there is one."""
    if not at_server:
        plain = isinstance(message, messages.Open | messages.Abort)
        cohort.clients[VICTIM].receive(bytes(messages.encode(message)) if plain else lie(cohort, VICTIM, message))
    elif isinstance(message, messages.Advertise):
        cohort.server.receive(LIAR, bytes(messages.encode(message)))
    else:
        cohort.server.receive(LIAR, forge(cohort, LIAR, message))


def accepted(cohort: Cohort, message: Any, *, at_server: bool) -> bool:
    try:
        received(cohort, message, at_server=at_server)
    except RemoteProtocolError:
        return False
    return True


@pytest.mark.parametrize(("step", "kind", "field"), ANSWERS)
def test_the_server_refuses_an_answer_with_another_field(step: str, kind: type[Any], field: str) -> None:
    cohort = cohort_of(3, 3, 0)
    ((_, data),) = cohort.clients[LIAR].receive(play_until(cohort, step)[LIAR])
    message = changed(read(cohort, LIAR, data, kind), field)
    assert accepted(cohort, message, at_server=True) == ((kind, field) in ITS_OWN)


@pytest.mark.parametrize(("step", "kind", "field"), LAYERED)
def test_the_server_refuses_an_answer_about_layers_of_noise_with_another_field(
    step: str, kind: type[Any], field: str
) -> None:
    cohort = cohort_of(3, 2, 0, levels=LEVELS)
    ((_, data),) = cohort.clients[LIAR].receive(play_until(cohort, step)[LIAR])
    message = changed(read(cohort, LIAR, data, kind), field)
    assert accepted(cohort, message, at_server=True) == ((kind, field) in ITS_OWN)


@pytest.mark.parametrize(("step", "kind", "field"), OPENINGS)
def test_a_client_refuses_an_opening_with_another_field(step: str, kind: type[Any], field: str) -> None:
    cohort = cohort_of(3, 3, 0)
    message = changed(read(cohort, VICTIM, play_until(cohort, step)[VICTIM], kind), field)
    assert accepted(cohort, message, at_server=False) == ((kind, field) in ITS_OWN)


@pytest.mark.parametrize("field", messages.Abort.__struct_fields__)
def test_a_client_refuses_an_abort_with_another_field(field: str) -> None:
    cohort = cohort_of(3, 3, 0)
    play_until(cohort, "share")
    farewell = dict(cohort.server.abandon())[VICTIM]
    message = changed(read(cohort, VICTIM, farewell, messages.Abort), field)
    assert not accepted(cohort, message, at_server=False)


def test_every_message_has_a_number_of_its_own_and_a_step() -> None:
    kinds = get_args(messages.Wire)
    assert len({kind.__struct_config__.tag for kind in kinds}) == len(kinds)
    answers = {row.answers for row in STEPS.values()} | set(WITH_LAYERS.values())
    assert answers == set(get_args(messages.ClientMessage))
    assert {row.opens for row in STEPS.values()} | {messages.Abort} == set(get_args(messages.ServerMessage))
    assert tuple(STEPS) == STEP_NAMES
    assert [row.then for row in STEPS.values()] == [*STEP_NAMES[1:], "done"]
