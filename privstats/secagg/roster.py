"""The roster: the keys of clients and server and the name of the run, agreed on outside the protocol.

Its digest goes into every signature and key, so parties with different rosters refuse each other's messages. Clients'
names are in no digest. People compare thirty digits of the digest's scrypt, in case a coordinator shows two rosters.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from privstats import domains
from privstats.errors import LocalProtocolError
from privstats.files.signing import require_order
from privstats.secagg.keys import Entropy, Identity, draw, require_identity
from privstats.secagg.wire import index, labelled

if TYPE_CHECKING:
    from privstats.secagg.roster_file import Listed

_LONGEST_NAME = 64
_DIGITS, _GROUP = 30, 5


def check_names(names: Iterable[str], clients: int) -> tuple[str, ...]:
    """Check the clients' readable names, and return them as a tuple.

    Raises:
        LocalProtocolError: a wrong number of names, a duplicate, or not 1 to 64 printable characters.
    """
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise LocalProtocolError(f"names must be a list of texts, one per client, got {type(names).__name__}")
    called = tuple(names)
    for name in called:
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
            raise LocalProtocolError(f"a client's name has 1 to {_LONGEST_NAME} printable characters, got {name!r:.70}")
    if called and len(called) != clients:
        raise LocalProtocolError(
            f"the roster has {clients} clients and {len(called)} names; give one name each, or none"
        )
    if len(set(called)) != len(called):
        raise LocalProtocolError("a roster must not give two clients one name: rename one of them")
    return called


def fingerprint(digest: bytes) -> str:
    """Return six groups of five decimal digits: 32 bytes of scrypt's output, modulo 10^30.

    Guarantee: the digits carry 99 bits. Two rosters with one fingerprint take an attacker about 2^50 attempts, one with
    a *given* fingerprint 2^99. Each attempt is one scrypt (N = 2^14, r = 8, p = 1; RFC 7914): 16 MiB and tens of
    milliseconds.
    """
    stretched = hashlib.scrypt(digest, salt=domains.ROSTER_FINGERPRINT, n=1 << 14, r=8, p=1, dklen=32)
    digits = f"{int.from_bytes(stretched, 'big') % 10**_DIGITS:0{_DIGITS}}"
    return " ".join(digits[place : place + _GROUP] for place in range(0, _DIGITS, _GROUP))


_KEY_BYTES = 32
_RUN_BYTES = 64
_LABEL_BYTES = 255
_RANDOM_RUN = 16


@dataclass(frozen=True)
class Roster:
    """The public identities that the parties agreed on; a client's index is its position in ``publics``.

    Args:
        publics: the clients' Ed25519 public keys, 32 bytes each.
        server: the server's Ed25519 public key; clients accept opening and abort messages under no other key.
        run: up to 64 bytes that name this aggregation, agreed like the keys and used once; a signature of another run
            is invalid here. ``split`` needs 16 to 32 bytes. A graph that is not complete needs :meth:`numbered`, and in
            a course's round :meth:`of_round` of a numbered roster.
        names: the clients' readable names, one each, or none; in no digest.

    Attributes:
        label: from :meth:`numbered`, else empty.
        counter: from :meth:`numbered`, else None.
        derived: whether ``run`` follows from keys, label, counter and a round's place alone.

    Raises:
        LocalProtocolError: a key of another length or low order, a duplicate key (the server's too), too long a run
            name, or unfit names.

    Example:
        >>> ulm, bonn, server = (ps.secagg.Identity.generate(os.urandom).public for _ in range(3))
        >>> run = {"label": "hips", "counter": 0}  # the run's name follows from them
        >>> roster = ps.secagg.Roster.numbered((ulm, bonn), server=server, names=("Ulm", "Bonn"), **run)
        >>> roster.called(1), len(roster.fingerprint.split())  # six groups of digits, compared on the telephone
        ('1 (Bonn)', 6)
    """

    publics: tuple[bytes, ...]
    server: bytes = field(kw_only=True)
    run: bytes = field(default=b"", kw_only=True)
    names: tuple[str, ...] = field(default=(), kw_only=True)
    label: str = field(default="", init=False)
    counter: int | None = field(default=None, init=False)
    derived: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "publics", _keys(self.publics))
        _check_key(self.server, "the server's key on a roster", "server=identity.public")
        if not isinstance(self.run, bytes) or len(self.run) > _RUN_BYTES:
            raise LocalProtocolError(f"run must be at most {_RUN_BYTES} bytes, for example 16 random ones")
        if len(set(self.publics)) != len(self.publics):
            raise LocalProtocolError("a roster must not list one public key twice: give each client its own identity")
        if self.server in self.publics:
            raise LocalProtocolError(
                "the server must not be one of the roster's clients: give it an identity of its own"
            )
        object.__setattr__(self, "names", check_names(self.names, len(self.publics)))

    @classmethod
    def numbered(
        cls, publics: Iterable[bytes], *, server: bytes, label: str, counter: int, names: Iterable[str] = ()
    ) -> Roster:
        """Return a roster with a derived run name.

        Args:
            label: the subject of the run, 1 to 255 bytes of UTF-8, agreed like the keys.
            counter: the number of earlier runs of these keys, 0 to 2^64 - 1. A client accepts only its ledger's next
                number for :attr:`members`, or the last one if it sent nothing in that run.

        Guarantee: ``run`` is SHA-256 of keys, server, label and counter. So a server can change the run name only with
        another counter, which clients refuse, or other keys. The party that adds the last key can still try many
        (docs/wire/interactive.md).
        """
        named = _utf8(label)
        if not isinstance(counter, int) or isinstance(counter, bool) or not 0 <= counter < 1 << 64:
            raise LocalProtocolError(f"a run's counter must be an integer from 0 to 2^64 - 1, got {counter!r:.30}")
        unnamed = cls(_keys(publics), server=server)
        run = labelled("run", unnamed.members, len(named).to_bytes(4, "big"), named, counter.to_bytes(8, "big"))
        roster = cls(unnamed.publics, server=server, run=run, names=tuple(names))
        object.__setattr__(roster, "label", label)
        object.__setattr__(roster, "counter", counter)
        object.__setattr__(roster, "derived", True)
        return roster

    def of_round(self, place: int) -> Roster:
        """Return the roster of one round of a course: the same parties, under the round's run name.

        Guarantee: if this roster is numbered, keys, label, counter and ``place`` determine the run name. Neither the
        course nor a value that an earlier round released is in it, so a server cannot search for it.

        Example:
            >>> ulm, bonn, server = (ps.secagg.Identity.generate(os.urandom).public for _ in range(3))
            >>> roster = ps.secagg.Roster.numbered((ulm, bonn), server=server, label="hips", counter=0)
            >>> roster.of_round(0).run == ps.course.run_of_round(roster.run, 0), roster.of_round(0).counter
            (True, None)
        """
        round_ = Roster(self.publics, server=self.server, run=run_of_round(self.run, place), names=self.names)
        object.__setattr__(round_, "derived", self.derived)
        return round_

    def __len__(self) -> int:
        return len(self.publics)

    @cached_property
    def members(self) -> bytes:
        """32-byte digest of the clients' keys, in order, and the server's key; ledgers count runs by it."""
        return labelled("members", index(len(self.publics)), *self.publics, self.server)

    @cached_property
    def digest(self) -> bytes:
        """32-byte digest of the members and the run."""
        return labelled("roster", self.members, self.run)

    @cached_property
    def fingerprint(self) -> str:
        """Thirty decimal digits of the digest, for comparison by telephone.

        Guarantee: see ``roster.fingerprint``.
        """
        return fingerprint(self.digest)

    def called(self, client: int) -> str:
        """Return how messages name a client: index, and any name."""
        return f"{client} ({self.names[client]})" if self.names else str(client)

    def check_member(self, index: int, identity: Identity) -> None:
        """Raise ``LocalProtocolError`` unless ``identity`` has this index."""
        public = require_identity(identity).public
        if isinstance(index, bool) or not isinstance(index, int):
            raise LocalProtocolError(f"index must be an integer, the roster index, got {type(index).__name__}")
        if index < 0 or self.publics[index : index + 1] != (public,):
            raise LocalProtocolError(f"the identity is not the one at index {index} of the roster")

    def renewed(self, entropy: Entropy = os.urandom) -> Roster:
        """Return the roster of the next run: the next number, or 16 random bytes of ``entropy``.

        Raises:
            LocalProtocolError: no next number, or too few bytes.
        """
        if self.counter is None:
            return replace(self, run=draw(entropy, _RANDOM_RUN))
        return Roster.numbered(
            self.publics, server=self.server, label=self.label, counter=self.counter + 1, names=self.names
        )

    def to_toml(self) -> str:
        """Return TOML with keys and run in hex, one table per client."""
        from privstats.secagg.roster_file import written

        return written(self._listed)

    @property
    def _listed(self) -> Listed:
        from privstats.secagg.roster_file import Listed

        return Listed(self.publics, self.server, self.run, self.names, self.label, self.counter)

    @classmethod
    def from_toml(cls, text: str) -> Roster:
        """Parse a roster that :meth:`to_toml` wrote.

        Raises:
            LocalProtocolError: an invalid text, or as for the class.
        """
        from privstats.secagg.roster_file import parsed

        return cls._of(parsed(text))

    @classmethod
    def _of(cls, listed: Listed) -> Roster:
        if listed.counter is None:
            return cls(listed.publics, server=listed.server, run=listed.run, names=listed.names)
        return cls.numbered(
            listed.publics, server=listed.server, label=listed.label, counter=listed.counter, names=listed.names
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the roster to a file atomically, replacing an existing one.

        A file ``*.bin`` has 32 bytes per client instead of TOML.
        """
        from privstats.secagg.roster_file import write

        write(path, self._listed)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Roster:
        """Load a file of either form.

        Raises:
            LocalProtocolError: the file cannot be read or is invalid.
        """
        from privstats.secagg.roster_file import read

        return cls._of(read(path))


def run_of_round(run: bytes, place: int) -> bytes:
    """Return a round's session name: 32 bytes that no party can choose.

    Example:
        >>> run = os.urandom(16)
        >>> len(ps.course.run_of_round(run, 0)), ps.course.run_of_round(run, 0) == ps.course.run_of_round(run, 1)
        (32, False)
    """
    return hashlib.sha256(domains.COURSE_ROUND + len(run).to_bytes(8, "big") + run + place.to_bytes(8, "big")).digest()


def require_roster(roster: object) -> Roster:
    """Return the roster, or raise ``LocalProtocolError``."""
    if not isinstance(roster, Roster):
        raise LocalProtocolError(
            f"roster must be a Roster, got {type(roster).__name__}: read its file with Roster.load(path)"
        )
    return roster


def _utf8(label: str) -> bytes:
    try:
        named = label.encode() if isinstance(label, str) else b""
    except UnicodeEncodeError:
        named = b""
    if not 1 <= len(named) <= _LABEL_BYTES:
        raise LocalProtocolError(f"a run's label must have 1 to {_LABEL_BYTES} bytes of UTF-8, got {label!r:.30}")
    return named


def _keys(publics: Iterable[bytes]) -> tuple[bytes, ...]:
    if isinstance(publics, bytes | bytearray | str) or not isinstance(publics, Iterable):
        raise LocalProtocolError(
            f"a roster needs a list of public keys, one per client, got {type(publics).__name__}: "
            "give tuple(identity.public for ...)"
        )
    keys = tuple(publics)
    for key in keys:
        _check_key(key, "every public key on a roster", "identity.public")
    return keys


def _check_key(key: object, what: str, remedy: str) -> None:
    if not isinstance(key, bytes):
        raise LocalProtocolError(f"{what} must be 32 bytes, got {type(key).__name__}: give {remedy}")
    if len(key) != _KEY_BYTES:
        raise LocalProtocolError(f"{what} must be 32 bytes, got {len(key)}: give {remedy}")
    require_order(key, f"the key {key.hex()[:8]}... on a roster", LocalProtocolError)
