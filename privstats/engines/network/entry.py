"""The host or the party that a folder is of: of one session, or of a course; and a folder's answer to a message.

Whoever carries messages begins here. Over both kinds of hosts and parties, under the transports and the command line.
"""

from __future__ import annotations

from pathlib import Path

from privstats.engines.network.course_host import CourseHost
from privstats.engines.network.course_party import CourseParty
from privstats.engines.network.folder import COURSE
from privstats.engines.network.host import Host
from privstats.engines.network.party import Party, logged, passing_code, reason_of
from privstats.engines.network.status_codes import FAILED
from privstats.engines.network.transport import Answer

__all__ = ["answer", "host_of", "party_of"]


def answer(home: str | Path, kind: str, data: bytes) -> Answer:
    """Answer one message from a party's folder; never raises, and tells the folder's operator on standard error why.

    Args:
        home: the folder.
        kind: what kind of message it is.
        data: the message.
    """
    try:
        party = party_of(home)
    except Exception as error:  # the message is the server's: it gets a code whatever happens
        logged(reason_of(error))
        return Answer(passing_code(error) or FAILED)
    return party.answer(kind, data)


def host_of(home: str | Path) -> Host | CourseHost:
    """The server that a folder is of: of one session, or of a course.

    Raises:
        PrivstatsError: what is in it does not fit, or others could read it.
    """
    return CourseHost.open(home) if (Path(home) / COURSE).exists() else Host.open(home)


def party_of(home: str | Path) -> Party | CourseParty:
    """The party that a folder is of: in one session, or in a course.

    Raises:
        PrivstatsError: what is in it does not fit, or others could read it.
    """
    return CourseParty.open(home) if (Path(home) / COURSE).exists() else Party.open(home)
