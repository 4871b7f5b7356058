"""Measure a party's records, and store the sums for the session.

This module runs the party's own ``records.py`` and no code from the network. Stored sums are sealed. A plan for persons
needs an id per row in every round.

A split holds each record out by a coin of its own, so replacing a record may move it into or out of the sums.
"""

from __future__ import annotations

import math
import runpy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

import msgspec

from privstats.course import Course
from privstats.course.alone import measured_by_person, measuring
from privstats.course.base import plans_by_place
from privstats.course.kinds import admits_of, file_of, schema_read
from privstats.dp import Account, NoPrivacy, Privacy, joint_mu
from privstats.dp.ledger.accounts import TOLERANCE
from privstats.dp.privacy import Adjacency
from privstats.engines.network.folder import Folder, RoundFolder
from privstats.engines.network.operator_log import PARTY, ScriptError
from privstats.engines.records import read_sealed, write_sealed
from privstats.engines.stored_moments import StoredMoments
from privstats.errors import DataError, PrivstatsError
from privstats.files.atomic import read_bounded
from privstats.files.decoding import from_msgpack
from privstats.heads.scoring import published_provenance
from privstats.intake.split_notes import note_split, noted_seed, notes_path, require_same_split
from privstats.intake.splits import seed_of_party
from privstats.kinds import HazardSchema
from privstats.moments import Moments, RecordFile
from privstats.plan import Plan
from privstats.records.from_file import persons_in, records_in
from privstats.schema import Schema
from privstats.session import Charge, RoundCharge
from privstats.session.validation import require_moments

SCRIPT = "records.py"
"""The file that a party writes."""

CHECKED_FILE = "checked-file"
"""The sealed digest of the file that a course's first round read."""

_MOMENTS = "moments"
_PIECE = 1 << 20  # bytes of a file that are read at once


class _Stored(StoredMoments, frozen=True, kw_only=True):
    mark: bytes  # plan, account and source
    dataset: str | None
    again: bool


@dataclass(frozen=True, repr=False)
class MeasuredRecords:
    """A party's measured records for a session.

    Attributes:
        dataset: the account that is charged.
        again: whether exact sums may be released twice.
    """

    moments: Moments
    folder: RoundFolder
    dataset: str
    again: bool

    @property
    def charge(self) -> Charge | RoundCharge:
        """The charge of the session."""
        return self.folder.charge(self.dataset, self.again)


def records_of(folder: RoundFolder, *, anew: bool = False) -> MeasuredRecords:
    """Return the stored sums if they fit this plan, account and ``records.py``; else measure now.

    Args:
        anew: measure in every case.

    Raises:
        DataError: ``records.py`` fails or returns unfit records, or its split breaks the guarantee.
    """
    stored = None if anew else _stored(folder)
    if stored is not None:
        moments = stored.moments(folder.plan.schema, folder.plan.person_clip)
        return MeasuredRecords(moments, folder, folder.account(stored.dataset), stored.again)
    script = _run(folder)
    dataset, again = _named(script)
    account = folder.account(dataset)
    moments = _measured(folder, script, account)
    require_moments(folder.plan, moments)  # stored sums fit the plan by their mark
    stored = _Stored.of(moments, mark=_mark(folder, account), dataset=dataset, again=again)
    write_sealed(folder.home / _MOMENTS, folder.key, msgspec.msgpack.encode(stored))
    return MeasuredRecords(moments, folder, account, again)


def charge_of(folder: RoundFolder) -> Charge | RoundCharge:
    """Return the session's charge without measuring; raises as :func:`records_of`."""
    stored = _stored(folder)
    dataset, again = _named(_run(folder)) if stored is None else (stored.dataset, stored.again)
    return folder.charge(dataset, again)


def forget_moments(folder: Folder) -> None:
    """Remove the stored sums of every round, because the data has changed."""
    for path in (folder.home / _MOMENTS, *folder.home.glob(f"nodes/*/{_MOMENTS}")):
        path.unlink(missing_ok=True)


def _stored(folder: RoundFolder) -> _Stored | None:
    """A damaged file or another key counts as no sums."""
    try:
        stored = from_msgpack(read_sealed(folder.home / _MOMENTS, folder.key), _Stored)
        account = folder.account(stored.dataset)
    except (PrivstatsError, msgspec.DecodeError):
        return None
    return stored if stored.mark == _mark(folder, account) else None


