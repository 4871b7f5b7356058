"""No field of a message can be changed unseen: the other end refuses it, but for what is the sender's own to say.

Read from the structs, so that a field that is added to a message is here before anybody thinks of it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from privstats.errors import RemoteProtocolError
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.parameters import STEP_NAMES
from privstats.secagg.interactive.state import STEPS, answers_of
from tests.secagg.interactive.cohorts import UNSEALED, Cohort, cohort_of, forge, lie, play_until, read

LIAR = VICTIM = 2
LEVELS = (2, 3)
ITS_OWN = {
    (messages.Share, "boxes"),  # sealed for others, who find them unusable
    (messages.Check, "failed"),  # nobody else knows what it could use
    (messages.Check, "links"),  # spoils its own input alone
    (messages.CheckWithCommitment, "failed"),
    (messages.CheckWithCommitment, "links"),
    (messages.CheckWithCommitment, "commitment"),  # binds itself alone
    (messages.Dealers, "dealers"),  # one left out counts as one that never shared, and is in no list of survivors
    (messages.Dealers, "refused"),  # it does not mask with that client, and counts it for nothing
    (messages.Share, "commitments"),  # under the challenge, so that they fit no holder's share
    (messages.Share, "proofs"),
    (messages.Mask, "vector"),  # masking proves nothing about inputs
    (messages.Adverts, "proof"),  # leads to another transcript, under which nothing opens
    (messages.Deliver, "boxes"),  # each costs the shares of one owner, which the client says
    (messages.Deliver, "commitments"),
    (messages.Deliver, "responses"),
    (messages.Deliver, "challenges"),
}
"""Fields of which no receiver can know better at once, and why."""


def cohort_with(levels: tuple[int, ...] = ()) -> Cohort:
    return cohort_of(3, 2 if levels else 3, 0, levels=levels)


def fields_of(kinds: Mapping[str, type[msgspec.Struct]]) -> list[tuple[str, Any, str]]:
    return [(step, kind, field) for step, kind in kinds.items() for field in kind.__struct_fields__]


ANSWERS = fields_of({step: row.answers for step, row in STEPS.items()})
LAYERED = fields_of({step: answers_of(step, cohort_with(LEVELS).parameters) for step in ("check", "unmask")})
OPENINGS = fields_of({step: row.opens for step, row in STEPS.items()})


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
    plain = isinstance(message, UNSEALED)
    if not at_server:
        cohort.clients[VICTIM].receive(bytes(messages.encode(message)) if plain else lie(cohort, VICTIM, message))
    elif plain:
        cohort.server.receive(LIAR, bytes(messages.encode(message)))
    else:
        liar = liar_of(type(message))
        cohort.server.receive(liar, forge(cohort, liar, message))


def liar_of(kind: type[Any]) -> int:
    """The last client has no links to give."""
    return 1 if issubclass(kind, messages.Check) else LIAR


def accepted(cohort: Cohort, message: Any, *, at_server: bool) -> bool:
    try:
        received(cohort, message, at_server=at_server)
    except RemoteProtocolError:
        return False
    return True


@pytest.mark.parametrize(("step", "kind", "field"), ANSWERS)
def test_the_server_refuses_an_answer_with_another_field(step: str, kind: type[Any], field: str) -> None:
    cohort, liar = cohort_with(), liar_of(kind)
    ((_, data),) = cohort.clients[liar].receive(play_until(cohort, step)[liar])
    message = changed(read(cohort, liar, data, kind), field)
    assert accepted(cohort, message, at_server=True) == ((kind, field) in ITS_OWN)


@pytest.mark.parametrize(("step", "kind", "field"), LAYERED)
def test_the_server_refuses_an_answer_about_layers_of_noise_with_another_field(
    step: str, kind: type[Any], field: str
) -> None:
    cohort, liar = cohort_with(LEVELS), liar_of(kind)
    ((_, data),) = cohort.clients[liar].receive(play_until(cohort, step)[liar])
    message = changed(read(cohort, liar, data, kind), field)
    assert accepted(cohort, message, at_server=True) == ((kind, field) in ITS_OWN)


@pytest.mark.parametrize(("step", "kind", "field"), OPENINGS)
def test_a_client_refuses_an_opening_with_another_field(step: str, kind: type[Any], field: str) -> None:
    cohort = cohort_with()
    message = changed(read(cohort, VICTIM, play_until(cohort, step)[VICTIM], kind), field)
    assert accepted(cohort, message, at_server=False) == ((kind, field) in ITS_OWN)


@pytest.mark.parametrize("field", messages.Abort.__struct_fields__)
def test_a_client_refuses_an_abort_with_another_field(field: str) -> None:
    cohort = cohort_of(3, 3, 0)
    play_until(cohort, "share")
    farewell = dict(cohort.server.abandon())[VICTIM]
    message = changed(read(cohort, VICTIM, farewell, messages.Abort), field)
    assert not accepted(cohort, message, at_server=False)


def test_every_message_is_on_the_page_from_which_others_implement_it() -> None:
    page = (Path(__file__).parents[3] / "docs" / "wire" / "interactive.md").read_text("utf-8")
    assert [kind.__name__ for kind in get_args(messages.Wire) if f"`{kind.__name__}`" not in page] == []


def test_every_message_has_a_number_of_its_own_and_a_step() -> None:
    kinds = get_args(messages.Wire)
    assert len({kind.__struct_config__.tag for kind in kinds}) == len(kinds)
    assert {kind for _, kind, _ in (*ANSWERS, *LAYERED)} == set(get_args(messages.ClientMessage))
    assert {kind for _, kind, _ in OPENINGS} | {messages.Abort} == set(get_args(messages.ServerMessage))
    assert tuple(STEPS) == STEP_NAMES
    assert [row.then for row in STEPS.values()] == [*STEP_NAMES[1:], "done"]
