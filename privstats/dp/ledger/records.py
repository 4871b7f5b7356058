"""Define a ledger's records, and the hash chain in which each depends on all earlier ones."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from privstats import domains
from privstats.dp.privacy import Adjacency, Unit
from privstats.errors import LedgerError

Hex: TypeAlias = Annotated[str, Meta(pattern="^([0-9a-f]{2})*$")]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
ApartBy: TypeAlias = Literal["", "holding", "parties"]
"""The guarantor that rounds priced as disjoint hold different records; empty where every round has its own price."""
_HEAD = re.compile(r"(\d{1,12})-([0-9a-f]{64})")


@dataclass(frozen=True)
class Part:
    """One statistic of a spend: its guaranteed noise in real units, and its own mu."""

    statistic: str
    sigma: float
    mu: float


class _Base(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    at: str


class Opened(_Base, frozen=True, tag="opened"):
    """First record: a random 32-digit hex id, so that a new file cannot stand in for an old one."""

    ledger: Hex


class Capped(_Base, frozen=True, tag="capped"):
    """Sets the cap of a data set for all later charges."""

    dataset: str
    unit: Unit
    adjacency: Adjacency
    epsilon: Annotated[float, Meta(gt=0)]
    delta: Annotated[float, Meta(ge=0, lt=1)]


class Spent(_Base, frozen=True, tag="spent", omit_defaults=True):
    """Record that a release, or a course of ``nodes`` sessions, is allowed; ``run`` is in hex.

    ``mu`` is None for exact sums. ``pure`` is the epsilon of a release with delta = 0, otherwise None; its ``mu`` is
    that of its noise (an older privstats wrote the larger mu that epsilon implies). Fields with their default are
    omitted, so older records keep their bytes.
    """

    dataset: str
    plan: str
    run: Hex
    what: str
    model: str
    mu: Annotated[float, Meta(ge=0)] | None
    parts: tuple[Part, ...]
    nodes: Annotated[int, Meta(ge=1)] = 1
    masking_failure: Annotated[float, Meta(ge=0)] = 0.0
    apart: ApartBy = ""
    pure: Annotated[float, Meta(gt=0)] | None = None
    condition: str = ""


class Marked(_Base, frozen=True, tag="marked"):
    """Records the start of round ``node`` of the course in record ``spend``; it never starts again."""

    spend: Count
    node: Count


class Uploaded(_Base, frozen=True, tag="uploaded"):
    """Records that the upload of round ``node`` of the course in record ``spend`` is sent; ``upload`` is its digest."""

    spend: Count
    node: Count
    upload: Hex


class Finished(_Base, frozen=True, tag="finished"):
    """Records that the upload or release of record ``spend`` was sent; ``upload`` identifies its bytes, in hex."""

    spend: Count
    upload: Hex


class Freed(_Base, frozen=True, tag="freed"):
    """The upload under record ``spend`` is in no sum and never can be: it costs nothing. ``proof`` is a digest."""

    spend: Count
    proof: Hex


class Withdrawn(_Base, frozen=True, tag="withdrawn"):
    """Nothing was or will be sent under record ``spend``: it costs nothing but its ``masking_failure``."""

    spend: Count


class Assigned(_Base, frozen=True, tag="assigned"):
    """Assigns the role ``apart`` to a course that an older privstats spent as record ``spend``."""

    spend: Count
    apart: Literal["holding", "parties"]


class Counted(_Base, frozen=True, tag="counted"):
    """The last run counter accepted for the parties with the digest ``members``; both in hex."""

    members: Hex
    counter: Count
    run: Hex


RegistryAction: TypeAlias = Literal["opened", "entered", "rows", "gone", "taken", "left", "returned", "lost"]


class Held(_Base, frozen=True, tag="held"):
    """A change of records of the stream in record ``spend``; ``body`` is the SHA-256 of their keys.

    For ``rows`` these are keys of persons, each with a keyed hash of this person's entered rows.
    """

    spend: Count
    node: Count
    action: RegistryAction
    body: Hex


Record: TypeAlias = (
    Opened | Capped | Spent | Marked | Uploaded | Finished | Freed | Withdrawn | Assigned | Counted | Held
)


@dataclass(frozen=True)
class Head:
    """A ledger's number of records, and a digest that depends on every byte of them.

    Printed as ``<length>-<64 hex digits>``.
    """

    length: int
    digest: str

    def __str__(self) -> str:
        return f"{self.length}-{self.digest}"

    @classmethod
    def parse(cls, text: object, where: str) -> Head:
        """Parse ``text``; ``where`` names its source in the error."""
        match = _HEAD.fullmatch(text.strip()) if isinstance(text, str) else None
        if match is None:
            raise LedgerError(f"{where} must be a head as printed, <records>-<64 hex digits>: copy it whole")
        return cls(int(match[1]), match[2])


_DECODER: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)


def no_records(domain: bytes = domains.LEDGER) -> Head:
    """Return the head before the first record."""
    return Head(0, hashlib.sha256(domain).hexdigest())


def link(before: Head, body: bytes, domain: bytes = domains.LEDGER) -> Head:
    """Return the head after one more record: SHA-256(domain, digest before, length before, body)."""
    sealed = domain + bytes.fromhex(before.digest) + before.length.to_bytes(8, "big") + body
    return Head(before.length + 1, hashlib.sha256(sealed).hexdigest())


def domain_of(body: bytes, digest: str) -> bytes:
    """Return the domain in which a first record has this digest, or that of new ledgers, in which it is refused.

    No domain is a prefix of another, so two domains hash no bytes alike: an edit that two domains overlook is an edit
    that one domain overlooks.
    """
    known = (domains.LEDGER, domains.LEDGER_MOVED)
    return next((each for each in known if link(no_records(each), body, each).digest == digest), domains.LEDGER)


def encode(record: Record) -> bytes:
    """Return canonical JSON; floats keep every bit."""
    return msgspec.json.encode(record, order="deterministic")


def sealed(record: Record) -> bytes:
    """Encode, and verify that the result decodes to the record; otherwise the ledger could never be read again."""
    try:
        body = encode(record)
        if _DECODER.decode(body) == record:
            return body
    except (msgspec.MsgspecError, TypeError, ValueError):
        pass
    raise LedgerError("a record does not decode to itself: give values of the documented types")


def decode(body: bytes) -> Record:
    """Decode a record of this version."""
    try:
        return _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise LedgerError("a record is not of a version that this privstats knows") from None
