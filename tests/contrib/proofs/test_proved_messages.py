"""The messages of a session with proofs, read and made again from ``docs/wire/proved_reports.md``."""

from dataclasses import dataclass
from hashlib import sha256

import msgspec
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privstats.contrib.proofs.claims import Claim
from privstats.contrib.proofs.field import Prime
from privstats.secagg import xwing
from tests.contrib.proofs import second_implementation as second
from tests.contrib.proofs.cases import BITS, STEP, nab
from tests.contrib.proofs.proved import Proved, UploadParameters
from tests.secagg.interactive.cohorts import PLAN, stream
from tests.secagg.plainly import proof_of, sha, tree, u8, u32
from tests.secagg.upload.second_implementation import bitmap, label, xwing_open, xwing_public, xwing_seal

SHAPE = second.classes(2, 2, BITS, 5)
CLAIM = Claim("classes", (2, 2), STEP**2, 5, BITS)
GROUP = Prime(((2, STEP**2 // 4096), (4, STEP), (2, 1), (1, 1)))
FACTORS = np.repeat([16, STEP, 1], [2, 4, 3])
SUITE = b"privstats/upload/4 X-Wing Ed25519 HKDF-SHA256 AES-256-GCM AES-256-CTR F(2^61-1)"
HELPERS, CLIENTS = 2, 3
FROZEN = "b9e9b3df6975693a8bc6078f85b59a1c6e4a143f86ebb94826214824418b9cb5"


class Small(Proved):
    """Three clients of two classes and two features."""

    def drawn(self, rng: np.random.Generator) -> list[np.ndarray]:
        return [nab(rng, 2, 2, n=5).x // FACTORS for _ in range(CLIENTS)]


def small() -> Small:
    sizes = {"clients": CLIENTS, "min_survivors": 3, "colluders": 1, "helpers": HELPERS}
    return Small(UploadParameters.solve(**sizes, ring=GROUP, plan_digest=PLAN, claim=CLAIM), "small")


def box_key(place: int) -> bytes:
    return stream(f"small box {place}")(32)


def context_of(run: Small) -> bytes:
    """From suite, plan, group and claim, as the page says them."""
    claim = ["proof/1", "moments", "classes", [2, 2], STEP**2, 5, BITS, [], False, 128, SHAPE.Q]
    claim.append([SHAPE.first, SHAPE.second, SHAPE.length])
    segments = [[size, 61] for size, _ in GROUP.parts]
    stated = [SUITE, "split", [CLIENTS, 3, 1, HELPERS, HELPERS - 1], segments, PLAN, GROUP.parts, claim]
    parameters = sha(b"privstats/upload/parameters", msgspec.msgpack.encode(stated))
    keys = [each.public.hex() for each in run.members]
    panel = sha(label("panel"), *(bytes.fromhex(key) + xwing_public(box_key(r)) for r, key in enumerate(keys)))
    return sha(label("context"), parameters, run.roster.digest, panel)


def words(data: bytes) -> list[int]:
    return [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]


@dataclass
class Read:
    """One report, opened by leader and helpers, after every hash and signature of it is found right."""

    levels: list
    boxes: list[bytes]
    signature: bytes
    commits: bytes
    parts: bytes
    shares: list[list[int]]
    said: second.Said


def opened(run: Small, context: bytes, sender: int, report: bytes) -> Read:
    kind, told, who, boxes, commits, parts, body, signature = msgspec.msgpack.decode(report[1:])
    assert (report[0], kind, told, who) == (1, 9, context, sender)
    of_client, places = context + u32(sender), range(1, HELPERS + 1)
    boxes = [boxes[1168 * j : 1168 * (j + 1)] for j in range(HELPERS + 1)]
    levels = tree([sha(label("box-hash"), u8(j), box) for j, box in enumerate(boxes)])
    said = sha(label("proof-said"), parts, commits)
    signed = label("proved-report") + of_client + levels[-1][0] + said
    Ed25519PublicKey.from_public_bytes(run.identities[sender].public).verify(signature, signed)
    key, *seeds = (xwing_open(box_key(j), box, label("box") + of_client + u8(j)) for j, box in enumerate(boxes))
    content = AESGCM(key).decrypt(bytes(12), body, None)
    blind, share = content[:32], content[32:]
    stages = share[: 8 * SHAPE.first], share[8 * SHAPE.first : 8 * SHAPE.second]
    assert parts == b"".join(sha(label("proof-part"), of_client, u8(k + 1), blind, stages[k]) for k in (0, 1))
    assert commits == b"".join(sha(label("proof-commit"), of_client, u8(j), seeds[j - 1]) for j in places)
    streams = [second.stream(second.kdf(seed, f"field/{sender}", context), SHAPE.length) for seed in seeds]
    proof = second.Said(context, sender, [commits[:32], commits[32:]], [parts[:32], parts[32:]])
    return Read(levels, boxes, signature, commits, parts, [words(share), *streams], proof)


def batch_of(run: Small, context: bytes, place: int, reports: dict[int, Read], rho: bytes) -> bytes:
    each = reports.values()
    columns = [
        b"",
        b"".join(proof_of(read.levels, place) for read in each),
        b"".join(read.boxes[place] for read in each),
        *(b"".join(getattr(read, name) for read in each) for name in ("signature", "commits", "parts")),
    ]
    unsigned = b"\x01" + msgspec.msgpack.encode([10, context, 0, list(reports), *columns, rho, bytes(64)])[:-66]
    return unsigned + b"\xc4\x40" + run.members[0].sign(label("batch") + context + u8(place) + sha(unsigned))


def checked_of(run: Small, context: bytes, place: int, reports: dict[int, Read], batch: bytes, rho: bytes) -> bytes:
    answers = [second.answer_of(SHAPE, read.shares[place], read.said, rho) for read in reports.values()]
    told, accepted = b"".join(map(second.packed, answers)), bitmap(list(reports), len(reports))
    statement = label("proved-checked") + context + u8(place) + sha(batch) + sha(told) + accepted
    return b"\x01" + msgspec.msgpack.encode([11, context, 0, accepted, told, run.members[place].sign(statement)])


def test_every_message_is_what_the_page_says() -> None:
    run = small()
    context, reports = context_of(run), {}
    assert context == run.context
    for sender in range(CLIENTS):
        report = run.report(sender)
        reports[sender] = opened(run, context, sender, report)
        run.leader.receive(sender, report)
    outbox = dict(run.leader.end_step())
    rho = msgspec.msgpack.decode(outbox[CLIENTS][1:])[10]
    for place in range(1, HELPERS + 1):
        batch = batch_of(run, context, place, reports, rho)
        assert outbox[run.peer(place)] == batch
        ((_, checked),) = run.helpers[place - 1].receive(batch)
        assert checked == checked_of(run, context, place, reports, batch, rho)
        run.leader.receive(run.peer(place), checked)
    assert all(second.accepts(SHAPE, read.shares, read.said, rho) for read in reports.values())
    assert run.finish()[1] == (0, 1, 2)


def sealed(public: bytes, content: bytes, info: bytes) -> bytes:
    """A box whose randomness follows from whom it is for, so that it can be made twice."""
    return xwing_seal(public, sha(b"message", info), sha(b"ephemeral", info), content, info)


def test_a_frozen_run_is_repeated_to_the_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every message in its order; the witnesses are of matrices so small that no BLAS rounds them otherwise."""
    monkeypatch.setattr(xwing, "seal", sealed)
    run, found = small(), sha256()
    for sender in range(CLIENTS):
        report = run.report(sender)
        found.update(report)
        run.leader.receive(sender, report)
    for _ in range(2):
        for peer, message in run.leader.end_step():
            ((_, answer),) = run.helpers[peer - CLIENTS].receive(message)
            found.update(message + answer)
            run.leader.receive(peer, answer)
    assert found.hexdigest() == FROZEN
