"""A manifest with one bit wrong is refused in JavaScript and in Python, and the right one in neither."""

import json
import random

import pytest

from privstats.contrib.http.device import DeviceRun
from privstats.contrib.http.dial import Dial, Reply
from privstats.errors import PrivstatsError
from tests.javascript.node import evaluated, needs_node
from tests.javascript.study import Study

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


@needs_node
def test_one_wrong_bit_is_refused_by_both_clients(tmp_path):
    with Study() as study:
        texts = manifests(study)
        pins = {"leader": study.address, "run": study.run, "study": study.pin}
        told = {"pins": pins, "link": study.link(0), "manifests": texts}
        DeviceRun.open(Told(texts[0]), study.run, study.pin)
        for text in texts[1:]:
            with pytest.raises(PrivstatsError):
                DeviceRun.open(Told(text), study.run, study.pin)
    assert evaluated(_SCRIPT, told, tmp_path).split() == ["taken", *["wrong_study"] * WRONG]
