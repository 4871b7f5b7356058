"""What a user would do instead: scikit-learn on raw records, diffprivlib, and DP-SGD with Opacus."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from benchmarks.data import Split

SCIKIT_LEARN: Mapping[str, Callable[[], Any]] = {
    "naive Bayes": GaussianNB,
    "LDA": LinearDiscriminantAnalysis,
    "QDA (reg .1)": lambda: QuadraticDiscriminantAnalysis(reg_param=0.1),
    "ridge": lambda: RidgeClassifierCV(np.logspace(-3, 3, 4)),
    "logistic regression": lambda: LogisticRegression(max_iter=300, C=10.0),
}


def scikit_learn_accuracy(make: Callable[[], Any], split: Split) -> float | str:
    """Accuracy in percent, or why there is none."""
    X, X_test, y, y_test = split
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return 100 * float(make().fit(X, y).score(X_test, y_test))
    except (ValueError, np.linalg.LinAlgError) as error:
        return f"fails: {type(error).__name__}"


def diffprivlib_naive_bayes(split: Split, epsilon: float, repeats: int) -> float | str:
    """Mean accuracy of diffprivlib's Gaussian naive Bayes (pure epsilon-DP) on rows of norm at most 1."""
    models = _diffprivlib()
    if isinstance(models, str):
        return models
    X, X_test, y, y_test = split
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = [
            models.GaussianNB(epsilon=epsilon, bounds=(-1.0, 1.0), random_state=seed).fit(X, y).score(X_test, y_test)
            for seed in range(repeats)
        ]
    return 100 * float(np.mean(scores))


def _diffprivlib() -> Any:
    """Its models, which name three constants that newer scikit-learns no longer export, or why they are not there."""
    from sklearn.tree import _tree

    for name, value in (("DOUBLE", np.float64), ("DTYPE", np.float32), ("NODE_DTYPE", None)):
        if not hasattr(_tree, name):
            setattr(_tree, name, value)
    try:
        from diffprivlib import models
    except ImportError as error:
        return f"diffprivlib does not import: {error}"
    return models


@dataclass(frozen=True)
class Recipe:
    """Hyperparameters of DP-SGD: learning rate, clip norm, epochs, and share of the records per step."""

    rate: float
    clip: float
    epochs: int
    sample: float


RECIPES = tuple(
    Recipe(rate, 1.0, epochs, sample) for rate in (0.1, 0.5, 2.0, 8.0) for epochs, sample in ((5, 0.05), (20, 0.1))
)


def dp_sgd(split: Split, epsilon: float, delta: float, repeats: int) -> tuple[float, Recipe]:
    """Accuracy of a linear softmax layer trained by Opacus, at the best of the recipes.

    The recipe is chosen on a fifth of the training records at no charge to the budget, which favours DP-SGD; then it
    trains on all of them, ``repeats`` times.
    """
    X, _, y, _ = split
    fit, held, fit_y, held_y = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)
    inner = (fit, held, fit_y, held_y)
    best = max(RECIPES, key=lambda recipe: _train(inner, recipe, epsilon, delta, seed=0))
    scores = [_train(split, best, epsilon, delta, seed) for seed in range(repeats)]
    return 100 * float(np.mean(scores)), best


def _whole_batches(torch: Any, rows: Any, labels: Any) -> Any:
    """A data set that hands over a sampled batch at once, not record by record; the sampling stays Opacus's."""

    class Batches(torch.utils.data.TensorDataset):  # type: ignore[misc]
        def __getitems__(self, indices: list[int]) -> tuple[Any, Any]:
            return rows[indices], labels[indices]

    return Batches(rows, labels)


def _train(split: Split, recipe: Recipe, epsilon: float, delta: float, seed: int) -> float:
    import torch
    from opacus import PrivacyEngine

    torch.manual_seed(seed)
    X, X_test, y, y_test = split
    classes = int(y.max()) + 1
    rows, labels = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    batch = max(1, int(recipe.sample * len(X)))
    loader = torch.utils.data.DataLoader(_whole_batches(torch, rows, labels), batch_size=batch, collate_fn=tuple)
    model = torch.nn.Linear(X.shape[1], classes)
    torch.nn.init.zeros_(model.weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        private, optimiser, criterion, sampled = PrivacyEngine(accountant="prv").make_private_with_epsilon(
            module=model,
            grad_sample_mode="ghost",  # the same clipped sum without storing every record's gradient
            optimizer=torch.optim.SGD(model.parameters(), lr=recipe.rate, momentum=0.9),
            data_loader=loader,
            target_epsilon=epsilon,
            target_delta=delta,
            epochs=recipe.epochs,
            max_grad_norm=recipe.clip,
        )
        for _ in range(recipe.epochs):
            for batch_rows, batch_labels in sampled:
                if len(batch_rows) == 0:
                    continue
                optimiser.zero_grad()
                criterion(private(batch_rows), batch_labels).backward()
                optimiser.step()
    with torch.no_grad():
        guess = model(torch.tensor(X_test, dtype=torch.float32)).argmax(dim=1).numpy()
    return float((guess == y_test).mean())
