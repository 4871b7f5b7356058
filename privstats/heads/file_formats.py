"""The rows of formats of head files: the header of a file names its format, whose row reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from privstats import domains
from privstats.doors import Door, is_row
from privstats.errors import HeadError

if TYPE_CHECKING:
    from privstats.files.envelope import PathLike
    from privstats.files.signing import Verifier

Load: TypeAlias = "Callable[[PathLike, Verifier | None], Any]"
"""Reads a head from a path, and verifies a signature where a key is given; raises HeadError."""


@dataclass(frozen=True)
class HeadFormat:
    """A format of head files.

    Attributes:
        name: the format as headers state it.
        load: reads a file of this format.
    """

    name: str
    load: Load


def _load(path: PathLike, signed_by: Verifier | None) -> Any:
    from privstats.heads import persistence

    return persistence.load(path, signed_by)


HEAD = HeadFormat(domains.HEAD_FILE, _load)
HEAD_FORMATS: Door[HeadFormat] = Door(
    "privstats.head_formats", "format of head files", HeadError, is_row(HeadFormat), {HEAD.name: HEAD}
)
"""The formats by name: that of ``save``, then those that packages and ``privstats.contrib`` announce."""


def load_any(path: PathLike, format_name: str | None, signed_by: Verifier | None = None) -> Any:
    """Read a head file of any installed format; the reader of ``save``'s files refuses an unknown one.

    Args:
        format_name: as the file's header states it.
    """
    return HEAD_FORMATS.get(format_name or HEAD.name, HEAD).load(path, signed_by)
