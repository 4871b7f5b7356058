"""Look up a masking protocol's classes by name.

A new protocol is a row here and a separate package. Another way to mask the one upload is a ``MaskingScheme``, not a
row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from privstats.encoding.ring import Group
from privstats.errors import LocalProtocolError
from privstats.secagg.keys import Identity
from privstats.secagg.machines import Aggregator, Masking, OnUpload, Peer
from privstats.secagg.roster import Roster
from privstats.tables import LazyRows

if TYPE_CHECKING:
    from privstats.secagg.upload.checks import EarlyCheck


class ParametersKind(Protocol):
    """A class of parameters."""

    def solve(
        self,
        *,
        clients: int,
        min_survivors: int,
        colluders: int,
        ring: Group,
        plan_digest: bytes,
        graph: str,
        helpers: int,
        noisy_helpers: bool,
    ) -> Masking:
        """Return the cheapest parameters that keep the promise; ``PlanError`` if there are none."""


class PeerKind(Protocol):
    """A class of client machines."""

    def __call__(self, *args: Any, **named: Any) -> Peer:
        """Build a machine: ``(parameters, vector, *, index, identity, roster, entropy, on_upload)``, and any panel."""

    def check_place(self, parameters: Any, *, index: int, identity: Identity, roster: Roster) -> object:
        """Raise ``LocalProtocolError`` for an impossible client, before any spend."""

    def resume(
        self,
        sealed: bytes,
        key: bytes,
        *,
        parameters: Any,
        index: int,
        identity: Identity,
        roster: Roster,
        threads: int = ...,
        on_upload: OnUpload | None = ...,
    ) -> Peer:
        """Return the machine that ``export`` sealed."""


class AggregatorKind(Protocol):
    """A class of server machines."""

    def __call__(self, *args: Any, **named: Any) -> Aggregator:
        """Build a machine: ``(parameters, *, roster, noise_due)``, and its protocol's other arguments."""

    def resume(
        self, sealed: bytes, key: bytes, *, parameters: Any, roster: Roster, identity: Identity, threads: int = ...
    ) -> Aggregator:
        """Return the machine that ``export`` sealed."""


@dataclass(frozen=True)
class Machines:
    """A protocol's machines and functions; optional ones may be None.

    Attributes:
        largest_answer: returns the maximum bytes of a peer's message; an engine accepts none larger.
        largest_request: returns the maximum bytes of a server's message; a peer refuses a larger one unhashed.
        helper, panel, keys: helper machine, run's panel and member's keys.
        prove_excluded: returns the name of an upload that is in no sum and never can be, from the client's
            ``receipt`` and others' signed statements.
        check_opening: refuses a server's first message that a client would not answer.
        early: checks a client's one message by its first bytes; built from ``(parameters, context, publics)``.
        sum_part: sums a deferred part from ``(ring, bodies, openers)``.
    """

    client: PeerKind
    server: AggregatorKind
    largest_answer: Callable[[Any], int]
    largest_request: Callable[[Any], int]
    helper: Callable[..., Peer] | None = None
    panel: type | None = None
    keys: type | None = None
    prove_excluded: Callable[..., bytes] | None = None
    check_opening: Callable[..., None] | None = None
    early: Callable[..., EarlyCheck] | None = None
    sum_part: Callable[[Group, bytes, bytes], bytes] | None = None


@dataclass(frozen=True)
class MaskingProtocol:
    """One row: the class that solves a plan's masking, and its machines.

    Attributes:
        agrees: a client signs the survivor list before unmasking; its machine accepts ``only``, the one list it will
            sign.
        has_panel: leader and helpers unmask together; otherwise one server does.
    """

    parameters: ParametersKind
    load_machines: Callable[[], Machines]
    agrees: bool = False
    has_panel: bool = False

    @cached_property
    def machines(self) -> Machines:
        """The protocol's machines, imported on first use."""
        return self.load_machines()


def _interactive() -> MaskingProtocol:
    from privstats.secagg.interactive.parameters import Parameters

    return MaskingProtocol(Parameters, _interactive_machines, agrees=True)


def _interactive_machines() -> Machines:
    from privstats.secagg.interactive import messages
    from privstats.secagg.interactive.checks import check_opening
    from privstats.secagg.interactive.client import Client
    from privstats.secagg.interactive.non_inclusion import prove_excluded
    from privstats.secagg.interactive.server import Server

    return Machines(
        Client,
        Server,
        messages.largest_answer,
        messages.largest_request,
        prove_excluded=prove_excluded,
        check_opening=check_opening,
    )


def _split() -> MaskingProtocol:
    from privstats.secagg.upload.parameters import UploadParameters

    return MaskingProtocol(UploadParameters, _split_machines, has_panel=True)


def _split_machines() -> Machines:
    from privstats.secagg.upload import messages
    from privstats.secagg.upload.checks import EarlyCheck
    from privstats.secagg.upload.client import Client
    from privstats.secagg.upload.deferred import sum_part
    from privstats.secagg.upload.helper import Helper
    from privstats.secagg.upload.helper_keys import HelperKeys
    from privstats.secagg.upload.leader import Leader
    from privstats.secagg.upload.non_inclusion import prove_excluded
    from privstats.secagg.upload.panel import Panel

    return Machines(
        Client,
        Leader,
        messages.largest_answer,
        messages.largest_request,
        Helper,
        Panel,
        HelperKeys,
        prove_excluded=prove_excluded,
        early=EarlyCheck,
        sum_part=sum_part,
    )


PROTOCOLS: Mapping[str, MaskingProtocol] = LazyRows({"interactive": _interactive, "split": _split})
"""The row of each protocol: its parameters load with the first plan that names it, its machines with its session."""


def protocol_of(masking: Masking) -> MaskingProtocol:
    """Return the row of the protocol with these parameters.

    Raises:
        LocalProtocolError: ``masking`` is something else.
    """
    row = PROTOCOLS.get(masking.protocol) if hasattr(masking, "upload_step") else None
    if row is None:
        got = type(masking).__name__
        raise LocalProtocolError(f"parameters must be a plan's masking parameters, got {got}: pass plan.masking")
    return row
