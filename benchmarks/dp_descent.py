"""Opacus beside a sweep's heads: a linear softmax by DP-SGD or full-batch DP-GD, on the pooled records.

The model is central: the trainer sees every record, and only the weights are private. Opacus samples, clips and draws
the noise; its PRV accountant, or for full batches the exact composition of Gaussians, sets the scale. Needs the
``torch`` extra.
Only a checkout has it: ``study(plan, train, test, {"LDA": ps.heads.LDA, "DP-SGD": dp_sgd})`` compares it with heads.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats import optional_dependencies
from privstats.contrib.sweep.rivals import Rival
from privstats.dp import Privacy, gaussian_mu
from privstats.errors import DataError, PlanError
from privstats.kinds import ClassSchema
from privstats.plan import Plan
from privstats.records.input_validation import check_labels
from privstats.schema import narrowed
from privstats.transforms import apply
from privstats.workflows.score import Scores

_TOLERANCE = 0.005  # of epsilon; Opacus's own, .01 whatever epsilon is, charges small ones a tenth more noise
_OPACUS_ERROR = 0.01  # of its accountant in epsilon, likewise; kept where it is small beside epsilon


@dataclass(frozen=True)
class Recipe:
    """Hyperparameters of private gradient descent.

    Attributes:
        rate: learning rate, on the mean of clipped gradients.
        clip: L2 norm that a record's whole gradient is clipped to.
        momentum: heavy-ball, as torch's SGD has it.
        steps: how many.
        sample: share of the records per step (Poisson); 1 is full-batch gradient descent.
        tail: whether the mean of the weights over the last half of the steps is taken, not the last weights.
        spread: the largest standard deviation that all steps' noise together may give a weight; where the rate would
            give more it is lowered, by public numbers alone. None leaves the rate.

    Example:
        >>> from benchmarks.dp_descent import Recipe
        >>> print(Recipe(rate=16.0, clip=0.3, momentum=0.0, steps=100, sample=0.1))
        rate 16, clip 0.3, 100 steps of 10 % of the records
    """

    rate: float
    clip: float
    momentum: float
    steps: int
    sample: float
    tail: bool = False
    spread: float | None = None

    def rate_at(self, noise: float, batch: float) -> float:
        """Return the learning rate under a noise multiplier, where a step has ``batch`` records on average."""
        if self.spread is None or not noise:
            return self.rate
        at_rate_1 = self.clip * noise * math.sqrt(self.steps) / (batch * (1 - self.momentum))
        return min(self.rate, self.spread / at_rate_1)

    def __str__(self) -> str:
        size = "all records" if self.sample == 1 else f"{100 * self.sample:g} % of the records"
        extra = f", momentum {self.momentum:g}" * (self.momentum > 0) + ", tail average" * self.tail
        less = "" if self.spread is None else f" or less, for a noise of at most {self.spread:g} in a weight"
        return f"rate {self.rate:g}{less}, clip {self.clip:g}, {self.steps} steps of {size}{extra}"


@cache
def noise_multiplier(epsilon: float, delta: float, sample: float, steps: int) -> float:
    """Standard deviation of the noise in a step's sum of gradients, over their clip; 0 for an infinite epsilon.

    Guarantee:
        Unit: one record; add-remove. Full batches: T Gaussian mechanisms with noise multiplier sqrt(T) / mu are mu-GDP
        (Dong, Roth and Su 2022), which is (epsilon, delta)-DP for the mu of ``gaussian_mu``. Poisson samples of a share
        q: the least multiplier for which Opacus's PRV accountant (Gopi, Lee, Wutschitz 2021) finds at most epsilon. The
        number of records is taken as public.

    Example:
        >>> from benchmarks.dp_descent import noise_multiplier
        >>> round(noise_multiplier(1.0, 1e-5, sample=1.0, steps=100) * ps.dp.gaussian_mu(1.0, 1e-5), 6)
        10.0
    """
    if math.isinf(epsilon):
        return 0.0
    if sample == 1:
        return math.sqrt(steps) / gaussian_mu(epsilon, delta)
    accountants = optional_dependencies.load("opacus.accountants.utils", by="DP-SGD")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Opacus's own, about its discretisation
        return float(
            accountants.get_noise_multiplier(
                target_epsilon=epsilon,
                target_delta=delta,
                sample_rate=sample,
                steps=steps,
                accountant="prv",
                epsilon_tolerance=_TOLERANCE * epsilon,
                eps_error=min(_OPACUS_ERROR, 2 * _TOLERANCE * epsilon),
            )
        )


def linear(features: int, classes: int) -> Any:
    """A softmax layer of torch with all weights 0.

    Example:
        >>> from benchmarks.dp_descent import linear
        >>> tuple(linear(features=3, classes=2).weight.shape)
        (2, 3)
    """
    torch = optional_dependencies.load("torch", by="DP-SGD")
    layer = torch.nn.Linear(features, classes)
    for parameter in layer.parameters():
        torch.nn.init.zeros_(parameter)
    return layer


@dataclass(frozen=True)
class PrivateDescent(Rival):
    """A torch module that Opacus trains on all records in one place, scored in a study as a head is.

    Its rows are those that heads see, over the clip norm: behind the plan's public maps, shortened to ``clip_norm``,
    and so of norm at most 1, which lets one recipe suit every scale.

    Args:
        recipe: fixed before any record is seen. Tuning one on the records would reveal something that no epsilon
            counts.
        make: from features and classes to a fresh module that gives scores ``(n, C)`` of rows ``(n, d)``; a softmax
            layer if omitted. The start that it draws from torch's own generator is the seed's.

    Example:
        >>> from benchmarks.dp_descent import PrivateDescent, Recipe
        >>> PrivateDescent(Recipe(rate=4.0, clip=1.0, momentum=0.9, steps=50, sample=1.0)).recipe.clip
        1.0
    """

    packages: ClassVar[tuple[str, ...]] = ("torch", "opacus")

    recipe: Recipe
    make: Callable[[int, int], Any] = linear

    @property
    def name(self) -> str:
        """Name of the method: DP-SGD where a step samples records, DP-GD where it uses all."""
        return f"{'DP-GD' if self.recipe.sample == 1 else 'DP-SGD'} (Opacus), pooled"

    def __str__(self) -> str:
        return (
            f"a softmax trained centrally on all records at the same epsilon and delta, by {self.recipe}; it is the "
            "recipe for every data set, and takes the number of records as public"
        )

    def require(self, plan: Plan) -> None:
        """Refuse a plan with a promise that Opacus does not keep.

        Raises:
            PlanError: the plan is of no classes, or of another unit or adjacency.
            MissingExtraError: torch or Opacus is not installed.
        """
        refusal = "DP-SGD and DP-GD train a softmax of classes, and this plan has none: leave them out"
        narrowed(plan.schema, ClassSchema, PlanError(refusal))
        promise = plan.privacy
        if isinstance(promise, Privacy) and (promise.unit, promise.adjacency) != ("record", "add-remove"):
            raise PlanError(
                f"Opacus keeps a promise about one record that is added or removed, and this plan's has unit "
                f"{promise.unit!r} and adjacency {promise.adjacency!r}: leave it out, or sweep another plan"
            )
        if isinstance(promise, Privacy) and promise.pure:
            raise PlanError("Opacus promises no pure epsilon: leave it out, or sweep a plan with a delta above 0")
        optional_dependencies.require(*self.packages, by="DP-SGD and DP-GD beside a sweep")

    def scores(self, plan: Plan, train: tuple[Any, Any], test: tuple[Any, Any], seed: int) -> Scores:
        """The scores of the weights that one training gives, at the plan's promise; without DP without noise.

        Args:
            plan: admitted by :meth:`require`.
            train, test: ``(X, y)``; all the cohort's records, and to score on.
            seed: fixes samples and noise. Reproducible noise protects nothing.
        """
        schema: Any = plan.schema
        promise = plan.privacy
        epsilon, delta = (promise.epsilon, promise.delta) if isinstance(promise, Privacy) else (math.inf, 0.0)
        (rows, labels), (others, truth) = (_seen(schema, *part) for part in (train, test))
        make = partial(self.make, schema.features, schema.classes)
        return Scores.of(schema, _Fitted(trained(make, rows, labels, self.recipe, epsilon, delta, seed)), others, truth)


@dataclass(frozen=True)
class _Fitted:
    module: Any

    def score(self, rows: NDArray[np.float32], labels: NDArray[np.intp]) -> float:
        """Accuracy; scores that are not finite, as of a training that diverged, are no answer and count as wrong."""
        torch = optional_dependencies.load("torch", by="DP-SGD")
        with torch.no_grad():
            scores = self.module(torch.as_tensor(rows, dtype=torch.float32)).numpy()
        return float(((scores.argmax(axis=1) == labels) & np.isfinite(scores).all(axis=1)).mean())


DP_SGD = Recipe(16.0, 0.3, 0.9, 200, 0.2, tail=True, spread=2.0)
"""For every data set and epsilon; benchmarks/refinement/numbers.md says how."""
DP_GD = Recipe(128.0, 0.1, 0.9, 50, 1.0, spread=2.0)
"""Likewise, of all records in every step."""


def dp_sgd() -> PrivateDescent:
    """DP-SGD by the recipe of benchmarks/refinement/numbers.md.

    Example:
        >>> from benchmarks.dp_descent import dp_sgd
        >>> dp_sgd().recipe.tail
        True
    """
    return PrivateDescent(DP_SGD)


def dp_gd() -> PrivateDescent:
    """DP-GD by the recipe of benchmarks/refinement/numbers.md.

    Example:
        >>> from benchmarks.dp_descent import dp_gd
        >>> dp_gd().recipe.sample  # all records in every step
        1.0
    """
    return PrivateDescent(DP_GD)


def _seen(schema: ClassSchema, X: Any, y: Any) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Rows of norm at most 1, ``(n, d)``, and classes, ``(n,)``."""
    rows = apply(schema.transform, np.asarray(X, np.float64))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    labels: Any = check_labels(schema.goal, np.asarray(y))
    return (rows / np.maximum(lengths, schema.clip_norm)).astype(np.float32), labels


