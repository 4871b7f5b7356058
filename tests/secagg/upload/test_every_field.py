"""No field of a message can be changed unseen, and none makes a message larger than its limit says.

Read from the structs, so that a field that is added to a message is here before anybody thinks of it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from privstats.encoding import Ring
from privstats.errors import LocalProtocolError, RemoteProtocolError
from privstats.secagg.upload import messages
from privstats.secagg.upload.non_inclusion import prove_excluded
from privstats.secagg.upload.parameters import UploadParameters
from privstats.secagg.upload.suite import BOX_BYTES
from privstats.secagg.wire import HASH_BYTES
from tests.contrib.proofs.proved import proved_of
from tests.secagg.upload.cohorts import Uploads, uploads_of
from tests.without import needing, present

MAKERS: dict[str, Callable[..., Uploads]] = present({"plain": uploads_of, "proved": proved_of})
ANSWERS = ("report", "checked", messages.Reveal, messages.Abandoned)
REQUESTS = ("batch", messages.Survivors)
MESSAGES = (*ANSWERS, *REQUESTS, messages.Listed)
"""All messages of a session. Those named in words are of another type where reports are proved."""


def kind_of(parameters: UploadParameters, kind: Any) -> type[msgspec.Struct]:
    return getattr(messages.kinds_of(parameters), kind) if isinstance(kind, str) else kind


SESSIONS = {name: make().parameters for name, make in MAKERS.items()}


@dataclass
class Sent:
    """An honest message, and what its receiver does with one."""

    data: bytes
    receive: Callable[[bytes], Any]


def sent(run: Uploads, kind: Any) -> Sent:
    """Play honestly until a message of this kind is due."""
    peer, helper = run.peer(1), run.helpers[0]
    if kind == "report":
        run.play_until("report")
        return Sent(run.report(1), lambda data: run.leader.receive(1, data))
    if kind is messages.Abandoned:
        return Sent(helper.abandon()[0][1], lambda data: run.leader.receive(peer, data))
    if kind is messages.Listed:
        client = run.client(5)
        client.start()
        run.play_until("reveal", silent=(5,))
        run.finish()
        told, place = run.leader.statements, {"roster": run.roster, "panel": run.panel}
        return Sent(told[1], lambda data: prove_excluded(run.parameters, client.receipt, {**told, 1: data}, **place))
    asked = run.play_until("check" if kind in ("batch", "checked") else "reveal")[peer]
    if kind in REQUESTS:
        return Sent(asked, helper.receive)
    return Sent(helper.receive(asked)[0][1], lambda data: run.leader.receive(peer, data))


def accepted(message: Sent, data: bytes) -> bool:
    try:
        message.receive(data)
    except (RemoteProtocolError, LocalProtocolError):
        return False
    return True


def changed(message: Any, field: str) -> Any:
    """The message with another value in one field, of the same type."""
    value = getattr(message, field)
    if isinstance(value, int):
        other: Any = value + 1
    elif isinstance(value, tuple):
        other = value[:-1]
    else:
        other = bytes([value[0] ^ 1]) + bytes(value[1:]) if value else b"\0"
    return msgspec.structs.replace(message, **{field: other})


@pytest.mark.parametrize("kind", MESSAGES)
@pytest.mark.parametrize("session", MAKERS)
def test_a_message_with_another_field_is_refused(session: str, kind: Any) -> None:
    """Its signature stays: what no signature, tag or check covers would be accepted."""
    run = MAKERS[session]()
    honest = sent(run, kind)
    message = run.read(honest.data, kind_of(run.parameters, kind))
    for field in message.__struct_fields__:
        assert not accepted(honest, messages.encode(changed(message, field))), field
    assert accepted(honest, honest.data)


@needing("privstats.contrib.proofs")
def test_every_message_has_a_direction_and_the_limits_of_a_direction_are_those_of_its_messages() -> None:
    assert {kind_of(parameters, kind) for parameters in SESSIONS.values() for kind in MESSAGES} == set(
        get_args(messages.Wire)
    )
    for parameters in SESSIONS.values():
        for kinds, largest in ((ANSWERS, messages.largest_answer), (REQUESTS, messages.largest_request)):
            limits = [messages.size_limit(kind_of(parameters, kind), parameters) for kind in kinds]
            assert largest(parameters) == max(limits)


def largest_of(parameters: UploadParameters) -> Iterator[messages.Wire]:
    """The largest message of every type: a field that a type gains has no value here."""
    n, ring = parameters.clients, memoryview(bytes(parameters.ring.wire_bytes))
    b32, b64, last, bitmap = bytes(32), bytes(64), n - 1, bytes((n + 7) // 8)
    count, commits = min(n, parameters.max_in_part), bytes(parameters.helpers * HASH_BYTES)
    boxes, body = bytes(parameters.members * BOX_BYTES), memoryview(bytes(parameters.body_bytes))
    columns = 0, messages.proof_bytes(parameters), BOX_BYTES, 64
    batch = last, count * (last,), *(bytes(count * width) for width in columns)
    checked = last, bytes((count + 7) // 8)
    if parameters.claim is None:
        yield messages.Report(b32, last, boxes, body, b64)
        yield messages.Batch(b32, *batch, b64)
        yield messages.Checked(b32, *checked, b64)
    else:
        yield messages.ProvedReport(b32, last, boxes, commits, b64, body, b64)
        yield messages.ProvedBatch(b32, *batch, count * commits, count * b64, b32, b64)
        yield messages.ProvedChecked(b32, *checked, bytes(count * parameters.answer_bytes), b64)
    yield messages.Survivors(b32, bitmap, b32, b64)
    yield messages.Reveal(b32, b32, ring, b64)
    yield messages.Abandoned(b32, b64)
    yield messages.Listed(b32, bitmap, bytes(n * HASH_BYTES), b32, b64)


@pytest.mark.parametrize("session", MAKERS)
def test_a_limit_is_the_size_of_the_largest_message_to_the_byte(session: str) -> None:
    """Around every length at which a msgpack header grows."""
    base = MAKERS[session]().parameters
    rings = [Ring(((size, 8),)) for size in (1, 200, 60_000, 70_000)] if base.claim is None else [base.ring]
    for clients, helpers, ring in product((6, 17, 140, 257, 70_000), (1, 3), rings):
        parameters = replace(base, clients=clients, helpers=helpers, tolerated=helpers - 1, ring=ring)
        found = list(largest_of(parameters))
        assert {type(message) for message in found} == {kind_of(parameters, kind) for kind in MESSAGES}
        for message in found:
            assert messages.size_limit(type(message), parameters) == len(messages.encode(message))


def test_every_message_is_on_the_page_from_which_others_implement_it() -> None:
    docs = Path(__file__).parents[3] / "docs"
    pages = "".join((docs / name).read_text("utf-8") for name in ("wire/one_upload.md", "wire/proved_reports.md"))
    assert [kind.__name__ for kind in get_args(messages.Wire) if f"`{kind.__name__}`" not in pages] == []
