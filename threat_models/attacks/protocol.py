"""Attack 14: servers that lie to the real machines, and whether a client's exact vector is revealed.

Each lie drives the library's own ``Client`` and ``Server`` message by message. A lie that never succeeds proves nothing
by itself: the tests run the same lies against deliberately weakened clients, where each succeeds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress

import numpy as np
from msgspec.structs import replace

from privstats.encoding import RingVector
from privstats.errors import RemoteProtocolError
from privstats.plan import Plan
from privstats.randomness import Generator
from privstats.secagg import Client, Identity, Roster, Server
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.client_secrets import pair_seed, self_stream
from privstats.secagg.interactive.dealing import challenges_of, part
from privstats.secagg.interactive.messages import transcript_of
from privstats.secagg.interactive.state import ServerState
from privstats.secagg.prg import add_masks, reduce
from privstats.secagg.scalars import combine, scalar_of, to_bytes
from privstats.secagg.wire import HASH_BYTES, to_bitmap
from threat_models.adversary import Adversary
from threat_models.attack import Examination
from threat_models.attacks.staged import COLLUDERS, VICTIM, Cohort, Value, answer_of, secret_of, shares_of, vector_of
from threat_models.attacks.unmasking import never
from threat_models.report import Row

_KEY = bytes(32)
_DAMAGES = 8


def colluders(cohort: Cohort, extra: int = 0) -> Value | None:
    """Play the maximum number of colluding clients and of drop-outs that the plan allows."""
    helpers = range(1, 1 + cohort.parameters.colluders + extra)
    gone = range(cohort.parameters.min_survivors, cohort.parameters.clients)
    cohort.play(silent={"mask": gone})
    total, survivors = cohort.server.result
    left = total.lift()
    for client in survivors:
        if client in helpers:
            left = left - cohort.values[client]
    return np.asarray(left)


def invented_clients(cohort: Cohort) -> Value | None:
    """All clients but the victim are fake, under keys that the server made."""
    fakes = [Identity.generate(cohort.rng.bytes) for _ in cohort.identities]
    fakes[VICTIM] = cohort.identities[VICTIM]
    shown = Roster(tuple(fake.public for fake in fakes), server=cohort.aggregator.public, run=cohort.roster.run)
    cohort.server = cohort.serve(shown)
    trusting = getattr(cohort.client, "trusts_the_server", False)
    victim = cohort.machine(VICTIM, shown if trusting else cohort.roster)
    cohort.clients = [victim, *(cohort.machine(k, shown, fakes[k]) for k in range(1, len(fakes)))]
    cohort.play()
    total, _ = cohort.server.result
    return np.asarray(total.lift() - sum(cohort.values[1:]))


def equivocation(cohort: Cohort) -> Value | None:
    """The server tells the victim that all survived, and the others that it dropped out: its own seed, and shares of
    its pair secrets."""
    return _two_lists(cohort, set(range(cohort.parameters.clients)))


def lone_survivor(cohort: Cohort) -> Value | None:
    """The server tells the victim that it survived alone."""
    return _two_lists(cohort, {VICTIM})


def both_share_kinds(cohort: Cohort) -> Value | None:
    """Ask the same clients twice, once with the victim among the survivors and once without."""
    outbox = cohort.play("mask")
    answers = {client: answer_of(cohort.clients[client], message) for client, message in outbox.items()}
    masked = vector_of(cohort, answers[VICTIM])
    others = [client for client in answers if client != VICTIM]
    saved = {client: cohort.clients[client].export(_KEY, entropy=cohort.rng.bytes) for client in others}
    sealed = cohort.server.export(_KEY, entropy=cohort.rng.bytes)
    without = shares_of(cohort, {client: answers[client] for client in others}, others)
    again = cohort.aggregator
    cohort.server = Server.resume(sealed, _KEY, parameters=cohort.parameters, roster=cohort.roster, identity=again)
    for client in others:
        cohort.clients[client] = _rolled_back(cohort, client, saved[client])
    with_victim = shares_of(cohort, answers, others)
    return _unmasked(cohort, masked, to_bytes(secret_of(cohort, with_victim, others)), without, others)


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
    relabelled = replace(own.known, session=earlier.server._state.session)
    shares = [
        machine._secrets().open_box(part(boxes, k, messages.BOX_BYTES), place, relabelled, transcript)
        for k, (place, machine) in enumerate(old.items())
    ]
    points = [server._graph.point(VICTIM, place) for place in old]
    halves = [scalar_of(share[: messages.SECRET_BYTES]) for share in shares]
    few = slice(cohort.parameters.threshold)
    self_key = to_bytes(combine(points[few], halves[few]))
    dealt = (_dealt_to_victim(cohort, place, machine, relabelled, transcript) for place, machine in old.items())
    delivered = (b"".join(column) for column in zip(*dealt, strict=True))
    answer_of(victim, server._send(VICTIM, messages.Deliver(session, tuple(old), *delivered))[1])
    everybody = to_bitmap(range(cohort.parameters.clients), cohort.parameters.clients)
    masked = vector_of(cohort, answer_of(victim, server._send(VICTIM, messages.Dealers(session, everybody, ()))[1]))
    values = (share[messages.SECRET_BYTES :] for share in shares)
    pairs = [pair_seed(value, transcript, (VICTIM, place)) for place, value in zip(old, values, strict=True)]
    add_masks(masked, plus=[], minus=[self_stream(self_key, transcript), *pairs])
    reduce(masked)
    return masked.lift()


def _dealt_to_victim(
    cohort: Cohort, place: int, machine: Client, victim: messages.KnownAdvertise, transcript: bytes
) -> tuple[bytes, bytes, bytes, bytes]:
    """Deal with the secrets of a machine that is gone: its box, commitments, responses and challenges."""
    graph, secrets = cohort.server._graph, machine._secrets()
    dealing = secrets.deal(transcript, place, graph.neighbours(place), cohort.parameters.threshold)
    at = graph.point(place, VICTIM) - 1
    challenges = challenges_of(transcript, place, dealing.proofs[:HASH_BYTES] + dealing.commitments)
    box = secrets.seal_box(part(dealing.shares, at), place, victim, transcript)
    return box, part(dealing.commitments, at), part(dealing.responses, at), b"".join(map(to_bytes, challenges))


def malformed_bytes(cohort: Cohort) -> Value | None:
    """Damaged messages, then one after which only the victim continues, so that no pair would mask."""
    outbox = cohort.play("mask")
    victim, server = cohort.clients[VICTIM], cohort.server
    for damaged in _damaged(outbox[VICTIM], cohort):
        with suppress(RemoteProtocolError):
            victim.receive(damaged)
    _, cut = server._send(VICTIM, messages.Dealers(server._state.session, to_bitmap({VICTIM}, len(outbox)), ()))
    others = [client for client in outbox if client != VICTIM]
    masks = {client: answer_of(cohort.clients[client], outbox[client]) for client in others}
    masks[VICTIM] = answer_of(victim, cut)
    masked = vector_of(cohort, masks[VICTIM])
    state = shares_of(cohort, masks, others)
    self_key = to_bytes(secret_of(cohort, state, others))
    add_masks(masked, plus=[], minus=[self_stream(self_key, state.transcript)])
    reduce(masked)
    return masked.lift()


def _damaged(message: bytes, cohort: Cohort) -> Iterator[bytes]:
    """Bytes cut off, added, and turned over."""
    yield from (b"", message[: len(message) // 2], message[:-1], message + b"\x00")
    for place in (cohort.rng.uint64(_DAMAGES) % np.uint64(len(message))).tolist():
        yield message[:place] + bytes([message[place] ^ 0xFF]) + message[place + 1 :]


LIES: Mapping[str, Callable[[Cohort], Value | None]] = {
    "colluders": colluders,
    "invented clients": invented_clients,
    "equivocation": equivocation,
    "lone survivor": lone_survivor,
    "both share kinds": both_share_kinds,
    "replayed keys": replayed_keys,
    "malformed bytes": malformed_bytes,
}
"""Every lie, by name: what it believes to be the victim's vector."""


