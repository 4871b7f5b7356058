"""Every error that privstats raises on purpose.

A message names the field, the bound and the remedy in one sentence, and never a data value or a secret.
The bottom of the layers: imported by all, imports nothing of ours.
"""

from __future__ import annotations

__all__ = [
    "AggregationError",
    "AssumedPublicWarning",
    "DataError",
    "HeadError",
    "InUseError",
    "LedgerError",
    "LocalProtocolError",
    "MissingExtraError",
    "MissingStatisticError",
    "NothingToResumeError",
    "PlanError",
    "PrivstatsError",
    "ProtocolError",
    "RandomnessError",
    "ReleaseError",
    "RemoteProtocolError",
    "RestoredError",
    "SchemaError",
    "SessionEndedError",
]


class PrivstatsError(Exception):
    """Base class: catch this to catch everything that privstats raises on purpose."""


class SchemaError(PrivstatsError, ValueError):
    """A schema that cannot be measured: an unknown statistic, one class, one feature, a grid too fine."""


class DataError(PrivstatsError, ValueError):
    """Records that do not fit the schema: wrong dimension, NaN, a label out of range."""


class PlanError(PrivstatsError, ValueError):
    """A plan that contradicts itself, would overflow, or cannot meet its budget."""


class ReleaseError(PrivstatsError, ValueError):
    """A release file that is corrupt, tampered with, foreign, or from another version."""


class HeadError(PrivstatsError, ValueError):
    """A head file that is corrupt, foreign or from another version, or a head that cannot be built or exported so."""


class MissingStatisticError(PrivstatsError, ValueError):
    """A head was asked for from a release that does not carry the statistic it needs."""


class LedgerError(PrivstatsError):
    """The privacy ledger refused: cap reached, file locked, unreadable, or from a newer version."""


class RandomnessError(PrivstatsError):
    """A generator that must not be used here: made before a fork, or reproducible where noise and keys are secret."""


class MissingExtraError(PrivstatsError, ImportError):
    """An optional dependency is not installed; the message says which extra brings it."""


class AssumedPublicWarning(UserWarning):
    """Something was read off private records that a promise takes for public; the message says what to give instead."""


class ProtocolError(PrivstatsError):
    """Base class of what can go wrong between the parties of one aggregation."""


class LocalProtocolError(ProtocolError):
    """The caller misused a protocol machine: wrong order, used twice, wrong plan."""


class NothingToResumeError(LocalProtocolError):
    """There is no journal at this place: the session was never begun here, or its journal was removed."""


class InUseError(LocalProtocolError):
    """Another process or object is at this journal now."""


class RestoredError(LocalProtocolError):
    """The journal is an older copy of itself, from a backup, or was copied: a twin of its machine may have answered."""


class SessionEndedError(LocalProtocolError):
    """The journal's session has ended and must not come back."""


class RemoteProtocolError(ProtocolError):
    """A peer misbehaved. ``peer`` is a client's index, ``"server"``, or another name, which is printed as it is.

    ``step`` and ``code`` say where and what.

    ``proven`` is False where the peer may be honest: what came from it does not fit, but somebody else may have lied.
    """

    def __init__(self, peer: int | str, step: str, code: str, detail: str = "", *, proven: bool = True) -> None:
        self.peer, self.step, self.code, self.proven = peer, step, code, proven
        who = "the server" if peer == "server" else peer if isinstance(peer, str) else f"client {peer}"
        did = "broke the protocol" if proven else "may have broken the protocol, which is unproven,"
        super().__init__(f"{who} {did} at step '{step}': {code}" + (f" ({detail})" if detail else ""))


class AggregationError(ProtocolError):
    """The session ended without a sum (for example too few survivors); ``step`` and ``code`` say where and why."""

    def __init__(self, step: str, code: str, detail: str) -> None:
        self.step, self.code = step, code
        super().__init__(f"aggregation aborted at step '{step}' ({code}): {detail}")
