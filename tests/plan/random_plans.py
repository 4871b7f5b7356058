"""Plans by chance, of every kind of schema, trust model, unit and adjacency that a plan takes."""

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import privstats as ps
from privstats.schema import Schema
from privstats.schema.public_values import Published
from tests.schema.samples import PROMISED

PANEL = tuple(ps.secagg.Identity(bytes([seed]) * 32).public.hex() for seed in (1, 2, 3))


def _classes(chance: random.Random, common: dict[str, Any]) -> Schema:
    letters = chance.choice(["NA", "NAB", "NAD", "NAS", "NABD", "NABSD"])
    return ps.ClassSchema(chance.randint(2, 9), statistics=letters, nonnegative=chance.random() < 0.3, **common)


def _ridge(chance: random.Random, common: dict[str, Any]) -> Schema:
    return ps.RidgeSchema(
        targets=chance.randint(1, 3), target_bound=chance.uniform(0.1, 50), folds=chance.choice([1, 1, 5]), **common
    )


def _counts(chance: random.Random, common: dict[str, Any]) -> Schema:
    sex = ps.Categories("sex", ("f", "m"), missing=chance.random() < 0.5)
    age, ward = ps.Bins("age", (0, 40, 60, 120), closed="right"), ps.Categories("ward", (1, 2, 3), other=True)
    tables = [("sex",), ("sex", "age"), ("age", "ward"), ("ward",)][: chance.randint(1, 4)]
    return ps.CountSchema((sex, age, ward), tuple(tables))


def _scoring(chance: random.Random, common: dict[str, Any]) -> Schema:
    scale: dict[str, Any] = {"score": "margin", "reach": chance.uniform(0.5, 30)} if chance.random() < 0.5 else {}
    classes = chance.randint(2, 5)
    scale["by_class"] = classes > 2 and chance.random() < 0.5
    bins = 2 * chance.randint(1, 12)
    if classes == 2 and not scale.get("reach") and chance.random() < 0.5:
        scale["cuts"] = tuple(sorted({0.5, *(round(chance.uniform(0.01, 0.99), 4) for _ in range(bins))}))
        bins = len(scale["cuts"]) + 1
    return ps.ScoringSchema("5" * 64, 900, classes=classes, features=common["features"], score_bins=bins, **scale)


def _sites(chance: random.Random, common: dict[str, Any]) -> Schema:
    return ps.SitesSchema(pulls=(chance.choice([0.0, 0.4, 30.0]),), **common)


def _within(chance: random.Random, common: dict[str, Any]) -> Schema:
    pull = chance.choice([0.0, chance.uniform(0.1, 100), 1e8])
    return ps.WithinSchema(chance.randint(2, 6), pull=pull, n_max=chance.randint(1, 1000), **common)


def _score(chance: random.Random, common: dict[str, Any]) -> Schema:
    common["errors"] = chance.choice(["model", "robust"])
    if chance.random() < 0.6:
        return ps.ScoreSchema(**common)
    return ps.ScoreSchema(family="poisson", target_bound=chance.uniform(1, 30), **common)


def _hazard(chance: random.Random, common: dict[str, Any]) -> Schema:
    columns, edges = common["features"] - 1, [0.0]
    for _ in range(chance.randint(2, 12)):
        edges.append(edges[-1] + chance.uniform(0.5, 9))
    return ps.HazardSchema(
        **common,
        bins=ps.Bins("time", tuple(edges), closed=chance.choice(["left", "right"])),
        event="event",
        feature_names=tuple(f"x{place}" for place in range(columns)),
        transform=(ps.transforms.ConstantFeature(common["clip_norm"] * chance.uniform(0.1, 0.7)),),
        expected_events=chance.choice([None, 1000]),
        times=chance.choice([None, "continuous", "discrete"]),
        errors=chance.choice(["model", "robust"]),
    )


def _gradients(chance: random.Random, common: dict[str, Any]) -> Schema:
    course = {"expected_records": 1000, "course_mu": 1.0, "features": common["features"]}
    if chance.random() < 0.5:
        module = chance.choice([None, "mlp/3", "adapter/3"])
        return ps.GradientSchema(
            classes=chance.randint(2, 5), residual_norm=chance.uniform(0.1, 1), module=module, **course
        )
    return ps.GradientSchema(residual_norm=1.0, target_bound=chance.uniform(0.1, 9), **course)


def _effect(chance: random.Random, common: dict[str, Any]) -> Schema:
    low, given = chance.uniform(-9, 9), {"features": 2 * chance.randint(2, 5)}
    design: dict[str, Any] = {"probability": chance.uniform(0.05, 0.95)}
    if chance.random() < 0.5:
        design = {"trim": chance.uniform(0.02, 0.4), "estimand": chance.choice(["ate", "att", "overlap"])}
    if chance.random() < 0.5:
        design |= {"balance": chance.uniform(0.05, 0.5)}
    if "probability" in design and chance.random() < 0.5:
        low, design["measure"] = 0.0, "ratio"
    return ps.EffectSchema(outcome=(low, low + chance.uniform(0.1, 50)), **design, **{**common, **given})


