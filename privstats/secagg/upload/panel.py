"""The panel: leader and helpers, by identities that the plan names, each with a box key for one run.

Any party may deliver offers. The panel's digest goes into every message's context.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import ClassVar

from privstats.errors import LocalProtocolError
from privstats.files.signing import require_order, verify
from privstats.secagg import xwing
from privstats.secagg.keys import Identity
from privstats.secagg.roster import Roster
from privstats.secagg.upload.parameters import UploadParameters, check_run
from privstats.secagg.upload.signed_statements import context_of, offer_statement, panel_digest
from privstats.secagg.upload.suite import OFFER, OFFER_BYTES, check_box_key

LASTING_SECONDS = 30 * 24 * 3600
"""The default lifetime of a box key."""

_END_LIMIT = 1 << 63
_LATEST = 253_402_300_799  # the last second that a date can show


@dataclass(frozen=True)
class Offer:
    """One party's signed box key for one run.

    Attributes:
        SIZE: an encoded offer's length in bytes.
        place: 0 for the leader, 1 to h for helpers.
        identity: Ed25519 key, 32 bytes.
        box_key: X-Wing, 1,216 bytes, for this run alone.
        until: Unix time in seconds at which the box key expires; clients seal nothing for it afterwards.
        signature: over parameters, roster, place, box key and expiry, 64 bytes.

    Example:
        >>> leader, helper, *parties = (ps.secagg.Identity.generate(os.urandom) for _ in range(5))
        >>> roster = ps.secagg.Roster([party.public for party in parties], server=leader.public, run=os.urandom(16))
        >>> cohort = {"clients": 3, "min_survivors": 3, "colluders": 1, "ring": ps.encoding.Ring(((4, 16),))}
        >>> parameters = ps.secagg.UploadParameters.solve(**cohort, helpers=1, plan_digest=bytes(32))
        >>> offer = ps.secagg.HelperKeys(helper, 1, parameters, roster).offer
        >>> ps.secagg.Offer.decode(offer.encode()) == offer  # how it travels
        True
    """

    SIZE: ClassVar[int] = OFFER_BYTES

    place: int
    identity: bytes
    box_key: bytes
    until: int
    signature: bytes

    @classmethod
    def make(
        cls,
        place: int,
        identity: Identity,
        private: bytes | bytearray,
        parameters: UploadParameters,
        roster: Roster,
        *,
        until: int,
    ) -> Offer:
        """Build the offer of the box key with this private half."""
        box_key = xwing.public_of(private)
        signature = identity.sign(offer_statement(OFFER, parameters.digest, roster.digest, place, box_key, until))
        return cls(place, identity.public, box_key, until, signature)

    def encode(self) -> bytes:
        """Return ``place || identity || box key || u64 until || signature``, 1,321 bytes."""
        end = self.until.to_bytes(8, "big")
        return bytes([self.place]) + self.identity + self.box_key + end + self.signature

    @classmethod
    def decode(cls, data: bytes) -> Offer:
        """Parse an encoded offer.

        Raises:
            LocalProtocolError: not 1,321 bytes.
        """
        if not isinstance(data, bytes) or len(data) != OFFER_BYTES:
            raise LocalProtocolError(f"an offer has {OFFER_BYTES:,} bytes; ask the helper for its offer again")
        until, signature = data[-72:-64], data[-64:]
        return cls(data[0], data[1:33], data[33:-72], int.from_bytes(until, "big"), signature)

    def check(self, identity: bytes, parameters: UploadParameters, roster: bytes) -> None:
        """Require this member's offer for these parameters and roster digest.

        Raises:
            LocalProtocolError: another identity, an unusable key, or no such signature.
        """
        if self.identity != identity:
            raise LocalProtocolError(f"the offer for place {self.place} is not of the identity that the plan names")
        _check_order(self)
        statement = offer_statement(OFFER, parameters.digest, roster, self.place, self.box_key, self.until)
        if not verify(self.identity, self.signature, statement):
            raise LocalProtocolError(f"the offer for place {self.place} is not signed for this plan and this run")


@dataclass(frozen=True)
class Panel:
    """Leader and helpers of one run.

    Args:
        identities: the Ed25519 keys that the *plan* names, the leader's first. Never copy them from an offer: a leader
            that forges the panel controls every helper, and reads every vector.
        offers: one per place, in any order, from any source.

    Raises:
        LocalProtocolError: a duplicate identity, place or box key, a missing offer, another identity than the plan's,
            or a key of low order.

    Example:
        >>> panel = [ps.secagg.Identity.generate(os.urandom).public.hex() for _ in range(3)]
        >>> protocol = {"privacy": ps.NoPrivacy(), "protocol": "split", "panel": panel}
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(3, 3, 9), **protocol)
        >>> parties = ps.session.local_parties(plan, [ps.measure(plan.schema, [[0.1, 0.2]], [0])] * 3)
        >>> panel = parties.server.panel
        >>> panel.helpers, [offer.place for offer in panel.offers]
        (2, [0, 1, 2])
    """

    identities: tuple[bytes, ...]
    offers: tuple[Offer, ...]

    def __post_init__(self) -> None:
        identities = tuple(self.identities)
        offers = tuple(sorted(self.offers, key=lambda offer: offer.place))
        object.__setattr__(self, "identities", identities)
        object.__setattr__(self, "offers", offers)
        if len(identities) < 2 or len(set(identities)) != len(identities):
            raise LocalProtocolError("a panel names the leader and at least one helper, and no identity twice")
        if [offer.place for offer in offers] != list(range(len(identities))):
            raise LocalProtocolError(f"a panel needs one offer for each of the places 0 to {len(identities) - 1}")
        for offer, identity in zip(offers, identities, strict=True):
            if offer.identity != identity:
                raise LocalProtocolError(
                    f"the offer for place {offer.place} is not of the identity that the plan names"
                )
            _check_order(offer)
        if len({offer.box_key for offer in offers}) != len(offers):
            raise LocalProtocolError("two places of the panel offer one box key: each helper makes its own")

    @classmethod
    def of(cls, offers: Iterable[bytes]) -> Panel:
        """Rebuild a checked panel from the offers in a machine's sealed state."""
        decoded = tuple(map(Offer.decode, offers))
        return cls(tuple(offer.identity for offer in decoded), decoded)

    @property
    def helpers(self) -> int:
        """The number of helpers, without the leader."""
        return len(self.identities) - 1

    @cached_property
    def digest(self) -> bytes:
        """32-byte digest of all members' identities and box keys."""
        return panel_digest((offer.identity, offer.box_key) for offer in self.offers)

    @property
    def until(self) -> int:
        """Unix time in seconds at which the first box key expires."""
        return min(offer.until for offer in self.offers)

    @property
    def ended(self) -> bool:
        """Whether a box key has expired, by this machine's clock."""
        return time.time() >= self.until

    def require_open(self) -> None:
        """Raise ``LocalProtocolError`` if a box key has expired, and state whose: a journal destroys an expired key."""
        now = time.time()
        ended = [offer for offer in self.offers if now >= offer.until]
        if not ended:
            return
        if len(ended) == len(self.offers):
            raise LocalProtocolError(
                f"the box keys of this run have expired (the first on {_day(self.until)}, and this machine's clock is "
                f"at {_day(now)}), so nothing is sealed to them: set this machine's clock if it is ahead, else ask the "
                "coordinator for a new run"
            )
        whose = ", ".join(f"{_title(offer.place)}'s on {_day(offer.until)}" for offer in ended)
        raise LocalProtocolError(
            f"some box keys of this run have expired, and others have not ({whose}), so nothing is sealed to them: "
            "their holders' clocks were behind when the run began; ask the coordinator for a new run"
        )

    def require_lasting(self, seconds: float) -> None:
        """Raise ``LocalProtocolError`` if a helper's box key ends within ``seconds``, and state whose clock is behind.

        A coordinator calls it before it binds its own key, so that no party is told of an expired key.
        """
        now = time.time()
        early = [offer for offer in self.offers[1:] if offer.until < now + seconds]
        if early:
            whose = ", ".join(f"{_title(offer.place)}'s box key ends on {_day(offer.until)}" for offer in early)
            raise LocalProtocolError(
                f"{whose}, and this machine's clock is at {_day(now)}: one of both clocks was wrong when the key was "
                'made. Set it, and start a new run for all ("privstats roster renew"); nothing was sent'
            )

    def box_key(self, place: int) -> bytes:
        """Return the box key of leader (0) or helper."""
        return self.offers[place].box_key

    def context(self, parameters: UploadParameters, roster: Roster | bytes) -> bytes:
        """Check helpers, roster and digests, and return the run's context.

        Args:
            roster: at a client its digest suffices, without a check of members.

        Raises:
            LocalProtocolError: panel, parameters and roster do not fit together, a member is also a client, or the run
                has no proper name.
        """
        if self.helpers != parameters.helpers:
            raise LocalProtocolError(f"the parameters name {parameters.helpers} helpers, the panel {self.helpers}")
        if isinstance(roster, Roster):
            self._check_roster(roster, parameters)
        digest = digest_of(roster)
        for offer in self.offers:
            offer.check(offer.identity, parameters, digest)
        return context_of(parameters.digest, digest, self.digest)

    def _check_roster(self, roster: Roster, parameters: UploadParameters) -> None:
        check_run(roster)
        if len(roster) != parameters.clients:
            raise LocalProtocolError(
                f"the parameters are for {parameters.clients} clients, the roster has {len(roster)}"
            )
        if roster.server != self.identities[0]:
            raise LocalProtocolError("the panel's leader is not the server on the roster")
        if set(self.identities) & set(roster.publics):
            raise LocalProtocolError(
                "a member of the panel is among the roster's clients: give it an identity of its own"
            )


