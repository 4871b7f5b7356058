"""Head files: the rule as safetensors, everything else as JSON in the header. No pickle, no code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

import msgspec
import numpy as np
from sklearn.utils.validation import check_is_fitted

from privstats import domains
from privstats.errors import HeadError, SchemaError
from privstats.files.decoding import from_json
from privstats.files.envelope import MOST_UNSTATED, Content, Format, PathLike, Version, full_content
from privstats.files.signing import Signer, Verifier
from privstats.heads.facts import LARGEST, Facts
from privstats.heads.provenance import UNKNOWN, Assumed, Provenance
from privstats.heads.registry import HEADS, check_parameters, head_class
from privstats.heads.released_scores import POINTS, ReleasedScores, released_scores
from privstats.heads.rules import Preprocessing, Rule, rule_of, take_columns
from privstats.schema.checks import size
from privstats.tables import register
from privstats.transforms import from_builtins, to_builtins

_KNOWN = "known."
_KNOWLEDGE = {"priors": "priors_", "prototypes": "prototypes_", "means": "class_means_"}
"""Stored arrays about the classes, each with its attribute; a head without the attribute omits the array."""
_SCORES = ("quantiles",)
"""Stored arrays of :class:`ReleasedScores` of a head of two classes that was fitted on a release."""
_EARLIER = ("prevalence", "area")
"""Arrays that commits between 0.2.0 and 1.0.0rc1 stored. Class shares are facts since then; nothing reads the area."""
_HEADS: dict[str, type[Stored]] = {}
_MATRICES = 4
_NOTHING = np.zeros(0)


@dataclass(frozen=True)
class FittedState:
    """A fitted head as its file holds it.

    Attributes:
        classes: labels in order; None of a regressor.
        flat: whether a regressor predicts one flat target.
        known: fitted attributes about the classes, by name.
        scores: quantiles of a two-class head's scores.
    """

    rule: Rule
    preprocessing: Preprocessing
    provenance: Provenance
    classes: list[bool | int | float | str] | None
    flat: bool
    facts: Facts
    known: Mapping[str, Any]
    scores: ReleasedScores | None


class Stored:
    """A head that can be written to a file and read back."""

    provenance_: Provenance

    def _adopt(self, rule: Any) -> None:
        """Set the rule, and drop what an earlier fit left."""
        raise NotImplementedError

    def _restore(self, saved: FittedState) -> None:
        """Set the fitted attributes that a file holds; a subclass adds its own."""
        self.provenance_ = saved.provenance
        take_columns(self, saved.preprocessing)
        self._adopt(saved.rule)
        saved.facts.restore(self)
        for name, values in saved.known.items():
            setattr(self, name, values)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not cls.__name__.startswith("_"):
            register(_HEADS, cls.__name__, cls, "head", HeadError)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        words: str = super().__repr__(N_CHAR_MAX)  # type: ignore[call-arg]  # scikit-learn's, behind this class
        return f"{words} [{self.provenance_}]" if hasattr(self, "provenance_") else words

    def _assuming(self, assumed: tuple[Assumed, ...], course: str | None = None) -> Self:
        self.provenance_ = msgspec.structs.replace(self.provenance_, assumed_public=assumed, course=course)
        return self

    def save(self, path: PathLike, signer: Signer | None = None) -> None:
        """Write the head atomically, without attributes that only describe the fit (``covariance_`` and the like).

        Args:
            signer: an ``Identity``, an Ed25519 private key, or its 32 bytes; signs the complete file, so that ``load``
                detects forgery.

        Raises:
            HeadError: values that JSON cannot hold, or a signer that is no key.
            PrivstatsError: the file cannot be written.
        """
        FORMAT.write(path, content_of(self), signer)

    @classmethod
    def load(cls, path: PathLike, signed_by: Verifier | None = None) -> Self:
        """Read a head of this class; HeadError for another."""
        head = load(path, signed_by)
        if not isinstance(head, cls):
            raise HeadError(f"{path} holds a {type(head).__name__}, not a {cls.__name__}; use privstats.heads.load")
        return head


class _Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    head: str
    parameters: dict[str, Any]
    rule: str
    classes: list[bool | int | float | str] | None
    flat: bool
    features: Annotated[int, msgspec.Meta(ge=1)]
    clip_norm: float | None
    transform: list[dict[str, Any]]
    feature_names: tuple[str, ...] | None = None
    nonnegative: bool = False
    provenance: Provenance = UNKNOWN
    facts: Facts | None = None


def load(path: PathLike, signed_by: Verifier | None = None) -> Any:
    """Read a head that ``save`` wrote.

    Without ``signed_by`` the checksum detects corruption and careless edits; only a signature stops a forger.

    Args:
        signed_by: the signer's public key, in any form that ``Release.load`` accepts.

    Raises:
        HeadError: no head file, corrupt, from another version, or wrongly signed.

    Example:
        >>> X, y = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]]), [0, 0, 1, 1]
        >>> head = ps.heads.LDA().fit(X, y)
        >>> head.save("trees.head")
        >>> ps.heads.load("trees.head").predict([[0.9, 0.1]]).tolist()
        [1]
    """
    return FORMAT.read(path, signed_by)


def content_of(head: Any) -> Content:
    """Return a head as manifest and tensors; HeadError for values that JSON cannot hold."""
    check_is_fitted(head, "rule_")
    try:
        manifest = msgspec.json.encode(_manifest(head), order="deterministic")
    except (TypeError, msgspec.MsgspecError):
        raise HeadError(
            "labels and parameters must be numbers, strings, booleans or lists of them to be saved; rename the classes"
        ) from None
    known = {name: getattr(head, attribute, None) for name, attribute in _KNOWLEDGE.items()}
    if (scores := released_scores(head)) is not None:
        known |= {name: getattr(scores, name) for name in _SCORES}
    stored = {_KNOWN + name: values for name, values in known.items() if values is not None}
    return Content(manifest, {**head.rule_.arrays(), **stored})


def head_of(content: Content, path: PathLike) -> Any:
    """Invert :func:`content_of`; HeadError for inconsistent content or an unknown head."""
    manifest = _manifest_of(content, path)
    cls = _class_of(manifest.head, path)  # before the rule: a head of another package may bring one of its own
    try:
        tensors = dict(content.tensors)
        known, scores, earlier = (
            {name: tensors.pop(_KNOWN + name) for name in names if _KNOWN + name in tensors}
            for names in (_KNOWLEDGE, _SCORES, _EARLIER)
        )
        rule = rule_of(manifest.rule, tensors)
        head = cls(**manifest.parameters)
        check_parameters(head, getattr(cls, "bounds", {}))
        transform = from_builtins(manifest.transform)
        if manifest.clip_norm is not None:
            size("clip_norm", manifest.clip_norm, "the bound of a plan")
        preprocessing = Preprocessing(
            manifest.features, transform, manifest.clip_norm, manifest.feature_names, manifest.nonnegative
        )
        _check_fit(manifest, rule, preprocessing)
        facts = _facts_of(manifest.facts, earlier)
        facts.check(len(manifest.classes or ()))
        _check_known(manifest, known)
        _check_scores(facts, scores)
        saved = FittedState(
            rule=rule,
            preprocessing=preprocessing,
            provenance=manifest.provenance,
            classes=manifest.classes,
            flat=manifest.flat,
            facts=facts,
            known={_KNOWLEDGE[name]: values for name, values in known.items()},
            scores=ReleasedScores(prevalence=np.array(facts.prevalence), **scores) if scores else None,
        )
        head._restore(saved)
    except HeadError:
        raise
    except (RecursionError, SchemaError, KeyError, TypeError, ValueError, IndexError):
        raise _damaged(path) from None
    return head


def _most(manifest: bytes) -> int:
    """Return the bytes that a head's arrays may have, by its numbers of classes and features."""
    try:
        stated = from_json(manifest, _Manifest)
    except msgspec.DecodeError:
        return MOST_UNSTATED
    classes, features = len(stated.classes or ()), max(stated.features, 0)
    # A rule has at most some matrices over its features for each class, and a row of features for each pair of classes.
    entries = _MATRICES * (classes + 2) * (features + 2) * (classes + features)
    return MOST_UNSTATED + entries * np.dtype(np.float64).itemsize


