"""Node's client against the library's machines: what it sends is counted, exactly where it says."""

import json
from collections import Counter

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.http.page import BUNDLES
from tests.javascript.node import CLIENT, needs_node, node
from tests.javascript.study import NUMBERS, PEOPLE, Study

_SCRIPT = """
import { readFileSync } from "node:fs";
const { pins, links, answers, bundle } = JSON.parse(readFileSync(process.argv[1], "utf8"));
const { inMemory, open } = await import(bundle ?? "./privstats.bundle.js");
for (const [place, answer] of answers.entries()) {
  const run = await open(links[place], pins, { store: inMemory() });
  const report = await run.seal(run.measure(answer));
  console.log(await run.send(report, { patience: 50000 }));
}
"""
ANSWERS = [(19, "yes"), (20, "no"), (59.5, "no"), (None, "yes"), (120, None)]


@needs_node
@pytest.mark.parametrize("key_agreement", BUNDLES)
def test_five_answers_from_node_are_counted_to_the_last_one(tmp_path, key_agreement):
    with Study(key_agreement=key_agreement) as study:
        told = {
            "bundle": f"./{BUNDLES[key_agreement]}",
            "pins": {"leader": study.address, "run": study.run, "study": study.pin},
            "links": [study.link(index) for index in range(PEOPLE)],
            "answers": [{"How old are you?": [age], "Do you smoke?": [smokes]} for age, smokes in ANSWERS],
        }
        (tmp_path / "told.json").write_text(json.dumps(told))
        done = node("--input-type=module", "--eval", _SCRIPT, str(tmp_path / "told.json"))
        assert done.stdout.split() == ["sent"] * 5, done.stderr
        counts = study.counts()
    ages, smoking = {19: 0, 20: 1, 59.5: 2, None: 4, 120: 3}, {"yes": 0, "no": 1, None: 2}
    wanted = Counter(3 * ages[age] + smoking[smokes] for age, smokes in ANSWERS)
    assert counts == [wanted[cell] for cell in range(15)]


@needs_node
def test_numbers_from_node_are_summed_as_python_sums_them(tmp_path):
    names = [each.name for each in NUMBERS.read]
    answers = [("yes", 80, 3), ("no", 39.95, -1), (None, None, 1.0001), ("no", 0.1 + 0.2, 0.7), ("yes", 12, 2.5)]
    with Study(schema=NUMBERS) as study:
        told = {
            "pins": {"leader": study.address, "run": study.run, "study": study.pin},
            "links": [study.link(index) for index in range(PEOPLE)],
            "answers": [{name: [said] for name, said in zip(names, each, strict=True)} for each in answers],
        }
        (tmp_path / "told.json").write_text(json.dumps(told))
        done = node("--input-type=module", "--eval", _SCRIPT, str(tmp_path / "told.json"))
        assert done.stdout.split() == ["sent"] * 5, done.stderr
        total = study.total()
    columns = {name: np.array(column, object) for name, column in zip(names, zip(*answers, strict=True), strict=True)}
    assert total == ps.encoding.flatten(ps.measure(NUMBERS, columns)).tolist()


@pytest.mark.parametrize("name", [*BUNDLES.values(), "page.html", "page.css", "words.json"])
def test_what_a_page_is_made_of_is_in_the_wheel(name):
    told = (CLIENT.parents[1] / "pyproject.toml").read_text("utf-8")
    assert f'"clients/javascript/{name}" = "privstats/contrib/http/{name}"' in told
    assert (CLIENT / name).is_file()
