"""The row of the format of personal heads' files, which loads their reader on use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privstats import domains
from privstats.extend.heads import HeadFormat

if TYPE_CHECKING:
    from privstats.extend.support import PathLike, Verifier


def _load(path: PathLike, signed_by: Verifier | None) -> Any:
    from privstats.contrib.personal.head import Personal

    return Personal.load(path, signed_by)


FORMAT = HeadFormat(domains.PERSONAL_HEAD_FILE, _load)
