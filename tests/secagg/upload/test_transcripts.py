"""Frozen runs: today's code, and an implementation that shares none of it, give the same bytes."""

import json
from contextlib import nullcontext
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from privstats.secagg.keys import HYBRID
from tests.secagg.plainly import unpack
from tests.secagg.upload.cohorts import SUITE, uploads_of
from tests.secagg.upload.second_implementation import Second, SecondJavaScript, SecondXWing
from tests.secagg.upload.transcripts import RUNS, SILENT, record, recorded

VECTORS = Path(__file__).parents[1] / "vectors"
FILES = {"x25519": "uploads.json", HYBRID: "uploads_xwing.json"}
FROZEN = {suite: json.loads((VECTORS / file).read_text()) for suite, file in FILES.items()}


@pytest.mark.parametrize("name", RUNS)
def test_a_frozen_run_is_repeated_to_the_byte(name: str, both_suites: str) -> None:
    frozen = FROZEN[both_suites][name]
    with recorded(frozen) if both_suites == HYBRID else nullcontext():
        assert record(name) == frozen


@pytest.mark.parametrize("suite", FROZEN)
@pytest.mark.parametrize("name", RUNS)
def test_the_second_implementation_sends_the_same_bytes(name: str, suite: str) -> None:
    frozen = FROZEN[suite][name]
    second, asked = {"x25519": Second, HYBRID: SecondXWing}[suite](frozen), {}
    for told in frozen["messages"]:
        data, receiver = bytes.fromhex(told["bytes"]), told["to"]
        if isinstance(told["from"], int):
            assert second.report(told["from"]) == data
        elif told["from"] == "leader":
            place = int(receiver.split()[1])
            content = unpack(data[1:])
            again = (
                second.batch(place, content[2], content[3])
                if content[0] == 1
                else second.survivors(frozen["survivors"])
            )
            assert again == data
            asked[place] = data
        else:
            place = int(told["from"].split()[1])
            answer = second.checked if unpack(data[1:])[0] == 2 else second.reveal
            assert answer(place, asked[place]) == data


@pytest.mark.parametrize("suite", FROZEN)
@pytest.mark.parametrize("name", RUNS)
def test_a_frozen_total_is_the_sum_of_its_vectors(name: str, suite: str) -> None:
    frozen = FROZEN[suite][name]
    assert frozen["survivors"] == [index for index in range(frozen["clients"]) if index not in SILENT]
    total = np.sum([frozen["vectors"][index] for index in frozen["survivors"]], axis=0)
    assert frozen["total"] == total.tolist()


@pytest.mark.parametrize("name", RUNS)
def test_reports_of_the_client_in_javascript_are_frozen_and_counted(name: str, monkeypatch) -> None:
    """``clients/javascript/test/xwing.test.js`` has the same hashes. The library's leader sums the reports."""
    monkeypatch.setitem(SUITE, "key_agreement", HYBRID)
    how = {key: value for key, value in RUNS[name].items() if key != "part"}
    run, frozen = uploads_of(label=name, **how), FROZEN[HYBRID][name]
    reports = [SecondJavaScript(frozen).report(index) for index in range(frozen["clients"])]
    told = json.loads((VECTORS / "uploads_javascript.json").read_text())
    assert [sha256(report).hexdigest() for report in reports] == told[name]
    run.leader.start()
    for index in frozen["survivors"]:
        run.pass_on(run.leader.receive(index, reports[index]))
    total, survivors = run.finish()
    assert total.tolist() == frozen["total"]
    assert list(survivors) == frozen["survivors"]
