"""Certified plans of every kind of schema, with every table, key and transform that a plan can have among them."""

import hashlib
import json
import warnings
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import privstats as ps
from privstats.plan.document import _SECTIONS
from privstats.plan.provers import PROVERS
from privstats.plan.settings import EXACT, SETTINGS
from privstats.review.certificate import certificate_text
from privstats.schema.public_values import Published
from tests import made
from tests.plan.devices import sample_devices
from tests.plan.random_plans import PANEL
from tests.review.certified import COHORT, PARTY
from tests.schema.samples import PROMISED

NAMES = tuple(f"member {place}" for place in range(len(PANEL)))
CLIPPED = {"unit": "client", "max_records_per_client": 4, "client_clip": 3.0}
PERSONS = {"unit": "person", "max_records_per_person": 4, "person_clip": 4.0}
AVERAGED = {"unit": "person", "person_clip": "average"}
MODELS = ("central", "distributed", "local")
MAPS = (
    ps.transforms.Centre((0.5, 0.0, -1.0, 2.0)),
    ps.transforms.Scale((1.0, 2.0, 1.0, 4.0)),
    ps.transforms.CentreRows(),
    ps.transforms.UnitNorm(),
    ps.transforms.GaussianProjection(7, 4, 6),
    ps.transforms.SparseProjection(7, 6, 5),
    ps.transforms.OrthogonalProjection(7, 5, 4),
    ps.transforms.RandomReLU(7, 4, 6),
    ps.transforms.RandomFourier(7, 6, 4),
    ps.transforms.ConstantFeature(1.0),
)

ARMS = (ps.transforms.ConstantFeature(1.0), ps.transforms.ByArm(3))

CELLS = ps.Cells(
    (
        ps.Numeric("age", (40, 65), gaps=(-9,), unit="years"),
        ps.Numeric("dose", suffix="mg", censored=True),
        ps.Dates("seen", ("2020-01-01",), gaps=("1900-01-01",), written="DD.MM.YYYY"),
        ps.Truth("smoker", gaps=(9,)),
        ps.Truth("former", values=("nein", "ja")),
        ps.Categories("stage", ("I", "II", "III"), ordered=True, gaps=("?",)),
        ps.Categories("ward", (1, 2, 3)),
        ps.Categories("sex", ("f", "m")),
        ps.Categories("code", ("042", "42"), as_text=True),
        ps.Categories("note", ()),
    ),
    ramp=True,
)


LATE_COUNTS = ps.CountSchema(
    (*(ps.Bins(name, (0, 6, 12, 18)) for name in ("months", "entered")), ps.Categories("died", (0, 1))),
    (("months", "died"), ("entered",)),
    late_entry=ps.LateEntry("entered", "months", times="continuous", rounded=True),
)


class Certified(NamedTuple):
    """A plan with its file, its tables and its certificate."""

    plan: ps.Plan
    text: str
    tables: dict[str, Any]
    document: dict[str, Any]


def keys_of_plans() -> dict[str, set[str]]:
    """The keys of the tables of a plan file that plans of every kind share, by table."""
    return {"plan": {"version", *_SECTIONS}} | {table: set(rows) for table, rows in SETTINGS.items()}


def _usual(place: int, schema: ps.schema.Schema) -> ps.Plan:
    model, changes = MODELS[place % 3], {"adjacency": ("add-remove", "replace-one")[place % 2]}
    if schema.refusal("record"):
        changes |= PARTY if isinstance(schema, ps.PartySchema) else {**CLIPPED, "adjacency": "add-remove"}
    published = Published("1" * 64, "2" * 64) if schema.needs else None
    return made.plan(schema, COHORT, made.promise(model, **changes), published=published)


def _proved(schema: ps.schema.Schema) -> ps.Plan:
    proved = {"validity": ps.plan.Validity("moments", 500), "key_agreement": "mlkem768-x25519"}
    return made.plan(schema, COHORT, made.promise("panel"), protocol="split", panel=PANEL, **proved)


