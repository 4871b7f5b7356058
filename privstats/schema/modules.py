"""Load models of rounds from other packages by name, such as ``"mlp/64"``.

A :class:`Module` replaces the linear softmax of gradient rounds. Its KIND is an entry point of ``privstats.modules``.
Reading a plan needs the module's package; measuring also needs its ``packages``.

A round's bound rests on one condition. A record's contribution is a function of that record and the published values
alone, to the last bit, in any batch. This excludes layers that mix rows, and float sums with a batch-dependent order.
The library cannot verify this condition (``testing.check_module`` searches for violations), but counts rows that are
not integer or too long as zero.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.doors import Door
from privstats.errors import SchemaError
from privstats.schema.public_values import Values
from privstats.transforms.base import attempted, is_ours

if TYPE_CHECKING:
    from privstats.estimates.denoise import NoisyClassSums
    from privstats.estimates.recipes import SoftmaxRecipe
    from privstats.estimates.softmax import SoftmaxWhitening

_WORD = re.compile("([a-z][a-z0-9-]{0,31})/([A-Za-z0-9._-]{1,32})", re.ASCII)
Ints: TypeAlias = NDArray[np.float64]
"""Integers stored as float64."""


class _Round(Protocol):
    """A round that trains a module, as :func:`checked_gradients` needs it."""

    @property
    def classes(self) -> int | None:
        """Number of classes."""

    @property
    def module(self) -> str | None:
        """The module's name and size."""

    @property
    def residual_norm(self) -> float:
        """The norm to which a gradient is clipped."""

    @property
    def grid_bits(self) -> int:
        """f."""

    @property
    def grid_steps(self) -> int:
        """2**f."""

    @property
    def sizes(self) -> dict[str, int]:
        """Axis lengths."""


class Module(ABC):
    """A classifier that gradient rounds train on the linear softmax's rows u, ``(d + 1,)``.

    u is the whitened row, scaled to norm ``sqrt(1 - a^2)``, and then the constant a = 0.1. A module's size is its only
    hyperparameter; its results are identical on every machine.

    Attributes:
        packages: imported by measuring only, checked before a record is read.
        norm: c, the norm to which a record's gradient is clipped.
        revision: increases when the recipe computes other weights.

    Example:
        >>> from privstats.schema.modules import module_of
        >>> module_of("perceptron/64")
        Traceback (most recent call last):
        ...
        privstats.errors.SchemaError: module = 'perceptron/64' needs the module 'perceptron', which no installed ...
    """

    packages: ClassVar[tuple[str, ...]] = ()
    norm: ClassVar[float] = 1.0
    revision: ClassVar[int] = 1

    @abstractmethod
    def weights(self, features: int, classes: int) -> int:
        """Return P, the number of weights."""

    def values(self, features: int, classes: int) -> int:
        """Return the number of published values, P by default."""
        return self.weights(features, classes)

    @abstractmethod
    def gradients(
        self, units: Ints, labels: NDArray[np.intp], weights: Values, *, classes: int, norm: float, grid_bits: int
    ) -> tuple[Ints, Ints]:
        """Return each record's clipped cross-entropy gradient g with respect to all weights, and kappa.

        Args:
            units: integer rows u in steps of 2**-f, ``(n, d + 1)``, at most 2**f long.
            labels: ``(n,)``, 0..classes-1.
            weights: published, ``(P,)`` or ``(values(...),)``.
            norm: the norm to which g is clipped.
            grid_bits: f.

        Returns:
            Integers in float64, truncated toward zero, with ``q = min(1, norm / |g|)``. First ``q g / norm`` in steps
            of 2**-2f, ``(n, P)``. Then kappa, ``q (1 - |p|^2)`` of the probabilities p in steps of 2**-f, ``(n,)``. Its
            sum sets the step size.
        """

    @abstractmethod
    def started(self, recipe: SoftmaxRecipe, sums: NoisyClassSums, whitening: SoftmaxWhitening) -> Any:
        """Return the state after the class release."""

    @abstractmethod
    def refined(
        self, recipe: SoftmaxRecipe, sums: NoisyClassSums, state: Any, gradient: Ints, kappa: float, sigma: float
    ) -> Any:
        """Return the state after a round, from its sums ``(P,)``, kappa and noise."""

    @abstractmethod
    def published(self, state: Any) -> NDArray[np.float64]:
        """Return the weights, ``(P,)``."""

    @abstractmethod
    def exact(self, U: NDArray[np.float64], labels: NDArray[np.intp], state: Any) -> tuple[NDArray[np.float64], float]:
        """Return a round's real sums from exact rows u, for fits without noise."""

    @abstractmethod
    def rule(self, whitening: SoftmaxWhitening, state: Any, shift: NDArray[np.float64]) -> Any:
        """Return a state's ``privstats.heads.rules.Rule``, class k's scores raised by ``shift[k]``.

        A head's file names its ``kind``, an entry point of ``privstats.rules``.
        """


MODULES: Door[Callable[[str], Module]] = Door("privstats.modules", "module", SchemaError, lambda row, _: callable(row))
"""What builds a module from a size, by its KIND, as packages and ``privstats.course`` announce it."""


