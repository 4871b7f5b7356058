"""A server's saved state and the seed of its release's noise, on disk: sealed, replaced whole, and destroyed.

The seed has a file of its own that is written once, because what a file held before it was replaced cannot be
overwritten. Under the server's journal.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from privstats.engines.journal.restored import Mark
from privstats.engines.records import overwrite, read_sealed, write_sealed
from privstats.errors import LocalProtocolError
from privstats.randomness import SEED_BYTES
from privstats.secagg.wire import Unshown

__all__ = ["SNAPSHOT", "Snapshot", "destroy", "new_seed"]

SNAPSHOT = "snapshot"
_SEED = "seed"


class Snapshot(Unshown, msgspec.Struct, frozen=True):
    """A server's sealed state, the seed of the release's noise, and the number of the log that goes on from here.

    ``mark`` says which of its copies this is.
    """

    generation: int
    seed: bytes
    state: bytes
    mark: Mark = Mark()

    @classmethod
    def read(cls, directory: Path, key: bytes) -> Snapshot:
        """The one in a directory; an earlier version kept the seed in it, which gets its file here, before it is lost.

        Raises:
            NothingToResumeError: there is none.
            LocalProtocolError: another key, or damage, or the seed is gone.
        """
        kept = msgspec.msgpack.decode(read_sealed(directory / SNAPSHOT, key), type=cls)
        if kept.seed:
            write_sealed(directory / _SEED, key, kept.seed)
            return kept
        if not (directory / _SEED).exists():
            raise LocalProtocolError(f"{directory / _SEED} is missing, and with it the noise of the release")
        return msgspec.structs.replace(kept, seed=read_sealed(directory / _SEED, key))

    def write(self, directory: Path, key: bytes) -> int:
        """Replace what is there, and give the size of what was sealed."""
        seedless = msgspec.msgpack.encode(msgspec.structs.replace(self, seed=b""))
        write_sealed(directory / SNAPSHOT, key, seedless)
        return len(seedless)


def new_seed(directory: Path, key: bytes) -> bytes:
    """A fresh seed, on disk before any snapshot is."""
    seed = os.urandom(SEED_BYTES)
    write_sealed(directory / _SEED, key, seed)
    return seed


def destroy(directory: Path) -> None:
    """Overwrite seed and state, then remove them: who knows the seed takes the noise off the release."""
    for name in (_SEED, SNAPSHOT):
        overwrite(directory / name)
    for name in (SNAPSHOT, _SEED):
        (directory / name).unlink(missing_ok=True)
