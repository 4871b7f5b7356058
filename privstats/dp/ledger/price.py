"""Compute the price of a release: the mu of its noise under the account's unit and adjacency.

The price follows from the noise levels; no other field of the noise value can lower it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from privstats.dp.calibration import Noise
from privstats.dp.gaussian import compose
from privstats.dp.ledger.accounts import TOLERANCE, Account, Cap
from privstats.dp.ledger.records import Part
from privstats.dp.privacy import Adjacency, NoPrivacy, Privacy
from privstats.dp.pure import joint_epsilon, laplace_mu
from privstats.dp.sensitivities import apart, checked_shares, joint_mu, sensitivity, unit_mu
from privstats.errors import LedgerError
from privstats.schema import Schema


def no_account(dataset: str, known: Iterable[str] = ()) -> str:
    """Return the error for a data set without an account."""
    has = ", ".join(map(repr, known))
    return (
        f"the ledger has no account {dataset!r}{f', but {has}' if has else ''}: open it with `privstats ledger cap` "
        "(set_cap) before the first release"
    )


_MOST_ROWS = 1 << 30


@dataclass(frozen=True)
class Cost:
    """One release's schema, promise and noise, and the failure probability of its masking.

    Attributes:
        multiplicity: number of releases of this mu that the cost counts for, in mu^2, by adjacency: for courses with
            different records in each round, and for records in several rows (:meth:`repeated`).
        condition: the assumption of the promise, a clause that follows "while" (``Plan.condition``).

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(3, 3, 100), privacy=ps.NoPrivacy())
        >>> cost = ps.dp.Cost(schema, plan.privacy, plan.noise)
        >>> cost.noise is None  # exact sums: no cap on epsilon admits them
        True
    """

    schema: Schema
    privacy: Privacy | NoPrivacy
    noise: Noise | None
    masking_failure: float = 0.0
    multiplicity: Mapping[Adjacency, float] = field(default_factory=dict)
    condition: str = ""

    @staticmethod
    def repeated(times: int) -> Mapping[Adjacency, float]:
        """Return the multiplicity where one record may be in ``times`` measured rows.

        mu-GDP for one row is ``times`` mu-GDP for ``times`` rows (group privacy: Dong, Roth and Su 2022, theorem 3),
        under either adjacency: ``times**2`` in mu^2.

        Example:
            >>> ps.dp.Cost.repeated(3)
            {'add-remove': 9.0, 'replace-one': 9.0}
            >>> ps.dp.Cost.repeated(1)
            {}
        """
        if type(times) is not int or not 1 <= times <= _MOST_ROWS:
            raise LedgerError(
                f"multiplicity must be an integer from 1 to {_MOST_ROWS:,}, got {times!r:.40}: the most rows that "
                "one record may be in"
            )
        return {} if times == 1 else {"add-remove": float(times) ** 2, "replace-one": float(times) ** 2}


@dataclass(frozen=True)
class Price:
    """Joint price of releases: mu, its parts per statistic, and the sum of epsilons if every delta is 0."""

    mu: float
    parts: tuple[Part, ...] = ()
    pure: float = math.inf


def _price(account: Account, cost: Cost) -> Price:
    schema, privacy, noise = cost.schema, cost.privacy, cost.noise
    if noise is None or isinstance(privacy, NoPrivacy):
        if account.cap is not None:
            raise LedgerError(
                f"account {account.dataset!r} has a cap and a plan without DP has no cost that a cap could hold: "
                "give the plan a Privacy, or record the exact release under a data set without a cap"
            )
        return Price(math.inf)
    if account.cap is None:
        raise LedgerError(no_account(account.dataset))
    _check_named(schema, noise)
    one = _cost(account.dataset, account.cap, schema, privacy, noise)
    times = _multiplicity(cost, account.dataset, account.cap)
    parts = tuple(replace(part, mu=part.mu * math.sqrt(times)) for part in one.parts)
    return Price(one.mu * math.sqrt(times), parts, one.pure if times == 1 else math.inf)


def _check_named(schema: Schema, noise: Noise) -> None:
    """Refuse a statistic without noise: a price that sums over noise would release it for free."""
    sigma = noise.sigma
    bare = [letter for letter in schema.statistics if not 0 < sigma.get(letter, 0.0) < math.inf]
    bare += [letter for letter in schema.statistics if noise.pure and letter not in noise.scales and letter not in bare]
    if bare:
        sent, without = ", ".join(schema.statistics), ", ".join(bare)
        raise LedgerError(
            f"the schema sends {sent} and noise has no scale for {without}: those would be exact, so give the noise of "
            "a plan of this schema (plan.noise); nothing was spent"
        )


def _multiplicity(cost: Cost, dataset: str, cap: Cap) -> float:
    if cost.multiplicity and cap.adjacency not in cost.multiplicity:
        raise LedgerError(
            f"account {dataset!r} is kept under {cap.adjacency} and the cost has a multiplicity for "
            f"{', '.join(sorted(cost.multiplicity))} only: give multiplicity for {cap.adjacency} too"
        )
    return cost.multiplicity.get(cap.adjacency, 1.0)


def price(account: Account, costs: Sequence[Cost]) -> Price:
    """Compute the releases' price for the account, jointly and per statistic."""
    prices = [_price(account, cost) for cost in costs]
    mu = prices[0].mu if len(prices) == 1 else compose(each.mu for each in prices)
    pure = math.fsum(each.pure for each in prices)
    return Price(mu, tuple(part for each in prices for part in each.parts), pure)