def is_word(word: object) -> bool:
    """Return whether a value has the form KIND/SIZE.

    Example:
        >>> from privstats.schema.modules import is_word
        >>> is_word("mlp/64"), is_word("mlp")
        (True, False)
    """
    return isinstance(word, str) and _WORD.fullmatch(word) is not None


def module_of(word: object) -> Module:
    """Return the named module.

    Raises:
        SchemaError: a malformed name, or no such package.

    Example:
        >>> from privstats.schema.modules import module_of
        >>> module_of("mlp")
        Traceback (most recent call last):
        ...
        privstats.errors.SchemaError: module must be KIND/SIZE, such as 'mlp/64', got 'mlp'; omit it for ...
    """
    if not is_word(word):
        raise SchemaError(f"module must be KIND/SIZE, such as 'mlp/64', got {word!r:.80}; omit it for a linear softmax")
    kind, _, size = str(word).partition("/")
    build = MODULES.needed(kind, f"module = {word!r}", "omit module for a linear softmax")
    with MODULES.using(kind):
        module = _built(build, size)
    if not isinstance(module, Module):
        raise SchemaError(
            f"the module {kind!r} of {MODULES.origin(kind) or 'privstats'} builds no Module from a size; repair or "
            "uninstall that package"
        )
    return module


@cache
def _built(build: Callable[[str], Module], size: str) -> Module:
    return build(size)


def checked_gradients(
    schema: _Round, module: Module, units: Ints, labels: NDArray[np.intp], weights: Values
) -> tuple[Ints, Ints]:
    """Return each record's gradient, ``(n, P)``, and kappa, ``(n,)``, within the schema's bounds.

    Args:
        units, labels, weights: as in :meth:`Module.gradients`.

    Guarantee:
        For any result of the module, a gradient is at most 4**f long and kappa is in 0..2**f, in integers. A record at
        which a module of another package raises counts as zero. The module
        promises that both are functions of the record and the values alone.

    Example:
        >>> from privstats.schema.modules import checked_gradients
        >>> class Long:
        ...     def gradients(self, units, labels, weights, **sizes):
        ...         return np.full((len(units), 3), 1e9), np.zeros(len(units))
        >>> schema = ps.GradientSchema(2, classes=2, residual_norm=0.5, expected_records=1_000, course_mu=0.3)
        >>> gradients, kappa = checked_gradients(schema, Long(), np.zeros((1, 3)), np.array([0]), None)
        >>> gradients.tolist(), kappa.tolist()  # a gradient beyond the norm counts as zero
        ([[0.0, 0.0, 0.0]], [0.0])
    """
    sizes: Any = {"classes": schema.classes or 1, "norm": schema.residual_norm, "grid_bits": schema.grid_bits}
    form: Callable[..., tuple[Ints, Ints]] = partial(module.gradients, **sizes)
    if is_ours(module):
        gradients, kappa = form(units, labels, weights)
    else:
        gradients, kappa = _of_others(schema, form, units, labels, weights)
    if np.shape(gradients) != (len(units), schema.sizes["feature"]) or np.shape(kappa) != (len(units),):
        raise SchemaError(f"module {schema.module!r} returned sums of another shape than it declares: repair it")
    return _module_within(schema, np.asarray(gradients, np.float64), np.asarray(kappa, np.float64))


def _of_others(
    schema: _Round, form: Callable[..., Any], units: Ints, labels: NDArray[np.intp], weights: Values
) -> tuple[Ints, Ints]:
    """Return copies of what another package's module forms; zeros for a record at which it fails.

    Records are passed alone where the module fails for all together: which of them counts as zero follows from that
    record. A module may use its own arrays again, so the results are copies.
    """

    def copied(at: slice) -> tuple[Ints, Ints]:
        gradients, kappa = form(units[at].copy(), labels[at].copy(), weights)
        return np.array(gradients, np.float64), np.array(kappa, np.float64)

    if (together := attempted(copied, slice(None))) is not None:
        return together
    gradients, kappa = np.zeros((len(units), schema.sizes["feature"])), np.zeros(len(units))
    for place in range(len(units)):
        one = slice(place, place + 1)
        alone = attempted(copied, one)
        if alone is not None and alone[0].shape == gradients[one].shape and alone[1].shape == (1,):
            gradients[one], kappa[one] = alone
    return gradients, kappa


def _module_within(schema: _Round, gradients: Ints, kappa: Ints) -> tuple[Ints, Ints]:
    """Zero each row that is too long, not integer or NaN: NaN fails every comparison."""
    fine = (
        (np.vecdot(gradients, gradients) <= float(schema.grid_steps) ** 4) & (kappa >= 0) & (kappa <= schema.grid_steps)
    )
    parts = np.array_split(gradients, max(1, gradients.size >> 16))  # a copy of all rows would leave the cache
    fine &= np.concatenate([(part == np.trunc(part)).all(axis=1) for part in parts]) & (kappa == np.trunc(kappa))
    if not fine.all():
        gradients, kappa = np.where(fine[:, None], gradients, 0.0), np.where(fine, kappa, 0.0)
    return gradients, kappa
