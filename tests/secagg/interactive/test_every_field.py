"""No field of a message can be changed unseen: the other end refuses it, but for what is the sender's own to say.

Read from the structs, so that a field that is added to a message is here before anybody thinks of it.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from privstats.errors import PlanError, RemoteProtocolError
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.parameters import STEP_NAMES, Parameters
from privstats.secagg.interactive.state import STEPS, answers_of, steps_of
from privstats.secagg.keys import HYBRID, KEY_AGREEMENTS
from tests.secagg.interactive.cohorts import UNSEALED, Cohort, cohort_of, forge, lie, play_until, read

LIAR = VICTIM = 2
LEVELS = (2, 3)
ITS_OWN = {
    (messages.Share, "boxes"),  # sealed for others, who find them unusable
    (messages.Check, "failed"),  # nobody else knows what it could use
    (messages.CheckWithCommitment, "failed"),
    (messages.CheckWithCommitment, "commitment"),  # binds itself alone
    (messages.HybridCheck, "failed"),
    (messages.HybridCheck, "links"),  # spoils its own input alone
    (messages.HybridCheckWithCommitment, "failed"),
    (messages.HybridCheckWithCommitment, "links"),
    (messages.HybridCheckWithCommitment, "commitment"),
    (messages.HybridDealers, "dealers"),
    (messages.HybridDealers, "refused"),  # it does not mask with that client, and counts it for nothing
    (messages.HybridAdverts, "proof"),
    (messages.Dealers, "dealers"),  # one left out counts as one that never shared, and is in no list of survivors
    (messages.Mask, "vector"),  # masking proves nothing about inputs
    (messages.Adverts, "proof"),  # leads to another transcript, under which nothing opens
    (messages.Deliver, "boxes"),  # each costs the shares of one owner, which the client says
    (messages.Deliver, "commitments"),
    (messages.Deliver, "responses"),
    (messages.Deliver, "challenges"),
}
"""Fields of which no receiver can know better at once, and why."""
FOUND_BY_HOLDERS = {(HYBRID, messages.Share, "commitments"), (HYBRID, messages.Share, "proofs")}
"""Under the challenge, so that they fit no share."""


def cohort_with(key_agreement: str, levels: tuple[int, ...] = ()) -> Cohort:
    return cohort_of(3, 2 if levels else 3, 0, levels=levels, key_agreement=key_agreement)


VERSIONS = {key_agreement: cohort_with(key_agreement).parameters for key_agreement in KEY_AGREEMENTS}
WITH_LAYERS = {key_agreement: cohort_with(key_agreement, LEVELS).parameters for key_agreement in KEY_AGREEMENTS}


def fields_of(kinds: Callable[[str, Parameters], type[msgspec.Struct]]) -> Iterator[tuple[str, str, Any, str]]:
    """Of every message of both versions."""
    for key_agreement, parameters in VERSIONS.items():
        for step in STEPS:
            for field in kinds(step, parameters).__struct_fields__:
                yield key_agreement, step, kinds(step, parameters), field


ANSWERS = list(fields_of(answers_of))
LAYERED = [
    (key_agreement, step, answers_of(step, parameters), field)
    for key_agreement, parameters in WITH_LAYERS.items()
    for step in ("check", "unmask")
    for field in answers_of(step, parameters).__struct_fields__
]
OPENINGS = list(fields_of(lambda step, parameters: steps_of(parameters)[step].opens))


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
    encode, plain = messages.codec_of(cohort.parameters).encode, isinstance(message, UNSEALED)
    if not at_server:
        cohort.clients[VICTIM].receive(bytes(encode(message)) if plain else lie(cohort, VICTIM, message))
    elif plain:
        cohort.server.receive(LIAR, bytes(encode(message)))
    else:
        liar = liar_of(type(message))
        cohort.server.receive(liar, forge(cohort, liar, message))


def liar_of(kind: type[Any]) -> int:
    """The last client has no links to give."""
    return 1 if issubclass(kind, messages.HybridCheck) else LIAR


def accepted(cohort: Cohort, message: Any, *, at_server: bool) -> bool:
    try:
        received(cohort, message, at_server=at_server)
    except RemoteProtocolError:
        return False
    return True


@pytest.mark.parametrize(("key_agreement", "step", "kind", "field"), ANSWERS)
def test_the_server_refuses_an_answer_with_another_field(
    key_agreement: str, step: str, kind: type[Any], field: str
) -> None:
    cohort, liar = cohort_with(key_agreement), liar_of(kind)
    ((_, data),) = cohort.clients[liar].receive(play_until(cohort, step)[liar])
    message = changed(read(cohort, liar, data, kind), field)
    own = (kind, field) in ITS_OWN or (key_agreement, kind, field) in FOUND_BY_HOLDERS
    assert accepted(cohort, message, at_server=True) == own


@pytest.mark.parametrize(("key_agreement", "step", "kind", "field"), LAYERED)
def test_the_server_refuses_an_answer_about_layers_of_noise_with_another_field(
    key_agreement: str, step: str, kind: type[Any], field: str
) -> None:
    cohort, liar = cohort_with(key_agreement, LEVELS), liar_of(kind)
    ((_, data),) = cohort.clients[liar].receive(play_until(cohort, step)[liar])
    message = changed(read(cohort, liar, data, kind), field)
    assert accepted(cohort, message, at_server=True) == ((kind, field) in ITS_OWN)


@pytest.mark.parametrize(("key_agreement", "step", "kind", "field"), OPENINGS)
def test_a_client_refuses_an_opening_with_another_field(
    key_agreement: str, step: str, kind: type[Any], field: str
) -> None:
    cohort = cohort_with(key_agreement)
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
    page = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text("utf-8")
    assert [kind.__name__ for kind in get_args(messages.Wire) if f"`{kind.__name__}`" not in page] == []


def test_each_key_agreement_has_a_version_of_its_own() -> None:
    """A value without one ran as version 3, next to a page that promised more."""
    abort = messages.Abort(bytes(32), 0, bytes(64))
    versions = {bytes(messages.codec_of(each).encode(abort))[0] for each in VERSIONS.values()}
    assert len(versions) == len({each.digest for each in VERSIONS.values()}) == len(KEY_AGREEMENTS)
    with pytest.raises(PlanError, match="key_agreement must be one of x25519, mlkem768-x25519, got 'x448'"):
        cohort_with("x448")


def test_every_message_has_a_number_of_its_own_and_a_step() -> None:
    kinds = get_args(messages.Wire)
    assert len({kind.__struct_config__.tag for kind in kinds}) == len(kinds)
    assert {kind for _, _, kind, _ in (*ANSWERS, *LAYERED)} == set(get_args(messages.ClientMessage))
    assert {kind for _, _, kind, _ in OPENINGS} | {messages.Abort} == set(get_args(messages.ServerMessage))
    assert tuple(STEPS) == STEP_NAMES
    assert [row.then for row in STEPS.values()] == [*STEP_NAMES[1:], "done"]
