"""A member's seat on the panel of one run: taken once, found again after a death.

What a journaled leader and a journaled helper have in common before either does anything of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Self

from privstats.engines.journal.box_key import BoxKey, run_of
from privstats.engines.journal.keeping import Kept, held
from privstats.engines.journal.kinds import require_member
from privstats.engines.journal.restored import Counter, Mark
from privstats.engines.records import check_key
from privstats.errors import LocalProtocolError, NothingToResumeError
from privstats.secagg import Identity, Roster, UploadParameters

__all__ = ["Seat"]


class Seat(Kept):
    """One member's files of one run, under a lock.

    Args:
        place: the run's directory, in the member's home.
        key: 32 bytes that what is in it is sealed under.
        identity, parameters, roster: the member, what the run is about, and everybody in it.
        lock: a handle that holds the lock.
    """

    _LASTS: ClassVar[str]
    """What stays in the run's directory once its box key is gone, and shows that the run is known."""
    _ROLE: ClassVar[str]
    """Whose seat it is, for sentences."""

    def __init__(
        self, place: Path, key: bytes, identity: Identity, parameters: UploadParameters, roster: Roster, lock: int
    ) -> None:
        super().__init__(lock, place)
        self._key, self._identity, self.parameters, self.roster = key, identity, parameters, roster
        self._box_key: BoxKey | None = None
        self._counter = Counter.of(place, place.name, beside=place.parent)

    @property
    def _happened(self) -> int:
        """What has happened here that no twin may repeat: 0 before the box key is bound."""
        return 0 if self._box_key is None or self._box_key.panel is None else 1

    @property
    def _mark(self) -> Mark:
        """What this seat knows of itself; a box key that is not bound may lie anywhere."""
        return Mark(self._happened, 0 if self._box_key is None else self._box_key.folder)

    def _require_newest(self) -> None:
        self._counter.require_newest(self._mark, self._place, self._ROLE, "its box key was bound")

    def _vouch(self, box_key: BoxKey) -> None:
        """Go on from here: the operator says that no other copy of this box key has answered."""
        if box_key.panel is not None:
            self._box_key = box_key.at_home()
        self._counter.keep(self._happened)

    @classmethod
    @contextmanager
    def _taken(
        cls, home: str | os.PathLike[str], key: bytes, identity: Identity, parameters: UploadParameters, roster: Roster
    ) -> Iterator[Self]:
        """The seat in a run that nothing is known of here; let go of if the block fails."""
        check_key(key)
        require_member(parameters, identity)
        run = run_of(home, roster)
        run.mkdir(parents=True, exist_ok=True)
        with held(run) as lock:
            if BoxKey.there(run) or (run / cls._LASTS).exists():
                raise LocalProtocolError(f"{run} knows this run: a run has one box key, resume it, or name another run")
            seat = cls(run, key, identity, parameters, roster, lock)
            with seat._acting():
                yield seat

    @classmethod
    @contextmanager
    def _found(
        cls, home: str | os.PathLike[str], key: bytes, identity: Identity, parameters: UploadParameters, roster: Roster
    ) -> Iterator[Self]:
        """The seat that a process left; let go of if the block fails."""
        check_key(key)
        require_member(parameters, identity)
        run = run_of(home, roster)
        if not run.exists():
            raise NothingToResumeError(f"{run} holds no run to resume")
        with held(run) as lock:
            yield cls(run, key, identity, parameters, roster, lock)
