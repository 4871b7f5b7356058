"""All that a carrier between machines needs: messages, folders, the operator's files, a door to strangers.

A carrier moves a session's messages. At the server it passes a :class:`Transport` to :func:`run_releases`. At a party
it passes each message that arrives to :func:`answer`, and carries the answer back. It may lose, repeat or damage
messages: a session then waits, or ends in the exact sum or in a named refusal. A leader whose clients send one message
and leave needs more: journaled machines, signed replies, sealed files, and a :class:`DoorServer`.

``contrib.http`` and ``contrib.nvflare`` import this room alone of ``engines``, which an import contract checks.
``engines.flower`` imports the rooms behind this one: it replaces parts of Flower's own processes, and is released with
these rooms.
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.engines.door.connection_limits import PROVED as PROVED
    from privstats.engines.door.connection_limits import ConnectionLimiter as ConnectionLimiter
    from privstats.engines.door.connection_limits import Limits as Limits
    from privstats.engines.door.connection_limits import peer_of as peer_of
    from privstats.engines.door.ports import free_port as free_port
    from privstats.engines.door.ports import listening as listening
    from privstats.engines.door.server import DoorServer as DoorServer
    from privstats.engines.journal.expiry import UnconfirmedEndError as UnconfirmedEndError
    from privstats.engines.journal.expiry import forget_look as forget_look
    from privstats.engines.journal.expiry import look as look
    from privstats.engines.journal.helper import JournaledHelper as JournaledHelper
    from privstats.engines.journal.leader import JournaledLeader as JournaledLeader
    from privstats.engines.journal.server import JournaledServer as JournaledServer
    from privstats.engines.network.folder import Folder as Folder
    from privstats.engines.network.folder import RoundFolder as RoundFolder
    from privstats.engines.network.folder_documents import COURSE as COURSE
    from privstats.engines.network.folder_documents import LARGE_ROSTER as LARGE_ROSTER
    from privstats.engines.network.folder_documents import PLAN as PLAN
    from privstats.engines.network.folder_documents import ROSTER as ROSTER
    from privstats.engines.network.folder_status import status_of as status_of
    from privstats.engines.network.host import Host as Host
    from privstats.engines.network.host import run_releases as run_releases
    from privstats.engines.network.key_agreement import key_agreement as key_agreement
    from privstats.engines.network.metrics import EXPOSITION_TYPE as EXPOSITION_TYPE
    from privstats.engines.network.metrics import Exposition as Exposition
    from privstats.engines.network.operator_log import PARTY as PARTY
    from privstats.engines.network.operator_log import WarningLine as WarningLine
    from privstats.engines.network.operator_log import configure_log as configure_log
    from privstats.engines.network.operator_log import log_line as log_line
    from privstats.engines.network.operator_log import reason_of as reason_of
    from privstats.engines.network.party import answer as answer
    from privstats.engines.network.roles import HelperRole as HelperRole
    from privstats.engines.network.session_end import EndedSession as EndedSession
    from privstats.engines.network.session_end import SessionEnd as SessionEnd
    from privstats.engines.network.statements import REPLY_HEAD_BYTES as REPLY_HEAD_BYTES
    from privstats.engines.network.status_file import ConnectionStatus as ConnectionStatus
    from privstats.engines.network.status_file import Supervision as Supervision
    from privstats.engines.network.status_file import read_status as read_status
    from privstats.engines.network.status_file import supervised as supervised
    from privstats.engines.network.status_file import supervision as supervision
    from privstats.engines.network.status_file import write_status as write_status
    from privstats.engines.network.study import LocalTransport as LocalTransport
    from privstats.engines.network.study import simulated_study as simulated_study
    from privstats.engines.network.summers import SUMMERS as SUMMERS
    from privstats.engines.network.summers import Summer as Summer
    from privstats.engines.network.summers import summer_for as summer_for
    from privstats.engines.network.transport import CODES as CODES
    from privstats.engines.network.transport import FAILED as FAILED
    from privstats.engines.network.transport import OK as OK
    from privstats.engines.network.transport import Answer as Answer
    from privstats.engines.network.transport import BatchTransport as BatchTransport
    from privstats.engines.network.transport import Deadlines as Deadlines
    from privstats.engines.network.transport import MessageKind as MessageKind
    from privstats.engines.network.transport import Reply as Reply
    from privstats.engines.network.transport import Transport as Transport
    from privstats.engines.records import read_sealed as read_sealed
    from privstats.engines.records import write_sealed as write_sealed
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.engines.door.connection_limits": ["PROVED", "ConnectionLimiter", "Limits", "peer_of"],
            "privstats.engines.door.ports": ["free_port", "listening"],
            "privstats.engines.door.server": ["DoorServer"],
            "privstats.engines.journal.expiry": ["UnconfirmedEndError", "forget_look", "look"],
            "privstats.engines.journal.helper": ["JournaledHelper"],
            "privstats.engines.journal.leader": ["JournaledLeader"],
            "privstats.engines.journal.server": ["JournaledServer"],
            "privstats.engines.network.folder": ["Folder", "RoundFolder"],
            "privstats.engines.network.folder_documents": ["COURSE", "LARGE_ROSTER", "PLAN", "ROSTER"],
            "privstats.engines.network.folder_status": ["status_of"],
            "privstats.engines.network.host": ["Host", "run_releases"],
            "privstats.engines.network.key_agreement": ["key_agreement"],
            "privstats.engines.network.metrics": ["EXPOSITION_TYPE", "Exposition"],
            "privstats.engines.network.operator_log": [
                "PARTY",
                "WarningLine",
                "configure_log",
                "log_line",
                "reason_of",
            ],
            "privstats.engines.network.party": ["answer"],
            "privstats.engines.network.roles": ["HelperRole"],
            "privstats.engines.network.session_end": ["EndedSession", "SessionEnd"],
            "privstats.engines.network.statements": ["REPLY_HEAD_BYTES"],
            "privstats.engines.network.status_file": [
                "ConnectionStatus",
                "Supervision",
                "read_status",
                "supervised",
                "supervision",
                "write_status",
            ],
            "privstats.engines.network.study": ["LocalTransport", "simulated_study"],
            "privstats.engines.network.summers": ["SUMMERS", "Summer", "summer_for"],
            "privstats.engines.network.transport": [
                "CODES",
                "FAILED",
                "OK",
                "Answer",
                "BatchTransport",
                "Deadlines",
                "MessageKind",
                "Reply",
                "Transport",
            ],
            "privstats.engines.records": ["read_sealed", "write_sealed"],
        },
    )