def _calibration(chance: random.Random, common: dict[str, Any]) -> Schema:
    bits = common["grid_bits"]
    return ps.CalibrationSchema(
        common["features"], chance.randint(2, 5), expected_records=1000, course_mu=1.0, grid_bits=bits
    )


def _mean(chance: random.Random, common: dict[str, Any]) -> Schema:
    return ps.MeanSchema(nonnegative=chance.random() < 0.3, **common)


def _parties(chance: random.Random, common: dict[str, Any]) -> Schema:
    return chance.choice([ps.PartySchema, ps.PartyUpdateSchema])(chance.randint(2, 5), **common)


def _gaussians(chance: random.Random, common: dict[str, Any]) -> Schema:
    return ps.GaussianSchema(shrinkage=0.2, rounds=2, reference=chance.random() < 0.5, **common)


def _like(sample: Any, _: random.Random, common: dict[str, Any]) -> Schema:
    drawn: Schema = replace(sample, clip_norm=common["clip_norm"], grid_bits=common["grid_bits"])
    return drawn


_WRITTEN = (
    *("classes", "ridge", "counts", "sites", "within", "score", "hazard", "gradients", "calibration", "mean"),
    *("gaussians", "party-softmax", "party-update", "effect", "scoring"),
)
MAKERS: tuple[Callable[[random.Random, dict[str, Any]], Schema], ...] = (
    *(_classes, _ridge, _counts, _sites, _within, _score, _hazard, _effect, _gradients, _calibration, _mean),
    *(_parties, _scoring, _gaussians),
    *(partial(_like, sample) for sample in PROMISED if sample.task not in _WRITTEN),
)


def random_plans(seed: int, kinds: Any = MAKERS) -> Iterator[ps.Plan]:
    """One plan after another, the kinds in turn; what no plan can hold is drawn again."""
    chance = random.Random(seed)
    while True:
        for kind in kinds:
            yield _plan(chance, kind)


def _plan(chance: random.Random, kind: Any) -> ps.Plan:
    while True:
        common = {
            "features": chance.randint(2, 9),
            "clip_norm": 10 ** chance.uniform(-3, 3),
            "grid_bits": chance.randint(10, 20),
        }
        schema = kind(chance, common)
        model = chance.choice(["central", "distributed", "local", "panel"])
        around: dict[str, Any] = {"protocol": "split", "panel": PANEL} if model == "panel" else {}
        needs = Published("0" * 64) if schema.needs else None
        clients = chance.randint(5, 40)
        cohort = ps.Cohort(clients, clients - 1, chance.randint(10, 10_000), chance.randint(0, 2))
        around["privacy"] = _privacy(chance, schema, model)
        try:
            return ps.Plan(schema=schema, cohort=cohort, published=needs, **around)
        except ps.PlanError:
            continue


def _privacy(chance: random.Random, schema: Schema, model: Any) -> ps.Privacy:
    unit: dict[str, Any] = {"unit": "record", "adjacency": chance.choice(["add-remove", "replace-one"])}
    if chance.random() < 0.3 or schema.task == "gaussians":
        most = chance.randint(1, 200)
        clip = {"client_clip": chance.uniform(1, most)} if chance.random() < 0.5 or schema.task == "gaussians" else {}
        unit = {"unit": "client", "adjacency": "add-remove", "max_records_per_client": most, **clip}
    if not schema.refuses_persons(averaged=True) and chance.random() < 0.2:
        most = chance.randint(1, 200)
        clip: dict[str, Any] = {"max_records_per_person": most, "person_clip": chance.uniform(1, most)}
        clip = {"person_clip": "average"} if schema.no_persons or chance.random() < 0.5 else clip
        unit = {**unit, "unit": "person", **clip}
        unit = {key: value for key, value in unit.items() if "client" not in key}
    if isinstance(schema, ps.PartySchema):
        unit = {
            "unit": "client",
            "adjacency": chance.choice(["add-remove", "replace-one"]),
            "max_records_per_client": 1,
        }
    shares = None
    if chance.random() < 0.5:
        parts = {letter: chance.uniform(0.02, 1) for letter in schema.statistics}
        shares = {letter: part / math.fsum(parts.values()) for letter, part in parts.items()}
    numbers = {"epsilon": 10 ** chance.uniform(-2, 1.9), "delta": 10 ** chance.uniform(-13, -2)}
    return ps.Privacy(model=model, shares=shares, **unit, **numbers)
