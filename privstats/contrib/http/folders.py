"""Open a leader's or helper's folder; refuse unsuitable ones before any offer.

After a release, sealed hashes of its reports let a device that lost its answer send its report again. The manifest is
unsigned: a device compares plan and roster with its page's pinned values, and offers are signed over the digest of the
rest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from privstats.contrib.http.exchange import Refused
from privstats.contrib.http.registrar import check_devices
from privstats.contrib.http.settings import GRACE, Settings
from privstats.engines.carriers import Folder, RoundFolder, WarningLine, read_sealed, write_sealed
from privstats.errors import LocalProtocolError, NothingToResumeError
from privstats.extend.support import HASH_BYTES, atomic_write, read_bounded
from privstats.plan import Plan
from privstats.secagg import Offer, Panel, Roster
from privstats.secagg.protocols import protocol_of
from privstats.secagg.upload.checks import EarlyCheck
from privstats.secagg.wire import SIGNATURE_BYTES

_ANSWERED, _SENDER_BYTES = "answered", 4
_OFFERS = "panel.offers"


def leader_folder(folder: Folder) -> RoundFolder:
    """Return the folder's one session; errors as for :meth:`LeaderRun.open`."""
    session = _checked(folder)
    if folder.identity.public != folder.roster.server:
        raise LocalProtocolError(
            "identity.pem is not the server's on roster.toml: make a roster with this key, or bring the right one"
        )
    if session.plan.noise is not None and session.plan.noise.trust.at_release:
        session.server_account()
    return session


def helper_folder(home: str | os.PathLike[str]) -> RoundFolder:
    """Open a helper's folder; raises ``LocalProtocolError``."""
    session = _checked(Folder.open(home))
    helper_place(session)
    return session


def helper_place(folder: RoundFolder) -> int:
    """Return the identity's panel index, 1 to h."""
    mine = folder.identity.public.hex()
    if mine not in folder.plan.panel[1:]:
        raise LocalProtocolError("identity.pem is no helper's of the plan's panel: bring the right one")
    return folder.plan.panel.index(mine)


def _checked(folder: Folder) -> RoundFolder:
    if not folder.kind.single:
        raise LocalProtocolError("a device sends one message and is gone: give a plan, a course needs answers")
    if protocol_of(folder.course.first.masking).machines.early is None:
        raise LocalProtocolError(
            'devices send one message: give a plan with protocol = "split", clients of any other exchange several'
        )
    session = folder.round(0)
    check_devices(session.plan, session.roster, session.home)
    return session


def named(report: bytes | bytearray) -> bytes:
    """Return the name that distinguishes a sender's reports: SHA-256 of the last 64 bytes."""
    return sha256(report[-SIGNATURE_BYTES:]).digest()


class Answered:
    """Senders with a stored report; read from any thread, changed by one. The file is sealed under ``key``."""

    def __init__(self, home: Path, key: bytes) -> None:
        self._path, self._key = home / _ANSWERED, key
        self._names: dict[int, bytes] = {}

    def __len__(self) -> int:
        return len(self._names)

    def of(self, sender: int) -> bytes | None:
        """Return the sender's report's name, or None."""
        return self._names.get(sender)

    def add(self, sender: int, report: bytes | bytearray) -> bool:
        """Note a report; return False for a repeat."""
        before, self._names[sender] = self._names.get(sender), named(report)
        return before != self._names[sender]

    def take(self, tails: Mapping[int, bytes]) -> None:
        """Begin with a journal's reports, by their last 64 bytes."""
        self._names = {sender: named(tail) for sender, tail in tails.items()}

    def keep(self) -> None:
        """Write the file durably."""
        rows = (sender.to_bytes(_SENDER_BYTES, "big") + name for sender, name in sorted(self._names.items()))
        write_sealed(self._path, self._key, b"".join(rows))

    def read(self) -> None:
        """Read the file, if any."""
        try:
            data, row = read_sealed(self._path, self._key), _SENDER_BYTES + HASH_BYTES
        except NothingToResumeError:
            return
        rows = (data[start : start + row] for start in range(0, len(data), row))
        self._names = {int.from_bytes(each[:_SENDER_BYTES], "big"): each[_SENDER_BYTES:] for each in rows}

    def forget(self) -> None:
        """Remove all senders after a run without a sum."""
        self._names = {}


class PanelOffers:
    """Received offers by panel index; the leader's is 0."""

    def __init__(self, folder: RoundFolder, settings: Settings, say: Callable[[str], None]) -> None:
        self._folder, self._settings, self._say = folder, settings, say
        self._parameters: Any = folder.plan.masking
        self._path = folder.home / _OFFERS
        self._offers: dict[int, bytes] = {}

    @property
    def missing(self) -> list[int]:
        """Helpers without an offer yet."""
        return [place for place in range(1, self._parameters.helpers + 1) if place not in self._offers]

    @property
    def panel(self) -> Panel | None:
        """The panel; None until every offer has arrived."""
        if len(self._offers) < 1 + self._parameters.helpers:
            return None
        identities = tuple(bytes.fromhex(key) for key in self._folder.plan.panel)
        return Panel(identities, tuple(map(Offer.decode, self._offers.values())))

    def of(self, place: int) -> bytes | None:
        """Return an index's offer; callable from any thread."""
        return self._offers.get(place)

    def read(self) -> None:
        """Read the stored offers; raises ``LocalProtocolError`` for those of an earlier version."""
        if not self._path.exists():
            return
        data, size = read_bounded(self._path, LocalProtocolError, "privstats http lead"), Offer.SIZE
        if len(data) % size:
            raise LocalProtocolError(
                f"{self._path} holds offers of an earlier version, whose keys are refused: bring that version back and "
                "end the run with it; if no report has arrived, start a new run in a new folder"
            )
        self._offers = {data[start]: data[start : start + size] for start in range(0, len(data), size)}

    def lead(self, offer: Offer) -> None:
        """Note the leader's own offer."""
        self._offers[0] = offer.encode()

    def add(self, place: int, data: bytes) -> bool:
        """Store a helper's offer durably, once, and return whether it is new.

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


@dataclass(frozen=True)
class Manifest:
    """The manifest of a run; ``early`` checks a report by its first bytes."""

    body: bytes
    etag: str
    early: EarlyCheck

    @classmethod
    def of(cls, plan: Plan, roster: Roster, panel: Panel, closes: int) -> Manifest:
        """Return a complete panel's manifest; ``closes`` in seconds since 1970."""
        masking: Any = plan.masking
        make = protocol_of(masking).machines.early
        assert make is not None  # noqa: S101  a panel's protocol
        early = make(masking, panel.context(masking, roster), roster.publics)
        fields = {
            "version": 1,
            "run": roster.run.hex(),
            "plan": plan.to_json().decode(),
            "roster": roster.digest.hex(),
            "panel": [identity.hex() for identity in panel.identities],
            "offers": [offer.encode().hex() for offer in panel.offers],
            "clients": masking.clients,
            "min_survivors": masking.min_survivors,
            "colluders": masking.colluders,
            "segments": masking.ring.segments,
            "noisy_helpers": masking.noisy_helpers,
            "closes": closes,
            "report_bytes": early.report_bytes(masking.clients - 1),
        }
        body = msgspec.json.encode(fields)
        return cls(body, f'"{sha256(body).hexdigest()[:32]}"', early)


@dataclass(frozen=True)
class End:
    """A run's end, signed by the leader."""

    data: bytes
