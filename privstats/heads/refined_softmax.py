"""A softmax, or another package's module, refined by a few noisy gradients (docs/refinement.md).

Any prefix of the rounds yields a head.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from msgspec.structs import replace
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax as probabilities
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from privstats.course import Releases
from privstats.course.pair_rounds import PairTables, paired_of
from privstats.course.read_recipe import recipe_of
from privstats.course.recipes import ClassRounds, ModuleRounds
from privstats.errors import HeadError, ReleaseError
from privstats.estimates import denoise, recipes, softmax
from privstats.estimates.class_level import level_shifts
from privstats.estimates.clip_link import LastGradient, link_of
from privstats.estimates.denoise import NoisyClassSums
from privstats.estimates.discriminant import Priors, log_priors
from privstats.estimates.mean_noise import mean_noise
from privstats.estimates.separation import Separation, separation
from privstats.estimates.softmax import temperature
from privstats.heads.diagnostics import FewRecordsWarning, warn_of_few_records
from privstats.heads.estimator import ClassHead, class_labels
from privstats.heads.evidence import Array, ClassEvidence, class_evidence
from privstats.heads.persistence import FittedState
from privstats.heads.private import FitPromise, Labels, PublicRecords, arrays, require_public
from privstats.heads.provenance import EXACT, UNKNOWN, Provenance, behind_counts, present
from privstats.heads.registry import MODULE, NONE, PRIORS, SWITCH, Bounds, Entry, Whole, check_parameters, head_class
from privstats.heads.released_scores import ScoreEvidence
from privstats.heads.rules import PairedRule, Preprocessing, Rule, WhitenedRule, local, take_columns
from privstats.kinds.calibration import FACTORS
from privstats.progress import progress_bar
from privstats.schema.modules import Module, module_of
from privstats.transforms import UnitNorm


@dataclass(kw_only=True, eq=False, repr=False)
class RefinedSoftmax(ClassHead):
    """A linear softmax on whitened rows of one length, from an ordinary release and a few masked gradients.

    ``u(x) = (sqrt(1 - a^2) Mx / |Mx|, a)``, scores ``W u(x)``. M comes from the release's B, W from a diagonal Kalman
    filter over the rounds, moved by .15 to the release's linear discriminant.

    Args:
        rounds: T, for :meth:`fit` and :meth:`fit_private`; None chooses 4 or 6 by the budget (``Rounds.within``).
        priors: as in ``LDA``.
        calibrated: :meth:`fit_private` ends in a calibration; :meth:`fit` chooses the temperature on its records.
        module: word of a module (:class:`~privstats.schema.modules.Module`), in place of linear scores.
        pairs: whether :meth:`fit_private` searches pairs of declared columns; None follows a public rule
            (``Rounds.within``).

    Attributes:
        weights_: W before ``priors``, ``(C, d + 1)``, for rows ``u``; a module's weights ``(P,)``.
        rounds_: gradient rounds used.
        class_means_: class means of the first release behind the public map, ``(C, d)``; None of local records.
        temperature_: as in ``LDA``.
        link_: T and b ``(C,)``. For declared columns scores are ``W u / T + b``, because clipped residuals make W
            overconfident (:mod:`~privstats.estimates.clip_link`). For other rows T is 1, and b moves each class's mean
            probability to its share, as far as that is certain (:mod:`~privstats.estimates.class_level`).
        pairs_: names of the pairs of columns whose tables add to the scores.
        mean_noise_: standard deviation that noise alone gives the mean probability of the second of two classes; None
            where unknown.

    Guarantee:
        As in :meth:`ClassHead.fit_private`, for the releases of one course: the first and all rounds together. Rows are
        scaled to norm 1 behind ``transform``, so ``clip_norm`` may be omitted. Batches and ``centred`` are refused.
        **The number of rows is treated as public**, to a power of two, unless ``expected_records`` or ``max_records``
        is given: the recipe depends on it, the noise does not. Public records enter the discriminant alone.

    Example:
        >>> X, y = np.random.default_rng(0).normal(size=(4_000, 2)), np.arange(4_000) % 2
        >>> X[:, 0] += 4.0 * y - 2.0
        >>> public = {"classes": (0, 1), "expected_records": 4_000}
        >>> promise = {"epsilon": 8.0, "delta": 1e-5, "adjacency": "add-remove", "ledger": "uncharged"}
        >>> head = ps.heads.RefinedSoftmax(rounds=2).fit_private(X, y, **promise, **public)
        >>> head.predict([[-2.0, 0.0], [2.0, 0.0]]).tolist()
        [0, 1]
    """

    entry: ClassVar[Entry] = Entry(any_of="B", after_rounds=True)
    bounds: ClassVar[Bounds] = {
        "rounds": (NONE, Whole(1)),
        "priors": PRIORS,
        "calibrated": SWITCH,
        "module": MODULE,
        "pairs": (NONE, *SWITCH),
    }
    has_calibration: ClassVar[bool] = True
    unit_rows: ClassVar[bool] = True
    sure_under_noise: ClassVar[bool] = False

    rounds: int | None = None
    priors: Priors | ArrayLike = "counts"
    calibrated: bool = False
    module: str | None = None
    pairs: bool | None = None

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on local records, without noise; rows are scaled to norm 1.

        Warns:
            FewRecordsWarning: fewer records than features.
        """
        check_parameters(self, self.bounds)
        X, y = validate_data(self, *local(X, y), dtype=np.float64)
        check_classification_targets(y)
        self.classes_, index = np.unique(y, return_inverse=True)
        self.preprocessing_, self.provenance_ = Preprocessing(features=X.shape[1]), EXACT
        self.class_means_: Array | None = None
        self.mean_noise_: float | None = None
        return self._fit_rows(UnitNorm().apply(X), index)

    def fit_release(
        self, release: Any, labels: Sequence[Any] | None = None, *, public: tuple[Any, Any] | None = None
    ) -> Self:
        """Fit on a course's first release alone."""
        return self.fit_releases([release], labels, public=public)

    def fit_releases(
        self, releases: Releases, labels: Sequence[Any] | None = None, *, public: tuple[Any, Any] | None = None
    ) -> Self:
        """Fit on a course's releases so far; post-processing, so it costs no privacy.

        Args:
            releases: in order, at least the first; None for rounds without a sum.
            labels, public: as in :meth:`ClassHead.fit_release`; public records are for the discriminant alone. **No
                promise covers them**.

        Raises:
            ReleaseError: not releases of one course of classes, or nothing finite follows from them.
            HeadError, DataError: an unusable parameter, ``labels`` or ``public``.
        """
        check_parameters(self, self.bounds)
        before, behind = behind_counts(releases) if isinstance(releases, list | tuple) else ([], releases)
        have, recipe = present(behind), recipe_of(behind)
        if not isinstance(recipe, ClassRounds):
            raise ReleaseError("these are releases of a regression; use heads.RefinedRidge")
        of_module = isinstance(recipe, ModuleRounds)
        if of_module and public is not None:
            raise _of_modules()
        fit = partial(head_class("LDA")().fit_release, public=public)
        discriminant = None if of_module else _quietly(fit, have[0], labels)
        schema = recipe.first
        self.classes_ = class_labels(schema, schema.classes, labels)
        _require_every_class(have[0], self.classes_)
        take_columns(self, Preprocessing.of_release(have[0]))
        self.provenance_ = UNKNOWN
        counts = denoise.counts(recipe.sums(have[0]).N, have[0].sigma["N"])
        _warn(float(counts.sum()), schema.features)
        whitening, states = recipe.states(have)
        separation = None
        if isinstance(recipe, ModuleRounds):
            self._settle_module(recipe.network, whitening, states[-1], counts, len(states) - 1)
        else:
            self._calibrate(recipe, have, whitening, states, discriminant)
            self._settle(whitening, states[-1].weights, discriminant, counts, len(states) - 1, paired_of(recipe, have))
            separation = partial(self._separated, recipe, have, whitening, states, counts, public)
        provenance = Provenance.of([*before, *have])  # last: where no rule follows, an earlier one is still there
        self.provenance_ = replace(provenance, public=None if discriminant is None else discriminant.provenance_.public)
        evidence, _ = class_evidence(have[0])
        self.class_means_ = np.asarray(evidence.means.values + evidence.origin)
        self.score_evidence_ = ScoreEvidence.of(evidence, self._row_shares, separation)
        return self

    def _separated(
        self,
        recipe: Any,
        have: Sequence[Any],
        whitening: softmax.SoftmaxWhitening,
        states: Sequence[Any],
        counts: Array,
        public: tuple[Any, Any] | None,
    ) -> Separation | None:
        if self.pairs_ or len(self.classes_) != _PAIR or len(states) == 1:
            return None
        known = None if public is None else PublicRecords.of(public, self.preprocessing_, self.classes_).means
        evidence = changed(class_evidence(have[0])[0], public=known)
        last = states[-1].weights

        def discriminant(A: Array) -> Array:
            rule = _quietly(head_class("LDA")()._solve, changed(evidence, A=A))
            moved = softmax.averaged(whitening, last, rule.coef, rule.intercept)
            return np.asarray(moved - (1 - softmax.LDA_SHARE) * last)

        behind = recipe.rounds_behind(have)
        rounds = [(whitening.turned(np.asarray(each.gradient)), each.kappa, each.sigma) for each in behind]
        weights = whitening.turned(self.weights_)
        found = separation(recipe.constants, recipe.sums(have[0]), whitening, states, rounds, weights, discriminant)
        (divisor, offset), heat = self.link_, self.temperature_
        shifts = np.broadcast_to(offset + self._shift(counts), 2)
        return found.scaled(divisor * heat, float(shifts[1] - shifts[0]) / heat)

    def _fit_under(
        self, promise: FitPromise, X: Any, y: Any, classes: Sequence[Any] | None, public: Any, *, centred: bool
    ) -> Self:
        if centred:
            raise HeadError("RefinedSoftmax takes no mean first: leave centred out, or give it to LDA")
        maps, norm = promise.rows(unit=True)
        records = arrays(X, y, maps)
        labels = Labels.of(records, classes)
        schema = labels.schema(records, "NAB", maps, 1.0 if norm is None else norm, promise.grid_bits)
        if public is not None and self.module is not None:
            raise _of_modules()
        require_public(public, schema, labels.names)
        rows = promise.counted(records)
        numbered = records.labelled(labels.places if promise.declared else labels.numbers)
        options = {name: getattr(self, name) for name in ("rounds", "calibrated", "module", "pairs")}
        self.releases_, course = promise.releases("rounds", schema, rows.n, numbered, **options)
        self.fit_releases(self.releases_, labels.names.tolist(), public=public)
        return self._assuming(labels.assumed + rows.assumed, course)

    @property
    def _class_means(self) -> Array | None:
        return self.class_means_

    def _restore(self, saved: FittedState) -> None:
        self.class_means_ = None  # the file of a fit on local records has none
        super()._restore(saved)

    def _solve(self, evidence: ClassEvidence) -> Rule:
        raise NotImplementedError("rounds need more than the sums of one release; see fit_releases")

    def _fit_rows(self, X: Array, index: NDArray[np.intp]) -> Self:
        C, (n, d) = len(self.classes_), X.shape
        onehot = np.eye(C)[index]
        sums = NoisyClassSums(onehot.sum(axis=0), onehot.T @ X, X.T @ X, dict.fromkeys("NAB", 0.0))
        rounds = recipes.advised_rounds(math.inf) if self.rounds is None else self.rounds
        clip = recipes.EXACT_CLIP if C == _PAIR else recipes.GRADIENT_CLIP
        recipe = recipes.SoftmaxRecipe(C, d, n, math.inf, rounds, clip)
        whitening = softmax.SoftmaxWhitening.of(sums, recipe.floor if self.module is None else 1.0)
        U = whitening.rows(X)
        _warn(n, d)
        if self.module is not None:
            return self._fit_module(recipe, sums, whitening, U, index)
        state = softmax.started(recipe, sums, whitening)
        with progress_bar("rounds", rounds) as advance:
            for _ in range(rounds if C > 1 else 0):
                published = whitening.published(state.weights)
                g, kappa = softmax.exact_gradient(U, index, published, recipe.clip)
                state = softmax.refined(recipe, sums, whitening, state, g, kappa, 0.0)
                advance(1)
        discriminant = _quietly(head_class("LDA")().fit, X, index)
        self.link_ = _NO_CALIBRATION[1]
        sure = _confidence(U, index, whitening.published(state.weights)) if self.calibrated else None
        self.temperature_ = 1.0 if sure is None else temperature(sure, 0.0, FACTORS)
        return self._settle(whitening, state.weights, discriminant, sums.N, rounds)

    def _fit_module(
        self,
        recipe: recipes.SoftmaxRecipe,
        sums: NoisyClassSums,
        whitening: softmax.SoftmaxWhitening,
        U: Array,
        index: NDArray[np.intp],
    ) -> Self:
        if self.calibrated:
            raise HeadError("calibrated reads the scores of a linear softmax: leave calibrated out, or module")
        network = module_of(self.module)
        state = network.started(recipe, sums, whitening)
        with progress_bar("rounds", recipe.rounds) as advance:
            for _ in range(recipe.rounds if recipe.classes > 1 else 0):
                g, kappa = network.exact(U, index, state)
                state = network.refined(recipe, sums, state, g, kappa, 0.0)
                advance(1)
        return self._settle_module(network, whitening, state, sums.N, recipe.rounds)

    def _settle_module(
        self, network: Module, whitening: softmax.SoftmaxWhitening, state: Any, counts: Array, rounds: int
    ) -> Self:
        self.weights_ = network.published(state)
        self.temperature_, self.link_ = _NO_CALIBRATION
        self.pairs_: tuple[tuple[str, str], ...] = ()
        self.mean_noise_ = None
        return self._ruled(network.rule(whitening, state, self._shift(counts)), rounds, counts)

    def _calibrate(
        self,
        recipe: Any,
        have: Sequence[Any],
        whitening: softmax.SoftmaxWhitening,
        states: Sequence[Any],
        discriminant: Any,
    ) -> None:
        self.link_, rounds, match = _NO_CALIBRATION[1], recipe.rounds_behind(have), None
        weights, sums = _averaged(whitening, states[-1].weights, discriminant), recipe.sums(have[0])
        declared = any(map_.reads_cells for map_ in recipe.first.transform)
        if declared and len(have) > 1:
            last = None  # residuals of pairs are not of the linear scores that the link knows
            if rounds and paired_of(recipe, have) is None:
                gradient = whitening.turned(np.asarray(rounds[-1].gradient))
                last = LastGradient(states[-2].weights, gradient, rounds[-1].sigma)
            link = link_of(whitening, sums, weights, recipe.clip, last)
            self.link_, match = (link.temperature, link.shifts), link.match
        self.temperature_ = heat = recipe.temperature(have, self.link_[0])
        if not declared:
            self.link_ = 1.0, heat * level_shifts(whitening, sums, weights / heat)
        self.mean_noise_ = None
        moved = not declared and self.link_[1].any()  # by counts, whose noise is of another kind
        if len(self.classes_) == _PAIR and len(states) > 1 and not moved:
            noise = [(each.kappa, each.sigma) for each in rounds]
            heat = self.link_[0] * self.temperature_
            self.mean_noise_ = mean_noise(recipe.constants, recipe.sums(have[0]), whitening, states, noise, heat, match)

    def _settle(
        self,
        whitening: softmax.SoftmaxWhitening,
        weights: Array,
        discriminant: Any,
        counts: Array,
        rounds: int,
        tables: PairTables | None = None,
    ) -> Self:
        self.weights_ = whitening.published(_averaged(whitening, weights, discriminant))
        (coef, intercept), (divisor, offset) = softmax.coefficients(self.weights_), self.link_
        heat = self.temperature_
        shifted = intercept / divisor + offset + self._shift(counts)
        numbers = whitening.matrix, coef / divisor / heat, shifted / heat
        self.pairs_ = () if tables is None else tables.names
        rule: Rule = WhitenedRule(*numbers)
        if tables is not None:
            self.mean_noise_ = None  # which is about sums over columns alone
            rule = PairedRule(*numbers, *tables.maps, tables.weights / (divisor * heat))
        return self._ruled(rule, rounds, counts)

    def _shift(self, counts: Array) -> Array:
        return log_priors(self.priors, counts) - log_priors("counts", counts)

    def _ruled(self, rule: Rule, rounds: int, counts: Array) -> Self:
        self.rounds_, self.prevalence_ = rounds, counts / counts.sum()
        if not all(np.isfinite(array).all() for array in rule.arrays().values()):
            raise ReleaseError("RefinedSoftmax found no finite weights; the releases are damaged, fetch them again")
        self._adopt(rule)
        return self


