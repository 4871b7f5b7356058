"""A recorder that breaks X25519 later: keep every message of a session, take two logarithms, read one party's sums.

Both protocols agree on keys by X25519 alone, so secrecy from somebody who keeps a recording ends when X25519 does. This
is the evidence of that sentence on the pages for people. A transcript and logarithms are all that the attacker gets.
"""

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from hashlib import sha3_256
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from privstats.randomness import seeded
from privstats.secagg import Parameters, Roster, hpke, kem, scalars, wire
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.client_secrets import ClientSecrets, pair_seed, self_stream
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.hybrid import HybridSecrets
from privstats.secagg.interactive.messages import advert_leaf, context_of, transcript_of
from privstats.secagg.interactive.state import STEPS, answers_of, steps_of
from privstats.secagg.keys import HYBRID, agree, derive, public_of
from privstats.secagg.masking_facts import RECORDED, masking_facts
from privstats.secagg.prg import add_masks
from privstats.secagg.transcript import MerkleTree
from privstats.secagg.upload import messages as reports
from privstats.secagg.upload.checks import rows
from privstats.secagg.upload.masking_scheme import Streams
from privstats.secagg.upload.signed_statements import box_info
from tests.secagg.interactive.cohorts import Cohort, cohort_of, read, stream
from tests.secagg.interactive.inside import inside
from tests.secagg.interactive.test_eavesdropper import Traffic, recorded
from tests.secagg.interactive.transcripts import encapsulating, randomness
from tests.secagg.plainly import exchange
from tests.secagg.upload.cohorts import SUITE, Uploads, uploads_of
from tests.secagg.upload.second_implementation import schedule, xwing_halves
from threat_models.attacks import recorded as attack
from threat_models.attacks.recorded import staged
from threat_models.attacks.staged import Cohort as Staged


@dataclass
class Logarithms:
    """What X25519 is broken to: the private half of a public key; it counts what it was asked."""

    known: Mapping[bytes, bytes]
    asked: set[bytes] = field(default_factory=set)

    @classmethod
    def of_all(cls, privates: Iterable[bytes]) -> "Logarithms":
        """Those of the public keys of these private ones."""
        return cls({public_of(private): private for private in privates})

    def of(self, public: bytes) -> bytes:
        """The private half."""
        self.asked.add(public)
        return self.known[public]


def logarithms_of(cohort: Cohort) -> Logarithms:
    """Of everything that the clients advertise."""
    secrets = [inside(ClientSecrets(bytes(inside(client).state.root))) for client in cohort.clients]
    return Logarithms.of_all([key.private for each in secrets for key in (each.mask_key, each.self_key)])


def read_from_a_recording(
    traffic: Traffic, parameters: Parameters, roster: Roster, victim: int, logarithms: Logarithms
) -> NDArray[np.int64]:
    """The attack: one party's vector from recorded messages, its mask key's logarithm and its self-mask key's."""

    def heard(kind: type) -> dict[int, memoryview]:
        tag = kind.__struct_config__.tag
        return {client: memoryview(data) for client, data in traffic if data[2] == tag}

    opening = messages.decode(heard(messages.Open)[0], messages.Open)
    adverts = {client: messages.decode(data, messages.Advertise) for client, data in heard(messages.Advertise).items()}
    tree = MerkleTree({client: advert_leaf(advert) for client, advert in adverts.items()}, parameters.clients)
    graph = Graph(parameters, roster)
    transcript = transcript_of(context_of(graph, opening.session, opening.server_key), tree.root)
    mask_key = X25519PrivateKey.from_private_bytes(logarithms.of(adverts[victim].mask_key))
    clamped = int.from_bytes(logarithms.of(adverts[victim].self_key), "little") & (2**254 - 8) | 2**254
    seeds = {
        other: pair_seed(agree(mask_key, adverts[other].mask_key), transcript, (victim, other))
        for other in set(heard(messages.Check)) & set(graph.neighbours(victim))
    }
    upload = messages.decode(heard(messages.Mask)[victim][: -wire.TAG_BYTES], messages.Mask)
    vector = parameters.ring.unpack(upload.vector)
    add_masks(
        vector,
        plus=[seed for other, seed in seeds.items() if other < victim],
        minus=[
            self_stream(scalars.canonical(clamped % scalars.ORDER), transcript),
            *(seed for other, seed in seeds.items() if other > victim),
        ],
    )
    return vector.lift()


