"""What a party's folder and the server's have in common: plan, roster, identity, journal key and ledger, as files.

It opens them, and refuses what others on the machine could read or change. No session is in here; that is what
``party`` and ``host`` put around it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Self

from privstats.course import Releases, Single
from privstats.course.kinds import CourseKind, kind_of
from privstats.dp import Ledger, NoPrivacy
from privstats.engines.network import survivor_lists as lists
from privstats.engines.network.statements import Header
from privstats.engines.network.streams import Totals
from privstats.errors import DataError, LedgerError, LocalProtocolError, PrivstatsError
from privstats.files.atomic import read_whole, write_new
from privstats.plan import Plan
from privstats.secagg import Identity, Roster
from privstats.session.accounting import Charge, Charging, NodeCharge
from privstats.system import others_can_read, others_can_write

__all__ = ["COURSE", "UPLOAD_LIMIT", "Folder", "account_of", "check_fits", "check_modes", "private_files"]

UPLOAD_LIMIT = 512 << 20
"""The largest upload that this engine carries, in bytes: a server holds about four times as much of each message."""

COURSE = "course.toml"
"""The file that makes a folder that of a course."""

UNNAMED = "records"
"""What the data set is called in the ledger where the plan has no DP and nobody has given it a name."""

_REMEDY = 'say in records.py which is meant, dataset = "..."'
_KEY_BYTES = 32
_OWNER_ONLY = 0o600
_SECRET = ("identity.pem", "journal.key", "moments")
_BELIEVED = ("plan.toml", "plan.values", COURSE, "course.first.toml", "course.plan.toml", "roster.toml", "records.py")


@dataclass(frozen=True)
class Folder:
    """An opened folder.

    Attributes:
        home: where it is.
        plan, roster, identity: what its files hold.
        key: what journals and kept moments are sealed under.
        ledger: what has been spent on whose data; it may have no account yet.
    """

    home: Path
    plan: Plan
    roster: Roster
    identity: Identity
    key: bytes
    ledger: Ledger

    @classmethod
    def open(cls, home: str | os.PathLike[str]) -> Self:
        """Read a folder, and make its journal key and its ledger where there are none.

        Raises:
            LocalProtocolError: there is no such folder, or others can read it or change what is in it.
            PrivstatsError: one of its files is missing or is something else.
        """
        place = Path(home).absolute()
        check_modes(place)
        plan, roster = Plan.read(place / "plan.toml"), Roster.load(place / "roster.toml")
        check_fits(plan, roster)
        return cls(place, plan, roster, *private_files(place))

    @property
    def base(self) -> Path:
        """Where the owner's own files are: ``records.py``, and the ledger."""
        return self.home

    @property
    def name(self) -> str:
        """What the folder is called in a sentence."""
        return self.home.name

    @property
    def gives_back(self) -> bool:
        """Whether something is given back where a party's upload is proven to be in no sum."""
        return self.kind.gives_back

    @property
    def kind(self) -> CourseKind:
        """The kind of course that the session is of: a plan alone is a course of one."""
        return kind_of(Single(self.plan))

    @property
    def totals(self) -> Totals | None:
        """What the server weighs this session's exact sum with; None where it releases the sum as it is."""
        return None

    @property
    def before(self) -> Releases:
        """What the nodes before this one released."""
        return ()

    def charge(self, dataset: str | None, again: bool) -> Charge | NodeCharge:
        """Where a party's part of the session is written down.

        Args:
            dataset: the account, where ``records.py`` names one.
            again: whether it allows exact sums to be released a second time.

        Raises:
            LedgerError: nothing says which account is charged.
        """
        return Charge(self.ledger, account_of(self, dataset), allow_second_exact_release=again)

    @property
    def agreed(self) -> tuple[int, ...] | None:
        """The clients of an earlier sum, as this party signed them then; None where nothing came before.

        Raises:
            LocalProtocolError: what was kept of it is damaged.
        """
        return lists.kept(self.home, self.plan, self.roster)

    def remember(self, agreed: tuple[int, ...]) -> None:
        """Keep the list of clients that this party has signed, where something may come after."""
        lists.keep(self.home, self.plan, self.roster, agreed)

    def release_charge(self) -> Charging:
        """Where the server's release is written down.

        Raises:
            LedgerError: nothing says which account is charged.
        """
        return Charge(self.ledger, account_of(self, remedy="keep only the one that is meant in it"))

    @property
    def header(self) -> Header:
        """What openings of this folder's session begin with."""
        return Header.of(self.plan, self.roster)

    @property
    def session(self) -> str:
        """32 hexadecimal digits that name the session: parameters and roster, so a roster is used once."""
        return sha256(self.plan.masking.digest + self.roster.digest).hexdigest()[:32]

    @property
    def publics(self) -> tuple[bytes, ...]:
        """Everybody's public key by place: the roster's clients, then the helpers that the plan names."""
        return (*self.roster.publics, *(bytes.fromhex(key) for key in self.plan.panel[1:]))


