"""What the holder of the records is told of them: how many are cut, left out, or missing altogether.

The numbers are exact, so they are warnings on that machine and never part of what is sent.
"""

from __future__ import annotations

import warnings

from privstats.errors import ClippedWarning, UnreadableRecordsWarning
from privstats.moments.base import Moments
from privstats.moments.readable import LeftOut

__all__ = ["remarks_on", "warn_if_clipped", "warn_if_empty", "warn_of_left_out"]


def warn_of_left_out(moments: Moments, left_out: LeftOut, unnamed: int) -> None:
    """Warn the holder of the records of those that are in no sum."""
    said = [left_out.remark(none_left=moments.records == 0)] if left_out.records else []
    if unnamed:
        said.append(
            f"{unnamed:,} of the records say of no person that they are theirs and are left out of every sum: an id is "
            "missing; is no text and no whole number below 2**53, so write dates and large numbers as texts; or lost a "
            "character in decoding, so name the file's --encoding (in Python encoding=). This number stays here"
        )
    for remark in said:
        warnings.warn(remark, UnreadableRecordsWarning, stacklevel=3)


def remarks_on(*moments: Moments) -> tuple[str, ...]:
    """What the holder of these moments' records should know of their clip or edges: the remarks of all together.

    Nothing of whole parties, whose rows may all be shortened to one length: no bound rests on that.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> [remark.partition(" of ")[0] for remark in ps.moments.remarks_on(
        ...     ps.moments.exact_moments(schema, [[3.0, 4.0]], [0])
        ... )]
        ['clip_norm shortens 100%']
    """
    clipped = [each for each in moments if each.schema.predicts != "parties"]
    found: list[str] = []
    for kind in ("clip_report", "edge_report"):
        reports = [report for each in clipped if (report := getattr(each, kind, None)) is not None]
        found += sum(reports[1:], reports[0]).remarks if reports else ()
    return tuple(found)


def warn_if_clipped(*moments: Moments, stacklevel: int = 3) -> None:
    """Tell the holder of the records, in one sentence for all parts, that the bounds cut most of them.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> short, long = (ps.moments.exact_moments(schema, [[size, 0.0]], [0]) for size in (0.5, 5.0))
        >>> import warnings
        >>> with warnings.catch_warnings(record=True) as said:
        ...     ps.moments.warn_if_clipped(short, long)
        ...
        >>> len(said)  # one of two rows is short enough
        0
    """
    for remark in remarks_on(*moments):
        warnings.warn(remark, ClippedWarning, stacklevel=stacklevel)


def warn_if_empty(*moments: Moments) -> None:
    """Warn that none of these moments holds a record: one party may have none, a whole cohort may not.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> import warnings
        >>> one, none = ps.measure(schema, np.ones((1, 2)), [0]), ps.measure(schema, np.ones((0, 2)), [])
        >>> with warnings.catch_warnings(record=True) as said:
        ...     ps.moments.warn_if_empty(one, none)
        ...
        >>> len(said)  # one of the two parties has a record
        0
    """
    if all(each.records == 0 for each in moments):
        warnings.warn(
            "there is no record in X, so every sum is 0 and a release is noise alone; check the loaded data",
            UnreadableRecordsWarning,
            stacklevel=3,
        )