class ProtocolLies(Examination):
    """The rate at which a lying server unmasks one client of the machines as shipped: 0, or the masking is broken."""

    name = "protocol-lies"
    number = 14
    goal = "unmasking"
    title = "an attacker who runs the server lies to its clients to unmask one of them"
    needs = Adversary(sees="transcript", knows="none", active=True, colluders=COLLUDERS)
    effort = 0.1

    def refusal(self, plan: Plan) -> str | None:
        """Needs a plan whose clients mask with each other."""
        return None if plan.protocol == "interactive" else "lies to clients that answer; here they send one message"

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """One row per lie, in sessions of six clients; masks promise that none ever succeeds."""
        del plan
        return never(self, LIES, lambda: Cohort(rng), trials, confidence)


def _two_lists(cohort: Cohort, shown: set[int]) -> Value | None:
    """One list for the victim, one without it for the others."""
    outbox = cohort.play("mask")
    answers = {client: answer_of(cohort.clients[client], message) for client, message in outbox.items()}
    masked, server = vector_of(cohort, answers.pop(VICTIM)), cohort.server
    bitmap, session = to_bitmap(shown, cohort.parameters.clients), server._state.session
    agree = cohort.step(answers)
    answer_of(cohort.clients[VICTIM], server._send(VICTIM, messages.Survivors(session, bitmap))[1])
    unmask = cohort.step({client: answer_of(cohort.clients[client], message) for client, message in agree.items()})
    state = server._state
    signers = tuple(sorted(state.signatures))
    agreement = messages.Agreement(session, signers, b"".join(state.signatures[signer] for signer in signers))
    victims = answer_of(cohort.clients[VICTIM], server._send(VICTIM, agreement)[1])
    own = messages.decode(server._channel(VICTIM).open(memoryview(victims)), messages.Unmask).self_key
    cohort.step({client: answer_of(cohort.clients[client], message) for client, message in unmask.items()})
    return _unmasked(cohort, masked, own, state, list(unmask))


def _rolled_back(cohort: Cohort, client: int, saved: bytes) -> Client:
    """The client to be asked again: the same machine, unless a double lets itself be set back."""
    machine, back = cohort.clients[client], getattr(cohort.client, "roll_back", None)
    restored: Client = machine if back is None else back(cohort, client, saved)
    return restored


def _unmasked(
    cohort: Cohort, masked: RingVector, self_key: bytes, state: ServerState, holders: Collection[int]
) -> Value:
    """Take both kinds of masks off the victim's vector: the lowest client's f has the secrets of all its pairs."""
    pairs = []
    for other in state.dealers - {VICTIM}:
        value = to_bytes(secret_of(cohort, state, holders, cohort.server._graph.point(VICTIM, other)))
        pairs.append(pair_seed(value, state.transcript, (VICTIM, other)))
    add_masks(masked, plus=[], minus=[self_stream(self_key, state.transcript), *pairs])
    reduce(masked)
    return masked.lift()
