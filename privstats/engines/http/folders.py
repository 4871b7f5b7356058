"""The folders of a leader and of a helper, refused before anything is offered where they cannot serve devices.

A folder is :mod:`privstats.engines.network`'s, with ``http.toml`` beside plan and roster.
"""

from __future__ import annotations

import os

from privstats.engines.http.registrar import check_devices
from privstats.engines.network.folder import Folder, RoundFolder, account_of
from privstats.errors import LocalProtocolError
from privstats.secagg.protocols import protocol_of

__all__ = ["helper_folder", "helper_place", "leader_folder"]


def leader_folder(folder: Folder) -> RoundFolder:
    """The folder's one session, after the checks that need no journal; errors as for :meth:`LeaderRun.open`."""
    found = _checked(folder)
    if folder.identity.public != folder.roster.server:
        raise LocalProtocolError(
            "identity.pem is not the server's on roster.toml: make a roster with this key, or bring the right one"
        )
    if found.plan.noise is not None and found.plan.noise.trust.at_release:
        account_of(found, remedy="keep only the one that is meant in it")
    return found


def helper_folder(home: str | os.PathLike[str]) -> RoundFolder:
    """A helper's folder, after the checks that need no journal.

    Raises:
        LocalProtocolError: it is no helper's, or of a course, or of a plan whose clients exchange messages.
        PrivstatsError: one of its files is missing or invalid.
    """
    found = _checked(Folder.open(home))
    helper_place(found)
    return found


def helper_place(folder: RoundFolder) -> int:
    """The place of the folder's identity on the panel, 1 to h.

    Raises:
        LocalProtocolError: it has none.
    """
    mine = folder.identity.public.hex()
    if mine not in folder.plan.panel[1:]:
        raise LocalProtocolError("identity.pem is no helper's of the plan's panel: bring the right one")
    return folder.plan.panel.index(mine)


def _checked(folder: Folder) -> RoundFolder:
    """The folder's one session, of a plan whose clients send one message."""
    if not folder.kind.single:
        raise LocalProtocolError("a device sends one message and is gone: give a plan, a course needs answers")
    if protocol_of(folder.course.first.masking).machines.early is None:
        raise LocalProtocolError(
            'devices send one message: give a plan with protocol = "split", clients of any other exchange several'
        )
    found = folder.round(0)
    check_devices(found.plan, found.roster, found.home)
    return found
