"""Inside a machine of an upload: the one place where the tests of this room reach what a machine keeps to itself.

What they may reach is listed here; how is said in ``tests/secagg/interactive/inside.py``.
"""

from typing import ClassVar

from privstats.secagg.upload.client import Client
from privstats.secagg.upload.helper import Helper
from privstats.secagg.upload.leader import Leader
from tests.secagg.interactive.inside import Inside


class UploadInside(Inside):
    """The listed private attributes of a client, a helper or a leader."""

    OPEN: ClassVar[dict[type, tuple[str, ...]]] = {
        Client: ("state", "vector", "context", "scheme"),
        Helper: ("secret", "pieces", "seen", "digest", "scheme"),
        Leader: ("state", "book", "roll", "scheme"),
    }


inside = UploadInside
