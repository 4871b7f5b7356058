"""Build the machines of a session's parties, and the vector that a client sends."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from typing import Any, NoReturn

from privstats import secagg
from privstats.dp import Privacy
from privstats.encoding import RingVector, flatten
from privstats.errors import DataError, LocalProtocolError, RandomnessError
from privstats.moments import Moments
from privstats.plan import Plan
from privstats.randomness import Generator, checked
from privstats.secagg.machines import Aggregator, Peer
from privstats.secagg.protocols import protocol_of
from privstats.session.accounting import Chargeable, Charging, LedgerCallback, charge_of, register_run
from privstats.session.noise import client_noise, helper_noise
from privstats.session.validation import (
    list_arguments,
    needs_full_list,
    panel_argument,
    require_keys,
    require_moments,
    require_party,
    require_plan,
    type_name,
)

_USED = (
    "this contribution was used before and serves one session only: build a new one, with new noise, under a new run "
    "name"
)


class Contribution:
    """One client's exact sums and its share of the noise, in the ring; may be sent once.

    If two sums use identical noisy vectors and one lacks a client, their difference is that client's vector with its
    own noise share alone. So a session that aborted after the upload counts as released, and a retry needs a new
    contribution. A contribution cannot be copied or pickled, and only the process that built it may use it.

    Args:
        noise_root: 32 secret bytes from which the vector's noise layers are derived.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> contribution = ps.session.contribution(plan, ps.measure(schema, [[0.1, 0.2]], [0]))
        >>> _ = contribution.take()
        >>> contribution.take()
        Traceback (most recent call last):
            ...
        privstats.errors.LocalProtocolError: this contribution was used before and serves one session only: build a
        new one, with new noise, under a new run name
    """

    __slots__ = ("_lock", "_noise_root", "_plan", "_process", "_used", "_vector")

    def __init__(self, plan: str, vector: RingVector, *, reproducible: bool = False, noise_root: bytes = b"") -> None:
        self._vector = replace(vector, reproducible=reproducible or vector.reproducible)
        self._noise_root = noise_root
        self._plan, self._used, self._lock, self._process = plan, False, Lock(), os.getpid()

    @property
    def vector(self) -> RingVector:
        """The vector, for inspection; sending it makes it a release."""
        return self._vector

    @property
    def noise_root(self) -> bytes:
        """The secret that opens all noise layers; only the sending machine may read it."""
        return self._noise_root

    @property
    def reproducible(self) -> bool:
        """Whether others may know the noise, so that it protects nothing."""
        return self._vector.reproducible

    def check(self, plan: str) -> None:
        """Require an unused contribution of this process (``LocalProtocolError``) and plan (``DataError``)."""
        if self._plan != plan:
            raise DataError("the contribution was built under another plan; build one with session.contribution")
        if os.getpid() != self._process:
            raise LocalProtocolError(
                "this contribution was built before a fork, and each process would send identical noise: build it in "
                "the process that sends it"
            )
        if self._used:
            raise LocalProtocolError(_USED)

    def take(self) -> RingVector:
        """Return the vector, once.

        Raises:
            LocalProtocolError: the contribution was used before, or built before a fork.
        """
        self.check(self._plan)
        with self._lock:
            if self._used:
                raise LocalProtocolError(_USED)
            self._used = True
        return self._vector

    def __repr__(self) -> str:
        return "Contribution(<one party's vector>)"

    def __copy__(self) -> NoReturn:
        raise LocalProtocolError("a contribution is sent once, so it is never copied: build another from the moments")

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        self.__copy__()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        self.__copy__()


def contribution(
    plan: Plan,
    moments: Moments,
    rng: Generator | None = None,
    *,
    index: int | None = None,
    allow_reproducible: bool = False,
) -> Contribution:
    """Encode one client's exact sums in the ring, plus a noise share where the plan's model requires one.

    One client, or one :func:`aggregate_unmasked`, may use the result. Nothing is charged yet.

    Args:
        rng: a generator, for tests; by default the operating system's randomness.
        index: roster index; needed by plans that assign groups or probabilities to clients.
        allow_reproducible: accept a generator that others may reproduce: in tests.

    Guarantee:
        Distributed: the share is this client's part of the joint noise. Local: the share alone makes the vector
        (epsilon, delta)-private. Central, panel and no DP: nothing is added here. Under the client unit with
        ``client_clip`` the complete vector is clipped first, in integers. Each statement holds for one upload.

    Raises:
        DataError: the moments do not fit the plan, or ``index`` is missing.
        RandomnessError: ``rng`` is reproducible without ``allow_reproducible``, or was made before a fork.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> contribution = ps.session.contribution(plan, ps.measure(schema, [[0.5, 0.25]], [0]))
        >>> ps.encoding.to_real(schema, contribution.take().lift()).A.tolist()
        [[0.5, 0.25], [0.0, 0.0]]
    """
    require_plan(plan)
    rng = checked(rng, allow_reproducible=allow_reproducible)
    require_moments(plan, moments)
    vector = flatten(moments.for_client(index))
    if isinstance(plan.privacy, Privacy) and plan.privacy.client_clip is not None:
        from privstats.dp.clips import clip_client

        vector = clip_client(plan.schema, plan.privacy, vector)
    known, root = False, b""
    if plan.noise is not None and plan.noise.trust.drawn_by == "client":
        known = rng.reproducible
        share, root = client_noise(plan.noise, plan.layout, rng)
        vector = vector + share
    encoded = plan.ring.encode(vector)
    if plan.claim is not None:
        plan.claim.check_vector(encoded)
    return Contribution(plan.digest, encoded, reproducible=known, noise_root=root)


def client(
    plan: Plan,
    moments: Moments | Contribution,
    *,
    index: int,
    identity: secagg.Identity,
    roster: secagg.Roster,
    panel: secagg.Panel | None = None,
    rng: Generator | None = None,
    charge: Charging = None,
    agreed: Sequence[int] | None = None,
    allow_reproducible: bool = False,
) -> Peer:
    """Build the protocol machine of one party, which holds its contribution.

    With a :class:`Charge` the spend is on disk before this returns, once per (data set, plan, run): rebuilding the
    client after a crash is free. Sending the masked vector finishes the spend. Discarding the client earlier refunds
    the spend, but the run's name is used up.

    Args:
        moments: this party's, or an unused contribution.
        roster: agreed outside this protocol, with the run's name.
        panel: the members' offers for this run, where the plan names a panel.
        charge: the party's ledger and data set, or ``"uncharged"``; optional only without DP, where its omission
            allows a second exact release of the data.
        agreed: for a round of an alignment without noise: ``client.agreed`` of this party's machine in the first sum.
        rng, allow_reproducible: as in :func:`contribution`; the keys come from ``rng`` too.

    Raises:
        LedgerError: a plan with DP has no ``charge``, the cap would be exceeded, or the run's name or number is
            invalid. Nothing is spent or sampled.
        LocalProtocolError: the contribution was used before, or another argument does not fit. Nothing is spent, unless
            another thread uses the contribution meanwhile.
        DataError, RandomnessError: as for :func:`contribution`.

    Example:
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> moments = ps.measure(plan.schema, [[0.1, 0.2]], [0])
        >>> ulm, bonn, server = (ps.secagg.Identity.generate(os.urandom) for _ in range(3))
        >>> roster = ps.secagg.Roster((ulm.public, bonn.public), server=server.public, run=b"hips in May")
        >>> client = ps.session.client(plan, moments, index=0, identity=ulm, roster=roster)
        >>> client.index, client.step
        (0, 'advertise')
    """
    require_plan(plan)
    _check_place(index, identity, roster)
    rng = checked(rng, allow_reproducible=allow_reproducible)
    account = charge_of(plan, charge)
    panel_arguments: dict[str, Any] = panel_argument(plan, panel, roster)
    listed = list_arguments(plan, agreed)
    _check_moments(plan, moments, account, allow_reproducible=allow_reproducible)
    if panel_arguments:  # machines with a panel check themselves whether their keys are reproducible
        panel_arguments["allow_reproducible"] = allow_reproducible
    kind = protocol_of(plan.masking).machines.client
    kind.check_place(plan.masking, index=index, identity=identity, roster=roster)
    if panel is not None:
        # A journal destroys an expired box key, so the upload might never be opened: refuse before the spend.
        panel.require_open()
    # The contribution is built here because its claim must be checked before anything is spent. Clients of such a plan
    # add no noise.
    if plan.validity is not None:
        moments = moments if isinstance(moments, Contribution) else contribution(plan, moments, index=index)
    if account is not None:
        register_run(plan, account, roster)
    mine = as_contribution(plan, moments, rng, index)
    return kind(
        plan.masking,
        mine.take(),
        index=index,
        identity=identity,
        roster=roster,
        entropy=rng.bytes,
        on_upload=None if account is None else on_upload(plan, roster, account),
        **listed,
        **({"noise_root": mine.noise_root} if mine.noise_root else {}),
        **panel_arguments,
    )


def _check_place(index: int, identity: secagg.Identity, roster: secagg.Roster) -> None:
    require_party(identity, roster)
    if isinstance(index, bool) or not isinstance(index, int):
        raise LocalProtocolError(f"index must be an integer, the party's index in the roster, got {type_name(index)}")


def _check_moments(
    plan: Plan, moments: Moments | Contribution, account: Chargeable | None, *, allow_reproducible: bool
) -> None:
    if isinstance(moments, Contribution):
        if moments.reproducible and not allow_reproducible:
            raise RandomnessError(
                "this contribution's noise came from a reproducible generator, so anyone who knows its seed can remove "
                "it; build a contribution without rng, or pass allow_reproducible=True in a test"
            )
        if account is not None and account.per_round:
            raise LocalProtocolError(
                "this contribution's noise was sampled before the ledger marked its round: pass the moments instead"
            )
        moments.check(plan.digest)
        return
    require_moments(plan, moments)
    if account is not None:
        account.check_moments(moments)


def server(
    plan: Plan,
    roster: secagg.Roster,
    *,
    identity: secagg.Identity | None = None,
    keys: secagg.HelperKeys | None = None,
    panel: secagg.Panel | None = None,
    rng: Generator | None = None,
    allow_reproducible: bool = False,
) -> Aggregator:
    """Build the protocol machine of the aggregator.

    Args:
        identity: the signing key behind the roster's ``server``.
        keys: the leader's keys for this run, if the plan names a panel; then omit ``identity``.
        panel: as for :func:`client`.
        rng, allow_reproducible: as in :func:`contribution`; without a panel, the keys come from ``rng``.

    Raises:
        DataError, LocalProtocolError, RandomnessError: an argument is missing or does not fit.

    Example:
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> ulm, bonn, aggregator = (ps.secagg.Identity.generate(os.urandom) for _ in range(3))
        >>> roster = ps.secagg.Roster((ulm.public, bonn.public), server=aggregator.public, run=b"hips in May")
        >>> server = ps.session.server(plan, roster, identity=aggregator)
        >>> len(server.start()), server.step  # one opening for each client
        (2, 'advertise')
    """
    require_plan(plan)
    entropy = checked(rng, allow_reproducible=allow_reproducible).bytes
    due = plan.noise is not None and plan.noise.trust.at_release
    panel_arguments: dict[str, Any] = panel_argument(plan, panel, roster)
    make = protocol_of(plan.masking).machines.server
    if panel_arguments:
        require_keys(plan, keys, roster)
        panel_arguments["allow_reproducible"] = allow_reproducible
        return make(plan.masking, roster=roster, noise_due=due, keys=keys, **panel_arguments)
    require_party(identity, roster)
    listed = {"full_list": True} if needs_full_list(plan) else {}
    return make(plan.masking, roster=roster, noise_due=due, identity=identity, entropy=entropy, **listed)


def helper(
    plan: Plan, *, keys: secagg.HelperKeys, roster: secagg.Roster, panel: secagg.Panel, allow_reproducible: bool = False
) -> Peer:
    """Build the protocol machine of one helper.

    Args:
        keys: the helper's identity, and its box key for this run.
        roster: all parties' public identities, *from the roster's owner and not from the leader*.
        allow_reproducible: accept keys that others may reproduce: in tests.

    Raises:
        LocalProtocolError, RandomnessError: an argument does not fit.

    Example:
        >>> panel = [ps.secagg.Identity.generate(os.urandom).public.hex() for _ in range(2)]
        >>> protocol = {"privacy": ps.NoPrivacy(), "protocol": "split", "panel": panel}
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(3, 3, 9), **protocol)
        >>> parties = ps.session.local_parties(plan, [ps.measure(plan.schema, [[0.1, 0.2]], [0])] * 3)
        >>> [(helper.index, helper.step) for helper in parties.helpers]  # built by this function
        [(3, 'check')]
    """
    require_plan(plan)
    kind = protocol_of(plan.masking).machines.helper
    if kind is None:
        raise LocalProtocolError(f"a plan with protocol={plan.protocol!r} has no helpers; protocol='split' has them")
    require_keys(plan, keys, roster)
    named: dict[str, Any] = {**panel_argument(plan, panel, roster), "noise": helper_noise(plan)}
    return kind(plan.masking, keys=keys, roster=roster, allow_reproducible=allow_reproducible, **named)


def on_upload(plan: Plan, roster: secagg.Roster, charge: Chargeable) -> LedgerCallback:
    """Return the callback that records a client's upload before it is sent; its ``withdraw`` refunds an unused spend.

    Example:
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> ulm, bonn, server = (ps.secagg.Identity.generate(os.urandom).public for _ in range(3))
        >>> roster = ps.secagg.Roster((ulm, bonn), server=server, run=b"hips in May")
        >>> charge = ps.session.Charge(ps.dp.Ledger.create("ledger.sqlite"), "clinic")
        >>> callable(ps.session.on_upload(plan, roster, charge))  # for JournaledClient.resume
        True
    """
    return LedgerCallback(plan, charge, roster.run)


def as_contribution(plan: Plan, part: Moments | Contribution, rng: Generator, index: int) -> Contribution:
    """Return a part as an unused contribution."""
    if isinstance(part, Contribution):
        part.check(plan.digest)
        return part
    return contribution(plan, part, rng, index=index, allow_reproducible=True)  # the caller has checked rng