def _day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(min(seconds, _LATEST), UTC):%Y-%m-%d}"


def _title(place: int) -> str:
    return f"helper {place}" if place else "the server"


def end_of(until: int | None) -> int:
    """Return a box key's expiry: this Unix time in seconds, or 30 days from now.

    Raises:
        LocalProtocolError: ``until`` is not an integer, or has passed.

    Example:
        >>> import time
        >>> ps.secagg.end_of(1_900_000_000)
        1900000000
        >>> 0 < ps.secagg.end_of(None) - time.time() <= 30 * 86_400
        True
    """
    now = int(time.time())
    if until is None:
        return now + LASTING_SECONDS
    if isinstance(until, bool) or not isinstance(until, int) or not now < until < _END_LIMIT:
        raise LocalProtocolError(
            f"until must be an integer number of seconds since 1970, in the future, got {until!r:.30}"
        )
    return until


def digest_of(roster: Roster | bytes) -> bytes:
    """Return a roster's digest, or the digest itself."""
    if isinstance(roster, Roster):
        return roster.digest
    if not isinstance(roster, bytes) or len(roster) != 32:
        raise LocalProtocolError("roster must be a Roster, or the 32 bytes of its digest")
    return roster


def _check_order(offer: Offer) -> None:
    require_order(offer.identity, f"the identity of panel member {offer.place}", LocalProtocolError)
    try:
        check_box_key(offer.box_key)
    except ValueError:
        raise LocalProtocolError(f"the box key of panel member {offer.place} is no key, or of low order") from None
