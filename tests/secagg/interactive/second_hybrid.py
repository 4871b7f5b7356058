"""A second implementation of version 4's clients, from ``docs/protocol.md`` alone: what differs from version 3's.

Its ML-KEM is that of ``tests.secagg.mlkem``; it shares no code with ``privstats.secagg``. Randomness of encapsulation
comes from who plays it.
"""

import contextlib
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests.secagg import mlkem
from tests.secagg.interactive.second_implementation import L, SecondClient, at, drawn, hkdf, label, le
from tests.secagg.plainly import ctr, exchange, pack, pack_tile, public_of, root_of, sha, u32

SUITE = b"privstats/secagg/4 X25519 ML-KEM-768 Ed25519 HKDF-SHA256 AES-256-GCM"
CT, BOX = 1088, 1168


def number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


@dataclass
class SecondHybridClient(SecondClient):
    """One client of a frozen session of version 4; ``random`` gives 32 bytes for each encapsulation, in order."""

    random: Callable[[], bytes] = bytes

    suite = SUITE
    version = 4
    steps: ClassVar = {15: "advertise", 18: "share", 4: "check", 21: "mask", 6: "agree", 8: "unmask", 10: "abort"}

    def __post_init__(self) -> None:
        super().__post_init__()
        self.kem_seed = hkdf(self.root, "box-kem", size=64)
        self.kem_public = mlkem.keys_of(self.kem_seed)[0]

    def sealed(self, kind: int, header: bytes, content: bytes) -> bytes:
        if kind != 3:
            return super().sealed(kind, header, content)
        nonce = hkdf(self.shared, f"nonce/{self.me}", sha(content), 12)
        return header + nonce + self.key(3).encrypt(nonce, content, header)

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

    def proven(self, alive: list[int]) -> int:
        return sum(1 for client in alive if client == self.me or client in self.partners)
