"""A party's records: its ``load`` function, one measurement, and the sums kept for the session.

It runs the party's own ``records.py`` and no code from the network. Kept sums are sealed, and belong to one plan, one
account and one text of that file. ``parts`` calls it.
"""

from __future__ import annotations

import contextlib
import os
import runpy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from privstats.course.kinds import admits_of
from privstats.dp import Account
from privstats.encoding import flatten, unflatten
from privstats.encoding.layout import blocks_of
from privstats.engines import dask
from privstats.engines.network.folder import Folder, RoundFolder, account_of
from privstats.engines.network.held_out import bind_split, require_hidden, require_hidden_in
from privstats.engines.network.of_persons import admit_persons, sums_of_persons
from privstats.engines.network.operator_log import PARTY, ScriptError
from privstats.engines.records import read_sealed, write_sealed
from privstats.errors import DataError, PrivstatsError
from privstats.files.atomic import read_whole
from privstats.moments import Beyond, ClipReport, EdgeReport, Moments, PersonMoments, RecordFile, exact_moments
from privstats.moments.from_file import records_in
from privstats.plan import Plan
from privstats.schema import Bins
from privstats.secagg.wire import HiddenRepr
from privstats.session import Charge, RoundCharge
from privstats.session.validation import require_moments

__all__ = ["SCRIPT", "Records", "charge_of", "clip_report_of", "forget_moments", "records_of"]

SCRIPT = "records.py"
"""What a party writes."""

_MOMENTS = "moments"


class _Kept(HiddenRepr, msgspec.Struct, frozen=True):
    """Measured sums in their file."""

    mark: bytes  # plan, account and source
    dataset: str | None
    again: bool
    vector: bytes
    records: int | None
    clips: dict[str, Any] | None
    edges: list[tuple[str, int, int, int]] | None = None
    variants: int = 0  # further vectors, of which the place in the roster takes one
    counted: int | None = None  # records towards the plan's limits


@dataclass(frozen=True, repr=False)
class Records:
    """A party's measured records for a session.

    Attributes:
        moments: the exact sums of its records.
        folder: the party's.
        dataset: the account that is charged.
        again: whether the party allows exact sums to be released a second time.
    """

    moments: Moments
    folder: RoundFolder
    dataset: str
    again: bool

    @property
    def charge(self) -> Charge | RoundCharge:
        """The charge of the session."""
        return self.folder.charge(self.dataset, self.again)


def records_of(folder: RoundFolder, *, anew: bool = False) -> Records:
    """The kept sums, if they belong to this plan, account and ``records.py``; else measured now.

    Args:
        folder: the party's.
        anew: measure in every case, because the data behind ``records.py`` may have changed.

    Raises:
        DataError: ``records.py`` is missing, fails, or returns records that do not fit the schema, or it holds records
            out where that breaks the promise.
        LedgerError: the account to charge is not determined.
    """
    kept = None if anew else _kept(folder)
    if kept is not None:
        parts = np.frombuffer(kept.vector, "<i8").astype(np.int64).reshape(1 + kept.variants, -1)
        found: Any = _kept_moments(folder.plan, parts[0], kept)
        if kept.variants:
            found = replace(found, variants=tuple(unflatten(folder.plan.schema, part) for part in parts[1:]))
        if kept.clips is not None:
            counts = tuple(kept.clips["norm_counts"])
            found = replace(found, clip_report=ClipReport(**{**kept.clips, "norm_counts": counts}))
        if kept.edges is not None:
            expected = tuple(each.open for each in found.schema.variables if isinstance(each, Bins))
            found = replace(found, edge_report=EdgeReport(tuple(Beyond(*each) for each in kept.edges), expected))
        if found.records is None:  # of a kind whose sums do not give their number of records
            found = replace(found, records=kept.records)
        return Records(found, folder, account_of(folder, kept.dataset), kept.again)
    said = _run(folder)
    dataset, again = _named(said)
    account = account_of(folder, dataset)
    moments = _measured(folder, said, account)
    require_moments(folder.plan, moments)  # kept sums fit the plan by their mark
    report = clip_report_of(moments)
    clips = None if report is None else asdict(report)
    mark = _mark(folder, account)
    beyond: EdgeReport | None = getattr(moments, "edge_report", None)
    edges = None if beyond is None else [(each.name, each.numbers, each.below, each.above) for each in beyond.beyond]
    variants: tuple[Moments, ...] = getattr(moments, "variants", ())
    vectors = b"".join(flatten(each).astype("<i8").tobytes() for each in (moments, *variants))
    keep = _Kept(mark, dataset, again, vectors, moments.records, clips, edges, len(variants), moments.counted)
    write_sealed(folder.home / _MOMENTS, folder.key, msgspec.msgpack.encode(keep))
    return Records(moments, folder, account, again)


def clip_report_of(moments: Moments) -> ClipReport | None:
    """The clip report; None where the kind has no clip, or none was kept."""
    return getattr(moments, "clip_report", None)


