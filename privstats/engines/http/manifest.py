"""What a device needs of a run: the plan, the panel's offers, and the numbers of which their digest is made.

Rendered once, when the panel is complete. It is unsigned: a device compares plan and roster with what its page pins,
and the offers are signed over the digest of the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec

from privstats.plan import Plan, document
from privstats.secagg import Panel, Roster
from privstats.secagg.protocols import EarlyReports, protocol_of

__all__ = ["Manifest"]


@dataclass(frozen=True)
class Manifest:
    """The manifest of a run.

    Attributes:
        body: its bytes, JSON.
        etag: the value of the header.
        early: the check of a report by its first bytes.
    """

    body: bytes
    etag: str
    early: EarlyReports

    @classmethod
    def of(cls, plan: Plan, roster: Roster, panel: Panel, closes: int) -> Manifest:
        """The manifest of a complete panel; ``closes`` in seconds since 1970."""
        masking: Any = plan.masking
        make = protocol_of(masking).machines.early
        assert make is not None  # noqa: S101  a panel's protocol
        early = make(masking, panel.context(masking, roster), roster.publics)
        told = {
            "version": 1,
            "run": roster.run.hex(),
            "plan": document.canonical(plan.tables).decode(),
            "roster": roster.digest.hex(),
            "panel": [identity.hex() for identity in panel.identities],
            "offers": [offer.encode().hex() for offer in panel.offers],
            "clients": masking.clients,
            "min_survivors": masking.min_survivors,
            "colluders": masking.colluders,
            "segments": masking.ring.segments,
            "noisy_helpers": masking.noisy_helpers,
            "closes": closes,
            "report_bytes": early.report_bytes(masking.clients - 1),
        }
        body = msgspec.json.encode(told)
        return cls(body, f'"{sha256(body).hexdigest()[:32]}"', early)
