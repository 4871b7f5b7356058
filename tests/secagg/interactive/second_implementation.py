"""A second implementation of the clients, written from ``docs/wire/interactive.md`` alone and in the plainest way.

It shares no code with ``privstats.secagg``: its own field and graph, with the msgpack, Merkle tree and keystream of
``plainly`` and the ML-KEM of ``mlkem``, over the primitives of ``cryptography`` and ``hashlib``. It checks digests, the
server's signatures and what it must open to go on, and nothing else; it says what an honest client must send.
"""

import contextlib
import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from math import comb
from typing import ClassVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tests.secagg import mlkem
from tests.secagg.plainly import ctr, exchange, pack, pack_tile, public_of, root_of, sha, u32, unpack

SUITE = b"privstats/secagg/4 X25519 ML-KEM-768 Ed25519 HKDF-SHA256 AES-256-GCM"
COMMITTEE = 1024
GRAPH_RULE = 2
CT, BOX = 1088, 1168
L = 2**252 + 27742317777372353535851937790883648493


def label(purpose: str) -> bytes:
    return b"privstats/secagg/2/" + purpose.encode() + b"\0"


def hkdf(secret: bytes, purpose: str, salt: bytes = b"", size: int = 32) -> bytes:
    return HKDF(SHA256(), size, salt, b"privstats/secagg/2/" + purpose.encode()).derive(secret)


def le(value: int) -> bytes:
    return value.to_bytes(32, "little")


def number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def drawn(key: bytes, count: int) -> list[int]:
    stream = ctr(key, 0, 0, 64 * count)
    return [number(stream[64 * i : 64 * (i + 1)]) % L for i in range(count)]


def at(x: int, constant: int, coefficients: list[int]) -> int:
    return (constant + sum(c * x ** (power + 1) for power, c in enumerate(coefficients))) % L