def _require_every_class(release: Any, classes: NDArray[Any]) -> None:
    _, keep = class_evidence(release)
    if len(gone := np.delete(classes, keep)):
        raise ReleaseError(
            f"class {gone[0]!s:.40} has no record in the release, or is suppressed, and rounds refine every class of "
            "the plan: plan without it, merge it into another (merge), or fit LDA on this release"
        )


def _of_modules() -> HeadError:
    return HeadError("rounds of a module read no class means; leave public out, or refine without a module")


_PAIR = 2
_NO_CALIBRATION: tuple[float, tuple[float, Any]] = 1.0, (1.0, 0.0)


def _averaged(whitening: softmax.SoftmaxWhitening, weights: Array, discriminant: Any) -> Array:
    return softmax.averaged(whitening, weights, discriminant.rule_.coef, discriminant.rule_.intercept)


def _warn(records: float, features: int) -> None:
    warn_of_few_records("RefinedSoftmax", records, features, "use RDA or LDA, which know more from few")


def _quietly(fit: Callable[..., Any], *given: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewRecordsWarning)
        return fit(*given)


def _confidence(U: Array, index: NDArray[np.intp], W: Array) -> Array:
    scores = U @ W.T
    sure = [probabilities(factor * scores, axis=1).max(axis=1).sum() for factor in FACTORS]
    return np.array([(scores.argmax(axis=1) == index).sum() - sure[0], *np.diff(sure)])
