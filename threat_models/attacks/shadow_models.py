"""LiRA on a fitted head: a likelihood ratio from shadow models (Carlini and others 2022, online attack).

The attacker has the published head alone. It draws records from its public sample, runs the plan on them with the
target's record and without, noise included, and fits the same head to both. The logit of the head's confidence in the
target's label is about normal in either group. The score is the ratio of the two densities at the published head's
logit. Their variance is one for each target, as the paper advises for few shadow models. A regression's residual takes
the logit's place. The second row is the attacker without shadow models, who compares the logits of all targets with one
threshold (Yeom and others 2018).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats import session
from privstats.errors import DataError
from privstats.heads.registry import HEADS, head_class
from privstats.kinds import ClassSchema, RidgeSchema, of_records
from privstats.plan import Plan
from privstats.randomness import Generator
from privstats.workflows.readers import possible
from threat_models import ceilings
from threat_models.adversary import Adversary
from threat_models.attack import Examination
from threat_models.audits.target import of_single_rows
from threat_models.chance import integer_below, permutation
from threat_models.data import bundled
from threat_models.made_up import sums_of
from threat_models.membership import Trials, compared
from threat_models.report import Row

Array: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = tuple[Array, NDArray[Any]]
"""Vectors behind the transform, and their labels or targets."""

_SHADOWS = 16
"""Pairs of shadow models for each target."""
_TARGETS = 8
_PER_CLASS = 10
_SURE = 1e-12


class ShadowModels(Examination):
    """The likelihood ratio of a head's confidence in a record, with that record in the sums and without."""

    name = "lira"
    number = 12
    goal = "membership"
    title = "an attacker who has only the model compares it with shadow models that hold a record and with others"
    needs = Adversary(sees="heads", knows="public")
    kinds = (ClassSchema, RidgeSchema)

    def refusal(self, plan: Plan) -> str | None:
        """Needs a plan whose release gives a head, with records that are vectors."""
        if (other := super().refusal(plan)) is not None:
            return other
        return None if _heads(plan) else "needs a head, and no head is fitted on this plan's statistics"

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """Two rows: with shadow models, and with one threshold for all targets."""
        lab = _Lab.under(plan, rng)
        shadows = [lab.shadows(target, rng) for target in range(len(lab.targets[1]))]
        ratios, plain = np.zeros((2, trials)), np.zeros((2, trials))
        for trial in range(trials):
            for place, member in enumerate((True, False)):
                target = integer_below(len(shadows), rng)  # one threshold is for all targets
                order = permutation(len(lab.private[1]), rng)
                plain[place, trial] = seen = lab.confidence(target, lab.private, order, rng, member=member)
                ratios[place, trial] = shadows[target].ratio(seen)
        promised, level = ceilings.guaranteed(plan, self.needs), 1 - (1 - confidence) / 2
        return tuple(
            Row(
                attack=self.name,
                number=self.number,
                goal=self.goal,
                adversary=self.needs.describe(),
                sees=self.needs.sees,
                metric=metric,
                worlds=trials,
                note=f"{lab.head} of {lab.records} records" if metric == "AUC" else "",
                **compared(Trials(*(row[:, None] for row in scores)), promised, level, rng),
            )
            for metric, scores in (("AUC", ratios), ("AUC without shadow models", plain))
        )


@dataclass(frozen=True)
class Shadows:
    """Logits of shadow models about one target, as two normal distributions of one variance.

    Attributes:
        inside, outside: means with the target's record in the sums and without.
        variance: of both.
    """

    inside: float
    outside: float
    variance: float

    @classmethod
    def of(cls, inside: Array, outside: Array) -> Shadows:
        """Fit both distributions."""
        variance = (float(inside.var()) + float(outside.var())) / 2
        return cls(float(inside.mean()), float(outside.mean()), max(variance, _SURE))

    def ratio(self, seen: float) -> float:
        """Return the logarithm of the likelihood ratio at one logit."""
        return ((seen - self.outside) ** 2 - (seen - self.inside) ** 2) / (2 * self.variance)