def ed25519(private: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def chain(root: bytes, layers: int) -> tuple[list[bytes], list[bytes]]:
    """The values of the chain under a root, and the seeds of the layers, both from the lowest."""
    values, seeds = [root], []
    for _ in range(layers):
        seeds.append(hkdf(values[-1], "noise-layers/seed"))
        values.append(hkdf(values[-1], "noise-layers/next"))
    return values[::-1], seeds[::-1]


@dataclass
class SecondClient:
    """One client of a frozen session; ``random`` gives 32 bytes for each encapsulation, in order."""

    session: dict
    me: int
    adverts: dict[int, list] = field(default_factory=dict)
    held: dict[int, bytes] = field(default_factory=dict)
    random: Callable[[], bytes] = bytes

    steps: ClassVar = {15: "advertise", 18: "share", 4: "check", 21: "mask", 6: "agree", 8: "unmask", 10: "abort"}

    def __post_init__(self) -> None:
        frozen = self.session
        self.n, self.t, self.k = frozen["clients"], frozen["threshold"], frozen["neighbours"]
        self.signer = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(frozen["identities"][self.me]))
        root = bytes.fromhex(frozen["roots"][self.me])
        self.root, self.box_key = root, hkdf(root, "box-key")
        self.kem_seed = hkdf(root, "box-kem", size=64)
        self.kem_public = mlkem.keys_of(self.kem_seed)[0]
        self.levels = frozen.get("levels", [])
        if self.levels:
            self.values, _ = chain(bytes.fromhex(frozen["noise_roots"][self.me]), len(self.levels) - 1)

    def answer(self, message: bytes) -> bytes:
        """What an honest client sends after ``message``: nothing to an abort."""
        assert message[0] == 4
        name = self.steps[message[2]]
        step = getattr(self, name)
        if name in ("advertise", "abort"):
            return step(unpack(message[1:]))
        header, sealed = message[:37], message[37:]
        opened = self.key(message[2]).decrypt(bytes(12), sealed, header)
        body = b"\x04" + pack(step(unpack(header[1:] + opened), sha(message)))
        if body[2] == 5:
            return body + self.key(5).encrypt(bytes(12), b"", body)
        return self.sealed(body[2], body[:37], body[37:])

    def sealed(self, kind: int, header: bytes, content: bytes) -> bytes:
        if kind != 3:
            return header + self.key(kind).encrypt(bytes(12), content, header)
        nonce = hkdf(self.shared, f"nonce/{self.me}", sha(content), 12)
        return header + nonce + self.key(3).encrypt(nonce, content, header)

    def key(self, kind: int) -> AESGCM:
        return AESGCM(hkdf(self.shared, f"channel/{self.me}/{kind}", self.name))

    def abort(self, message: list) -> bytes:
        _, name, code, signature = message
        assert name == self.name
        self.server.verify(signature, label("abort") + self.context + bytes([code]))
        return b""

    def digests(self) -> tuple[bytes, bytes]:
        """Of parameters and roster, from what the parties agreed on."""
        frozen = self.session
        numbers = [frozen[name] for name in ("clients", "threshold", "min_survivors", "colluders", "neighbours")]
        content = [SUITE, numbers, frozen["ring"], bytes.fromhex(frozen["plan_digest"])]
        content += [self.levels] if self.levels else []
        content += [] if frozen["neighbours"] == self.n - 1 else [self.majority, GRAPH_RULE]
        keys = [ed25519(bytes.fromhex(private)) for private in (*frozen["identities"], frozen["server_identity"])]
        members = sha(label("members"), u32(self.n), *keys)
        run = bytes.fromhex(frozen["run"])
        if frozen["label"]:
            named = frozen["label"].encode()
            assert run == sha(label("run"), members, u32(len(named)), named, struct.pack(">Q", frozen["counter"]))
        self.server = Ed25519PublicKey.from_public_bytes(keys[-1])
        return sha(b"privstats/secagg/parameters", pack(content)), sha(label("roster"), members, run)

    def seeded(self) -> tuple[bytes, bytes]:
        """The digests, after which graph and committee are known."""
        parameters, roster = self.digests()
        self.graph_seed, self.committee_seed = sha(label("graph"), roster), sha(label("committee"), roster)
        return parameters, roster

    def advertise(self, opening: list) -> bytes:
        _, self.name, parameters, roster, server_key, server_kem, signature = opening
        assert (parameters, roster) == self.seeded()
        self.context = sha(label("context"), parameters, roster, self.name, server_key, sha(server_kem))
        self.server.verify(signature, label("open") + self.context)
        secret, ciphertext = mlkem.encapsulate(server_kem, self.random())
        self.shared = exchange(self.box_key, server_key) + secret + ciphertext
        keys = public_of(self.box_key) + sha(self.kem_public) + sha(ciphertext)
        signature = self.signer.sign(label("advertise") + self.context + u32(self.me) + keys)
        self.advert = [17, self.name, self.me, keys[:32], self.kem_public, keys[64:], signature]
        sent = [16, self.name, self.me, keys[:32], self.kem_public, ciphertext, signature]
        return b"\x04" + pack(sent)

    def neighbours(self, client: int) -> list[int]:
        if self.k == self.n - 1:
            return [other for other in range(self.n) if other != client]
        ring = self.permutation(self.graph_seed)
        at = ring.index(client)
        return sorted(ring[(at + away) % self.n] for away in range(-(self.k // 2), self.k // 2 + 1) if away)

    def permutation(self, seed: bytes) -> list[int]:
        drawn = struct.unpack(f"<{self.n}Q", ctr(seed, 0, 0, 8 * self.n))
        return sorted(range(self.n), key=lambda other: (drawn[other], other))

    @property
    def committee(self) -> set[int]:
        return set(range(self.n) if self.n <= COMMITTEE else self.permutation(self.committee_seed)[:COMMITTEE])

    def share(self, opening: list, reply_to: bytes) -> list:
        _, _, adverts, proof = opening
        self.adverts = {advert[2]: advert for advert in adverts}
        leaves = {a[2]: sha(label("leaf"), u32(a[2]), a[3], sha(a[4]), a[5], a[6]) for a in (*adverts, self.advert)}
        self.transcript = sha(label("transcript"), self.context, root_of(leaves, self.n, proof))
        holders, values = self.neighbours(self.me), {}
        for kind, name in ((b"s", "self"), (b"k", "pair")):
            for what in ("coefficients", "blinds"):
                low, *high = drawn(hkdf(self.root, f"{name}-{what}", self.transcript), self.t)
                values[kind, what] = [at(x, low, high) for x in range(self.k + 1)]
        self.g, self.f = values[b"s", "coefficients"], values[b"k", "coefficients"]
        zero = self.commit(b"s", self.me, self.me, le(self.g[0]), le(values[b"s", "blinds"][0]))
        commitments = b"".join(
            self.commit(kind, self.me, holder, *(le(values[kind, what][x]) for what in ("coefficients", "blinds")))
            for x, holder in enumerate(holders, 1)
            for kind in (b"s", b"k")
        )
        z = {}
        for kind in (b"s", b"k"):
            told = label("challenge") + self.transcript + kind + u32(self.me)
            e = number(hashlib.sha512(told + sha(label("commitments"), zero, commitments)).digest()) % L
            pairs = zip(values[kind, "blinds"], values[kind, "coefficients"], strict=True)
            z[kind] = [(u + e * f) % L for u, f in pairs]
        boxes = b""
        for other in sorted(self.adverts):
            secret, ciphertext = mlkem.encapsulate(self.adverts[other][4], self.random())
            x, bound = holders.index(other) + 1, self.box_context(self.me, other)
            key = self.sealing(other, secret + ciphertext, self.me, other)
            boxes += ciphertext + key.encrypt(bytes(12), le(self.g[x]) + le(self.f[x]), bound)
        answers = b"".join(le(z[kind][x]) for x in range(1, self.k + 1) for kind in (b"s", b"k"))
        return [3, self.name, self.me, reply_to, boxes, commitments, answers, zero + le(z[b"s"][0])]

    def sealing(self, other: int, encapsulated: bytes, sender: int, receiver: int) -> AESGCM:
        shared = exchange(self.box_key, self.adverts[other][3]) + encapsulated
        return AESGCM(hkdf(shared, f"box/{sender}/{receiver}", self.transcript))

    def box_context(self, sender: int, receiver: int) -> bytes:
        return label("share") + self.name + u32(sender) + u32(receiver)

    def commit(self, kind: bytes, owner: int, holder: int, one: bytes, blind: bytes) -> bytes:
        return sha(label("share-commitment"), self.transcript, kind, u32(owner), u32(holder), one, blind)

    def check(self, opening: list, reply_to: bytes) -> list:
        _, _, sharers, boxes, commitments, responses, challenges = opening
        for place, owner in enumerate(sharers):
            sealed = boxes[BOX * place : BOX * (place + 1)]
            secret = mlkem.decapsulate(self.kem_seed, sealed[:CT])
            with contextlib.suppress(InvalidTag):
                key = self.sealing(owner, secret + sealed[:CT], owner, self.me)
                both = key.decrypt(bytes(12), sealed[CT:], self.box_context(owner, self.me))
                for i, kind in enumerate((b"s", b"k")):
                    one, where = both[32 * i :][:32], 64 * place + 32 * i
                    z, e = (number(each[where:][:32]) for each in (responses, challenges))
                    blind = le((z - e * number(one)) % L)
                    assert commitments[where:][:32] == self.commit(kind, owner, self.me, one, blind)
                self.held[owner] = both
        failed = [owner for owner in sharers if owner not in self.held]
        links = b"".join(
            xor(self.pair(owner), hkdf(self.held[owner][32:], f"link/{self.me}/{owner}", self.transcript))
            for owner in sharers
            if owner > self.me and owner in self.held
        )
        if self.levels:
            return [20, self.name, self.me, reply_to, failed, links, self.values[0]]
        return [19, self.name, self.me, reply_to, failed, links]

    def pair(self, other: int) -> bytes:
        low, high = sorted((self.me, other))
        mine = le(self.f[self.neighbours(self.me).index(other) + 1])
        return hkdf(mine if low == self.me else self.held[other][32:], f"mask/{low}/{high}", self.transcript)

    def listed(self, bitmap: bytes) -> list[int]:
        return [i for i in range(self.n) if bitmap[i // 8] >> i % 8 & 1]

    def mask(self, opening: list, reply_to: bytes) -> list:
        self.dealers = [other for other in self.listed(opening[2]) if other in self.neighbours(self.me)]
        self.partners = [other for other in self.dealers if other in self.held and other not in opening[3]]
        self.self_key = le(self.g[0])
        seeds = [(hkdf(self.self_key, "self-mask", self.transcript), 1)]
        seeds += [(self.pair(other), 1 if other > self.me else -1) for other in self.partners]
        vector, packed = list(self.session["vectors"][self.me]), b""
        for lane, (size, bits) in enumerate(self.session["ring"]):
            width = 4 if bits <= 32 else 8
            streams = [(ctr(seed, lane, 0, width * size), sign) for seed, sign in seeds]
            masked = []
            for entry in range(size):
                value = vector.pop(0)
                for stream, sign in streams:
                    value += sign * number(stream[width * entry : width * (entry + 1)])
                masked.append(value % (1 << bits))
            packed += pack_tile(masked, bits)
        return [5, self.name, self.me, reply_to, packed]

    def agree(self, opening: list, reply_to: bytes) -> list:
        self.survivors = opening[2]
        return [7, self.name, self.me, reply_to, self.signer.sign(label("agree") + self.transcript + self.survivors)]

    def proven(self, alive: list[int]) -> int:
        return sum(1 for client in alive if client == self.me or client in self.partners)

    @property
    def majority(self) -> int:
        """How many of the committee sign the one list."""
        n, c, s = self.n, self.session["colluders"], COMMITTEE
        if n <= s:
            return (n + c) // 2 + 1
        # the smallest with Pr[Hyp(n, c, s) >= 2 * majority - s] <= 2^-40, summed from the far end
        above, most = 0, min(c, s)
        for hits in range(most, -1, -1):
            above += comb(c, hits) * comb(n - c, s - hits)
            if above * 2**40 > comb(n, s):
                return (hits + s) // 2 + 1
        raise AssertionError

    def unmask(self, opening: list, reply_to: bytes) -> list:
        _, _, signers, signatures = opening
        assert len(self.committee.intersection((*signers, self.me))) >= self.majority
        around = len(set(signers).intersection(self.neighbours(self.me)))
        complete = self.session["neighbours"] == self.n - 1
        assert around >= self.session["threshold"] - complete
        for place, signer in enumerate(signers):
            public = ed25519(bytes.fromhex(self.session["identities"][signer]))
            signed = label("agree") + self.transcript + self.survivors
            Ed25519PublicKey.from_public_bytes(public).verify(signatures[64 * place : 64 * place + 64], signed)
        alive, owners = self.listed(self.survivors), [owner for owner in self.dealers if owner in self.held]
        shares = b"".join(self.held[owner][:32] if owner in alive else self.held[owner][32:] for owner in owners)
        if self.levels:
            opened = max(place for place, level in enumerate(self.levels) if level <= self.proven(alive))
            return [14, self.name, self.me, reply_to, self.self_key, owners, shares, self.values[opened]]
        return [9, self.name, self.me, reply_to, self.self_key, owners, shares]
