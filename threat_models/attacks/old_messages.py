"""Attack 14, two lies in the messages themselves: keys signed for another session, and malformed bytes.

``protocol`` lists and reports them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np
from msgspec.structs import replace

from privstats.errors import RemoteProtocolError
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.client_secrets import self_stream
from privstats.secagg.interactive.signed_statements import transcript_of
from privstats.secagg.prg import add_masks, reduce
from privstats.secagg.scalars import canonical, scalar_of
from privstats.secagg.shamir import combine
from privstats.secagg.wire import to_bitmap
from threat_models.attacks.staged import VICTIM, Cohort, Value, answer_of, secret_of, shares_of, vector_of

__all__ = ["malformed_bytes", "replayed_keys"]

_DAMAGES = 8


def replayed_keys(cohort: Cohort) -> Value | None:
    """All other clients' signed keys are those of an earlier session, whose secrets were found on their machines."""
    earlier = cohort.again()
    earlier.play("share")
    old = {place: machine for place, machine in enumerate(earlier.clients) if place != VICTIM}
    cohort.play("share")
    victim, server = cohort.clients[VICTIM], cohort.server
    own, session = server._state.adverts[VICTIM], server._state.session
    server._state.adverts.update({place: machine._state.advert for place, machine in old.items()})
    server._tree = None
    answer = answer_of(victim, server._message(VICTIM))
    boxes = messages.decode(server._channel(VICTIM).open(memoryview(answer)), messages.Share).boxes
    transcript = transcript_of(server._context, server._merkle_tree().root)
    relabelled = replace(own, session=earlier.server._state.session)
    size = messages.BOX_BYTES
    shares = [
        machine._secrets().open_box(boxes[k * size : (k + 1) * size], place, relabelled, transcript)
        for k, (place, machine) in enumerate(old.items())
    ]
    points = [server._graph.point(VICTIM, place) for place in old]
    halves = [scalar_of(share[: messages.SECRET_BYTES]) for share in shares]
    few = slice(cohort.parameters.threshold)
    self_key = combine(points[few], halves[few])
    unopened = bytes(messages.BOX_BYTES * len(old)), *(3 * (bytes(messages.PAIR_BYTES * len(old)),))
    answer_of(victim, server._send(VICTIM, messages.Deliver(session, tuple(old), *unopened))[1])
    everybody = to_bitmap(range(cohort.parameters.clients), cohort.parameters.clients)
    masked = vector_of(cohort, answer_of(victim, server._send(VICTIM, messages.Dealers(session, everybody))[1]))
    pairs = [machine._secrets().pair_seed(place, own, transcript) for place, machine in old.items()]
    add_masks(masked, plus=[], minus=[self_stream(canonical(self_key), transcript), *pairs])
    reduce(masked)
    return masked.lift()


def malformed_bytes(cohort: Cohort) -> Value | None:
    """Damaged messages, then one after which only the victim continues, so that no pair would mask."""
    outbox = cohort.play("mask")
    victim, server = cohort.clients[VICTIM], cohort.server
    for damaged in _damaged(outbox[VICTIM], cohort):
        with suppress(RemoteProtocolError):
            victim.receive(damaged)
    _, cut = server._send(VICTIM, messages.Dealers(server._state.session, to_bitmap({VICTIM}, len(outbox))))
    others = [client for client in outbox if client != VICTIM]
    masks = {client: answer_of(cohort.clients[client], outbox[client]) for client in others}
    masks[VICTIM] = answer_of(victim, cut)
    masked = vector_of(cohort, masks[VICTIM])
    state = shares_of(cohort, masks, others)
    self_key = secret_of(cohort, state, others)
    add_masks(masked, plus=[], minus=[self_stream(canonical(self_key), state.transcript)])
    reduce(masked)
    return masked.lift()


def _damaged(message: bytes, cohort: Cohort) -> Iterator[bytes]:
    """Bytes cut off, added, and turned over."""
    yield from (b"", message[: len(message) // 2], message[:-1], message + b"\x00")
    for place in (cohort.rng.uint64(_DAMAGES) % np.uint64(len(message))).tolist():
        yield message[:place] + bytes([message[place] ^ 0xFF]) + message[place + 1 :]
