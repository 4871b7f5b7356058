"""Every setting of a plan: a browser answers it as Python does, or Python refuses it before people are invited.

A setting that is new in the package fails here until a plan of ``PLANS`` or ``REFUSED`` has it.
"""

import copy
import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.http import registrar
from privstats.contrib.http.browsers import _accepted, unanswered, warnings
from privstats.contrib.http.folders import Manifest
from privstats.contrib.http.invitations import study_of
from privstats.contrib.http.settings import Settings
from privstats.dp.privacy import MODELS
from privstats.encoding import flatten
from privstats.files import page_texts
from privstats.plan.settings import EXACT, PER_RECORD
from privstats.schema.public_values import Published
from privstats.secagg import HelperKeys, Identity, Panel, Roster
from tests.javascript.node import CLIENT, evaluated, needs_node
from tests.plan.devices import PERSON, devices_plan, sample_devices
from tests.plan.every_kind import keys_of_plans

SEATS = [Identity(bytes([place]) * 32) for place in (1, 2)]
COHORT = ps.Cohort(20, 15, 80, colluders=1)
RECORD = replace(PERSON, unit="record", max_records_per_client=None)
STATED = sample_devices(stated_epsilon=99.0)
BY_RECORD = sample_devices(stated_epsilon=99.0, words=PER_RECORD)
TEXTS = {
    "de": {"title": "Alter", "questions": {"sex": {"question": "?", "help": "!", "answers": {"f": "w", "m": "m"}}}}
}
SEX = ps.Categories("sex", ("f", "m"), other=True, missing=True)
AGE = ps.Bins("age", (0, 40, 60), closed="right", missing=True, open="above")
WARD = ps.Categories("ward", (1, 2, 3))
TIMES = (ps.Bins("left", (0, 6, 12)), ps.Bins("came", (0, 6, 12)))
HOURS = ps.Number("hours", 0, 80, by=("sex",), missing=True)
COUNTS = ps.CountSchema((SEX, AGE, WARD), (("sex", "age"), ("ward",)), numbers=(HOURS,))
CLASSES = ps.ClassSchema(3, 4, "NAB", 1.0)
RIDGE = ps.RidgeSchema(4, 2, clip_norm=1.0, target_bound=3.0)
CELLS = ps.Cells((ps.Numeric("age", (40, 65)),))


def plan_of(**changes: Any) -> ps.Plan:
    """A study on devices with some changes."""
    around: dict[str, Any] = {"schema": COUNTS, "cohort": COHORT, "devices": STATED}
    return devices_plan(panel=tuple(seat.public.hex() for seat in SEATS), **{**around, **changes})


def counts(*variables: Any) -> dict[str, Any]:
    return {"schema": ps.CountSchema(variables, tuple((each.name,) for each in variables))}


