"""A panel member's keys for one run: a box key that one machine receives once, without a copy."""

from __future__ import annotations

import os

from privstats.errors import LocalProtocolError, RandomnessError
from privstats.randomness import Generator
from privstats.secagg.exclusive import Exclusive, exclusive
from privstats.secagg.keys import Entropy, Identity, draw, require_identity
from privstats.secagg.roster import Roster
from privstats.secagg.upload.panel import Offer, end_of
from privstats.secagg.upload.parameters import UploadParameters, check_run


class HelperKeys(Exclusive):
    """Identity and box key, for one run, of the leader (place 0) or a helper (1 to h).

    Args:
        identity: the signing key that the plan's panel names.
        until: Unix time in seconds at which the box key expires; by default in 30 days.
        entropy: source of 32 uniform bytes, read once.

    Attributes:
        offer: the box key's signed public half.
        reproducible: others may reproduce the box key; machines refuse it unless ``allow_reproducible`` is set.

    Raises:
        LocalProtocolError: no such place, the run has no name, or the key has expired.

    Guarantee: :meth:`take` returns the box key once, so no second machine can answer a second list with it. It does not
    cover a copy of the process or a restored journal: see ``docs/wire/one_upload.md``.

    Example:
        >>> leader, helper, *parties = (ps.secagg.Identity.generate(os.urandom) for _ in range(5))
        >>> roster = ps.secagg.Roster([party.public for party in parties], server=leader.public, run=os.urandom(16))
        >>> cohort = {"clients": 3, "min_survivors": 3, "colluders": 1, "ring": ps.encoding.Ring(((4, 16),))}
        >>> parameters = ps.secagg.UploadParameters.solve(**cohort, helpers=1, plan_digest=bytes(32))
        >>> keys = ps.secagg.HelperKeys(helper, 1, parameters, roster)
        >>> keys.offer.place, keys.offer.identity == helper.public
        (1, True)
    """

    def __init__(
        self,
        identity: Identity,
        place: int,
        parameters: UploadParameters,
        roster: Roster,
        *,
        until: int | None = None,
        entropy: Entropy = os.urandom,
    ) -> None:
        self._fill(identity, place, parameters, roster, draw(entropy, 32), end_of(until))
        self.reproducible = reproducible(entropy)

    @classmethod
    def from_private(
        cls, identity: Identity, place: int, parameters: UploadParameters, roster: Roster, private: bytes, *, until: int
    ) -> HelperKeys:
        """Rebuild the keys from a journal's box key."""
        keys = cls.__new__(cls)
        keys._fill(identity, place, parameters, roster, private, until)
        return keys

    def _fill(
        self, identity: Identity, place: int, parameters: UploadParameters, roster: Roster, private: bytes, until: int
    ) -> None:
        require_identity(identity)
        if not 0 <= place <= parameters.helpers:
            raise LocalProtocolError(f"places of the panel are 0 to {parameters.helpers}, got {place}")
        check_run(roster)
        self.identity, self.place, self.reproducible = identity, place, False
        self._private: bytearray | None = bytearray(private)
        self.offer = Offer.make(place, identity, private, parameters, roster, until=until)

    @exclusive
    def take(self, *, allow_reproducible: bool = False) -> bytearray:
        """Return the box key, once; the caller wipes it.

        Raises:
            LocalProtocolError: a second call: another machine could answer another list.
            RandomnessError: the keys are reproducible; the box key can still be taken.
        """
        if self._private is None:
            raise LocalProtocolError("these keys were used: one box key answers in one machine, for one run")
        if self.reproducible and not allow_reproducible:
            raise RandomnessError(
                "these keys are from a reproducible generator, so any party with its seed can open every box; omit "
                "entropy, or pass allow_reproducible=True in a test"
            )
        private, self._private = self._private, None
        return private

    def __repr__(self) -> str:
        return f"HelperKeys(place={self.place})"


def reproducible(entropy: Entropy) -> bool:
    """Return whether a source of entropy declares itself reproducible."""
    source = getattr(entropy, "__self__", None)
    return isinstance(source, Generator) and source.reproducible