@dataclass(frozen=True, eq=False)
class _Lab:
    """A plan over vectors, the head that is published, targets, and records to draw the others from.

    Attributes:
        records: beside the target, of all classes together.
    """

    plan: Plan
    head: str
    records: int
    targets: Rows
    private: Rows
    public: Rows

    @classmethod
    def under(cls, plan: Plan, rng: Generator) -> _Lab:
        """The lab on the bundled records, or on made-up vectors where these do not fit the plan."""
        pool, _ = bundled(plan, rng)
        field, schema = pool.of(plan), replace(of_records(plan.schema), transform=())
        classes = schema.sizes.get("class", 1)
        order = permutation(len(field.y), rng)
        X, y, few = field.private[order], field.y[order], slice(_TARGETS)
        room = min(_room(plan), len(order) - _TARGETS - 1, len(field.public[1]) - 1)
        if room < 1:
            raise DataError("a head needs a record beside the target; give a plan of more records")
        bare, rest = replace(plan, schema=schema, min_count=0, merge={}), slice(_TARGETS, None)
        records = min(room, _PER_CLASS * classes)
        return cls(bare, _heads(plan)[0], records, (X[few], y[few]), (X[rest], y[rest]), field.public)

    def shadows(self, target: int, rng: Generator) -> Shadows:
        """Shadow models about one target, in pairs over the same records of the public sample."""
        pairs = []
        for _ in range(_SHADOWS):
            order = permutation(len(self.public[1]), rng)
            pairs.append([self.confidence(target, self.public, order, rng, member=member) for member in (True, False)])
        return Shadows.of(*np.array(pairs).T)

    def confidence(self, target: int, others: Rows, order: NDArray[np.int64], rng: Generator, *, member: bool) -> float:
        """Return a new model's logit of the target's label; of a regression, minus its residual's size.

        Args:
            others: records, of which the first in this order are beside the target.
            member: whether the target's record is in the sums; else, under replace-one, one more of the others is.
        """
        swap = getattr(self.plan.privacy, "adjacency", "") == "replace-one"
        rows = order[: self.records + (swap and not member)]
        x, y = (each[target : target + 1] for each in self.targets)
        X, labels = others[0][rows], others[1][rows]
        if member:
            X, labels = np.concatenate([X, x]), np.concatenate([labels, y])
        head: Any = head_class(self.head)(**({} if self.classes else {"fit_intercept": False}))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a head of so few records warns
            head.fit_release(self._released(X, labels, rng))
        if not self.classes:
            return -float(np.linalg.norm(head.predict(x) - y))
        sure = head.predict_proba(x)[0][head.classes_ == y[0]].sum()  # 0 for a class without a mean
        return float(np.log(max(sure, _SURE)) - np.log(max(1 - sure, _SURE)))

    @property
    def classes(self) -> bool:
        """Whether the head predicts classes."""
        return isinstance(self.plan.schema, ClassSchema)

    def _released(self, X: Array, y: NDArray[Any], rng: Generator) -> Any:
        """The release of these records, dealt to as few clients as the plan admits; the last moves one client alone."""
        plan = self.plan
        holders = -(-(self.records + 1) // _per_client(plan))
        parts = [of_single_rows(plan, sums_of(plan.schema, X[k::holders], y[k::holders])) for k in range(holders)]
        none = of_single_rows(plan, sums_of(plan.schema, X[:0], y[:0]))
        return session.aggregate_unmasked(plan, [*parts, *[none] * (plan.cohort.min_survivors - holders)], rng)


def _per_client(plan: Plan) -> int:
    return getattr(plan.privacy, "max_records_per_client", None) or plan.cohort.max_records


def _room(plan: Plan) -> int:
    """Records that the fewest survivors may hold, beside the target."""
    return min(plan.cohort.max_records, _per_client(plan) * plan.cohort.min_survivors) - 1


def _heads(plan: Plan) -> list[str]:
    """Heads that a release of class sums or of a regression gives, the suggested one first."""
    return [name for name in possible(plan) if name in HEADS]
