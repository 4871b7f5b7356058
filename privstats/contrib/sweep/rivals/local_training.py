"""Share what FedAvg, FedProx and the ensemble have in common: a softmax layer trained on each party's own records.

None of the three has any privacy: the server reads each party's weights.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from threadpoolctl import threadpool_limits

from privstats.contrib.sweep.rivals.base import FederatedRival, Records
from privstats.contrib.sweep.rivals.rows import clipped_rows
from privstats.contrib.sweep.rivals.softmax_layer import Part, SoftmaxModels, with_bias
from privstats.errors import PlanError
from privstats.extend.heads import Scores
from privstats.kinds import ClassSchema
from privstats.plan import Plan
from privstats.schema import narrowed

WEIGHT_BYTES = 4
"""A weight is a float32."""
NO_PRIVACY = "it has no privacy: the server reads each party's weights"


class LocalTraining(FederatedRival):
    """A federated rival without privacy, which trains softmax layers on the rows that the heads' sums have."""

    private: ClassVar[bool] = False

    @abstractmethod
    def fit(self, parts: Sequence[Part], features: int, classes: int, seed: int) -> SoftmaxModels:
        """Return the model that parties with records train; the same seed yields identical bits."""

    def require(self, plan: Plan) -> None:
        """Refuse a plan without classes.

        Raises:
            PlanError: the plan is not of classes.
        """
        narrowed(
            plan.schema, ClassSchema, PlanError(f"{self.name} trains a softmax of classes, and this plan has none")
        )

    def scores_of_parties(self, plan: Plan, parties: Sequence[Records], test: Records, seed: int) -> Scores:
        """Return the scores of :meth:`fit`; the plan's promise is not read."""
        schema: Any = plan.schema
        parts = [clipped_rows(schema, X, y) for X, y in parties if len(y)]
        rows, truth = clipped_rows(schema, *test)
        with threadpool_limits(1):  # the order of a float sum depends on the number of threads
            model = self.fit([(with_bias(X), y) for X, y in parts], schema.features, schema.classes, seed)
            return Scores.of(schema, model, rows, truth)