def trained(
    make: Callable[[], Any],
    rows: NDArray[Any],
    labels: NDArray[Any],
    recipe: Recipe,
    epsilon: float,
    delta: float,
    seed: int,
) -> Any:
    """A module that Opacus has trained to tell classes apart, by their cross entropy.

    The same bits for the same seed: one thread, and torch's generator is as it was afterwards.

    Args:
        make: a fresh torch module that gives scores ``(n, C)``.
        rows: ``(n, d)``.
        labels: integers 0..C-1, ``(n,)``.
        recipe: how.
        epsilon, delta: the promise, as :func:`noise_multiplier` keeps it.
        seed: of start, samples and noise.

    Raises:
        DataError: the module has a layer that mixes records, such as batch normalisation.

    Example:
        >>> from functools import partial
        >>> from benchmarks.dp_descent import Recipe, linear, trained
        >>> rows, labels = np.repeat(np.eye(2), 10, axis=0), np.repeat([0, 1], 10)
        >>> recipe = Recipe(rate=4.0, clip=1.0, momentum=0.0, steps=5, sample=1.0)
        >>> module = trained(partial(linear, 2, 2), rows, labels, recipe, epsilon=float("inf"), delta=0.0, seed=0)
        >>> weights = module.weight.detach().numpy()
        >>> bool(weights[0, 0] > weights[1, 0])  # the first column speaks for the first class
        True
    """
    torch = optional_dependencies.load("torch", by="DP-SGD")
    with _reproducible(torch, seed):
        model, steps = make(), 0
        _refuse_mixing(model)
        mean = [torch.zeros_like(parameter) for parameter in model.parameters()]
        for step in _steps(
            torch, model, torch.tensor(rows, dtype=torch.float32), torch.tensor(labels), recipe, epsilon, delta
        ):
            if 2 * step >= recipe.steps:
                steps += 1
                for average, parameter in zip(mean, model.parameters(), strict=True):
                    average += (parameter.detach() - average) / steps
    if recipe.tail:
        torch.nn.utils.vector_to_parameters(torch.nn.utils.parameters_to_vector(mean), model.parameters())
    return model


