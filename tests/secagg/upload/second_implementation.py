"""A second implementation of clients, helpers and leader, written from ``docs/wire`` in the plainest way.

It shares no code with ``privstats.secagg``: its own HPKE, with the msgpack, Merkle tree and packing of ``plainly``,
over the primitives of ``cryptography`` and ``hashlib``. It says what honest parties must send, and checks nothing but
what it needs.
"""

import struct
from dataclasses import dataclass, field
from hashlib import sha3_256, shake_256

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tests.secagg import mlkem
from tests.secagg.plainly import ctr, exchange, pack, pack_tile, proof_of, public_of, sha, tree, u8, u32, unpack

SUITE = b"privstats/upload/3 X-Wing Ed25519 HKDF-SHA256 AES-256-GCM"


def label(purpose: str) -> bytes:
    return b"privstats/upload/1/" + purpose.encode() + b"\0"


def kdf(secret: bytes, purpose: str, salt: bytes) -> bytes:
    return HKDF(SHA256(), 32, salt, b"privstats/upload/" + purpose.encode()).derive(secret)


def hmac(key: bytes, content: bytes) -> bytes:
    mac = HMAC(key or bytes(32), SHA256())
    mac.update(content)
    return mac.finalize()


def extract(about: bytes, salt: bytes, purpose: bytes, content: bytes) -> bytes:
    return hmac(salt, b"HPKE-v1" + about + purpose + content)


def expand(about: bytes, key: bytes, purpose: bytes, context: bytes, size: int) -> bytes:
    return hmac(key, struct.pack(">H", size) + b"HPKE-v1" + about + purpose + context + b"\1")[:size]


def schedule(shared: bytes, info: bytes, aead: int = 2) -> tuple[bytes, bytes]:
    suite = b"HPKE\x64\x7a\x00\x01\x00" + bytes([aead])
    context = b"\0" + extract(suite, b"", b"psk_id_hash", b"") + extract(suite, b"", b"info_hash", info)
    secret = extract(suite, shared, b"secret", b"")
    return expand(suite, secret, b"key", context, 32), expand(suite, secret, b"base_nonce", context, 12)


def xwing_halves(seed: bytes) -> tuple[MLKEM768PrivateKey, bytes]:
    expanded = shake_256(seed).digest(96)
    return MLKEM768PrivateKey.from_seed_bytes(expanded[:64]), expanded[64:]


def xwing_public(seed: bytes) -> bytes:
    post_quantum, classical = xwing_halves(seed)
    return post_quantum.public_key().public_bytes_raw() + public_of(classical)


def xwing_secret(seed: bytes, enc: bytes) -> bytes:
    """The draft's Decapsulate: SHA3-256 of both secrets, the ephemeral and the public X25519 key, and a label."""
    post_quantum, classical = xwing_halves(seed)
    exchanged = exchange(classical, enc[1088:])
    combined = post_quantum.decapsulate(enc[:1088]) + exchanged + enc[1088:] + public_of(classical) + b"\\.//^\\"
    return sha3_256(combined).digest()


def xwing_open(seed: bytes, box: bytes, info: bytes) -> bytes:
    key, nonce = schedule(xwing_secret(seed, box[:1120]), info)
    return AESGCM(key).decrypt(nonce, box[1120:], None)


def xwing_seal(public: bytes, message: bytes, ephemeral: bytes, content: bytes, info: bytes) -> bytes:
    """A box from given randomness: the draft's EncapsulateDerand."""
    shared, ciphertext = mlkem.encapsulate(public[:1184], message)
    exchanged, enc = exchange(ephemeral, public[1184:]), public_of(ephemeral)
    key, nonce = schedule(sha3_256(shared + exchanged + enc + public[1184:] + b"\\.//^\\").digest(), info)
    return ciphertext + enc + AESGCM(key).encrypt(nonce, content, None)