EXACT_SUMS = {"privacy": ps.NoPrivacy(), "devices": sample_devices(exact=EXACT)}
PURE = {
    "devices": sample_devices(exact=EXACT, stated_epsilon=99.0),
    "privacy": replace(PERSON, model="central", delta=0),
}
PLANS: dict[str, dict[str, Any]] = {
    "counts": {},
    **{f"closed {end}": counts(replace(AGE, closed=end)) for end in ("left", "right")},
    **{f"open {end}": counts(replace(AGE, open=end)) for end in ("both", "above", "below", "none")},
    "bins without a missing cell": counts(ps.Bins("age", (0, 40, 60))),
    "categories alone": counts(replace(SEX, other=False, missing=False)),
    "an answer that is a word for a gap": counts(ps.Categories("drug", ("none", "aspirin"), missing=True)),
    "late entry": {
        "schema": ps.CountSchema(
            TIMES, (("left",), ("came",)), late_entry=ps.LateEntry("came", "left", "continuous", rounded=True)
        )
    },
    "a number over all": {"schema": ps.CountSchema((), (), numbers=(ps.Number("km", -1.5, 1),))},
    "counts of codes": {"schema": ps.CountSchema((ps.Bins("age", (0, 40, 65)),), (("age",),), transform=(CELLS,))},
    **{
        f"classes {letters}": {"schema": ps.ClassSchema(3, 4, letters, 1.0)}
        for size in range(4)
        for letters in map("".join, (("N", "A", *more) for more in combinations("BSD", size)))
    },
    "third powers": {"schema": ps.ClassSchema(3, 4, "NADTF", 1.0, grid_bits=10), **EXACT_SUMS},
    "named classes": {
        "schema": replace(
            CLASSES, grid_bits=8, nonnegative=True, class_names=("a", "b", "c"), feature_names=tuple("wxyz")
        )
    },
    "a map": {"schema": replace(CLASSES, transform=(ps.transforms.UnitNorm(),))},
    "a count below which classes go": {"schema": CLASSES, "min_count": 5},
    "merged classes": {"schema": CLASSES, "min_count": 5, "merge": {2: 0}},
    "a regression": {"schema": replace(RIDGE, grid_bits=8, nonnegative=True, feature_names=tuple("wxyz"))},
    "five folds": {"schema": replace(RIDGE, folds=5)},
    "a missing target": {"schema": replace(RIDGE, targets=1, missing="left out")},
    "shares": {"schema": RIDGE, "privacy": replace(PERSON, shares={"G": 0.4, "h": 0.5, "q": 0.1})},
    "several records": {"privacy": replace(PERSON, max_records_per_client=4)},
    "a clip": {"privacy": replace(PERSON, max_records_per_client=4, client_clip=2.0)},
    "a promise per record": {"privacy": RECORD, "devices": BY_RECORD},
    "an exchange": {"privacy": replace(RECORD, adjacency="replace-one"), "devices": BY_RECORD},
    "central noise": {"privacy": replace(PERSON, model="central"), "devices": replace(STATED, exact=EXACT)},
    "pure epsilon": {**counts(SEX), **PURE},
    "exact sums": EXACT_SUMS,
    "a named key agreement": {"key_agreement": "mlkem768-x25519"},
    "a huge epsilon": {"devices": sample_devices(stated_epsilon=1e9)},
    "texts": {"devices": replace(STATED, texts=TEXTS)},
    "a mean": {"schema": ps.MeanSchema(4, 1.0)},
    "sums within sites": {"schema": ps.SitesSchema(5, 1.0)},
    "sums within parties": {"schema": ps.WithinSchema(3, 4, 1.0, pull=1.0, n_max=20)},
    "a party": {"schema": ps.PartySchema(3, 4)},
    "an alignment": {
        "schema": ps.GaussianSchema(4, 1.0, shrinkage=0.1, rounds=2),
        "privacy": replace(PERSON, max_records_per_client=4, client_clip=2.0),
    },
}
"""Plans that Python accepts; browsers answer some."""

