"""Attack 14 once more, fifteen years later: every message was recorded, and X25519 is broken.

The attacker has the traffic, plan and roster, and the private half of every X25519 key in it; no share, no box and no
colluder. Every key that it needs also rests on a secret of ML-KEM-768, which it has to guess: zeros, nothing, X25519's
own. Given these secrets too it reads the vector, as the tests show: the arithmetic is right, and the guess is what
fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privstats.plan import Plan
from privstats.randomness import Generator
from privstats.secagg import Parameters, Roster, kem, wire
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.client_secrets import NONCE, Channel, pair_seed, self_stream
from privstats.secagg.interactive.dealing import part
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.messages import advert_leaf, context_of, transcript_of
from privstats.secagg.keys import agree, derive, public_of
from privstats.secagg.prg import add_masks, reduce
from privstats.secagg.scalars import combine, scalar_of, to_bytes
from privstats.secagg.transcript import MerkleTree
from privstats.secagg.wire import Refusal
from threat_models.adversary import Adversary
from threat_models.attack import Examination
from threat_models.attacks.staged import VICTIM, Cohort, Value, answer_of
from threat_models.attacks.unmasking import never
from threat_models.report import Row

Traffic = Sequence[tuple[int, bytes]]
"""Every message of a session and the client at its other end, in order."""
Logarithm = Callable[[bytes], bytes]
"""From an X25519 public key to 32 bytes that X25519 takes for its private half."""
Secrets = Callable[[bytes, bytes, bytes], Sequence[bytes]]
"""What ML-KEM's secret may be, of an encapsulation key, a ciphertext and X25519's secret beside it."""


def guesses(key: bytes, ciphertext: bytes, shared: bytes) -> Sequence[bytes]:
    """Without ML-KEM's private half: what a key derivation that lacks the secret would have in its place."""
    del key, ciphertext
    return bytes(kem.SECRET_BYTES), b"", shared


def read_recording(
    traffic: Traffic, parameters: Parameters, roster: Roster, victim: int, logarithm: Logarithm, secrets: Secrets
) -> Value | None:
    """The victim's vector; None where nothing opens."""
    read = Recording(traffic, parameters, roster, logarithm)
    try:
        masks = _masks_of(read, victim, secrets)
    except (InvalidTag, Refusal):
        return None
    upload = messages.decode(read.heard(messages.Mask)[victim][: -wire.TAG_BYTES], messages.Mask)
    vector = parameters.ring.unpack(upload.vector)
    own, pairs = masks
    add_masks(
        vector,
        plus=[seed for other, seed in pairs if other < victim],
        minus=[own, *(seed for other, seed in pairs if other > victim)],
    )
    reduce(vector)
    return vector.lift()


class Recording:
    """Everything that any carrier of the messages can read."""

    def __init__(self, traffic: Traffic, parameters: Parameters, roster: Roster, logarithm: Logarithm) -> None:
        self.traffic, self.parameters, self.logarithm = traffic, parameters, logarithm
        self.opening = messages.decode(next(iter(self.heard(messages.Open).values())), messages.Open)
        adverts = self.heard(messages.Advertise).items()
        self.adverts = {client: messages.decode(data, messages.Advertise) for client, data in adverts}
        leaves = {client: advert_leaf(advert) for client, advert in self.adverts.items()}
        self.graph = Graph(parameters, roster)
        context = context_of(self.graph, self.opening.session, self.opening.server_key, self.opening.kem_key)
        self.transcript = transcript_of(context, MerkleTree(leaves, parameters.clients).root)

    def heard(self, kind: type) -> dict[int, memoryview]:
        """The last message of a type, by client."""
        return {client: memoryview(data) for client, data in self.traffic if messages.is_kind(data, kind)}

    def shared(self, one: bytes, other: bytes) -> bytes:
        """The secret of two X25519 keys, by the logarithm of the first."""
        return agree(X25519PrivateKey.from_private_bytes(self.logarithm(one)), other)

    def partners(self, client: int) -> Iterator[int]:
        """Yield the clients that ``client`` masked with, if there were no disputes."""
        checked = self.heard(messages.Check)
        return (other for other in self.graph.neighbours(client) if other in checked)


Masks = tuple[bytes, list[tuple[int, bytes]]]
"""The seed of the self-mask, and the seeds of the pairs."""