def _mark(folder: RoundFolder, account: str) -> bytes:
    parts = [folder.plan.digest.encode(), _source(folder), account.encode()]
    cap = _account(folder, account).cap
    if cap is not None and cap.adjacency == "replace-one":  # a split that it refuses may have been measured before it
        parts.append(cap.adjacency.encode())
    return sha256(b"".join(sha256(part).digest() for part in parts)).digest()


def _source(folder: RoundFolder) -> bytes:
    """Read the script; a disk that fails is no fault of the records, so it is no ``DataError``."""
    path = folder.base / SCRIPT
    try:
        return read_bounded(path, DataError, "privstats flower new")
    except DataError as error:
        if isinstance(error.__cause__, OSError) and path.is_file():
            raise PrivstatsError(str(error)) from error.__cause__
        raise


def _named(script: Mapping[str, Any]) -> tuple[str | None, bool]:
    dataset, again = script.get("dataset"), script.get("allow_second_exact_release", False)
    if not (dataset is None or isinstance(dataset, str)) or not isinstance(again, bool):
        raise DataError(f"in {SCRIPT}, dataset is a name and allow_second_exact_release True or False, or left out")
    return dataset, again


def _run(folder: RoundFolder) -> dict[str, Any]:
    _source(folder)
    try:
        return runpy.run_path(str((folder.base / SCRIPT).absolute()))
    except (Exception, SystemExit) as error:  # SystemExit would end the node's program without an answer
        raise ScriptError(f"{SCRIPT} does not run{_remedy(error)}", error) from error


def _account(folder: RoundFolder, name: str) -> Account:
    """An account missing from the ledger has no cap."""
    return next((each for each in folder.ledger.accounts() if each.dataset == name), Account(name))


def _measured(folder: RoundFolder, script: Mapping[str, Any], account: str) -> Moments:
    load = script.get("load")
    if not callable(load):
        raise DataError(f"{SCRIPT} must define load(), which returns X and y, or a RecordFile")
    loaded = _loaded(folder, load)
    if isinstance(loaded, Moments):
        return loaded  # measured by other means
    if isinstance(loaded, RecordFile) and loaded.split is not None:
        require_hidden(folder.above.course)
        require_hidden_in(_account(folder, account), folder.above.course)
    if isinstance(loaded, RecordFile) and (believed := bind_split(folder.above, loaded)):
        PARTY.warning("%s", believed)
    if isinstance(loaded, RecordFile) and (changed := swapped(folder, Path(loaded.path))):
        PARTY.warning("%s", changed)
    if (plan := folder.plan).person_clip is not None:
        if folder.place == 0:
            admit_persons(folder.above.course, loaded)
        return sums_of_persons(plan, loaded)
    pair = _pair(plan, plan.schema, loaded)
    measured = measuring(pair[0], plan.privacy)
    if (admits := admits_of(folder.above.course)) and folder.place == 0:
        admits(*_pair(plan, schema_read(folder.above.course), loaded), plan.unreadable, measured)
        pair = _pair(plan, plan.schema, _loaded(folder, load))  # batches are read once
    moments: Moments = measured(plan.schema, *pair, published=plan.published, unreadable=plan.unreadable)
    return moments


def swapped(folder: RoundFolder, file: Path) -> str:
    """Return a warning where a session reads other records than it should; empty otherwise.

    All sessions of a course read one file. Only at an interim look the file has grown by the records since the look
    before. The first session, and that of each look, seals the file's digest in the party's folder, from which nothing
    of it leaves.
    """
    course = folder.above
    if course.kind.single or not file.is_file():
        return ""
    noted = [each for each in _noted(folder) if each.place <= folder.place]
    begins = folder.place == 0 or course.kind.pauses(course.course, folder.place)
    before = [each for each in noted if not begins or each.place < folder.place]
    with file.open("rb") as opened:
        now = _File(place=folder.place, digest=file_digest(opened, "sha256").digest(), size=file.stat().st_size)
    if begins:
        write_sealed(folder.base / CHECKED_FILE, folder.key, msgspec.msgpack.encode([*before, now]))
    if not before:
        return ""
    return _growth(file, before[-1], now) if begins else _change(file, before[-1], now)


class _File(msgspec.Struct, frozen=True, kw_only=True):
    """A file as one session read it."""

    place: int
    digest: bytes
    size: int


