"""A recorder that keeps every message and breaks X25519 later reads no party's sums: ML-KEM's secrets are lacking.

This is the evidence of that sentence on the pages for people. A transcript and logarithms are all that the attacker
gets.
"""

from contextlib import nullcontext
from hashlib import sha3_256
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privstats.randomness import seeded
from privstats.secagg import kem, wire
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.client_secrets import ClientSecrets, pair_seed
from privstats.secagg.interactive.state import STEPS, answers_of
from privstats.secagg.keys import derive, public_of
from privstats.secagg.masking_facts import RECORDED, masking_facts
from privstats.secagg.prg import add_masks
from privstats.secagg.upload.signed_statements import box_info
from tests.secagg.interactive.cohorts import Cohort, cohort_of, read
from tests.secagg.interactive.transcripts import encapsulating, randomness
from tests.secagg.plainly import exchange
from tests.secagg.upload.cohorts import uploads_of
from tests.secagg.upload.second_implementation import schedule, xwing_halves
from threat_models.attacks import recorded as attack
from threat_models.attacks.staged import Cohort as Staged


class TestInteractive:
    """The attacker has every X25519 private key there is, the server's among them."""

    def recorded(self, run: int) -> tuple[Staged, list[tuple[int, bytes]], dict[bytes, bytes], dict[bytes, Any]]:
        """A session, its traffic, the logarithms in it, and the private halves of ML-KEM's keys."""
        real, drawn = kem.private_key, []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kem, "private_key", lambda seed: drawn.append(real(seed)) or drawn[-1])
            cohort = Staged(seeded(run))
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
            cohort = cohort_of(5, 4, 1)
            passed: dict[tuple[int, int], bytes] = {}
            with monkeypatch.context() as patch, encapsulating(randomness()):
                if zeros:
                    seal = ClientSecrets.seal_box

                    def sealed(keys, shares, sender, receiver, transcript, passed=passed, seal=seal):
                        passed[sender, receiver.sender] = shares
                        return seal(keys, bytes(len(shares)), sender, receiver, transcript)

                    patch.setattr(ClientSecrets, "seal_box", sealed)
                    patch.setattr(
                        ClientSecrets,
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
        opens = STEPS[step].opens
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


def test_the_same_recorder_opens_no_box_of_a_report() -> None:
    """It has both halves of every exchange by X25519, and guesses what ML-KEM gave: by what it sees, or nothing."""
    run, tried = uploads_of(helpers=2), 0
    halves = {public_of(half): half for half in (xwing_halves(private)[1] for private in run.privates)}
    for sender in range(run.parameters.clients):
        for place, box in enumerate(run.boxes(run.report(sender))):
            public, info = run.panel.box_key(place), box_info(run.context, sender, place)
            exchanged = exchange(halves[public[1184:]], box[1088:1120])
            true = xwing_halves(run.privates[place])[0].decapsulate(box[:1088])
            for secret in (bytes(32), exchanged, sha3_256(box[:1088]).digest(), sha3_256(public).digest(), true):
                told = secret + exchanged + box[1088:1120] + public[1184:] + b"\\.//^\\"
                key, nonce = schedule(sha3_256(told).digest(), info)
                with nullcontext() if secret == true else pytest.raises(InvalidTag):
                    AESGCM(key).decrypt(nonce, box[1120:], None)
                tried += 1
    assert tried == 5 * 3 * run.parameters.clients
    assert len(halves) == 3


@pytest.mark.parametrize(
    "page", ["SECURITY.md", "docs/threat_model.md", "docs/wire/interactive.md", "docs/wire/one_upload.md"]
)
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