@pytest.mark.parametrize("victim", [0, 3])
def test_two_logarithms_open_one_partys_vector_in_an_interactive_session(cohort: Cohort, victim: int) -> None:
    logarithms = logarithms_of(cohort)
    traffic = recorded(cohort)
    vector = read_from_a_recording(traffic, cohort.parameters, cohort.roster, victim, logarithms)
    assert np.array_equal(vector, cohort.values[victim])
    assert len(logarithms.asked) == 2


def test_the_same_recording_stays_uniform_without_them(cohort: Cohort) -> None:
    """The control: with the logarithms of another cohort's keys in their place the attacker reads something else."""
    other = logarithms_of(cohort_of(label="another"))
    wrong = Logarithms(dict(zip(logarithms_of(cohort).known, other.known.values(), strict=True)))
    vector = read_from_a_recording(recorded(cohort), cohort.parameters, cohort.roster, 0, wrong)
    assert not np.any(vector == cohort.values[0])


class TestVersion4:
    """The same attacker, with every X25519 private key there is, the server's among them."""

    def recorded(self, run: int) -> tuple[Staged, list[tuple[int, bytes]], dict[bytes, bytes], dict[bytes, Any]]:
        """A session, its traffic, the logarithms in it, and the private halves of ML-KEM's keys."""
        real, drawn = kem.private_key, []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kem, "private_key", lambda seed: drawn.append(real(seed)) or drawn[-1])
            cohort = staged(seeded(run), HYBRID)
            traffic, known = attack.recorded(cohort)
        return cohort, traffic, known, {kem.public_of(private): private for private in drawn}

    @pytest.mark.parametrize("run", range(3))
    def test_nothing_opens_and_with_the_kems_keys_too_everything_does(self, run: int) -> None:
        """The second is the control: what the attacker lacks is ML-KEM's private halves and nothing else."""
        cohort, traffic, known, privates = self.recorded(run)

        def decapsulated(key: bytes, ciphertext: bytes, shared: bytes) -> tuple[bytes, ...]:
            assert shared
            return (kem.decapsulate(privates[key], ciphertext),)

        place = cohort.parameters, cohort.roster, 0, known.__getitem__
        assert attack.read_recording(traffic, *place, attack.guesses) is None
        assert cohort.got(attack.read_recording(traffic, *place, decapsulated))
        keys = self.recorded(run + 100)[3].values()
        assert attack.read_recording(traffic, *place, lambda _, ct, __: [kem.decapsulate(k, ct) for k in keys]) is None

    def test_masks_from_x25519_alone_unmask_nothing(self) -> None:
        """As if a seed followed from the box keys, the only ones that two clients share."""
        cohort, traffic, known, _ = self.recorded(0)
        reading = attack.Recording(traffic, cohort.parameters, cohort.roster, known.__getitem__)
        upload = messages.decode(reading.heard(messages.Mask)[0][: -wire.TAG_BYTES], messages.Mask)
        box_keys = {client: advert.box_key for client, advert in reading.adverts.items()}
        seeds = [pair_seed(reading.shared(box_keys[0], box_keys[k]), reading.transcript, (0, k)) for k in range(1, 6)]
        for label in ("self-mask", "self-coefficients"):
            own = derive(known[box_keys[0]], label, salt=reading.transcript)
            vector = cohort.parameters.ring.unpack(upload.vector)
            add_masks(vector, plus=[], minus=[own, *seeds])
            assert not np.any(vector.lift() == cohort.values[0])

    def test_with_zeros_in_every_box_nothing_else_that_is_sent_changes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The simulation game: honest clients pass shares behind the attacker's back, and boxes hold zeros.

        With the same randomness every other field is the same, so that all that a recording tells of shares is in
        boxes, under keys that only ML-KEM's secrets and X25519's together give.
        """
        games = []
        for zeros in (False, True):
            cohort = cohort_of(5, 4, 1, key_agreement=HYBRID)
            passed: dict[tuple[int, int], bytes] = {}
            with monkeypatch.context() as patch, encapsulating(randomness()):
                if zeros:
                    seal = HybridSecrets.seal_box

                    def sealed(keys, shares, sender, receiver, transcript, passed=passed, seal=seal):
                        passed[sender, receiver.sender] = shares
                        return seal(keys, bytes(len(shares)), sender, receiver, transcript)

                    patch.setattr(HybridSecrets, "seal_box", sealed)
                    patch.setattr(
                        HybridSecrets,
                        "open_box",
                        lambda _, __, receiver, sender, ___, passed=passed: passed[sender.sender, receiver],
                    )
                games.append(said_in(cohort))
        assert games[0] == games[1]
        assert len(games[0]) == 2 * len(STEPS) * 5


def said_in(cohort: Cohort) -> list[tuple[Any, ...]]:
    """Every field of every message, opened, but for boxes and the hashes of messages with boxes."""
    fields, outbox = [], dict(cohort.server.start())
    for step in STEPS:
        opens = steps_of(cohort.parameters)[step].opens
        for client, message in outbox.items():
            ((_, answer),) = cohort.clients[client].receive(message)
            cohort.server.receive(client, answer)
            for data, kind in ((message, opens), (answer, answers_of(step, cohort.parameters))):
                said = read(cohort, client, data, kind)
                names = [name for name in kind.__struct_fields__ if name not in ("boxes", "reply_to")]
                fields.append((kind.__name__, *(plain(getattr(said, name)) for name in names)))
        if step != "unmask":
            outbox = dict(cohort.server.end_step())
    return fields


def plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else msgspec.to_builtins(value)


def read_from_a_report(run: Uploads, report: bytes, sender: int, logarithms: Logarithms) -> NDArray[np.int64]:
    """The attack on the one upload: a report, and the logarithms of the panel's box keys."""
    opened = []
    message = run.read(report, reports.Report)
    for place, box in enumerate([message.body, *rows(message.boxes, run.parameters.suite.box_bytes)]):
        private = X25519PrivateKey.from_private_bytes(logarithms.of(run.panel.offers[place].box_key))
        opened.append(hpke.open_box(private, box, box_info(run.context, sender, place)))
    vector = run.parameters.ring.unpack(opened[0])
    streams = Streams(run.parameters.ring, run.parameters.helpers, run.context)
    for seed in opened[1:]:
        covered = memoryview(bytearray(run.parameters.ring.wire_bytes))
        streams.answer([(sender, seed)], covered)
        vector.add(run.parameters.ring.unpack(covered))
    return vector.lift()


