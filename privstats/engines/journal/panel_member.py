"""A panel member's directory for one run, with its box key: stored before its offer is sent, bound, then destroyed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar, Self

import msgspec

from privstats.engines.journal.base import JournalBase, held, path_of, require_member
from privstats.engines.journal.expiry import UnconfirmedEndError, forget_look, look
from privstats.engines.journal.rollback import Counter, Mark, inode_of, outside_of
from privstats.engines.records import check_key, overwrite, read_sealed, write_sealed
from privstats.errors import LocalProtocolError, NothingToResumeError
from privstats.files.decoding import from_msgpack
from privstats.secagg import HelperKeys, Identity, Offer, Panel, Roster, UploadParameters
from privstats.secagg.machines import session_id
from privstats.secagg.roster import require_roster
from privstats.secagg.wire import HiddenRepr

_SEALING, _KEYS = "sealing", "keys"

EARLIER = "began under an earlier version, whose keys are refused: its box key is destroyed; start a new run"
"""The end of a run whose box key an earlier version made."""


class _Keys(HiddenRepr, msgspec.Struct, frozen=True):
    """``seed`` is empty for a key of an earlier version."""

    place: int
    until: int
    # Earlier versions store ``private`` and may offer its bytes as an X25519 key. They refuse a file without that name.
    seed: bytes = b""
    offers: tuple[bytes, ...] = ()
    folder: int = 0  # where it was bound, see ``rollback``


class HpkeKey:
    """A panel member's box key for one run, in its directory.

    Its sealing key is overwritten at the run's end: file systems retain removed files' blocks.
    """

    def __init__(self, run: Path, sealing: bytes, keys: _Keys) -> None:
        self._run, self._sealing, self._keys = run, sealing, keys

    @classmethod
    def make(cls, run: Path, key: bytes, place: int, until: int) -> HpkeKey:
        """Make a fresh key that ends at ``until``, in seconds since 1970; on disk when this returns."""
        sealing, keys = os.urandom(32), _Keys(place, until, os.urandom(32))
        write_sealed(run / _SEALING, key, sealing)
        generated = cls(run, sealing, keys)
        generated._write()
        return generated

    @classmethod
    def read(cls, run: Path, key: bytes) -> HpkeKey:
        """Read the key in this directory; raises as :func:`~privstats.engines.records.read_sealed`."""
        sealing = read_sealed(run / _SEALING, key)
        return cls(run, sealing, from_msgpack(read_sealed(run / _KEYS, sealing), _Keys))

    @staticmethod
    def there(run: Path) -> bool:
        """Return whether a complete key is stored."""
        return (run / _KEYS).exists()

    @staticmethod
    def destroy(run: Path) -> None:
        """Overwrite the run's sealing key, then remove it and the box key."""
        overwrite(run / _SEALING)
        for name in (_KEYS, _SEALING):
            (run / name).unlink(missing_ok=True)
        forget_look(run / _KEYS)

    @property
    def place(self) -> int:
        """Index on the panel, 0 for the leader."""
        return self._keys.place

    @property
    def earlier(self) -> bool:
        """Whether an earlier version made the key, and perhaps offered its bytes as an X25519 key.

        A second offer of these bytes, under X-Wing, would be as weak as that one.
        """
        return not self._keys.seed

    def require_open(self) -> bool:
        """Return False for a key that has expired, or is an earlier version's: it must be destroyed.

        Raises:
            UnconfirmedEndError: it has expired by this machine's clock, for less than a day: nothing may be answered.
        """
        if self.earlier:
            return False
        until = self._keys.until
        found = look(until, self._run / _KEYS)
        if found in ("seen", "waiting"):
            end = datetime.fromtimestamp(until, UTC)
            raise UnconfirmedEndError(
                f"by this machine's clock the box key of this run ended on {end:%Y-%m-%d}, so nothing is answered: set "
                "the clock if it is wrong. A day after this was first seen, the key is destroyed",
                first=found == "seen",
            )
        return found == "before"

    @property
    def sealing(self) -> bytes:
        """The run's sealing key."""
        return self._sealing

    @property
    def panel(self) -> Panel | None:
        """The panel to which the key is bound."""
        return Panel.of(self._keys.offers) if self._keys.offers and self._keys.until else None

    def offer(self, identity: Identity, parameters: UploadParameters, roster: Roster) -> Offer:
        """Return the signed public half: identical bytes every time."""
        return Offer.make(self.place, identity, self._keys.seed, parameters, roster, until=self._keys.until)

    def keys(self, identity: Identity, parameters: UploadParameters, roster: Roster) -> HelperKeys:
        """Return the key for one machine."""
        seed, until = self._keys.seed, self._keys.until
        return HelperKeys.from_private(identity, self.place, parameters, roster, seed, until=until)

    def bound(self, panel: Panel, offer: Offer) -> HpkeKey:
        """Return the key, bound to a panel for good and on disk; raises ``LocalProtocolError`` for another panel."""
        offers = tuple(each.encode() for each in panel.offers)
        if self._keys.offers == offers:
            return self
        if self._keys.offers:
            raise LocalProtocolError("this box key is bound: it serves one panel, once")
        if panel.offers[self.place : self.place + 1] != (offer,):
            raise LocalProtocolError("the panel does not hold this member's offer at its place")
        return self._replaced(offers=offers, folder=inode_of(self._run))

    @property
    def folder(self) -> int:
        """Inode of the folder in which it was bound; 0 before."""
        return self._keys.folder

    def bound_here(self) -> HpkeKey:
        """Return the key, bound to its current folder: the operator confirms that no other copy has answered."""
        return self._replaced(folder=inode_of(self._run))

    def _replaced(self, **fields: object) -> HpkeKey:
        replaced = HpkeKey(self._run, self._sealing, msgspec.structs.replace(self._keys, **fields))
        replaced._write()
        return replaced

    def _write(self) -> None:
        write_sealed(self._run / _KEYS, self._sealing, msgspec.msgpack.encode(self._keys))