def _cost(dataset: str, cap: Cap, schema: Schema, privacy: Privacy, noise: Noise) -> Price:
    sigma = noise.sigma
    if (cap.unit, cap.adjacency) == (privacy.unit, privacy.adjacency):
        _check_sized(schema, privacy, noise)
        parts = tuple(Part(row.statistic, row.sigma, row.mu) for row in noise.rows)
        return Price(noise.mu, parts, noise.epsilon if noise.pure else math.inf)
    _check_priced_by_record(dataset, cap, schema, privacy)
    if noise.pure:
        mus = laplace_mu(schema, noise.scales, cap.adjacency)
        parts = tuple(Part(s, sigma[s], mu) for s, mu in mus.items())
        return Price(compose(mus.values()), parts, joint_epsilon(schema, noise.scales, cap.adjacency))
    parts = tuple(Part(s, sigma[s], joint_mu(schema, {s: sigma[s]}, cap.adjacency)) for s in sigma)
    return Price(joint_mu(schema, sigma, cap.adjacency), parts)


def _check_priced_by_record(dataset: str, cap: Cap, schema: Schema, privacy: Privacy) -> None:
    if cap.unit != "record":
        raise LedgerError(
            f"account {dataset!r} is kept per {cap.unit} under {cap.adjacency} and the plan promises per "
            f"{privacy.unit} under {privacy.adjacency}: use unit={cap.unit!r} in the plan under {cap.adjacency}, so "
            f"that the cost of a {cap.unit} is known"
        )
    if privacy.unit == "person":
        raise LedgerError(
            f"account {dataset!r} is kept per record and the plan weighs whole persons: one record can move all that "
            "its person adds then, so keep an account per person for such plans"
        )
    if privacy.client_clip is not None or schema.refusal("record"):
        raise LedgerError(
            f"account {dataset!r} is kept per record and the plan clips whole clients: one record can move "
            "all of its client's vector then, so keep an account per client for such plans"
        )
    if any(map_.local for map_ in schema.transform):
        raise LedgerError(
            f"account {dataset!r} is kept per record and the plan's transform is fitted on each client's records: one "
            "record moves the features of all of them then, so keep an account per client for such plans"
        )


def _check_sized(schema: Schema, privacy: Privacy, noise: Noise) -> None:
    """Refuse noise with a lower claimed mu than here: it was sized for another schema."""
    least = _least_mu(schema, privacy, noise)
    if least > noise.mu * (1 + TOLERANCE) or _least_epsilon(schema, privacy, noise) > noise.epsilon * (1 + TOLERANCE):
        raise LedgerError(
            f"the noise says mu {noise.mu:.4g} and costs {least:.4g} under this schema: it was sized for another; give "
            "the noise of a plan of this schema (plan.noise); nothing was spent"
        )


def _least_mu(schema: Schema, privacy: Privacy, noise: Noise) -> float:
    sigma, records, clip = noise.sigma, privacy.max_records_per_client, privacy.clip
    if noise.pure:
        return compose(laplace_mu(schema, noise.scales, privacy.adjacency, records or 1).values())
    if clip is not None:  # all of the clip may be in one statistic; its share is its part of the clip's square
        shares = _shares_of_clip(schema, privacy, noise)
        reach = {s: sensitivity(schema, s, "add-remove") * apart(schema, s, privacy.adjacency) for s in sigma}
        return max(reach[s] * clip / (sigma[s] * math.sqrt(shares[s])) for s in sigma)
    return unit_mu(schema, privacy, sigma, privacy.adjacency)


def _shares_of_clip(schema: Schema, privacy: Privacy, noise: Noise) -> dict[str, float]:
    """Return the promise's shares, by which units are clipped, whatever shares the noise lists."""
    shares = checked_shares(schema, privacy.shares)
    if any(not math.isclose(row.share, shares[row.statistic], rel_tol=TOLERANCE) for row in noise.rows):
        raise LedgerError(
            "the noise was sized by other shares than those that clip whole units here: give the noise of the plan "
            "that makes the promise (plan.noise); nothing was spent"
        )
    return shares


def _least_epsilon(schema: Schema, privacy: Privacy, noise: Noise) -> float:
    if not noise.pure:
        return 0.0
    return (privacy.max_records_per_client or 1) * joint_epsilon(schema, noise.scales, privacy.adjacency)