def bitmap(members: list[int], size: int) -> bytes:
    return sum(1 << member for member in members).to_bytes((size + 7) // 8, "little")


@dataclass
class Second:
    """All parties of one frozen run. Boxes cannot be made twice: those of the run are opened and compared."""

    frozen: dict
    heads: dict[int, tuple] = field(default_factory=dict)  # sender: boxes, levels, signature, statement's hash

    def __post_init__(self) -> None:
        frozen = self.frozen
        self.n, self.h, self.ring = frozen["clients"], frozen["helpers"], frozen["ring"]
        self.signers, self.seats = ([self.signer(raw) for raw in frozen[name]] for name in ("identities", "members"))
        self.box_keys = [bytes.fromhex(raw) for raw in frozen["box_keys"]]
        keys = [each.public_key().public_bytes_raw() for each in (*self.signers, *self.seats)]
        numbers = [self.n, frozen["min_survivors"], frozen["colluders"], self.h, self.h - 1]
        content = [SUITE, "split", numbers, self.ring, bytes.fromhex(frozen["plan_digest"])]
        self.parameters = sha(b"privstats/upload/parameters", pack(content))
        inner = b"privstats/secagg/2/"
        members = sha(inner + b"members\0", u32(self.n), *keys[: self.n], keys[self.n])
        self.roster = sha(inner + b"roster\0", members, bytes.fromhex(frozen["run"]))
        panel = sha(label("panel"), *(k + xwing_public(b) for k, b in zip(keys[self.n :], self.box_keys, strict=True)))
        self.context = sha(label("context"), self.parameters, self.roster, panel)

    @staticmethod
    def signer(raw: str) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(raw))

    def message(self, kind: int, *elements: object) -> bytes:
        return b"\x01" + pack([kind, self.context, *elements])

    def info(self, sender: int, place: int) -> bytes:
        return label("box") + self.context + u32(sender) + u8(place)

    def keystream(self, seed: bytes, sender: int) -> list[list[int]]:
        key, lanes = kdf(seed, f"stream/{sender}", self.context), []
        for lane, (size, bits) in enumerate(self.ring):
            width = 4 if bits <= 32 else 8
            data = ctr(key, lane, 0, width * size)
            lanes.append([int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width)])
        return lanes

    def packed(self, lanes: list[list[int]]) -> bytes:
        cut = ([value % (1 << bits) for value in lane] for lane, (_, bits) in zip(lanes, self.ring, strict=True))
        return b"".join(pack_tile(lane, bits) for lane, (_, bits) in zip(cut, self.ring, strict=True))

    def report(self, me: int) -> bytes:
        root, vector = bytes.fromhex(self.frozen["roots"][me]), list(self.frozen["vectors"][me])
        lanes = [[vector.pop(0) % (1 << bits) for _ in range(size)] for size, bits in self.ring]
        widths = [4 if bits <= 32 else 8 for _, bits in self.ring]
        plain = b"".join(v.to_bytes(w, "little") for lane, w in zip(lanes, widths, strict=True) for v in lane)
        hedge = AESGCM(kdf(root, "hedge", self.context)).encrypt(bytes(12), b"", u32(me) + plain)
        secret = kdf(root + hedge, f"secret/{me}", self.context)
        seeds = [kdf(secret, f"seed/{place}", self.context) for place in range(1, self.h + 1)]
        for seed in seeds:
            for lane, stream in zip(lanes, self.keystream(seed, me), strict=True):
                lane[:] = [value - word for value, word in zip(lane, stream, strict=True)]
        body, boxes = self.sealed(me, secret, self.packed(lanes), seeds)
        levels = tree([sha(label("box-hash"), u8(r), box) for r, box in enumerate(boxes)])
        statement = label("report") + self.context + u32(me) + levels[-1][0]
        signature = self.signers[me].sign(statement)
        self.heads[me] = boxes, levels, signature, sha(statement)
        return self.message(0, me, b"".join(boxes), body, signature)

    def sealed(self, me: int, secret: bytes, packed: bytes, seeds: list[bytes]) -> tuple[bytes, list[bytes]]:
        (frozen,) = (told["bytes"] for told in self.frozen["messages"] if told["from"] == me)
        column, key = unpack(bytes.fromhex(frozen)[1:])[3], kdf(secret, "body", self.context)
        boxes = [column[at : at + 1168] for at in range(0, len(column), 1168)]
        opened = [xwing_open(self.box_keys[r], box, self.info(me, r)) for r, box in enumerate(boxes)]
        assert opened == [key, *seeds]
        return AESGCM(key).encrypt(bytes(12), packed, None), boxes

    def batch(self, place: int, part: int, senders: list[int]) -> bytes:
        heads = [self.heads[sender] for sender in senders]
        elements = (
            part,
            senders,
            b"",
            b"".join(proof_of(levels, place) for _, levels, _, _ in heads),
            b"".join(boxes[place] for boxes, *_ in heads),
            b"".join(signature for *_, signature, _ in heads),
        )
        unsigned = self.message(1, *elements, bytes(64))[:-66]
        return unsigned + b"\xc4\x40" + self.seats[0].sign(label("batch") + self.context + u8(place) + sha(unsigned))

    def checked(self, place: int, batch: bytes) -> bytes:
        _, _, part, senders, *_ = unpack(batch[1:])
        accepted = bitmap(list(range(len(senders))), len(senders))
        statement = label("checked") + self.context + u8(place) + sha(batch) + accepted
        return self.message(2, part, accepted, self.seats[place].sign(statement))

    def survivors(self, listed: list[int]) -> bytes:
        roll = sha(label("roll"), *(u32(sender) + self.heads[sender][3] for sender in listed))
        bits = bitmap(listed, self.n)
        return self.message(3, bits, roll, self.seats[0].sign(label("survivors") + self.context + roll + bits))

    def reveal(self, place: int, question: bytes) -> bytes:
        _, _, bits, roll, _ = unpack(question[1:])
        total = [[0] * size for size, _ in self.ring]
        for sender in range(self.n):
            if bits[sender // 8] >> sender % 8 & 1:
                seed = xwing_open(self.box_keys[place], self.heads[sender][0][place], self.info(sender, place))
                for lane, stream in zip(total, self.keystream(seed, sender), strict=True):
                    lane[:] = [value + word for value, word in zip(lane, stream, strict=True)]
        answer = self.packed(total)
        statement = label("reveal") + self.context + u8(place) + roll + sha(answer)
        return self.message(6, roll, answer, self.seats[place].sign(statement))


class SecondDerived(Second):
    """As the clients in JavaScript and Java seal: what they encapsulate with is derived from the report's secret."""

    def sealed(self, me: int, secret: bytes, packed: bytes, seeds: list[bytes]) -> tuple[bytes, list[bytes]]:
        key = kdf(secret, "body", self.context)
        boxes = [
            xwing_seal(
                xwing_public(self.box_keys[r]),
                kdf(secret, f"encapsulate/{r}", self.context),
                kdf(secret, f"ephemeral/{r}", self.context),
                content,
                self.info(me, r),
            )
            for r, content in enumerate([key, *seeds])
        ]
        return AESGCM(key).encrypt(bytes(12), packed, None), boxes