def _manifest_of(content: Content, path: PathLike) -> _Manifest:
    try:
        return from_json(content.manifest, _Manifest)
    except msgspec.DecodeError:
        raise _damaged(path) from None


def _class_of(name: str, path: PathLike) -> Any:
    if name in HEADS:
        return head_class(name)
    if name in _HEADS:
        return _HEADS[name]
    if not name.isidentifier():  # no class is called that
        raise _damaged(path)
    raise HeadError(
        f"{path} holds a head of the class {name!r:.60}, which nothing here brings: install the package that "
        "announces it under privstats.heads, or import its module first"
    )


def _damaged(path: PathLike) -> HeadError:
    return HeadError(f"{path} is damaged: its manifest and its tensors do not hold together; save it again")


FORMAT = Format[Any](
    name=domains.HEAD_FILE,
    noun="head",
    writer="save",
    error=HeadError,
    readers={
        3: Version(head_of, full_content(domains.HEAD_FILE_3), _most),
    },
)
"""Files of heads; no release wrote versions 1 and 2."""


def _check_fit(manifest: _Manifest, rule: Rule, preprocessing: Preprocessing) -> None:
    features = manifest.features
    if any((np.abs(array) > LARGEST).any() for array in rule.arrays().values()):
        raise ValueError("the rule holds numbers too large for probabilities")
    if not any(features in array.shape for array in rule.arrays().values()):  # bounds what is allocated next
        raise ValueError("no array of the rule has that many features")
    scores = rule.scores(np.zeros((1, features)))
    if manifest.classes is not None and scores.shape != (1, len(manifest.classes)):
        raise ValueError("the rule scores another number of classes")
    if manifest.classes is not None and len(np.unique(manifest.classes)) < len(manifest.classes):
        raise ValueError("two classes have one label")
    if manifest.feature_names is not None and len(manifest.feature_names) != preprocessing.inputs:
        raise ValueError("feature_names must name each input column")


