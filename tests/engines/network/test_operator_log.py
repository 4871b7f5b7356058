"""What operators read in their logs: levels, two forms, and nothing that belongs to a record or is a key."""

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats.encoding import flatten
from privstats.engines.network.folder_status import status_of
from privstats.engines.network.host import Host
from privstats.engines.network.metrics import exposition
from privstats.engines.network.operator_log import (
    FORM,
    HOST,
    LEVEL,
    PARTY,
    WarningLine,
    configure_log,
    log_line,
    reason_of,
)
from privstats.engines.network.party import Party
from privstats.engines.network.study import LocalTransport
from privstats.errors import DataError, PrivstatsError
from privstats.files.text import json_text
from privstats.secagg.protocols import PROTOCOLS
from tests.engines.network.fake import DEADLINES, SCHEMA, FolderNet, Study, records_of, study_of

SENTINEL = 0.7312948
LOADS = (
    "def load():\n    return {}",
    f"def load():\n    raise ValueError('patient 17 has the value {SENTINEL}')",
    f"raise RuntimeError('patient 17 has the value {SENTINEL}')",
    f"from privstats.kinds import ClassMoments\ndef load():\n    return [[{SENTINEL}, 'x', 3]], ['{SENTINEL}']",
    f"import numpy as np\ndef load():\n    return np.full((4, 3), {SENTINEL}), np.array([0, 1, 77, 1])",
)


class TestConfigure:
    def test_the_form_for_people_has_the_time_and_the_line(self, capsys) -> None:
        configure_log({})
        configure_log({})
        log_line("step share: 5 of 5 answered")
        PARTY.debug("not at this level")
        (line,) = capsys.readouterr().err.splitlines()
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d privstats: step share: 5 of 5 answered", line)

    def test_the_form_for_programs_is_an_object_per_line(self, capsys) -> None:
        configure_log({FORM: "json", LEVEL: "DEBUG"})
        log_line(WarningLine("party 3 is busy"))
        PARTY.warning("two\nlines: é, 100 %s")
        one, other = map(json.loads, capsys.readouterr().err.splitlines())
        assert one.keys() == {"time", "level", "logger", "message"}
        assert (one["level"], one["logger"], one["message"]) == ("WARNING", "privstats.host", "party 3 is busy")
        assert (other["level"], other["message"]) == ("WARNING", r"two\nlines: é, 100 %s")
        assert one["time"].endswith("+00:00")

    def test_a_level_leaves_out_what_is_below_it(self, capsys) -> None:
        configure_log({LEVEL: "WARNING"})
        log_line("step share: 5 of 5 answered")
        log_line(WarningLine("party 3 is busy"))
        assert capsys.readouterr().err.endswith("privstats: party 3 is busy\n")

    @pytest.mark.parametrize("environment", [{FORM: "xml"}, {LEVEL: "loud"}])
    def test_another_value_is_refused_by_name(self, environment: dict[str, str]) -> None:
        ((name, value),) = environment.items()
        with pytest.raises(PrivstatsError, match=f"{name} must be one of .*, not '{value}'"):
            configure_log(environment)


class TestReason:
    def test_our_own_errors_are_their_sentences(self) -> None:
        assert reason_of(DataError("X holds NaN")) == "X holds NaN"

    def test_another_error_is_its_type_and_the_places_in_the_code(self) -> None:
        try:
            raise ValueError(f"patient 17 has the value {SENTINEL}")
        except ValueError as error:
            reason = reason_of(error)
        assert reason.startswith(f'File "{__file__}", line ')
        assert reason.endswith(": ValueError")
        assert reason.isprintable(), "one line of a log"


def records_with_the_sentinel(study: Study) -> list[np.ndarray]:
    """All parties' records are one number; returns the sums that the session works with."""
    sums = []
    for peer in range(len(study.identities)):
        X, y = records_of(peer)
        X = np.full_like(X, SENTINEL)
        np.savez(study.home(peer) / "records.npz", X=X, y=y)
        sums.append(flatten(ps.measure(SCHEMA, X, y)))
    return [*sums, np.sum(sums, axis=0)]


