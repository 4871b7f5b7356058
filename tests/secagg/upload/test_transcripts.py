"""Frozen runs: today's code, and an implementation that shares none of it, give the same bytes."""

import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from tests.secagg.plainly import unpack
from tests.secagg.upload.cohorts import uploads_of
from tests.secagg.upload.second_implementation import Second, SecondDerived
from tests.secagg.upload.transcripts import RUNS, SILENT, record, recorded

VECTORS = Path(__file__).parents[1] / "vectors"
FROZEN = json.loads((VECTORS / "uploads.json").read_text())


@pytest.mark.parametrize("name", RUNS)
def test_a_frozen_run_is_repeated_to_the_byte(name: str) -> None:
    with recorded(FROZEN[name]):
        assert record(name) == FROZEN[name]


@pytest.mark.parametrize("name", RUNS)
def test_the_second_implementation_sends_the_same_bytes(name: str) -> None:
    frozen = FROZEN[name]
    second, asked = Second(frozen), {}
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


@pytest.mark.parametrize("name", RUNS)
def test_a_frozen_total_is_the_sum_of_its_vectors(name: str) -> None:
    frozen = FROZEN[name]
    assert frozen["survivors"] == [index for index in range(frozen["clients"]) if index not in SILENT]
    total = np.sum([frozen["vectors"][index] for index in frozen["survivors"]], axis=0)
    assert frozen["total"] == total.tolist()


@pytest.mark.parametrize("name", RUNS)
def test_reports_of_the_client_in_javascript_are_frozen_and_counted(name: str) -> None:
    """``clients/javascript/test/seal.test.js`` has the same hashes. The library's leader sums the reports."""
    how = {key: value for key, value in RUNS[name].items() if key != "part"}
    run, frozen = uploads_of(label=name, **how), FROZEN[name]
    reports = [SecondDerived(frozen).report(index) for index in range(frozen["clients"])]
    told = json.loads((VECTORS / "uploads_javascript.json").read_text())
    assert [sha256(report).hexdigest() for report in reports] == told[name]
    run.leader.start()
    for index in frozen["survivors"]:
        run.pass_on(run.leader.receive(index, reports[index]))
    total, survivors = run.finish()
    assert total.tolist() == frozen["total"]
    assert list(survivors) == frozen["survivors"]
