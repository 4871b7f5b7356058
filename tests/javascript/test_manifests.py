"""A manifest with one bit wrong is refused in JavaScript and in Python, and the right one in neither."""

import json
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import privstats as ps
from privstats.contrib.http.device import DeviceRun
from privstats.contrib.http.dial import Dial, Reply
from privstats.errors import PrivstatsError
from privstats.plan.devices import PER_RECORD
from privstats.schema.public_values import Published
from tests.javascript.node import CLIENT, needs_node, node
from tests.javascript.study import Study
from tests.plan.devices import PERSON, devices_plan, sample_devices
from tests.plan.every_kind import keys_of_plans

DEVICES = (Path(__file__).parents[2] / "docs" / "devices.md").read_text("utf-8")

_SCRIPT = """
import { readFileSync } from "node:fs";
import { inMemory, open } from "./privstats.js";
const { pins, link, manifests } = JSON.parse(readFileSync(process.argv[1], "utf8"));
crypto.getRandomValues = () => { throw new Error("a secret was drawn"); };
for (const manifest of manifests) {
  const fetch = async () => new Response(manifest);
  const options = { store: inMemory(), fetch };
  console.log(await open(link, pins, options).then(() => "taken", (error) => error.code ?? "broke"));
}
"""
WRONG = 40


class Told(Dial):
    """A leader that says one thing."""

    def __init__(self, manifest: str) -> None:
        self._manifest = manifest.encode()

    def ask(self, method, path, body=b"", headers=None, *, most=0):
        return Reply(200, {}, self._manifest)


def flipped(text: str, rng: random.Random) -> str:
    """One bit of one character wrong, where what comes out is still printable."""
    while True:
        at, bit = rng.randrange(len(text)), 1 << rng.randrange(7)
        letter = chr(ord(text[at]) ^ bit)
        if letter.isprintable() and letter.lower() != text[at].lower():
            return text[:at] + letter + text[at + 1 :]


def manifests(study: Study) -> list[str]:
    """The right one, and so many with one bit wrong in what both clients read."""
    rng, right = random.Random("one bit"), json.loads(study.manifest)
    found = [json.dumps(right)]
    for number in range(WRONG):
        wrong = json.loads(study.manifest)
        match number % 4:
            case 0:
                wrong["plan"] = flipped(wrong["plan"], rng)
            case 1:
                wrong["roster"] = flipped(wrong["roster"], rng)
            case place:
                wrong["offers"][place - 2] = flipped(wrong["offers"][place - 2], rng)
        found.append(json.dumps(wrong))
    return found


NOT_OF_DEVICES = {
    "plan": {"published", "validity"},
    "aggregation": {"merge", "excess_noise"},
    "privacy": {"client_clip", "max_records_per_person", "person_clip"},
    "devices": set[str](),
}
"""The keys that no plan for devices has, by table."""


def test_the_client_knows_every_key_of_a_plan_for_devices() -> None:
    """A key that it does not know makes every browser refuse the study, after people were invited."""
    text = (CLIENT / "src" / "plan.js").read_text("utf-8")
    known = {name: set(keys.split()) for name, keys in re.findall(r'^  (\w+): "([\w ]+)",$', text, re.MULTILINE)}
    plans = {name: keys for name, keys in keys_of_plans().items() if name in NOT_OF_DEVICES}
    assert {name: keys - known[name] for name, keys in plans.items()} == NOT_OF_DEVICES


IN_NO_BROWSER = {"client_clip", "merge"}
"""Keys that plans for devices may have if installed software answers; docs/devices.md names them."""

_ROUND = ps.ScoreSchema(4, 2.0, transform=(ps.transforms.ConstantFeature(1.0),))
_PER_RECORD = replace(PERSON, unit="record", max_records_per_client=None)
_OF_PERSONS: dict[str, Any] = {"unit": "person", "max_records_per_client": None}
REFUSED_AT_ONCE: dict[str, tuple[dict[str, Any], str]] = {
    "published": (
        {
            "schema": _ROUND,
            "privacy": _PER_RECORD,
            "published": Published("1" * 64),
            "devices": sample_devices(words=PER_RECORD, stated_epsilon=9.0),
        },
        "a round of a course needs the same devices again",
    ),
    "validity": ({"validity": ps.plan.Validity("moments", 1)}, "validity cannot be combined with devices"),
    "excess_noise": ({"excess_noise": "removed"}, "excess_noise='removed' needs shares of noise"),
    "max_records_per_person": (
        {"privacy": replace(PERSON, **_OF_PERSONS, max_records_per_person=4, person_clip=4.0)},
        "a device is one person and sends one message",
    ),
    "person_clip": (
        {"privacy": replace(PERSON, **_OF_PERSONS, person_clip="average")},
        "a device is one person and sends one message",
    ),
}
"""By key a plan for devices that has it, and the words of its refusal."""


@pytest.mark.filterwarnings("ignore:validity is experimental")
@pytest.mark.parametrize("key", sorted(set().union(*NOT_OF_DEVICES.values()) - IN_NO_BROWSER))
def test_a_key_that_browsers_refuse_is_refused_when_the_plan_is_made(key: str) -> None:
    """Before people are invited: a key of ``NOT_OF_DEVICES`` that no refusal of privstats/plan/ covers fails here."""
    assert key in REFUSED_AT_ONCE, f"{key}: refuse it in privstats/plan/devices.py, and add a plan that has it here"
    changes, words = REFUSED_AT_ONCE[key]
    with pytest.raises(ps.PlanError, match=words):
        devices_plan(**changes)


@pytest.mark.parametrize("key", sorted(IN_NO_BROWSER))
def test_a_key_for_installed_software_alone_is_named_on_the_page_of_devices(key: str) -> None:
    (line,) = re.findall(r"^- It supports count tables.*?refused by name\.$", DEVICES, re.MULTILINE | re.DOTALL)
    assert f"`{key}`" in line
    classes = ps.ClassSchema(3, 4, "NA", 1.0)
    changes = {
        "client_clip": {"privacy": replace(PERSON, max_records_per_client=4, client_clip=2.0)},
        "merge": {"schema": classes, "min_count": 5, "merge": {2: 0}},
    }
    cohort, stated = ps.Cohort(20, 15, 80), sample_devices(stated_epsilon=9.0)
    assert key in devices_plan(cohort=cohort, devices=stated, **changes[key]).to_toml()


@needs_node
def test_one_wrong_bit_is_refused_by_both_clients(tmp_path):
    with Study() as study:
        texts = manifests(study)
        pins = {"leader": study.address, "run": study.run, "study": study.pin}
        (tmp_path / "told.json").write_text(json.dumps({"pins": pins, "link": study.link(0), "manifests": texts}))
        DeviceRun.open(Told(texts[0]), study.run, study.pin)
        for text in texts[1:]:
            with pytest.raises(PrivstatsError):
                DeviceRun.open(Told(text), study.run, study.pin)
    done = node("--input-type=module", "--eval", _SCRIPT, str(tmp_path / "told.json"))
    assert done.stdout.split() == ["taken", *["wrong_study"] * WRONG], done.stderr