def all_that_is_said(net: FolderNet, caplog: pytest.LogCaptureFixture) -> str:
    """Every line of the session, at every level, and everything that a status shows of its folders."""
    homes = [net.study.host, *net.homes.values()]
    logs = [line for log in net.logs.values() for line in log]
    shown = [text for home in homes for text in (json_text(status_of(home).facts()), exposition(home))]
    kept = [path.read_text() for home in homes for path in home.rglob("status.json")]
    return "\n".join([caplog.text, *net.lines, *logs, *shown, *kept])


def secrets_of(study: Study) -> Iterator[str]:
    for home in (study.host, *(study.home(peer) for peer in range(len(study.peers)))):
        yield from (line for line in (home / "identity.pem").read_text().splitlines() if not line.startswith("-"))
        yield (home / "journal.key").read_bytes().hex()


def numbers_told(folder: Path, protocol: str, caplog: pytest.LogCaptureFixture) -> set[str]:
    """Run a session, refuse lines with a record or a key, and return the sums that are among its lines' numbers."""
    folder.mkdir()
    caplog.clear()
    net = FolderNet(study_of(folder, protocol))
    sums = records_with_the_sentinel(net.study)
    release = net.ended().releases[0]
    assert release is not None
    said = all_that_is_said(net, caplog)
    assert "answered with ok" in said
    assert "privstats_received_bytes_total" in said
    own = rf"(?<!\d){re.escape(str(SENTINEL)[:5])}"  # the digits of a time may hold it
    assert not re.search(own, said)
    assert not [secret for secret in secrets_of(net.study) if secret in said]
    secret = {str(abs(int(each))) for vector in (*sums, release.vector) for each in vector if abs(int(each)) > 99}
    assert len(secret) > 10
    return secret & set(re.findall(r"\d+", said.replace(",", "")))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_attack_no_line_of_a_session_holds_a_record_a_sum_or_a_key(protocol: str, tmp_path: Path, caplog) -> None:
    """A line that holds a sum holds it in every session; a time or a number of bytes equals one by chance in few."""
    caplog.set_level(logging.DEBUG, logger="privstats")
    told = numbers_told(tmp_path / "one", protocol, caplog)
    assert not told or not told & numbers_told(tmp_path / "other", protocol, caplog)


@pytest.mark.parametrize("script", LOADS)
def test_attack_records_in_the_text_of_an_error_stay_out_of_the_log(script: str, tmp_path: Path, caplog) -> None:
    caplog.set_level(logging.DEBUG, logger="privstats")
    net = FolderNet(study_of(tmp_path))
    (net.study.home(0) / "records.py").write_text(script)
    net.goes = dict.fromkeys(range(101, 105), 0.0)
    net.run()
    said = all_that_is_said(net, caplog)
    assert "party 0 cannot measure its records: its operator has the reason" in said
    assert str(SENTINEL)[:5] not in said
    assert "77" not in "".join(net.logs[100])
    assert json.loads((net.study.home(0) / "status.json").read_text())["refusals"] == {"no_data": 1}


def test_what_the_log_withholds_is_shown_by_check(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    (study.home(0) / "records.py").write_text(LOADS[1])
    with pytest.raises(DataError, match=f"failed: ValueError: patient 17 has the value {SENTINEL}$") as caught:
        Party.open(study.home(0)).prepare()
    assert reason_of(caught.value) == (
        'load() in records.py failed: ValueError; "privstats flower check" shows its text, which may hold records'
    )


def test_without_an_argument_lines_go_to_the_loggers_with_their_levels(tmp_path: Path, caplog) -> None:
    caplog.set_level(logging.INFO, logger="privstats")
    study = study_of(tmp_path)
    (study.home(4) / "records.py").unlink()
    box = LocalTransport({100 + place: study.home(place) for place in range(5)})
    Host.open(study.host).run(box, DEADLINES, sleep=lambda _: None)
    said = [(each.name, each.levelname, each.getMessage()) for each in caplog.records]
    assert said[-1][:2] == ("privstats.party", "INFO")
    (refusal,) = [line for line in said if line[:2] == ("privstats.host", "WARNING")]
    assert refusal[2] == "party 4 cannot measure its records: its operator has the reason"
    (reason,) = [line for line in said if line[:2] == ("privstats.party", "WARNING")]
    assert reason[2].startswith("cannot read ")
    steps = [text for name, level, text in said if (name, level) == (HOST.name, "INFO")]
    assert steps[0].startswith("step advertise: 4 of 5 answered in ")
