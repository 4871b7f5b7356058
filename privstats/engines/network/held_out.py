"""Records that a party holds out of every sum by their own features, and the promises that do not allow it.

A record that is replaced may stand in the sums and its stand-in outside, or the other way round. So under replace-one
the sums may also have one record more or less, which the noise of some plans does not hide: there a split is refused.
``records_script`` asks before it writes, ``measuring`` before it measures.
"""

from __future__ import annotations

import math

from privstats.course import Course
from privstats.dp import Privacy, joint_mu
from privstats.dp.privacy import Adjacency
from privstats.engines.network.folder import Folder
from privstats.errors import DataError
from privstats.heads.scoring import published_provenance
from privstats.ledger.accounts import TOLERANCE, Account
from privstats.moments import RecordFile
from privstats.moments.split_notes import note_split, notes_path, require_same_split
from privstats.plan import Plan

__all__ = ["bind_split", "require_hidden", "require_hidden_in", "require_unseen"]


def require_hidden(course: Course) -> None:
    """Refuse a split where the course promises replace-one, and its noise does not hide one record more or less.

    Raises:
        DataError: with both mu.
    """
    privacy = course.first.privacy
    if isinstance(privacy, Privacy) and (privacy.unit, privacy.adjacency) == ("record", "replace-one"):
        _require(course, "the plan promises replace-one", "agree on a plan under add-remove")


def require_hidden_in(account: Account, course: Course) -> None:
    """The same for the account that is charged, which prices every plan under its own adjacency.

    Raises:
        DataError: with both mu.
    """
    cap = account.cap
    if cap is not None and (cap.unit, cap.adjacency) == ("record", "replace-one"):
        who = f"account {account.dataset!r} is kept under replace-one"
        _require(course, who, "keep an account under add-remove for these records")


def bind_split(folder: Folder, file: RecordFile) -> str:
    """Note which split goes into a course's sums; of a plan that scores a head, refuse another than made the head.

    Returns:
        What cannot be held, as a sentence; empty where all is.

    Raises:
        DataError: the head was made with another split, or what lies beside the file is no note.
    """
    plan, course = folder.course.first, folder.course.digest
    if not plan.schema.scores_head:
        if file.split is None or note_split(file, plan.digest, course, again=_charged(folder, plan.digest, course)):
            return ""
        return f"{notes_path(file)} cannot be written, so nothing will hold a score of the head to this split"
    if plan.published is None or not file.kept_out:
        return ""
    made = published_provenance(plan.published.read())
    if require_same_split(file, made.plan, made.course):
        return ""
    return "no note beside the file tells the split of the sums that made the head, so split and seed are believed"


def require_unseen(folder: Folder, plan: Plan, file: RecordFile) -> None:
    """Refuse to score a head on the records that made it, as far as the split or this party's ledger tells.

    Raises:
        DataError: a split without ``kept_out``, whose records are those of the sums; or the ledger was charged for the
            plan of the head, and the file's records were not kept out of it.
    """
    if not plan.schema.scores_head or file.kept_out or plan.published is None:
        return
    if file.split is not None:
        raise DataError(
            "this plan scores a head, and a split alone takes the records that may have made it: add --kept-out (in "
            "Python kept_out=True) to take those that the split kept out"
        )
    made = published_provenance(plan.published.read())
    if _charged(folder, made.plan, made.course):
        raise DataError(
            "this ledger was charged for the sums that made the head, so a score on these records would flatter it: "
            "score those that were kept out with --split and --kept-out (in Python kept_out=True), or name a file of "
            "other records in records.py by hand"
        )


def _charged(folder: Folder, *digests: str | None) -> bool:
    return any(spend.plan in digests for account in folder.ledger.accounts() for spend in account.entries)


def _require(course: Course, who: str, remedy: str) -> None:
    """mu of a record that enters or leaves the sums is at most that of one that is replaced in them.

    Laplace noise needs no look: an L1 sensitivity is twice as large under replace-one.
    """
    told, moved = _mu(course, "replace-one"), _mu(course, "add-remove")
    if moved > told * (1 + TOLERANCE):
        raise DataError(
            f"{who}, and a split goes by a record's own features, so a record that is replaced may enter or leave the "
            f"sums: that costs mu {moved:.4g} where the noise is for {told:.4g}; {remedy}, or leave --split out (in "
            "Python split=) and hold out none"
        )


def _mu(course: Course, adjacency: Adjacency) -> float:
    """mu of one record in all rounds together."""
    noisy = [(plan.schema, plan.noise) for plan in course.priced if plan.noise is not None and not plan.noise.pure]
    return math.hypot(*(joint_mu(schema, noise.sigma, adjacency) for schema, noise in noisy))
