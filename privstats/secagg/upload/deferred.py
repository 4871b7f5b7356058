"""Let other processes sum settled parts for the leader.

A part is settled when every helper has answered; the part's senders are then fixed. The journal stores the part's
messages until the part's sum arrives.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privstats.encoding.ring import Group
from privstats.errors import LocalProtocolError
from privstats.secagg.exclusive import exclusive
from privstats.secagg.prg import add_packed
from privstats.secagg.upload.leader_steps import LeaderSteps
from privstats.secagg.upload.masking_scheme import MaskingScheme
from privstats.secagg.upload.state import Part

_KEY_BYTES, _OPENER_BYTES = 32, 44
_ADDED_BYTES = 16 << 20
"""The bytes of bodies that are added at a time."""


@dataclass(frozen=True, repr=False)
class SealedBody:
    """A report's sealed body, and the key that opens this body alone.

    Attributes:
        key: AES-256-GCM, 32 bytes.
        nonce: 12 bytes.
        content: the ciphertext with its tag.
    """

    key: bytes
    nonce: bytes
    content: bytes | memoryview

    @property
    def opener(self) -> bytes:
        """Key and nonce, 44 bytes."""
        return self.key + self.nonce


def bodies_in(content: bytes, openers: bytes) -> Iterator[SealedBody]:
    """Yield concatenated bodies of one length, each with its :attr:`SealedBody.opener`."""
    count, rest = divmod(len(openers), _OPENER_BYTES)
    if rest or not count or len(content) % count:
        raise LocalProtocolError("the part needs exactly one key for each body: request it from the leader again")
    size, view = len(content) // count, memoryview(content)
    for place in range(count):
        opener = openers[place * _OPENER_BYTES : (place + 1) * _OPENER_BYTES]
        yield SealedBody(opener[:_KEY_BYTES], opener[_KEY_BYTES:], view[place * size : (place + 1) * size])


def sum_of(ring: Group, bodies: Iterable[SealedBody]) -> bytes:
    """Return the packed sum of some bodies, equal for every order and partition.

    Raises:
        LocalProtocolError: a body was changed or exchanged.
    """
    total, size, remaining = ring.zeros(), ring.wire_bytes, iter(bodies)
    while some := [memoryview(_opened(each, size)) for each in islice(remaining, max(1, _ADDED_BYTES // size))]:
        add_packed(total, *some)
    return total.pack()


def sum_part(ring: Group, content: bytes, openers: bytes) -> bytes:
    """Return concatenated bodies' packed sum."""
    return sum_of(ring, bodies_in(content, openers))


def _opened(body: SealedBody, size: int) -> bytearray:
    out = bytearray(size)
    try:
        AESGCM(body.key).decrypt_into(body.nonce, body.content, None, out)
    except (InvalidTag, ValueError):
        raise LocalProtocolError("a body of the part does not open: it is not one that the leader accepted") from None
    return out


class DeferredSums(LeaderSteps):
    """A leader's settled parts with pending sums."""

    _scheme: MaskingScheme

    @abstractmethod
    def _sealed_body(self, part: Part, sender: int) -> SealedBody: ...

    @property
    def defers(self) -> bool:
        """Whether settled parts wait for :meth:`add_part_sum`; reports with proofs never do."""
        return self._state.defers

    @defers.setter
    def defers(self, on: bool) -> None:
        self._state.defers = on

    @property
    def unsummed(self) -> Mapping[int, tuple[int, ...]]:
        """The senders of each settled part outside the total, by number."""
        return {number: tuple(part.heads) for number, part in sorted(self._state.settled.items())}

    @exclusive
    def sealed(self, number: int, senders: Sequence[int]) -> list[SealedBody]:
        """Read a waiting part's bodies back, or raise ``LocalProtocolError``."""
        part = self._waiting(number)
        return [self._sealed_body(part, sender) for sender in senders]

    @exclusive
    def add_part_sum(self, number: int, packed: bytes) -> bool:
        """Add a part's sum; return whether it was awaited. A second one changes nothing.

        Raises:
            LocalProtocolError: the sum's length is wrong; nothing changes. Its content is not checked.
        """
        if number not in self._state.settled:
            return False
        if len(packed) != self.parameters.ring.wire_bytes:
            raise LocalProtocolError(
                f"the sum of part {number} has {len(packed)} bytes, and a vector {self.parameters.ring.wire_bytes}"
            )
        self._scheme.add(self._total, [memoryview(packed)])
        del self._state.settled[number]
        return True

    @exclusive
    def sum_part(self, number: int) -> None:
        """Sum a waiting part here; ``LocalProtocolError`` for any other part."""
        self._sum_here(number)

    def _sum_here(self, number: int) -> None:
        """Add a waiting part's sum; an error while it is computed leaves the total unchanged."""
        part, total = self._waiting(number), self._scheme.zeros()
        remaining, size = iter(part.heads), max(1, _ADDED_BYTES // self.parameters.upload_bytes)
        while some := [memoryview(self._body(part, sender)) for sender in islice(remaining, size)]:
            self._scheme.add(total, some)
        self._scheme.add(self._total, [memoryview(total.pack())])
        del self._state.settled[number]

    def _sum_all_here(self) -> None:
        for number in list(self._state.settled):
            self._sum_here(number)

    def _defer(self, number: int, part: Part, accepted: list[int]) -> bool:
        """Defer a settled part's sum; False if the leader must add it now."""
        if not self.defers or self.parameters.claim is not None or not part.places.keys() >= set(accepted):
            return False
        self._state.settled[number] = Part(
            heads={sender: part.heads[sender] for sender in accepted},
            places={sender: part.places[sender] for sender in accepted},
        )
        self._state.listed.update((sender, part.heads[sender].digest) for sender in accepted)
        return True

    def _waiting(self, number: int) -> Part:
        if number not in self._state.settled:
            raise LocalProtocolError(f"no sum of part {number} is awaited")
        return self._state.settled[number]

    @property
    def _total(self) -> Any:
        if self._sum is None:
            self._sum = self._scheme.zeros()
        return self._sum

    @property
    def shelved(self) -> Iterator[bytes]:
        """The places of reports that wait for a helper or for their part's sum."""
        for part in (self._state.open, *self._state.parts.values(), *self._state.settled.values()):
            yield from part.places.values()
