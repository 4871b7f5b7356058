"""Adapt the head of a release to one client's own records."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.contrib.personal.head import Personal as Personal
    from privstats.contrib.personal.head import with_local_transform as with_local_transform
else:
    __getattr__, __dir__ = lazy_names(
        __name__, {"privstats.contrib.personal.head": ["Personal", "with_local_transform"]}
    )
