"""Train a torch module by Opacus's DP-SGD, or by full-batch DP-GD, on records in one place.

Opacus samples, clips and draws the noise. Its PRV accountant, or for full batches the exact composition of Gaussians,
sets the noise scale. Needs the ``torch`` extra.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from numpy.typing import NDArray

from privstats.dp import gaussian_mu
from privstats.errors import DataError
from privstats.extend.support import optional_dependencies

# Relative to epsilon: Opacus's own tolerance, .01 at every epsilon, would cost small ones a tenth more noise.
_TOLERANCE = 0.005
# Error of Opacus's accountant in epsilon; a smaller one is used where this is large compared with epsilon.
_OPACUS_ERROR = 0.01


@dataclass(frozen=True)
class Recipe:
    """Hyperparameters of private gradient descent.

    Attributes:
        rate: learning rate, on the mean of clipped gradients.
        clip: L2 norm that a record's whole gradient is clipped to.
        momentum: heavy-ball, as torch's SGD has it.
        steps: number of steps.
        sample: share of the records per step (Poisson); 1 is full-batch gradient descent.
        tail: whether to return the mean of the weights over the last half of the steps, not the last weights.
        spread: maximum standard deviation of a weight from all steps' noise together. A rate that would exceed it is
            lowered, by public numbers alone. None leaves the rate.

    Example:
        >>> from privstats.contrib.sweep.rivals.private_descent import Recipe
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
    """Return the noise's standard deviation in a step's sum of gradients, over the clip; 0 for an infinite epsilon.

    Guarantee:
        Unit: one record; add-remove. Full batches: T Gaussian mechanisms with noise multiplier sqrt(T) / mu are mu-GDP
        (Dong, Roth and Su 2022), which is (epsilon, delta)-DP for the mu of ``gaussian_mu``. Poisson samples of a share
        q: the least multiplier for which Opacus's PRV accountant (Gopi, Lee, Wutschitz 2021) finds at most epsilon. The
        number of records is public.

    Example:
        >>> from privstats.contrib.sweep.rivals.private_descent import noise_multiplier
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
    """Return a softmax layer of torch with all weights 0.

    Example:
        >>> from privstats.contrib.sweep.rivals.private_descent import linear
        >>> tuple(linear(features=3, classes=2).weight.shape)
        (2, 3)
    """
    torch = optional_dependencies.load("torch", by="DP-SGD")
    layer = torch.nn.Linear(features, classes)
    for parameter in layer.parameters():
        torch.nn.init.zeros_(parameter)
    return layer


def trained(
    make: Callable[[], Any],
    rows: NDArray[Any],
    labels: NDArray[Any],
    recipe: Recipe,
    epsilon: float,
    delta: float,
    seed: int,
) -> Any:
    """Return a module that Opacus trained to classify, by the cross entropy.

    One seed yields identical bits: training uses one thread, and restores torch's generator afterwards.

    Args:
        make: function that returns a fresh torch module, which maps rows to scores ``(n, C)``.
        rows: ``(n, d)``.
        labels: integers 0..C-1, ``(n,)``.
        recipe: its hyperparameters.
        epsilon, delta: the promise, which sets :func:`noise_multiplier`.
        seed: fixes start, samples and noise. Reproducible noise protects nothing.

    Raises:
        DataError: the module has a layer that mixes records, such as batch normalisation.

    Example:
        >>> from functools import partial
        >>> from privstats.contrib.sweep.rivals.private_descent import Recipe, linear, trained
        >>> rows, labels = np.repeat(np.eye(2), 10, axis=0), np.repeat([0, 1], 10)
        >>> recipe = Recipe(rate=4.0, clip=1.0, momentum=0.0, steps=5, sample=1.0)
        >>> module = trained(partial(linear, 2, 2), rows, labels, recipe, epsilon=float("inf"), delta=0.0, seed=0)
        >>> weights = module.weight.detach().numpy()
        >>> bool(weights[0, 0] > weights[1, 0])  # the first column indicates the first class
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