def test_a_logarithm_for_each_member_of_the_panel_opens_all_reports_of_a_run() -> None:
    run = uploads_of(helpers=2)
    logarithms = Logarithms.of_all([stream(f"{run.label} box {place}")(32) for place in range(3)])
    for sender in range(run.parameters.clients):
        vector = read_from_a_report(run, run.report(sender), sender, logarithms)
        assert np.array_equal(vector, run.values[sender])
    assert len(logarithms.asked) == 3


def test_of_x_wing_boxes_the_same_recorder_opens_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has both halves of every exchange by X25519, and guesses what ML-KEM gave: by what it sees, or nothing."""
    monkeypatch.setitem(SUITE, "key_agreement", HYBRID)
    run = uploads_of(helpers=2)
    halves = [xwing_halves(private)[1] for private in run.privates]
    logarithms, tried = Logarithms.of_all(halves), 0
    for sender in range(run.parameters.clients):
        for place, box in enumerate(run.boxes(run.report(sender))):
            public, info = run.panel.box_key(place), box_info(run.context, sender, place)
            half = logarithms.of(public[1184:])
            exchanged = exchange(half, box[1088:1120])
            true = xwing_halves(run.privates[place])[0].decapsulate(box[:1088])
            for secret in (bytes(32), exchanged, sha3_256(box[:1088]).digest(), sha3_256(public).digest(), true):
                told = secret + exchanged + box[1088:1120] + public[1184:] + b"\\.//^\\"
                key, nonce = schedule(b"\x64\x7a", sha3_256(told).digest(), info)
                with nullcontext() if secret == true else pytest.raises(InvalidTag):
                    AESGCM(key).decrypt(nonce, box[1120:], None)
                tried += 1
            with pytest.raises(hpke.UnopenedError):
                hpke.open_box(X25519PrivateKey.from_private_bytes(half), box[1088:], info)
    assert tried == 5 * 3 * run.parameters.clients
    assert len(logarithms.asked) == 3


@pytest.mark.parametrize("page", ["SECURITY.md", "docs/threat_model.md", "docs/protocol.md", "docs/one_upload.md"])
def test_every_page_that_promises_secrecy_says_so(page: str) -> None:
    text = " ".join((Path(__file__).parents[2] / page).read_text("utf-8").split())
    for said in (
        "ong-term secrecy",
        "X25519",
        "large quantum computer",
        "tests/secagg/test_recorded.py",
    ):
        assert said in text


def test_both_protocols_say_so_where_a_plan_is_checked(cohort: Cohort) -> None:
    assert RECORDED in masking_facts(cohort.parameters)
    assert RECORDED in masking_facts(uploads_of().parameters)