def run_of(home: str | os.PathLike[str], roster: Roster) -> Path:
    """Return one run's directory in a member's home."""
    return path_of(home) / require_roster(roster).digest.hex()


class PanelMember(JournalBase):
    """One member's files of one run, under a lock, in ``path``; sealed under ``key``."""

    _LASTS: ClassVar[tuple[str, ...]]
    """The files that stay in the run's directory after its box key: any of them shows that the run is known."""
    _ROLE: ClassVar[str]
    """The member's role, for errors."""

    def __init__(
        self, path: Path, key: bytes, identity: Identity, parameters: UploadParameters, roster: Roster, lock: int
    ) -> None:
        super().__init__(lock, path)
        self._key, self._identity, self.parameters, self.roster = key, identity, parameters, roster
        self._box_key: HpkeKey | None = None
        outside = outside_of(self._ROLE, session_id(parameters, roster), identity.public)
        self._counter = Counter.of(path, path.name, beside=path.parent, outside=outside)

    @property
    def _happened(self) -> int:
        """Number of events that no other copy may repeat: 0 before the box key is bound."""
        return 0 if self._box_key is None or self._box_key.panel is None else 1

    @property
    def _mark(self) -> Mark:
        """An unbound box key may be in any folder."""
        return Mark(self._happened, 0 if self._box_key is None else self._box_key.folder)

    def _require_newest(self) -> None:
        self._counter.require_newest(self._mark, self._path, self._ROLE, "its box key was bound")

    def _vouch(self, box_key: HpkeKey) -> None:
        if box_key.panel is not None:
            self._box_key = box_key.bound_here()
        self._counter.keep(self._happened)

    @classmethod
    @contextmanager
    def _offering(
        cls, home: str | os.PathLike[str], key: bytes, identity: Identity, parameters: UploadParameters, roster: Roster
    ) -> Iterator[Self]:
        check_key(key)
        require_member(parameters, identity)
        run = run_of(home, roster)
        run.mkdir(parents=True, exist_ok=True)
        with held(run) as lock:
            if HpkeKey.there(run) or any((run / name).exists() for name in cls._LASTS):
                raise LocalProtocolError(f"{run} knows this run: a run has one box key, resume it, or name another run")
            member = cls(run, key, identity, parameters, roster, lock)
            member._counter.require_new(run, cls._ROLE)
            with member._acting():
                yield member

    @classmethod
    @contextmanager
    def _resuming(
        cls, home: str | os.PathLike[str], key: bytes, identity: Identity, parameters: UploadParameters, roster: Roster
    ) -> Iterator[Self]:
        check_key(key)
        require_member(parameters, identity)
        run = run_of(home, roster)
        if not run.exists():
            raise NothingToResumeError(f"{run} holds no run to resume")
        with held(run) as lock:
            yield cls(run, key, identity, parameters, roster, lock)