def _others() -> dict[str, ps.Plan]:
    classes, transport = ps.ClassSchema(3, 4, "NAB", 1.0), ps.transforms.Transport(4, "ab" * 32, 0.4)
    by_sites = {"unit": "client", "max_records_per_client": 7}
    counts = ps.CountSchema(
        (
            ps.Categories("sex", ("f", "m"), other=True, missing=True),
            ps.Bins("age", (0, 40, 60), closed="right", missing=True, open="above"),
            ps.Categories("ward", (1, 2, 3)),
        ),
        (("sex", "age"), ("ward",)),
    )
    shares = {"G": 0.4, "h": 0.5, "q": 0.1}
    ridge = ps.RidgeSchema(4, 2, clip_norm=1.0, target_bound=3.0, folds=5, nonnegative=True)
    return {
        **({"panel": _proved(classes)} if "moments" in PROVERS else {}),
        "weighed": made.plan(
            classes, COHORT, made.promise(), min_count=5, merge={2: 0}, spare_bits=3, graph="complete"
        ),
        "layers": made.plan(classes, COHORT, made.promise("distributed"), excess_noise="removed"),
        "hybrid": made.plan(classes, COHORT, made.promise(), key_agreement="mlkem768-x25519"),
        "shares": made.plan(ridge, COHORT, made.promise(shares=shares, adjacency="replace-one")),
        "maps": made.plan(replace(classes, features=5, transform=MAPS), COHORT, made.promise()),
        "arms": made.plan(replace(classes, features=6, transform=ARMS), COHORT, made.promise()),
        "score of several outcomes": made.plan(
            ps.ScoreSchema(4, 1.0, transform=ARMS, outcomes=2), COHORT, made.promise(), published=Published("1" * 64)
        ),
        "cells": made.plan(replace(classes, features=CELLS.width, transform=(CELLS,)), COHORT, made.promise()),
        "transport": made.plan(replace(classes, transform=(transport,)), COHORT, made.promise(**CLIPPED)),
        "client": made.plan(replace(classes, statistics="NABSD"), COHORT, made.promise("local", **by_sites)),
        "persons": made.plan(classes, COHORT, made.promise("distributed", **PERSONS)),
        "persons exchanged": made.plan(
            ridge, COHORT, made.promise(adjacency="replace-one", **{**PERSONS, "person_clip": 2.5})
        ),
        "persons averaged": made.plan(classes, COHORT, made.promise(**AVERAGED)),
        "averages exchanged": made.plan(ridge, COHORT, made.promise(adjacency="replace-one", **AVERAGED)),
        "client of sites": made.plan(ps.SitesSchema(5, 1.0, groups=6), _many_sites(), made.promise(**by_sites)),
        "clipped score": made.plan(
            ps.ScoreSchema(4, 1.0, rate=0.1, transform=(ps.transforms.ConstantFeature(1.0),), errors="model"),
            COHORT,
            made.promise(**CLIPPED),
            published=Published("1" * 64),
        ),
        "rates": made.plan(
            ps.ScoreSchema(
                4,
                2.0,
                family="poisson",
                target_bound=9.0,
                exposure="years",
                exposure_bound=10.0,
                transform=(ps.transforms.ConstantFeature(1.0),),
            ),
            COHORT,
            made.promise(),
            published=Published("1" * 64),
        ),
        "weighed counts": made.plan(
            ps.ScoreSchema(
                4,
                2.0,
                family="poisson",
                target_bound=9.0,
                negative_binomial=1.5,
                transform=(ps.transforms.ConstantFeature(1.0),),
            ),
            COHORT,
            made.promise(),
            published=Published("1" * 64),
        ),
        "dispersed counts": made.plan(
            ps.ScoreSchema(
                4,
                2.0,
                family="poisson",
                target_bound=9.0,
                overdispersion="estimated",
                transform=(ps.transforms.ConstantFeature(1.0),),
            ),
            COHORT,
            made.promise(),
            published=Published("1" * 64),
        ),
        "score at cuts": made.plan(
            ps.ScoringSchema("3" * 64, 1, classes=2, features=2, score_bins=4, cuts=(0.2, 0.5, 0.7)),
            COHORT,
            made.promise(),
            published=Published("1" * 64),
        ),
        "late entry": made.plan(
            ps.HazardSchema(
                4,
                2.0,
                bins=ps.Bins("months", (0, 6, 12)),
                event="died",
                feature_names=("arm", "sex"),
                transform=(ps.transforms.Interactions(((0, 1),)), ps.transforms.ConstantFeature(1.0)),
                times="discrete",
                entry="entered",
                errors="model",
            ),
            COHORT,
            made.promise(),
            published=Published("1" * 64),
        ),
        "counts of late entry": made.plan(LATE_COUNTS, COHORT, made.promise(adjacency="replace-one")),
        "a subdistribution": made.plan(
            ps.HazardSchema(
                3,
                2.0,
                bins=ps.Bins("months", (0, 6, 12)),
                event="ended",
                feature_names=("arm", "sex"),
                transform=(
                    ps.transforms.Levels((), (ps.Categories("ended", ("no", "relapse", "death")),)),
                    ps.transforms.ConstantFeature(1.0),
                ),
                times="continuous",
                ratios="subdistribution",
            ),
            COHORT,
            made.promise(),
            published=Published("1" * 64),
        ),
        "several texts": made.plan(
            ps.HazardSchema(
                4,
                2.0,
                bins=ps.Bins("months", (0, 6, 12)),
                event="ended",
                strata=ps.Categories("site", ("north", "south")),
                feature_names=("arm", "smoking"),
                transform=(
                    ps.transforms.Levels(
                        (ps.Categories("smoking", ("never", "former", "current")),),
                        (ps.Categories("ended", ("seen", "relapse", "death")),),
                        (1,),
                    ),
                    ps.transforms.ConstantFeature(1.0),
                ),
                errors="model",
            ),
            COHORT,
            made.promise(),
            published=Published("1" * 64),
        ),
        "hazards": made.plan(
            ps.HazardSchema(
                3,
                2.0,
                bins=ps.Bins("weeks", (0, 4, 8, 13, 26), closed="right"),
                event="relapse",
                feature_names=("arm", "age"),
                transform=(ps.transforms.Scale((1.0, 9.0)), ps.transforms.ConstantFeature(0.5)),
                expected_events=400,
                errors="model",
            ),
            COHORT,
            made.promise(adjacency="replace-one"),
            published=Published("1" * 64),
        ),
        "round": made.plan(
            ps.GaussianSchema(4, 1.0, shrinkage=0.1, rounds=2, reference=True, among=(0, 1, 2, 4)),
            COHORT,
            made.promise("local", **CLIPPED),
            published=Published("1" * 64),
        ),
        "devices": made.plan(
            counts,
            COHORT,
            made.promise("panel"),
            protocol="split",
            panel=PANEL,
            devices=sample_devices(organisations=NAMES, words="per record", stated_epsilon=99.0),
        ),
        "exact devices": made.plan(
            counts,
            COHORT,
            made.promise(),
            protocol="split",
            panel=PANEL,
            devices=sample_devices(
                organisations=NAMES,
                words="per record",
                exact=EXACT,
                stated_epsilon=99.0,
                texts={"de": {"title": "Ulm"}},
            ),
        ),
        "tables": made.plan(counts, COHORT, made.promise(adjacency="replace-one")),
    }


def _many_sites() -> ps.Cohort:
    """Enough sites for groups."""
    return ps.Cohort(40, 30, 5000, 2)


with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # proofs are experimental
    PLANS = {f"{place} {schema.task}": _usual(place, schema) for place, schema in enumerate(PROMISED)} | _others()


@cache
def _texts(name: str) -> tuple[str, str]:
    return PLANS[name].to_toml(), certificate_text(PLANS[name])


def certified(name: str) -> Certified:
    """A plan of this name with texts, and with tables that a test may change."""
    text, certificate = _texts(name)
    document = json.loads(certificate)
    return Certified(PLANS[name], text, json.loads(document["plan"]), document)


def with_tables(document: dict[str, Any], tables: Any) -> str:
    """The certificate with other tables of the plan, and their digest."""
    plan = json.dumps(tables)
    return json.dumps(document | {"plan": plan, "plan_digest": hashlib.sha256(plan.encode()).hexdigest()})
