"""Head files: the rule as safetensors, everything else as JSON in the header. No pickle, no code.

Not the release's format and not scikit-learn's. What is restored predicts; what only describes the fit is not kept.
"""

from __future__ import annotations

import os
from typing import Any, Self

import msgspec
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors
from sklearn.utils.validation import check_is_fitted

from privstats.errors import HeadError, SchemaError
from privstats.files import read_whole, safetensors_metadata, write_whole
from privstats.heads.registry import HEADS, head_class
from privstats.heads.rules import Rule, Surface, rule_of
from privstats.transforms import from_builtins, to_builtins

__all__ = ["FORMAT_VERSION", "Stored", "load"]

FORMAT_VERSION = 1
_FORMAT = "privstats-head"
_HEADS: dict[str, type[Stored]] = {}


class Stored:
    """A fitted head that can be written to a file and read back."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not cls.__name__.startswith("_"):
            _HEADS[cls.__name__] = cls

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted head whole: safetensors with a JSON manifest in its header.

        Parameters, labels, the rule and the public map in front of it are kept; attributes that only describe the fit
        (``covariance_``, ``convergence_`` and the like) are not.

        Raises:
            HeadError: a label or parameter that JSON cannot hold.
        """
        check_is_fitted(self, "rule_")
        try:
            manifest = msgspec.json.encode(_manifest(self), order="deterministic").decode()
        except (TypeError, msgspec.MsgspecError):
            raise HeadError(
                "labels and parameters must be numbers, strings, booleans or lists of them to be saved"
                "; rename the classes"
            ) from None
        header = {"format": _FORMAT, "version": str(FORMAT_VERSION), "manifest": manifest}
        write_whole(path, save_tensors(self.rule_.arrays(), metadata=header))  # type: ignore[attr-defined]

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a head of this class; ``privstats.heads.load`` reads any.

        Raises:
            HeadError: not a head file, corrupt, from another version, or of another class.
        """
        head = load(path)
        if not isinstance(head, cls):
            raise HeadError(f"{path} holds a {type(head).__name__}, not a {cls.__name__}; use privstats.heads.load")
        return head


class _Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The JSON part of a head file; what has a default is left out while it has it."""

    head: str
    parameters: dict[str, Any]
    rule: str
    classes: list[Any] | None
    flat: bool
    features: int
    clip_norm: float | None
    transform: list[dict[str, Any]]
    feature_names: tuple[str, ...] | None = None
    nonnegative: bool = False


def load(path: str | os.PathLike[str]) -> Any:
    """Read a head that ``save`` wrote.

    Raises:
        HeadError: not a head file, corrupt, or from another version.
    """
    data = read_whole(path, HeadError, "save")
    header = _header(data, path)
    try:
        manifest = msgspec.json.decode(header["manifest"].encode(), type=_Manifest)
        rule = rule_of(manifest.rule, load_tensors(data))
        cls = head_class(manifest.head) if manifest.head in HEADS else _HEADS[manifest.head]
        head = cls(**manifest.parameters)
        transform = from_builtins(manifest.transform)
        surface = Surface(
            manifest.features, transform, manifest.clip_norm, manifest.feature_names, manifest.nonnegative
        )
    except (msgspec.DecodeError, SafetensorError, SchemaError, KeyError, TypeError, ValueError):
        raise HeadError(
            f"{path} is damaged: its manifest and its tensors do not hold together; save it again"
        ) from None
    _restore(head, manifest, rule, surface)
    return head


def _manifest(head: Any) -> _Manifest:
    surface: Surface = head.surface_
    return _Manifest(
        head=type(head).__name__,
        parameters={name: _plain(value) for name, value in head.get_params().items()},
        rule=head.rule_.kind,
        classes=_plain(head.classes_) if hasattr(head, "classes_") else None,
        flat=bool(getattr(head, "_flat", False)),
        features=surface.features,
        clip_norm=surface.clip_norm,
        transform=to_builtins(surface.transform),
        feature_names=surface.feature_names,
        nonnegative=surface.nonnegative,
    )


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _restore(head: Any, manifest: _Manifest, rule: Rule, surface: Surface) -> None:
    head.surface_ = surface
    if surface.inputs is not None:
        head.n_features_in_ = surface.inputs
    if manifest.classes is not None:
        head.classes_ = np.asarray(manifest.classes)
    else:
        head._flat = manifest.flat
    head._adopt(rule)


def _header(data: bytes, path: str | os.PathLike[str]) -> dict[str, str]:
    header = safetensors_metadata(data)
    if header.get("format") != _FORMAT or not {"version", "manifest"} <= set(header):
        raise HeadError(f"{path} is not a privstats head; give a file written by save")
    if header["version"] != str(FORMAT_VERSION):
        raise HeadError(
            f"{path} has head format {header['version'][:20]!r} and this privstats reads {FORMAT_VERSION}; "
            "use the version that wrote it, or fit the head again"
        )
    return header