def _noted(folder: RoundFolder) -> list[_File]:
    """Return the files of the earlier sessions; a damaged note counts as none."""
    try:
        note = read_sealed(folder.base / CHECKED_FILE, folder.key)
        return from_msgpack(note, list[_File])
    except (PrivstatsError, msgspec.DecodeError):
        return []


def _digest_of_first(size: int, file: Path) -> bytes:
    digest = sha256()
    with file.open("rb") as opened:
        while size and (piece := opened.read(min(size, _PIECE))):
            digest.update(piece)
            size -= len(piece)
    return digest.digest()


def _change(file: Path, before: _File, now: _File) -> str:
    if before.digest == now.digest:
        return ""
    begun = "look" if before.place else "course"
    return (
        f"{file.name} has changed since the first session of this {begun} read it, so the sessions are over different "
        f"records: put the earlier file back, or have the {begun} run anew"
    )


def _growth(file: Path, before: _File, now: _File) -> str:
    if before.digest == now.digest:
        return (
            f"{file.name} is as it was at the look before, so this look adds no record of this party: if there are "
            "new ones, stop, and write them into the file first"
        )
    if now.size < before.size:
        return (
            f"{file.name} is shorter than at the look before, and a look sums all records so far: if it holds the new "
            "records alone, stop, and append them to the earlier file"
        )
    if _digest_of_first(before.size, file) == before.digest:
        return ""
    return (
        f"{file.name} does not begin with the file of the look before, and a look sums all records so far: check that "
        "it holds the earlier records too"
    )


def times_of(folder: RoundFolder) -> Any:
    """Return the times that a hazard course reads; None for other courses, and for batches."""
    schema = getattr(getattr(folder.above.course, "plan", None), "schema", None)
    load = _run(folder).get("load")
    if not isinstance(schema, HazardSchema) or not callable(load):
        return None
    loaded = _loaded(folder, load)
    if isinstance(loaded, RecordFile):
        return loaded.table([schema.bins.name]).values(schema.bins.name)
    X, _ = _pair(folder.plan, folder.plan.schema, loaded)
    return X[schema.bins.name] if isinstance(X, Mapping) else None


def _loaded(folder: RoundFolder, load: Callable[[], Any]) -> Any:
    """Resolve a RecordFile's relative path without changing the current folder, which all threads share."""
    try:
        loaded = load()
    except PrivstatsError:
        raise
    except (Exception, SystemExit) as error:
        raise ScriptError(f"load() in {SCRIPT} failed{_remedy(error)}", error) from error
    if isinstance(loaded, RecordFile):
        return file_of(folder.above.course, replace(loaded, path=folder.base.absolute() / loaded.path))
    return loaded


def _remedy(error: BaseException) -> str:
    if not isinstance(error, FileNotFoundError) or Path(str(error.filename)).is_absolute():
        return ""
    return f" (name a file beside {SCRIPT} as Path(__file__).parent / NAME: the current folder may be another)"


def _pair(plan: Plan, schema: Schema, loaded: Any) -> tuple[Any, Any]:
    if isinstance(loaded, RecordFile):
        return records_in(loaded, schema.reading, plan.unreadable)
    return loaded if isinstance(loaded, tuple) and len(loaded) == 2 else (loaded, None)


def sums_of_persons(plan: Plan, loaded: Any) -> Moments:
    """Return the sums of a file, or of X, y and ids, under a plan for persons."""
    X, y, ids = _with_ids(plan, plan.schema, loaded)
    options: Any = {"published": plan.published, "unreadable": plan.unreadable}
    moments: Moments = measuring(X)(plan.schema, X, y, persons=ids, person_clip=plan.person_clip, **options)
    return moments


def admit_persons(course: Course, loaded: Any) -> None:
    """Refuse records that a later round would refuse."""
    plan, admits = course.first, admits_of(course)
    if admits is None or isinstance(plan.privacy, NoPrivacy):
        return
    X, y, ids = _with_ids(plan, schema_read(course), loaded)
    admits(X, y, plan.unreadable, measured_by_person(plan.privacy, ids, measuring(X)))


def _with_ids(plan: Plan, schema: Schema, loaded: Any) -> tuple[Any, Any, Any]:
    if isinstance(loaded, RecordFile):
        return persons_in(loaded, schema.reading, plan.unreadable)
    if not isinstance(loaded, tuple) or len(loaded) != 3:
        raise DataError(
            "the plan promises persons: load() in records.py returns X, y and an id for each row, or a RecordFile with "
            "persons="
        )
    X, y, ids = loaded
    return X, y, ids