def _masks_of(read: Recording, victim: int, secrets: Secrets) -> Masks:
    """Compute the masks from the shares in the boxes, which are read first."""
    dealt: dict[int, dict[int, bytes]] = {}
    for owner in (victim, *read.partners(victim)):
        boxes = _shares_of(read, owner, secrets)
        others = [other for other in read.graph.neighbours(owner) if other in read.adverts]
        cut = (part(boxes, at, messages.BOX_BYTES) for at in range(len(others)))
        dealt[owner] = {
            other: _opened(read, owner, other, box, secrets) for other, box in zip(others, cut, strict=True)
        }
    points = [read.graph.point(victim, other) for other in dealt[victim]][: read.parameters.threshold]
    values = [scalar_of(share[:32]) for share in dealt[victim].values()][: read.parameters.threshold]
    pairs = [
        (other, pair_seed(dealt[min(victim, other)][max(victim, other)][32:], read.transcript, (victim, other)))
        for other in read.partners(victim)
    ]
    return self_stream(to_bytes(combine(points, values)), read.transcript), pairs


def _shares_of(read: Recording, owner: int, secrets: Secrets) -> bytes:
    """The boxes that a client sent, out of its channel to the server."""
    advert, opening = read.adverts[owner], read.opening
    shared = read.shared(opening.server_key, advert.box_key)
    for secret in secrets(opening.kem_key, advert.ciphertext, shared):
        whole = kem.combined(shared, secret, advert.ciphertext)
        channel = Channel(whole, session=opening.session, client=owner)
        try:
            return messages.decode(channel.open(read.heard(messages.Share)[owner]), messages.Share).boxes
        except Refusal:
            continue
    raise InvalidTag


def _opened(read: Recording, owner: int, holder: int, box: bytes, secrets: Secrets) -> bytes:
    """The two shares in one box."""
    ciphertext, sealed = box[: kem.CIPHERTEXT_BYTES], box[kem.CIPHERTEXT_BYTES :]
    shared = read.shared(read.adverts[holder].box_key, read.adverts[owner].box_key)
    for secret in secrets(read.adverts[holder].kem_key, ciphertext, shared):
        key = derive(kem.combined(shared, secret, ciphertext), f"box/{owner}/{holder}", salt=read.transcript)
        try:
            bound = messages.box_context(read.opening.session, owner, holder)
            return AESGCM(key).decrypt(NONCE, sealed, bound)
        except InvalidTag:
            continue
    raise InvalidTag


def logarithms_of(cohort: Cohort) -> dict[bytes, bytes]:
    """The private half of every X25519 key in a session that is still open, by its public half."""
    server = cohort.server
    privates = [server._private.private_bytes_raw()]
    for client in cohort.clients:
        privates.append(client._secrets()._box_private.private_bytes_raw())
    return {public_of(private): private for private in privates}


def attack(cohort: Cohort) -> Value | None:
    """Record, break X25519, read."""
    traffic, known = recorded(cohort)
    return read_recording(traffic, cohort.parameters, cohort.roster, VICTIM, known.__getitem__, guesses)


def recorded(cohort: Cohort) -> tuple[list[tuple[int, bytes]], dict[bytes, bytes]]:
    """Everything that both sides send in an honest session, and the logarithms of the keys in it."""
    traffic, known, outbox = [], dict[bytes, bytes](), dict(cohort.server.start())
    while outbox:
        answers = {client: answer_of(cohort.clients[client], message) for client, message in outbox.items()}
        traffic += [*outbox.items(), *answers.items()]
        known = known or logarithms_of(cohort)  # they are destroyed at the end
        outbox = cohort.step(answers)
    return traffic, known


class Recorded(Examination):
    """The rate at which a recording of all messages opens one party's vector once X25519 is broken."""

    name = "recorded"
    number = 14
    goal = "unmasking"
    title = "an attacker recorded every message, and broke X25519 years later"
    needs = Adversary(sees="transcript", knows="none")
    effort = 0.1

    def refusal(self, plan: Plan) -> str | None:
        """Needs a plan whose clients mask with each other."""
        return None if plan.protocol == "interactive" else "reads sessions of clients that answer each other's keys"

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """One row: the masks promise that a recording never opens a vector."""
        del plan
        return never(self, {"all messages": attack}, lambda: Cohort(rng), trials, confidence)