ROUND = ps.ScoreSchema(4, 2.0, transform=(ps.transforms.ConstantFeature(1.0),))
PUBLISHED = {"privacy": RECORD, "published": Published("1" * 64), "devices": BY_RECORD}
ROWS: dict[str, Any] = {"unit": "person", "max_records_per_client": None}
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "plan.published": (lambda: plan_of(schema=ROUND, **PUBLISHED), "a round of a course needs the same devices"),
    "plan.validity": (
        lambda: plan_of(**counts(WARD), validity=ps.plan.Validity("moments", 1)),
        "validity cannot be combined",
    ),
    "aggregation.excess_noise": (lambda: plan_of(excess_noise="removed"), "excess_noise='removed' needs shares"),
    "aggregation.spare_bits": (lambda: plan_of(spare_bits=2), "a round of a course needs the same devices again"),
    "privacy.max_records_per_person": (
        lambda: plan_of(privacy=replace(PERSON, **ROWS, max_records_per_person=4, person_clip=4.0)),
        "a device is one person and sends one message",
    ),
    "privacy.person_clip": (
        lambda: plan_of(privacy=replace(PERSON, **ROWS, person_clip="average")),
        "a device is one person and sends one message",
    ),
    "schema.variables.ordered": (lambda: counts(replace(WARD, ordered=True)), "a count table has no use for them"),
    "schema.variables.gaps": (lambda: counts(replace(WARD, gaps=(9,))), "a count table has no use for them"),
    "schema.variables.as_text": (
        lambda: counts(ps.Categories("ward", ("042", "42"), as_text=True)),
        "a count table has no use for them",
    ),
    **{f"privacy.model {model}": (
        lambda model=model: plan_of(privacy=replace(PERSON, model=model)), "devices add no noise")
        for model in ("distributed", "local")},
    **{
        f"schema.task {task}": (lambda schema=schema: plan_of(schema=schema, **PUBLISHED), "needs the same devices")
        for task, schema in {
            "score": ROUND,
            "hazard": ps.HazardSchema(3, 2.0, bins=ps.Bins("months", (0, 6, 12)), event="died",
                feature_names=("arm", "age"), transform=(ps.transforms.ConstantFeature(1.0),)),
            "effect": ps.EffectSchema(6, 1.0, outcome=(0.0, 1.0), probability=0.5),
            "gradients": ps.GradientSchema(4, 3, residual_norm=0.3, expected_records=100, course_mu=1.0),
            "calibration": ps.CalibrationSchema(4, 3, expected_records=100, course_mu=1.0),
            "scoring": ps.ScoringSchema("3" * 64, 1, classes=2, features=2, score_bins=4),
        }.items()
    },
    "schema.task party-update": (
        lambda: plan_of(schema=ps.PartyUpdateSchema(3, 4), published=Published("1" * 64)), "needs the same devices"),
}  # fmt: skip
"""By setting, a plan on devices that Python refuses, and words of the refusal."""

_SCRIPT = """
import { readFileSync } from "node:fs";
import { toHex } from "./src/bytes.js";
import { ENGLISH } from "./src/english.js";
import { measure } from "./src/measure.js";
import { runOf } from "./src/plan.js";
import { fieldsOf, wordsOf } from "./src/words.js";
const failed = ({ code, message }) => ({ code: code ?? "broke", message });
async function answered({ manifest, pins, records }) {
  const run = await runOf(JSON.parse(manifest), pins, Date.now());
  const words = wordsOf(run.plan, ENGLISH, {}).map(({ text }) => text).join(" ");
  const { vector } = measure(run.plan.schema, records);
  let asks = true;
  try {
    fieldsOf(run.plan.schema, ENGLISH, {});
  } catch {
    asks = false;
  }
  return { context: toHex(run.context), vector: Array.from(vector, (value) => value + 0), words, asks };
}
const told = JSON.parse(readFileSync(process.argv[1], "utf8"));
console.log(JSON.stringify(await Promise.all(told.map((each) => answered(each).catch(failed)))));
"""


def settings() -> set[str]:
    """Every key of every table of a plan file, and every task."""
    kinds = {"schema.numbers": (ps.Number,), "schema.variables": (ps.Categories, ps.Bins)}
    kinds |= {"counts": (ps.CountSchema,), "classes": (ps.ClassSchema,), "ridge": (ps.RidgeSchema,)}
    keys = {name: {each.name for kind in every for each in fields(kind) if each.init} for name, every in kinds.items()}
    keys |= {name: table for name, table in keys_of_plans().items() if name != "validity"}
    keys["devices.texts"], keys["devices.texts.questions"] = map(
        set, (page_texts._Language.__struct_fields__, page_texts._Question.__struct_fields__)
    )
    named = {f"{name}.{key}" for name, table in keys.items() for key in table if key != "_"}
    return named | {f"schema.task {task}" for task in ps.kinds.KINDS}