def charge_of(folder: RoundFolder) -> Charge | RoundCharge:
    """The charge of the session, without measuring anything.

    Raises:
        DataError, LedgerError: as for :func:`records_of`.
    """
    kept = _kept(folder)
    dataset, again = _named(_run(folder)) if kept is None else (kept.dataset, kept.again)
    return folder.charge(dataset, again)


def forget_moments(folder: Folder) -> None:
    """Remove the kept sums of every round, because the data behind ``records.py`` has changed."""
    for kept in (folder.home / _MOMENTS, *folder.home.glob(f"nodes/*/{_MOMENTS}")):
        kept.unlink(missing_ok=True)


def _kept(folder: RoundFolder) -> _Kept | None:
    """The kept sums, if they are those that would be measured now; a damaged file or another key counts as none."""
    try:
        kept = msgspec.msgpack.decode(read_sealed(folder.home / _MOMENTS, folder.key), type=_Kept)
        account = account_of(folder, kept.dataset)
    except (PrivstatsError, msgspec.DecodeError):
        return None
    return kept if kept.mark == _mark(folder, account) else None


def _mark(folder: RoundFolder, account: str) -> bytes:
    parts = [folder.plan.digest.encode(), _source(folder), account.encode()]
    cap = _account(folder, account).cap
    if cap is not None and cap.adjacency == "replace-one":  # a split that it refuses may have been measured before it
        parts.append(cap.adjacency.encode())
    return sha256(b"".join(sha256(part).digest() for part in parts)).digest()


def _source(folder: RoundFolder) -> bytes:
    return read_whole(folder.base / SCRIPT, DataError, "privstats flower new")


def _named(said: Mapping[str, Any]) -> tuple[str | None, bool]:
    """The script's settings: the account, and whether exact sums may be released again."""
    dataset, again = said.get("dataset"), said.get("allow_second_exact_release", False)
    if not (dataset is None or isinstance(dataset, str)) or not isinstance(again, bool):
        raise DataError(f"in {SCRIPT}, dataset is a name and allow_second_exact_release True or False, or left out")
    return dataset, again


def _run(folder: RoundFolder) -> dict[str, Any]:
    """Run the party's script; returns the names it defines."""
    _source(folder)
    with _inside(folder.base):
        try:
            return runpy.run_path(str(folder.base / SCRIPT))
        except (Exception, SystemExit) as error:  # of which the second would end the node's program without an answer
            raise ScriptError(f"{SCRIPT} does not run", error) from error


def _account(folder: RoundFolder, name: str) -> Account:
    """The account of this name, without a cap where the ledger has none."""
    return next((each for each in folder.ledger.accounts() if each.dataset == name), Account(name))


def _measured(folder: RoundFolder, said: Mapping[str, Any], account: str) -> Moments:
    load = said.get("load")
    if not callable(load):
        raise DataError(f"{SCRIPT} must define load(), which returns X and y, or a RecordFile")
    with _inside(folder.base):
        found = _loaded(load)
        if isinstance(found, Moments):
            return found  # measured by other means
        if isinstance(found, RecordFile) and found.split is not None:
            require_hidden(folder.above.course)
            require_hidden_in(_account(folder, account), folder.above.course)
        if isinstance(found, RecordFile) and (believed := bind_split(folder.above, found)):
            PARTY.warning("%s", believed)
        if (plan := folder.plan).person_clip is not None:
            if folder.place == 0:
                admit_persons(folder.above.course, found)
            return sums_of_persons(plan, found)
        pair = _pair(folder, found)
        measured = dask.measure if dask.on_cluster(pair[0]) else exact_moments
        if (admits := admits_of(folder.above.course)) and folder.place == 0:
            admits(folder.above.course, *pair, plan.unreadable, measured)
            pair = _pair(folder, _loaded(load))  # batches are read once
        return measured(plan.schema, *pair, published=plan.published, unreadable=plan.unreadable)


def _kept_moments(plan: Plan, vector: Any, kept: _Kept) -> Moments:
    if plan.person_clip is None:
        return unflatten(plan.schema, vector)
    return PersonMoments(plan.schema, blocks_of(plan.schema, vector), plan.person_clip, kept.records, kept.counted)


def _loaded(load: Callable[[], Any]) -> Any:
    try:
        return load()
    except PrivstatsError:
        raise
    except (Exception, SystemExit) as error:
        raise ScriptError(f"load() in {SCRIPT} failed", error) from error


def _pair(folder: RoundFolder, found: Any) -> tuple[Any, Any]:
    """X and y of what ``load()`` returned; batches have no y."""
    if isinstance(found, RecordFile):
        return records_in(found, folder.plan.schema, folder.plan.unreadable)
    return found if isinstance(found, tuple) and len(found) == 2 else (found, None)


@contextlib.contextmanager
def _inside(home: Path) -> Iterator[None]:
    """Run in the script's folder, so that relative paths of data resolve there."""
    before = Path.cwd()
    os.chdir(home)
    try:
        yield
    finally:
        os.chdir(before)