def check_fits(plan: Plan, roster: Roster) -> None:
    """Refuse a roster of another size than the plan's cohort, and an upload that this engine does not carry.

    Raises:
        LocalProtocolError: the roster has another length, or its server is not the plan's leader.
        DataError: the upload is too large.
    """
    if len(roster) != plan.cohort.clients:
        raise LocalProtocolError(
            f"the roster has {len(roster)} clients and the plan cohort.clients={plan.cohort.clients}: make one fit "
            "the other"
        )
    if plan.panel and roster.server.hex() != plan.panel[0]:
        raise LocalProtocolError("the roster's server is not the leader that the plan's panel names: make one fit")
    size = plan.masking.upload_bytes
    if size > UPLOAD_LIMIT:
        raise DataError(
            f"an upload has {-(-size >> 20)} MiB, this engine carries {UPLOAD_LIMIT >> 20}: fewer features, or "
            "statistics without S or B"
        )


def account_of(folder: Folder, dataset: str | None = None, *, remedy: str = _REMEDY) -> str:
    """The account of a folder's ledger that is meant: the one that is named, or the only one there is.

    Raises:
        LedgerError: there is none, or more than one.
    """
    if dataset is not None:
        return dataset
    names = [account.dataset for account in folder.ledger.accounts()]
    if len(names) == 1:
        return names[0]
    if names:
        raise LedgerError(f"the ledger has {len(names)} accounts: {remedy}")
    if isinstance(folder.plan.privacy, NoPrivacy):
        return UNNAMED
    raise LedgerError(
        "this plan spends privacy and the ledger has no account: open one with "
        f"`privstats ledger cap {folder.base.name}/ledger DATASET --unit ... --epsilon ...`"
    )


def check_modes(home: Path) -> None:
    """Refuse a folder that others can look into, or whose files they can read or change.

    Raises:
        LocalProtocolError: that; or there is no such folder.
    """
    try:
        if others_can_read(home):
            raise LocalProtocolError(f"others can look into {home.name}: let only its owner, chmod 700 {home}")
        for name in (*_SECRET, *_BELIEVED):
            path, secret = home / name, name in _SECRET
            if path.exists() and (others_can_read(path) if secret else others_can_write(path)):
                what = "read" if secret else "change"
                raise LocalProtocolError(f"others can {what} {name}: let only its owner, chmod 600 {path}")
    except OSError as error:
        raise LocalProtocolError(f"{home} is no folder of a party or a server ({error.strerror})") from None


def private_files(home: Path) -> tuple[Identity, bytes, Ledger]:
    """The identity in a folder, its journal key and its ledger; the last two are made where there are none.

    Raises:
        PrivstatsError: one of them cannot be read or made, or is something else.
    """
    return Identity.load(home / "identity.pem"), _key_of(home / "journal.key"), _ledger_of(home / "ledger")


def _key_of(path: Path) -> bytes:
    if not path.exists():
        try:
            write_new(path, os.urandom(_KEY_BYTES))
        except PrivstatsError:
            if not path.exists():  # else another process was quicker, and its key counts
                raise
    key = read_whole(path, LocalProtocolError, "privstats flower check")
    if len(key) != _KEY_BYTES:
        raise LocalProtocolError(f"{path.name} must hold {_KEY_BYTES} bytes, and has {len(key)}: it was damaged")
    return key


def _ledger_of(path: Path) -> Ledger:
    """The ledger, made where there is none, or no more than a process that was killed while making one has left."""
    try:
        ledger = Ledger.open(path)
    except LedgerError as refusal:
        try:
            ledger = Ledger.create(path)
        except LedgerError as lost:
            found = refusal if path.exists() else lost
            raise found from found.__cause__  # which says whether it passes
    path.chmod(_OWNER_ONLY)
    return ledger
