"""Refuse a table ``[devices]`` that contradicts itself or the rest of its plan, and price what its page states."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from privstats.dp import Noise, NoPrivacy, Privacy, client_mu, gaussian_epsilon, group_mu
from privstats.errors import PlanError
from privstats.plan.forms import folded
from privstats.plan.settings import EXACT, PER_RECORD, TRUSTED_REGISTRAR
from privstats.printable import at_most
from privstats.schema import Schema

if TYPE_CHECKING:
    from privstats.plan.devices import Devices
    from privstats.plan.plan import Plan


def check_distinct(devices: Devices) -> None:
    """Refuse organisations that would be one party in two places."""
    panel = {}
    for place, name in enumerate(devices.organisations):
        if folded(name) in panel:
            raise PlanError(
                f"devices.organisations[{place}] is {name!r} again: two panel members under one name are one "
                "party, which reads every answer; name another organisation"
            )
        panel[folded(name)] = name
    if len(panel) < 2:
        raise PlanError("devices.organisations must name at least two, because one could read all answers")
    if folded(devices.registrar) in panel:
        raise PlanError(
            f"devices.registrar is {panel[folded(devices.registrar)]!r}, a member of the panel, which would also "
            "hold every person's code; name a separate organisation"
        )
    if folded(devices.page) in panel:
        raise PlanError(
            f"devices.page is served by {panel[folded(devices.page)]!r}, a member of the panel, which could "
            "then read every answer alone; name another organisation"
        )
    if folded(devices.page) == folded(devices.registrar):
        raise PlanError(
            f"devices.page is served by the registrar, which can then read every answer: write devices.page = "
            f"{TRUSTED_REGISTRAR!r}, or name another organisation"
        )


def min_stated_epsilon(schema: Schema, privacy: Privacy, noise: Noise, runs: int) -> float:
    """Return epsilon of ``runs`` runs together when one unit's data are exchanged, at the plan's delta.

    The respondents are public, so one answer is compared with another: a neighbour under replace-one. Under add-remove
    an exchange changes two units and at most doubles the mu (Dong, Roth and Su 2022, theorem 3). Without a clip the
    exchange costs at most replace-one's ``dp.client_mu`` or, for a record, ``dp.group_mu``. R runs compose to
    sqrt(R) mu (corollary 2 there). For a pure promise epsilons add up.

    Example:
        >>> from privstats.plan.device_rules import min_stated_epsilon
        >>> schema = ps.CountSchema(variables=(ps.Categories("smokes", ("yes", "no")),), tables=(("smokes",),))
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> noise = ps.dp.calibrate(schema, privacy, honest_shares=1)
        >>> [round(min_stated_epsilon(schema, privacy, noise, runs), 3) for runs in (1, 4)]
        [1.465, 3.186]
    """
    if noise.pure:
        return runs * privacy.epsilon * (1 if privacy.adjacency == "replace-one" else 2)
    return gaussian_epsilon(math.sqrt(runs) * exchanged_mu(schema, privacy, noise), privacy.delta)


def exchanged_mu(schema: Schema, privacy: Privacy, noise: Noise) -> float:
    """Return an upper bound on one run's mu when one unit's data are exchanged; for delta above 0."""
    if privacy.adjacency == "replace-one":
        return noise.mu
    if privacy.client_clip is not None:
        return 2 * noise.mu
    of_unit = client_mu if privacy.unit == "client" else group_mu
    return min(2 * noise.mu, of_unit(schema, noise.sigma, "replace-one", privacy.max_records_per_client or 1))


def check_panel(plan: Plan) -> None:
    """Refuse devices without a panel, or with another number of organisations."""
    devices = _present(plan)
    if not plan.panel:
        raise PlanError(
            f"devices send one message and are gone, which protocol={plan.protocol!r} cannot do: choose "
            "protocol='split' with a panel, or omit devices"
        )
    if len(devices.organisations) != len(plan.panel):
        raise PlanError(
            f"devices.organisations names {len(devices.organisations)} and the panel has {len(plan.panel)} members: "
            "list one name for each, the leader's first"
        )
    if devices.registrar_key in plan.panel:
        raise PlanError(
            "devices.registrar_key is a panel member's key, and that member would also hold every person's code: the "
            "registrar needs a separate key"
        )


def check_noise(plan: Plan) -> None:
    """Refuse noise that devices would sample, and a sentence on exact sums that does not hold."""
    devices, sampled_by = _present(plan), None if plan.noise is None else plan.noise.trust.drawn_by
    _refuse_own_noise(sampled_by)
    if sampled_by == "member":
        if devices.exact is not None:
            raise PlanError("devices.exact is for plans without panel noise, and this plan has some: omit it")
        return
    if devices.exact is None:
        raise PlanError(
            "without model='panel' the leader sees the exact sum of all devices: choose model='panel', or write "
            f"devices.exact = {EXACT!r} and cohort.colluders of at least 1"
        )
    if plan.cohort.colluders < 1:
        raise PlanError(
            "cohort.colluders must be at least 1 with devices.exact: some mailed codes may be in wrong hands, and "
            "only min_survivors - colluders honest people hide each other's answers"
        )


def _refuse_own_noise(sampled_by: str | None) -> None:
    if sampled_by == "client":
        raise PlanError(
            "devices add no noise, because no party can verify a device's noise, or knows how many invited people are "
            "honest: choose model='panel'"
        )


def check_one_message(plan: Plan) -> None:
    """Refuse what needs a device twice."""
    if plan.published is not None or plan.spare_bits:
        raise PlanError(
            "a device sends one message and is gone, and a round of a course needs the same devices again: omit "
            "devices, or the published values and spare_bits"
        )
    if plan.validity is not None:
        raise PlanError(
            "validity cannot be combined with devices, because no privacy proof covers a panel member that answers "
            "proofs of unlisted reports: omit validity, or devices"
        )


def check_unit(plan: Plan) -> None:
    """Refuse a unit that promises a device less than the page states."""
    devices = _present(plan)
    if plan.person_clip is not None:
        raise PlanError(
            "a device is one person and sends one message, so unit='client' covers that person's complete answer: "
            "write it with max_records_per_client (and client_clip, where no browser answers) in place of unit='person'"
        )
    per_record = isinstance(plan.privacy, Privacy) and plan.privacy.unit == "record"
    if per_record and devices.words is None:
        raise PlanError(
            "privacy.unit='record' promises less to a device that holds several records: choose unit='client' with "
            f"max_records_per_client, or write devices.words = {PER_RECORD!r}, which the page then states"
        )
    if devices.words is not None and not per_record:
        raise PlanError("devices.words is for unit='record' only: omit it, or change the unit")


def check_stated(plan: Plan) -> None:
    """Refuse a stated epsilon below the one that the plan costs."""
    devices = _present(plan)
    if isinstance(plan.privacy, NoPrivacy) or plan.noise is None:
        if devices.stated_epsilon is not None:
            raise PlanError("devices.stated_epsilon is a promise, and this plan makes none: omit it")
        return
    minimum = min_stated_epsilon(plan.schema, plan.privacy, plan.noise, devices.most_runs)
    if devices.stated_epsilon is not None and devices.stated_epsilon >= minimum:
        return
    stated = "missing" if devices.stated_epsilon is None else f"{devices.stated_epsilon:g}"
    raise PlanError(
        f"devices.stated_epsilon is {stated}, and {devices.runs} of this plan cost epsilon "
        f"{at_most(minimum, '.6g')} if one answer is exchanged: write "
        f"{math.ceil(minimum * 100) / 100!r}, or lower most_runs or epsilon"
    )


def check_texts(plan: Plan) -> None:
    """Refuse texts of a page that do not fit the schema's questions."""
    devices = _present(plan)
    if devices.texts is not None:
        from privstats.files.page_texts import check_questions

        check_questions(devices.texts, plan.schema)


def _present(plan: Plan) -> Devices:
    assert plan.devices is not None  # noqa: S101  these checks are of a plan with the table
    return plan.devices