def require_hidden(course: Course) -> None:
    """Refuse a split where the course promises replace-one, and its noise does not hide one record more or less."""
    privacy = course.first.privacy
    if isinstance(privacy, Privacy) and (privacy.unit, privacy.adjacency) == ("record", "replace-one"):
        _require(course, "the plan promises replace-one", "agree on a plan under add-remove")


def require_hidden_in(account: Account, course: Course) -> None:
    """Refuse a split for the charged account, which prices every plan under its own adjacency."""
    cap = account.cap
    if cap is not None and (cap.unit, cap.adjacency) == ("record", "replace-one"):
        who = f"account {account.dataset!r} is kept under replace-one"
        _require(course, who, "keep an account under add-remove for these records")


def bind_split(folder: Folder, file: RecordFile) -> str:
    """Note a course's split; a plan that scores a head must use the head's split.

    Returns:
        A sentence on what cannot be stored, if anything.
    """
    plan, course = folder.course.first, folder.course.digest
    if not plan.schema.scores_head:
        if file.split is None or note_split(file, plan.digest, course, again=_charged(folder, plan.digest, course)):
            return ""
        return f"{notes_path(file)} cannot be written, so nothing will hold a score of the head to this split"
    if plan.published is None or not file.kept_out:
        return ""
    provenance = published_provenance(plan.published.read())
    if require_same_split(file, provenance.plan, provenance.course):
        return ""
    return "no note next to the file shows the split of the head's sums, so split and seed are taken as stated"


def own_seed(folder: Folder, file: RecordFile) -> int:
    """Return the seed of a split for which the party chose none.

    A note next to the file may state the seed for the sums of this course, or of the head that the plan scores.
    Otherwise the seed follows from the party's number on the roster (:func:`~privstats.intake.splits.seed_of_party`).
    """
    plan = folder.course.first
    sums: tuple[str | None, str | None] = plan.digest, folder.course.digest
    if plan.schema.scores_head and plan.published is not None:
        provenance = published_provenance(plan.published.read())
        sums = provenance.plan, provenance.course
    noted, number = noted_seed(file, *sums), folder.roster.publics.index(folder.identity.public)
    return seed_of_party(0, number, persons=file.persons is not None) if noted is None else noted


def require_unseen(folder: Folder, plan: Plan, file: RecordFile) -> None:
    """Refuse to score a head on records that built it, as far as the split or this party's ledger shows."""
    if not plan.schema.scores_head or file.kept_out or plan.published is None:
        return
    if file.split is not None:
        raise DataError(
            "this plan scores a head, and a split alone takes the records that may have made it: add --kept-out (in "
            "Python kept_out=True) to take those that the split kept out"
        )
    provenance = published_provenance(plan.published.read())
    if _charged(folder, provenance.plan, provenance.course):
        raise DataError(
            "this ledger was charged for the sums that made the head, so a score on these records would flatter it: "
            "score those that were kept out with --split and --kept-out (in Python kept_out=True), or name a file of "
            "other records in records.py by hand"
        )


def _charged(folder: Folder, *digests: str | None) -> bool:
    return any(spend.plan in digests for account in folder.ledger.accounts() for spend in account.entries)


def _require(course: Course, who: str, remedy: str) -> None:
    """Refuse a split where a record that enters or leaves the sums costs more mu than a replaced one.

    Laplace noise passes: its L1 sensitivity is twice as large under replace-one.
    """
    promised, moved = _mu(course, "replace-one"), _mu(course, "add-remove")
    if moved > promised * (1 + TOLERANCE):
        raise DataError(
            f"{who}, and a split goes by a record's own values, so a record that is replaced may enter or leave the "
            f"sums: that costs mu {moved:.4g} where the noise is for {promised:.4g}; {remedy}, or leave --split out "
            "(in Python split=) and hold out none"
        )


def _mu(course: Course, adjacency: Adjacency) -> float:
    return math.hypot(*(max(_mu_of(plan, adjacency) for plan in plans) for plans in plans_by_place(course)))


def _mu_of(plan: Plan, adjacency: Adjacency) -> float:
    noise = plan.noise
    return 0.0 if noise is None or noise.pure else joint_mu(plan.schema, noise.sigma, adjacency)
