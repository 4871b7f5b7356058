"""Validate the arguments of a session, before anything is spent or sampled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privstats import secagg
from privstats.dp import NoPrivacy
from privstats.errors import DataError, LocalProtocolError
from privstats.moments import Moments
from privstats.plan import Plan
from privstats.secagg.protocols import protocol_of
from privstats.transforms.base import is_ours


def require_plan(plan: object) -> None:
    """Refuse a value that is no plan."""
    if not isinstance(plan, Plan):
        raise DataError(f"plan must be a Plan, got {type_name(plan)}; build one with Plan(...) or Plan.read(path)")


def require_party(identity: object, roster: object) -> None:
    """Refuse anything but an identity with a signing key, and a roster."""
    if not isinstance(identity, secagg.Identity):
        raise LocalProtocolError(
            f"identity must be an Identity, the party's own, got {type_name(identity)}: use Identity.load(path)"
        )
    require_roster(roster)


def require_keys(plan: Plan, keys: object, roster: object) -> None:
    """Refuse anything but a panel member's keys, and a roster."""
    kind = protocol_of(plan.masking).machines.keys
    if kind is None or not isinstance(keys, kind):
        raise LocalProtocolError(
            f"keys must be HelperKeys, the member's identity and box key for this run, got {type_name(keys)}; where a "
            "plan names a panel, leader and helpers need keys=HelperKeys(identity, place, plan.masking, roster)"
        )
    require_roster(roster)


def require_roster(roster: object) -> None:
    """Refuse a value that is no roster."""
    if not isinstance(roster, secagg.Roster):
        raise LocalProtocolError(
            f"roster must be a Roster, got {type_name(roster)}; build one with Roster(publics, server=)"
        )


def type_name(value: object) -> str:
    """Return a wrong argument's type: its value may be private."""
    return type(value).__name__


def require_moments(plan: Plan, moments: Moments) -> None:
    """Refuse moments of another schema or other published values, or with too many records."""
    if not isinstance(moments, Moments):
        raise DataError(f"moments must be the result of measure, got {type_name(moments)}")
    if moments.schema != plan.schema:
        raise DataError("the moments were measured under another schema than the plan's; measure with plan.schema")
    values = "" if plan.published is None else plan.published.sha256
    if getattr(moments, "published", "") not in ("", values):
        raise DataError(
            "these moments were measured with other published values; measure with published=plan.published"
        )
    # A container of another package may state another number than that of the records that it received.
    if (counted := moments.counted if is_ours(moments) else moments.records) is None:
        raise DataError("these moments have no number of records; pass the result of measure")
    _require_persons(plan, moments)
    limits = {"cohort.max_records": plan.cohort.max_records}
    if not isinstance(plan.privacy, NoPrivacy) and plan.privacy.max_records_per_client is not None:
        limits["privacy.max_records_per_client"] = plan.privacy.max_records_per_client
    if plan.validity is not None:
        limits["validity.most_records"] = plan.validity.most_records
    for field, limit in limits.items():
        if counted > limit:
            raise DataError(f"a client holds more records than {field}={limit}; raise it in the plan or sample fewer")


def _require_persons(plan: Plan, moments: Moments) -> None:
    clip: Any = getattr(moments, "clip", None) if moments.in_wire_steps else None  # only sums over persons have one
    if clip != plan.person_clip:
        raise DataError(
            "the plan's promise is per person, and these sums were not measured per person under it: measure with "
            "persons=ids, person_clip=plan.person_clip"
            if plan.person_clip
            else "these sums were measured per person, and the plan's promise is not: measure without persons"
        )
    if moments.in_wire_steps and getattr(moments, "parties", 1) != 1:
        raise DataError("these are sums over several parties, in which a person may count twice; pass one party's")


def required_survivors(plan: Plan) -> tuple[int, ...] | None:
    """Return the clients of an earlier sum that this round's survivors must equal, if any."""
    return plan.schema.among


def needs_full_list(plan: Plan) -> bool:
    """Return whether this sum and another one must be over the same clients.

    This holds for the first sum and every round of an alignment without noise.
    """
    return required_survivors(plan) is not None or (plan.schema.followed and plan.noise is None)


def list_arguments(plan: Plan, agreed: Sequence[int] | None) -> dict[str, Any]:
    """Return a client machine's arguments about survivors.

    A round without noise must be over the first sum's full list of clients: otherwise the difference of both sums
    could be one client's vector.

    Raises:
        LocalProtocolError: the list is not the one that this party signed before.
    """
    among = required_survivors(plan)
    if among is None:
        return {"full_list": True} if needs_full_list(plan) else {}
    if agreed is None or tuple(agreed) != among:
        raise LocalProtocolError(
            "this round is over the clients of an earlier sum: pass agreed=client.agreed of this party's machine in "
            "that sum, because a server that lists others could learn single clients from the difference"
        )
    return {"only": among}


def check_opening(plan: Plan, roster: secagg.Roster, opening: bytes) -> None:
    """Raise ``RemoteProtocolError`` for a first message that the roster's server did not sign for this plan and roster.

    A party that builds its client on request calls this, so that an unsigned opening costs nothing. Where clients send
    first, ``session.client`` verifies the panel before it spends.
    """
    require_plan(plan)
    require_roster(roster)
    check = protocol_of(plan.masking).machines.check_opening
    if check is not None:
        check(plan.masking, opening, roster=roster)


def panel_argument(plan: Plan, panel: secagg.Panel | None, roster: secagg.Roster) -> dict[str, secagg.Panel]:
    """Return the panel as an argument for machines; refuse one not signed for this plan and run."""
    kind = protocol_of(plan.masking).machines.panel
    if panel is None:
        if kind is None:
            return {}
        raise LocalProtocolError("the plan names a panel: pass panel=Panel(identities, offers) of this run")
    if not isinstance(panel, kind or _panel()):
        raise LocalProtocolError(
            f"panel must be a Panel, got {type_name(panel)}; build one with Panel(identities, offers)"
        )
    if tuple(identity.hex() for identity in panel.identities) != plan.panel:
        raise LocalProtocolError("this is not the panel that the plan names, so its helpers could be the leader's own")
    masking: Any = plan.masking
    panel.context(masking, roster)
    return {"panel": panel}


def _panel() -> type:
    from privstats.secagg import Panel

    return Panel