def _check_known(manifest: _Manifest, known: dict[str, Any]) -> None:
    classes = len(manifest.classes or ())
    means = (classes, manifest.features)
    shapes = {"priors": (classes,), "prototypes": means, "means": means}
    if any(values.shape != shapes[name] for name, values in known.items()):
        raise ValueError("class means or probabilities of another shape")
    if ("priors" in known) != ("prototypes" in known):
        raise ValueError("class means and probabilities belong together")
    if not all(values.dtype == np.float64 and (np.abs(values) <= LARGEST).all() for values in known.values()):
        raise ValueError("class means and probabilities must be float64 of a size that squares can have")
    if not ((known.get("priors", _NOTHING) >= 0) & (known.get("priors", _NOTHING) <= 1)).all():
        raise ValueError("probabilities must be from 0 to 1")


def _check_scores(facts: Facts, scores: dict[str, Any]) -> None:
    if not scores:
        return
    shapes = {"quantiles": (2, POINTS)}
    if len(facts.prevalence or ()) != 2 or {name: values.shape for name, values in scores.items()} != shapes:
        raise ValueError("scores of another shape")
    if not all(values.dtype == np.float64 and ((values >= 0) & (values <= 1)).all() for values in scores.values()):
        raise ValueError("scores must be float64 from 0 to 1")
    if not all((np.diff(scores[name]) >= 0).all() for name in scores):
        raise ValueError("quantiles must rise")


def _facts_of(stated: Facts | None, earlier: dict[str, Any]) -> Facts:
    """Return a head's facts; files of before, which stated none, have class shares as an array."""
    if stated is not None and earlier:
        raise ValueError("class shares are stated twice")
    if "prevalence" not in earlier:
        return stated or Facts()
    shares = tuple(earlier["prevalence"].tolist())
    if min(shares) < 0:
        raise ValueError("class shares must be from 0 to 1")
    return Facts(prevalence=shares)


def _manifest(head: Any) -> _Manifest:
    preprocessing: Preprocessing = head.preprocessing_
    return _Manifest(
        head=type(head).__name__,
        parameters={name: _plain(value) for name, value in head.get_params().items()},
        rule=head.rule_.kind,
        classes=_plain(head.classes_) if hasattr(head, "classes_") else None,
        flat=bool(getattr(head, "flat_", False)),
        features=preprocessing.features,
        clip_norm=preprocessing.clip_norm,
        transform=to_builtins(preprocessing.transform),
        feature_names=preprocessing.feature_names,
        nonnegative=preprocessing.nonnegative,
        provenance=getattr(head, "provenance_", UNKNOWN),
        facts=Facts.of(head),
    )


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
