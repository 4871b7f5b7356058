"""The offers of a run's panel, each checked and kept once, in one file of the leader's folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from privstats.engines.http.problems import Refused
from privstats.engines.http.settings import GRACE, Settings
from privstats.engines.network.folder import RoundFolder
from privstats.engines.network.operator_log import WarningLine
from privstats.errors import LocalProtocolError
from privstats.files.atomic import atomic_write, read_whole
from privstats.secagg import Offer, Panel

__all__ = ["PanelOffers"]

_FILE = "panel.offers"
_OFFER_BYTES = 137


class PanelOffers:
    """The offers that are here, by place; place 0 is the leader's own.

    Args:
        folder: the leader's, of the session.
        settings: its ``http.toml``.
        say: called with a line for the operator.

    Raises:
        LocalProtocolError: the file cannot be read.
    """

    def __init__(self, folder: RoundFolder, settings: Settings, say: Callable[[str], None]) -> None:
        self._folder, self._settings, self._say = folder, settings, say
        self._parameters: Any = folder.plan.masking
        self._path = folder.home / _FILE
        self._offers = self._kept()

    @property
    def missing(self) -> list[int]:
        """The helpers whose offer is missing."""
        return [place for place in range(1, self._parameters.helpers + 1) if place not in self._offers]

    @property
    def panel(self) -> Panel | None:
        """The panel; None until every offer is here."""
        if len(self._offers) < 1 + self._parameters.helpers:
            return None
        identities = tuple(bytes.fromhex(key) for key in self._folder.plan.panel)
        return Panel(identities, tuple(map(Offer.decode, self._offers.values())))

    def of(self, place: int) -> bytes | None:
        """The offer of this place that is kept; callable from any thread."""
        return self._offers.get(place)

    def lead(self, offer: Offer) -> None:
        """Note the leader's own, which its journal keeps."""
        self._offers[0] = offer.encode()

    def add(self, place: int, data: bytes) -> bool:
        """Keep a helper's offer, once; on disk when this returns.

        Returns:
            Whether it is new.

        Raises:
            Refused: ``bad_offer``, ``other_offer``, or ``stranger``.
        """
        if not 1 <= place <= self._parameters.helpers:
            raise Refused("stranger")
        if place in self._offers:
            if self._offers[place] == data:
                return False
            raise Refused("other_offer")
        self._check(place, data)
        self._offers[place] = data
        atomic_write(self._path, b"".join(offer for _, offer in sorted(self._offers.items())))
        self._say(f"helper {place} has offered its key; missing: {self.missing or 'none'}")
        return True

    def _kept(self) -> dict[int, bytes]:
        if not self._path.exists():
            return {}
        data = read_whole(self._path, LocalProtocolError, "privstats http lead")
        return {data[start]: data[start : start + _OFFER_BYTES] for start in range(0, len(data), _OFFER_BYTES)}

    def _check(self, place: int, data: bytes) -> None:
        try:
            offer = Offer.decode(data)
            if offer.place != place:
                raise Refused("bad_offer")
            identity = bytes.fromhex(self._folder.plan.panel[place])
            offer.check(identity, self._parameters, self._folder.roster.digest)
        except LocalProtocolError as error:
            self._say(WarningLine(f"helper {place}: {error}"))
            raise Refused("bad_offer") from None
        if offer.until < (self._settings.closes + GRACE).timestamp():
            self._say(WarningLine(f"helper {place} offers a key that ends less than {GRACE.days} days after the close"))
            raise Refused("bad_offer")