def _refuse_mixing(model: Any) -> None:
    """Refuse, by its name, a layer with an output for one record that depends on other records.

    Opacus knows the layers of torch that do. It does not recognise a custom module that mixes rows itself, and would
    clip its gradients as if they were of one record. Of its own layers it skips those without weights, such as
    ``BatchNorm1d(8, affine=False)``, so its validators are asked about every layer here.
    """
    validator = optional_dependencies.load("opacus.validators", by="DP-SGD").ModuleValidator
    mixing = [
        f"{name or 'it'} ({type(layer).__name__})"
        for name, layer in model.named_modules()
        if any(isinstance(layer, kind) and finds(layer) for kind, finds in validator.VALIDATORS.items())
    ]
    if mixing:
        raise DataError(f"Opacus finds no gradient of one record in {', '.join(mixing)}: use GroupNorm or LayerNorm")


@contextmanager
def _reproducible(torch: Any, seed: int) -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the order of a float sum depends on how many there are
    try:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)


def _steps(torch: Any, model: Any, rows: Any, labels: Any, recipe: Recipe, epsilon: float, delta: float) -> Any:
    """Train; yield the number of each step after it."""
    engine = optional_dependencies.load("opacus", by="DP-SGD").PrivacyEngine
    batch = math.ceil(len(rows) / round(1 / recipe.sample))
    loader = torch.utils.data.DataLoader(_full_batches(torch, rows, labels), batch_size=batch, collate_fn=tuple)
    sample = 1 / len(loader)  # Opacus samples each record with this chance, which few records make larger
    noise = noise_multiplier(epsilon, delta, sample, recipe.steps)
    rate = recipe.rate_at(noise, sample * len(rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Opacus's own, about its generator and torch's hooks
        private, optimiser, criterion, sampled = engine().make_private(
            module=model,
            grad_sample_mode="ghost",  # the same clipped sum without storing every record's gradient
            optimizer=torch.optim.SGD(model.parameters(), lr=rate, momentum=recipe.momentum),
            criterion=torch.nn.CrossEntropyLoss(),
            data_loader=loader,
            noise_multiplier=noise,
            max_grad_norm=recipe.clip,
        )
        optimiser.expected_batch_size = sample * len(rows)  # Opacus cuts it to an integer, at worst to 0
        done = 0
        while done < recipe.steps:
            for batch_rows, batch_labels in sampled:
                if done == recipe.steps:
                    break
                optimiser.zero_grad()
                criterion(private(batch_rows), batch_labels).backward()
                optimiser.step()
                yield done
                done += 1


def _full_batches(torch: Any, rows: Any, labels: Any) -> Any:
    """A data set that hands over a sampled batch at once, not record by record; the sampling stays Opacus's."""

    class Batches(torch.utils.data.TensorDataset):  # type: ignore[misc]
        def __getitems__(self, indices: list[int]) -> tuple[Any, Any]:
            chosen = torch.tensor(indices, dtype=torch.long)
            return rows.index_select(0, chosen), labels.index_select(0, chosen)

    return Batches(rows, labels)
