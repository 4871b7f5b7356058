"""A schema or two of every kind, with every letter of every table among them."""

import numpy as np

import privstats as ps
from privstats.kinds import KINDS

_X, _Y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60)
SCORED = (
    ps.Scoring(ps.heads.LDA().fit(_X, _Y % 2), score_bins=4),
    ps.Scoring(ps.heads.LDA().fit(_X, _Y % 3), score_bins=3, score="margin", reach=4.0, by_class=True),
)
"""Heads that are scored; their schemas are samples, and what they publish belongs to these."""
_SHOWN: tuple[ps.schema.Schema, ...] = (
    ps.ClassSchema.example(),
    ps.ClassSchema(3, 4, "NAS", 1.0),
    ps.RidgeSchema.example(),
    ps.CountSchema.example(),
    ps.SitesSchema.example(),
    ps.ScoreSchema(4, 1.0, errors="model"),
    ps.ScoreSchema(4, 1.0, family="poisson", target_bound=9, errors="model"),
    ps.GradientSchema.example(),
    ps.GradientSchema(4, residual_norm=1.0, expected_records=100, course_mu=1.0, target_bound=2.0),
    ps.WithinSchema.example(),
    ps.GaussianSchema.example(),
    ps.GaussianSchema(4, 1.0, shrinkage=0.1, rounds=2, reference=True),
    ps.CalibrationSchema.example(),
    ps.MeanSchema.example(),
    ps.PartySchema.example(),
    ps.PartyUpdateSchema.example(),
    ps.ClassSchema(3, 4, "NADTF", 1.0, grid_bits=10),
    ps.GradientSchema(4, 3, residual_norm=0.3, expected_records=100, course_mu=1.0, module="adapter/5"),
    ps.HazardSchema(4, 2.0, bins=ps.Bins("months", (0, 6, 12, 24)), event="died", feature_names=("arm", "age", "dose"),
        transform=(ps.transforms.ConstantFeature(1.0),), errors="model"),
    ps.HazardSchema(4, 2.0, bins=ps.Bins("months", (0, 6, 12, 24)), event="died", feature_names=("arm", "age", "dose"),
        transform=(ps.transforms.ConstantFeature(1.0),), times="continuous", time_unit=1.0, errors="model"),
    ps.EffectSchema.example(),
    ps.EffectSchema(6, 1.0, outcome=(-2.0, 5.0), trim=0.1, estimand="overlap"),
    ps.EffectSchema(6, 1.0, outcome=(0.0, 1.0), trim=0.1, outcome_names=("relapse", "death"),
        feature_names=("age", "dose", "arm"), transform=(ps.transforms.ConstantFeature(1.0), ps.transforms.ByArm(2)),
        subgroups=(ps.Bins("age", (0, 40, 60)), ps.Categories("dose", (0, 1, 2)))),
    ps.EffectSchema(6, 1.0, outcome=(0.0, 1.0), probability=0.5, outcome_names=tuple("abcdefgh")),
    ps.EffectSchema(6, 1.0, outcome=(0.0, 1.0), probability=0.3, measure="ratio"),
    ps.EffectSchema(6, 1.0, outcome=(0.0, 1.0), probability=0.3, measure="both"),
    ps.EffectSchema(6, 1.0, outcome=(-2.0, 5.0), trim=0.1, balance=0.2),
    ps.EffectSchema(6, 1.0, outcome=(0.0, 1.0), probability=0.5, trim=0.5, missing="weights"),
    ps.EffectSchema(6, 1.0, outcome=(0.0, 1.0), probability=0.5, left_out="counted"),
    ps.EffectSchema(6, 1.0, outcome=(-2.0, 5.0), trim=0.1, balance=0.2, outcome_names=("pain", "sleep"),
        left_out="counted"),
    ps.ScoreSchema(6, 1.0, missing="outcome"),
    ps.RidgeSchema(6, clip_norm=1.0, target_bound=1.0, missing="left out"),
    ps.CountSchema((ps.Categories("sex", ("f", "m")),), (), numbers=(ps.Number("hours", 0, 80, by=("sex",)),)),
    ps.ScoreSchema.example(),
    ps.HazardSchema(4, 2.0, bins=ps.Bins("months", (0, 6, 12, 24)), event="died", feature_names=("arm", "age", "dose"),
        transform=(ps.transforms.ConstantFeature(1.0),), times="continuous"),
    ps.ScoreSchema(4, 1.0, family="poisson", target_bound=9),
    *(scored.schema for scored in SCORED),
)  # fmt: skip
"""Examples of kinds, and further settings of them, in the order in which frozen plans are named."""

SCHEMAS = (*_SHOWN, *(kind.example() for kind in KINDS.values() if kind not in {type(each) for each in _SHOWN}))

PROMISED = tuple(schema for schema in SCHEMAS if not (schema.refusal("record") and schema.refusal("client")))
"""Those of which some plan may promise something."""

_RELEASED = {"planted record", "invented release", "file", "simulation"}
_BOUNDED = {"search", "declared mu", "budget"}
_WHOLE = {*_BOUNDED, *_RELEASED}
TAKEN = dict.fromkeys(KINDS, _WHOLE) | {
    "classes": {*_WHOLE, "canary", "noise", "bundled records", "proof of norms"},
    "ridge": {*_WHOLE, "canary", "noise", "bundled records", "proof of norms", "proof of moments"},
    "counts": {*_WHOLE - {"simulation"}, "noise", "pure", "proof of moments"},
    "scoring": {*_WHOLE, "noise", "pure", "proof of moments"},
    "sites": {*_WHOLE, "bundled records"},
    "gradients": {*_WHOLE, "proof of norms"},
    "gaussians": _WHOLE - {"search"},
    "party-softmax": {*_WHOLE, "canary", "noise"},
}
"""By task the stops of ``test_contract`` that take a kind beside those that take all; the others refuse it by name."""
