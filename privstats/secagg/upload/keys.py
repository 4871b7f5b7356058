"""A panel member's box key for one run: held once, given up to one machine, never copied.

For simulations and for what a journal hands to its machine; the journal of ``engines`` is where a real helper's key is.
"""

from __future__ import annotations

import os

from privstats.errors import LocalProtocolError, RandomnessError
from privstats.randomness import Generator
from privstats.secagg.exclusive import Exclusive, exclusive
from privstats.secagg.keys import Entropy, Identity, draw, require_identity
from privstats.secagg.roster import Roster
from privstats.secagg.upload.panel import Offer, check_run, end_of
from privstats.secagg.upload.parameters import UploadParameters

__all__ = ["HelperKeys", "reproducible"]


class HelperKeys(Exclusive):
    """Identity and box key of the leader (place 0) or a helper (1 to h) for one run.

    Args:
        identity: the signing key that the plan's panel names.
        place: its place there.
        parameters: what the run is about.
        roster: everybody's public identities and the run's name.
        until: the second since 1970 at which the box key ends; 30 days from now when omitted.
        entropy: source of 32 uniform bytes, asked once.

    Attributes:
        identity: the signing key.
        place: its place on the panel.
        offer: the box key's public half for the panel, signed.
        reproducible: the box key came from a generator whose stream others may know; no machine takes it then, unless
            it is told to.

    Raises:
        LocalProtocolError: a place that the parameters do not have, a run without a name, or an end that has passed.

    Guarantee: :meth:`take` gives the box key once, so no second machine can answer a second list with it. A process
    that is copied whole, or a journal that is restored, is outside of that: see ``docs/one_upload.md``.
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
        cls,
        identity: Identity,
        place: int,
        parameters: UploadParameters,
        roster: Roster,
        private: bytes,
        *,
        until: int,
    ) -> HelperKeys:
        """The keys around a box key that a journal kept, with the end that it was offered with."""
        keys = cls.__new__(cls)
        keys._fill(identity, place, parameters, roster, private, until)
        return keys

    def _fill(
        self,
        identity: Identity,
        place: int,
        parameters: UploadParameters,
        roster: Roster,
        private: bytes,
        until: int,
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
        """The box key, once; whoever takes it wipes it.

        Raises:
            LocalProtocolError: it was taken before, so that another machine could answer another list.
            RandomnessError: it can be drawn again, and nobody allowed that; it is not taken then.
        """
        if self._private is None:
            raise LocalProtocolError("these keys were used: one box key answers in one machine, for one run")
        if self.reproducible and not allow_reproducible:
            raise RandomnessError(
                "these keys are from a reproducible generator, so whoever knows its seed opens every box; leave "
                "entropy out, or pass allow_reproducible=True in a test"
            )
        private, self._private = self._private, None
        return private

    def __repr__(self) -> str:
        return f"HelperKeys(place={self.place})"


def reproducible(entropy: Entropy) -> bool:
    """Whether a source of entropy says of itself that others may know what it gives."""
    source = getattr(entropy, "__self__", None)
    return isinstance(source, Generator) and source.reproducible
