"""A model card in Markdown from a fitted head's records (Mitchell et al. 2019, Model Cards for Model Reporting)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from sklearn.utils.validation import check_is_fitted

from privstats.dp.privacy import MODELS
from privstats.heads.diagnostics import RANKS, RARE, only_ranks
from privstats.heads.provenance import UNKNOWN, Provenance
from privstats.heads.rules import Preprocessing
from privstats.plan.exclusions import ASSUMED
from privstats.transforms import input_features
from privstats.version import __version__

_SHOWN_LABELS = 50
_RARE = 0.5
_WIDTH, _PAIR = 40, 2


@runtime_checkable
class Scored(Protocol):
    """A result of ``inference.head_score``."""

    calibration: Any

    def to_rows(self) -> list[dict[str, Any]]:
        """Return every measure with its interval."""


class Described:
    """A fitted head that describes itself."""

    def card(self, *, intended_use: str = "", scores: Mapping[str, float] | Scored | None = None) -> str:
        """Return a model card in Markdown: inputs, outputs, sources, the promise and its limits.

        Args:
            scores: named results, or a :class:`~privstats.inference.HeadScore`. Score other records: no promise covers
                scores on those that it protects.

        Raises:
            NotFittedError: the head is not fitted.

        Example:
            >>> X, y = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]] * 5), ["ash", "ash", "elm", "elm"] * 5
            >>> card = ps.heads.LDA().fit(X, y).card(scores={"accuracy on public trees": 0.93})
            >>> print(*card.splitlines()[:3], sep=chr(10))
            # LDA
            <BLANKLINE>
            A classifier of 2 classes from 2 columns, made with privstats ....
            >>> "no promise covers it" in card, "| accuracy on public trees | 0.93 |" in card
            (True, True)
        """
        check_is_fitted(self, "rule_")
        sections = {
            "Intended use": [intended_use or "Not stated: pass intended_use= before this model is shared."],
            "Inputs": list(_inputs(self)),
            "Outputs": list(_outputs(self)),
            "Provenance": list(_origin(getattr(self, "provenance_", UNKNOWN))),
            "Parameters": [_table(("parameter", "value"), _parameters(self))],
            "Evaluation": list(_evaluation(scores or {})),
            "Limits": list(_limits(self)),
        }
        body = "\n\n".join(f"## {title}\n\n" + "\n\n".join(lines) for title, lines in sections.items())
        return f"# {type(self).__name__}\n\n{_headline(self)}\n\n{body}\n"


def _limits(head: Any) -> Iterator[str]:
    if getattr(head, "provenance_", UNKNOWN).exact is False:  # a plan with a promise refuses no record
        cells = head.preprocessing_.cells
        gaps = "without a readable label or target" if cells is not None and not cells.missing else "with a gap"
        yield (
            f"Records that a party could not read, such as records {gaps}, are in no sum. The model holds for such "
            f"records too only if {ASSUMED.format('its values')}."
        )
    yield from _UNKNOWN


_UNKNOWN = (
    "Not in the sums: who the records are of, how they were chosen, and for which groups the model is better or worse.",
    "Columns of new records must mean the same: the model gives a prediction for any row.",
)


def _headline(head: Any) -> str:
    columns = _columns(head.preprocessing_)
    what = f"A classifier of {len(head.classes_)} classes" if hasattr(head, "classes_") else "A linear regression"
    return f"{what} from {columns} columns, made with privstats {__version__}."


def _columns(preprocessing: Preprocessing) -> int:
    return input_features(preprocessing.transform, preprocessing.features)


def _inputs(head: Any) -> Iterator[str]:
    first: Preprocessing = head.preprocessing_
    names = f": {', '.join(first.columns)}" if first.columns else ", in the order of the records"
    if first.cells is not None:
        yield f"A table, of which it reads {_columns(first)} columns{names}. Gaps and texts are read as declared."
    else:
        yield f"Rows of {_columns(first)} numbers{names}."
    if first.transform:
        yield f"The model first applies public maps to them: {', '.join(map_.kind for map_ in first.transform)}."
    if first.nonnegative:
        yield "Then it sets negative entries to 0."
    if first.clip_norm is not None:
        yield f"Then it shortens rows of a norm above {first.clip_norm:g} to it."


def _outputs(head: Any) -> Iterator[str]:
    if not hasattr(head, "classes_"):
        yield "One number per target."
        if (width := getattr(head, "width_", None)) is not None:
            yield (
                "**It may miss the mean of skewed targets**: under noise residuals were clipped at "
                f"{width:.2g} of their standard deviations (Huber's estimate), so large targets count less, and the "
                "mean prediction is between the targets' median and their mean. More records, fewer columns or a "
                "larger epsilon bring it to least squares."
            )
        return
    labels = head.classes_.tolist()
    shown = ", ".join(map(str, labels[:_SHOWN_LABELS])) + (", ..." if len(labels) > _SHOWN_LABELS else "")
    yield f"One of {len(labels)} classes: {shown}."
    means = getattr(head, "_class_means", None)
    only = None if means is None or len(labels) < 2 else head.rule_.sole(means)
    if only is not None:
        yield (
            f"**At the mean of every class it predicts {labels[only]}.** Noise or the clip may hide how the classes "
            f"differ, or the others are rare: {RARE}. The AUC shows how well it orders records."
        )
    elif _has_rare(head):
        yield f"One class or more is rare: {RARE}."
    known = getattr(head, "prevalence_", None)
    if known is not None and len(known) == _PAIR:
        yield (
            f'`predict(X, threshold="prevalence")` gives {labels[1]} from a probability of {known[1]:.3g} on, its '
            "share among the training records, up to noise."
        )
    yield from _probabilities(head)


def _probabilities(head: Any) -> Iterator[str]:
    temperature = getattr(head, "temperature_", 1.0)
    divisor, _ = getattr(head, "link_", (1.0, 0.0))
    if divisor != 1.0:
        yield (
            f"Probabilities are corrected for the clip of residuals: scores are divided by {divisor:.3g} and shifted, "
            "by released sums alone."
        )
    elif only_ranks(head):
        yield f"**Probabilities are those of the model, and not calibrated: {RANKS}.**"
    elif temperature == 1.0:
        yield "Probabilities are those of the model; they were not calibrated on records."
    if temperature != 1.0:
        yield f"Probabilities were calibrated on the training records: scores are divided by {temperature:.3g}."
    noise = getattr(head, "mean_noise_", None)
    if noise and getattr(head, "priors", None) == "counts":
        yield (
            f"{2 * noise:.2g} is about how far noise alone may move the mean probability of {head.classes_[1]} from "
            "its rate (two standard deviations, within a factor of three). What is not noise may add .02."
        )


def _has_rare(head: Any) -> bool:
    shares = getattr(head, "priors_", getattr(head, "prevalence_", None))
    return shares is not None and bool(shares.min() < _RARE / len(shares))


def _origin(provenance: Provenance) -> Iterator[str]:
    yield f"**{provenance}**"
    if provenance.covered:
        if provenance.caveat:
            yield f"**{provenance.caveat}**"
        yield (
            f"That promise bounds everything{' else' if provenance.caveat else ''} that the model reveals about any "
            f"one {provenance.unit}, to any recipient"
            f"{' (public records went in, too, which it does not cover)' if provenance.public else ''}. It "
            "covers the releases below together; other releases of the same records add to it. What the plan says is "
            "public: columns, classes and bounds."
        )
    else:
        yield "**As far as its file says, no promise covers it: it must stay where the records are.**"
    facts = {
        "plan": provenance.plan,
        "releases": ", ".join(provenance.releases) or None,
        "course": provenance.course,
        "parties in the sum": _parties(provenance),
    }
    rows = [(name, value) for name, value in facts.items() if value is not None]
    if rows:
        yield _table(("what", "digest or number"), rows)


def _parties(provenance: Provenance) -> str | None:
    # A plan cannot distinguish one party alone from two in the central model.
    if provenance.survivors is None:
        return None
    parties = f"{provenance.survivors} of {provenance.clients}"
    by_server = provenance.model is not None and MODELS[provenance.model].drawn_by == "server"
    alone = by_server and (provenance.unit, provenance.survivors, provenance.clients) == ("record", 2, 2)
    return f"{parties}; or one holder alone, whose plan counts as two" if alone else parties


def _parameters(head: Any) -> list[tuple[str, str]]:
    return [(name, _short(value)) for name, value in head.get_params(deep=False).items()]


def _short(value: Any) -> str:
    return f"{np.size(value)} numbers" if np.ndim(value) else str(value)


def _evaluation(scores: Mapping[str, float] | Scored) -> Iterator[str]:
    if isinstance(scores, Scored):
        rows = scores.to_rows()
        yield _table(
            ("score", "value, and its interval"),
            [
                (f"{row['metric']} {row['class']}".strip(), f"{row['conf_low']:.4g} to {row['conf_high']:.4g}")
                if not row["reported"]
                else (
                    f"{row['metric']} {row['class']}".strip(),
                    f"{row['estimate']:.4g} ({row['conf_low']:.4g} to {row['conf_high']:.4g})",
                )
                for row in rows
            ],
        )
        if scores.calibration is not None:
            yield "\n".join(_picture(scores.calibration))
    elif scores:
        yield _table(("score", "value"), [(name, f"{value:.4g}") for name, value in scores.items()])
    else:
        yield "Not evaluated here."


def _picture(curve: Any) -> Iterator[str]:
    what = f"share of {curve.label}" if curve.label else "right"
    yield f"Reliability: {what} (#) where the model is as sure as its bin says (the bar ends at | where it should)."
    yield ""
    yield "```text"
    for low, high, records, right in zip(curve.edges[:-1], curve.edges[1:], curve.records, curve.right, strict=True):
        place = round(_WIDTH * (low + high) / 2)
        bar = list("#" * round(_WIDTH * min(max(right.value, 0.0), 1.0)) if right.reported else "?")
        bar += " " * (_WIDTH + 1 - len(bar))
        bar[place] = "|"
        yield f"{low:.3f} to {high:.3f}  {''.join(bar)}  {max(records, 0):,.0f} records"
    yield "```"


def _table(header: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    lines = [header, ("---", "---"), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