def tables_of(tables: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The tables of a plan, each with its name in the client's table of settings."""
    yield "plan", tables  # type: ignore[misc]
    yield from ((name, tables[name]) for name in ("cohort", "privacy", "aggregation", "devices"))
    schema = tables["schema"]
    yield schema["task"], schema
    if schema["task"] == "counts":
        yield from ((f"schema.{name}", each) for name in ("variables", "numbers") for each in schema.get(name, ()))
    for texts in tables["devices"].get("texts", {}).values():
        yield "devices.texts", texts
        yield from (("devices.texts.questions", each) for each in texts.get("questions", {}).values())


def stated(plan: ps.Plan) -> set[str]:
    """The settings that stand in a plan."""
    named = {f"{name}.{key}" for name, table in tables_of(plan.tables) for key in table if key != "task"}
    return named | {f"schema.task {plan.schema.task}"}


accepted = _accepted


@dataclass(frozen=True)
class Answer:
    """A manifest with its pins and two records, and what Python makes of them."""

    told: dict[str, Any]
    context: str
    vector: list[int]


def answer_to(plan: ps.Plan) -> Answer:
    """The manifest of a run under a plan, and the records of one device."""
    people = tuple(Identity(bytes([9, index]) * 16).public for index in range(plan.cohort.clients))
    roster = Roster(people, server=SEATS[0].public, run=b"a run of devices")
    keys = [HelperKeys(seat, place, plan.masking, roster) for place, seat in enumerate(SEATS)]
    panel = Panel(tuple(seat.public for seat in SEATS), tuple(each.offer for each in keys))
    manifest = Manifest.of(plan, roster, panel, int(time.time()) + 3600).body.decode()
    pins = {"run": roster.run.hex(), "study": study_of(roster.run, bytes.fromhex(plan.digest), roster.digest)}
    records, vector = {}, []
    if not unanswered(plan):
        records, moments = measured(plan.schema)
        ps.session.contribution(plan, moments, index=0)
        vector = flatten(moments).tolist()
    told = {"manifest": manifest, "pins": pins, "records": records}
    return Answer(told, panel.context(plan.masking, roster).hex(), vector)


def measured(schema: Any) -> tuple[dict[str, list[Any]], Any]:
    """One record that the schema can read, as the client takes it, and its sums in Python."""
    if isinstance(schema, ps.CountSchema):
        known = {"sex": "m", "age": 40, "ward": 3, "hours": 12.3, "km": -0.7, "drug": "none"}
        records = {each.name: [known[each.name]] for each in schema.read}
        return records, ps.measure(schema, {name: np.array(each, object) for name, each in records.items()})
    X = np.random.default_rng(5).normal(size=(1, 4)) / 8
    if isinstance(schema, ps.ClassSchema):
        y: list[Any] = [1 if schema.class_names is None else schema.class_names[1]]
        return {"X": X.tolist(), "y": y}, ps.measure(schema, X, y)
    targets = X[:, : schema.targets] * 2
    return {"X": X.tolist(), "y": targets.tolist()}, ps.measure(schema, X, targets)


def from_node(place: Path, told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the client in JavaScript makes of manifests."""
    found: list[dict[str, Any]] = json.loads(evaluated(_SCRIPT, told, place))
    return found


def test_every_setting_stands_in_a_plan_or_is_refused_when_a_plan_is_made() -> None:
    held = set().union(*(stated(plan_of(**changes)) for changes in PLANS.values()))
    lacking = settings() - held - REFUSED.keys()
    assert lacking == set(), "add a plan that has it to PLANS or to REFUSED, and its key to accepted.js or not"
    assert held & REFUSED.keys() == set()
    models = {each.privacy.model for each in (plan_of(**changes) for changes in PLANS.values()) if each.noise}
    assert models | {key.split()[1] for key in REFUSED if key.startswith("privacy.model ")} == set(MODELS)


@pytest.mark.filterwarnings("ignore:validity is experimental")
@pytest.mark.parametrize("setting", REFUSED)
def test_a_setting_that_no_device_can_have_is_refused_and_no_client_lists_it(setting: str) -> None:
    make, words = REFUSED[setting]
    with pytest.raises((ps.PlanError, ps.SchemaError), match=words):
        make()
    table, _, key = setting.rpartition(".")
    assert key not in accepted().get(table, {})


def test_the_client_accepts_no_setting_that_no_plan_has() -> None:
    assert {f"{table}.{key}" for table, keys in accepted().items() for key in keys if key != "task"} <= settings()


@needs_node
def test_browsers_answer_the_plans_that_python_says_and_as_python_does(tmp_path: Path) -> None:
    """Also in a study whose form only another page can ask, as `warnings` says."""
    plans = {name: plan_of(**changes) for name, changes in PLANS.items()}
    answers = {name: answer_to(plan) for name, plan in plans.items()}
    found = dict(zip(plans, from_node(tmp_path, [each.told for each in answers.values()]), strict=True))
    for name, plan in plans.items():
        refusal = unanswered(plan)
        if refusal:
            assert found[name].get("code") == "unsupported", (name, found[name])
            path = found[name]["message"].rpartition(" ")[2]
            assert refusal.startswith(f"no browser answers a plan with {path}"), (name, path, refusal)
            assert warnings(plan) == [f"WARNING: {refusal}"]
            continue
        assert "code" not in found[name], (name, found[name])
        assert found[name]["context"] == answers[name].context, name
        assert found[name]["vector"] == answers[name].vector, name
        assert not re.search("NaN|undefined|null|[{}]", found[name]["words"]), found[name]["words"]
        assert found[name]["asks"] == (not warnings(plan)), name
    assert sum(not unanswered(plan) for plan in plans.values()) > 20
    assert sum(bool(unanswered(plan)) for plan in plans.values()) > 10


@needs_node
@pytest.mark.parametrize("name", ["counts", "texts", "classes NAB", "a regression"])
def test_a_key_of_tomorrow_is_refused_by_both_in_every_table(tmp_path: Path, name: str) -> None:
    plan = plan_of(**PLANS[name])
    told, wanted = [], []
    for place, (table, _) in enumerate(tables_of(plan.tables)):
        tables = copy.deepcopy(plan.tables)
        [*tables_of(tables)][place][1]["notes"] = 1
        text = json.dumps(tables)
        digest = hashlib.sha256(text.encode()).digest()
        known = answer_to(plan).told
        manifest = {**json.loads(known["manifest"]), "plan": text}
        roster = bytes.fromhex(manifest["roster"])
        pins = {**known["pins"], "study": study_of(bytes.fromhex(manifest["run"]), digest, roster)}
        told.append({"manifest": json.dumps(manifest), "pins": pins, "records": {}})
        wanted.append(f"{'schema' if table in ('counts', 'classes', 'ridge') else table}.notes")
        double: Any = SimpleNamespace(tables=tables)
        assert unanswered(double).startswith(f"no browser answers a plan with {wanted[-1]} = 1: omit it")
    found = from_node(tmp_path, told)
    assert [(each["code"], each["message"].rpartition(" ")[2]) for each in found] == [
        ("unsupported", path) for path in wanted
    ]


def test_the_page_for_other_clients_lists_the_same_keys() -> None:
    text = (CLIENT.parents[1] / "docs" / "wire" / "device.md").read_text("utf-8")
    (known,) = re.findall(r"\*\*A client refuses a plan with an unknown key.*?\n\n(.*?)\n\n", text, re.DOTALL)
    listed = {}
    for item in known.split("\n- "):
        name, keys = re.fullmatch(r"(?:- )?(?:the )?`?(\w+)`? has (.*)", item, re.DOTALL).groups()
        listed[name] = set(re.findall(r"`([a-z_]+)`", keys))
    assert listed == {name: set(accepted()[name]) for name in ("plan", "cohort", "aggregation", "privacy")}


def test_a_registrar_writes_no_study_that_no_browser_answers_unless_it_says_so(tmp_path: Path) -> None:
    day = datetime(2027, 3, 1, tzinfo=UTC)
    settings = Settings("https://leader.example", day, day.replace(day=20), ("https://survey.example",))
    plan, page = plan_of(**PLANS["a clip"]), "https://survey.example/answer"
    with pytest.raises(ps.PlanError, match=r"privacy.client_clip = 2.0: omit it, or let only installed software"):
        registrar.write_study(tmp_path / "study", plan, settings, page)
    assert not (tmp_path / "study").exists()
    registrar.write_study(tmp_path / "study", plan, settings, page, browsers=False)
    assert ps.Plan.read(tmp_path / "study" / "plan.toml") == plan
