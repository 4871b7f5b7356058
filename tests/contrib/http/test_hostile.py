"""What strangers, liars and unlucky devices hear, in this process: section 8.4 of the design."""

import asyncio
import dataclasses
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import privstats as ps
from privstats.contrib.http import limits
from privstats.contrib.http.device import DeviceRun
from privstats.contrib.http.dial import Reply
from privstats.contrib.http.exchange import CODES
from privstats.contrib.http.folders import Manifest
from privstats.contrib.http.helper_desk import NONCE, OFFER, REPLY, question_of
from privstats.contrib.http.intake import REPORT, SIGNATURE
from privstats.engines.carriers import OK
from privstats.engines.network.statements import sign_reply
from privstats.errors import LocalProtocolError, PrivstatsError
from privstats.secagg import Identity
from privstats.secagg.upload.suite import OFFER_BYTES
from tests.contrib.http.desk import ORIGIN, Desk, DeskDial, Helpers, Study, opened, pumped, reporting, study_of_devices

LARGE = ps.ClassSchema(2, 20_000, "NA", clip_norm=2.0)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A run with an open step that no test of this module closes, and one report of each sender."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        with reporting(tmp_path_factory.mktemp("run"), 12) as (study, desk, run, reports):
            yield study, desk, run, reports


@pytest.fixture
def calm(shared, monkeypatch):
    """The same, with no address or sender in bad standing."""
    study, desk, run, reports = shared
    monkeypatch.setattr(desk.app.intake, "penalties", limits.Penalties(20, lambda: 0.0))
    return study, desk, run, reports


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A run of one test alone, in which no report has arrived."""
    monkeypatch.setattr("os.fsync", lambda _: None)
    with reporting(tmp_path, 3) as started:
        yield started


def put(desk: Desk, study: Study, sender: int, report, **named) -> str:
    reply = desk.put(study, sender, report, **named)
    told = json.loads(reply.body) if reply.body else {}
    assert told.get("status", reply.status) == reply.status
    return told.get("code", str(reply.status))


def test_every_document_is_its_row_and_echoes_nothing(calm) -> None:
    study, desk, _, _ = calm
    reply = desk.ask("GET", "/v1/runs/" + "ab" * 16)
    assert reply.headers["content-type"] == "application/problem+json"
    row = CODES["unknown_run"]
    assert json.loads(reply.body) == {
        "type": "urn:privstats:http:unknown_run",
        "title": row.title,
        "status": 404,
        "code": "unknown_run",
        "retry": False,
    }


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/", "no_resource"),
        ("GET", "/metrics", "no_resource"),
        ("GET", "/healthz", "no_resource"),
        ("POST", "/close", "no_resource"),
        ("GET", "/release", "no_resource"),
        ("GET", "/v1/runs/RUN/reports/4294967296", "no_resource"),
        ("GET", "/v1/runs/RUN/reports/01", "no_resource"),
        ("POST", "/v1/runs/RUN", "wrong_method"),
        ("DELETE", "/v1/runs/RUN/reports/0", "wrong_method"),
        ("HEAD", "/v1/runs/RUN", "wrong_method"),
        ("GET", "/v1/runs/RUN/end", "not_yet"),
        ("PUT", "/v1/runs/" + "ab" * 16 + "/reports/0", "unknown_run"),
    ],
)
def test_other_resources_and_methods_are_refused(calm, method: str, path: str, code: str) -> None:
    study, desk, _, _ = calm
    assert desk.ask(method, path.replace("RUN", study.run)).code == code


def test_the_manifest_is_rendered_once_and_what_a_device_needs(calm) -> None:
    study, desk, run, _ = calm
    first = desk.ask("GET", f"/v1/runs/{study.run}")
    assert first.headers["cache-control"] == "public, max-age=60"
    told = json.loads(first.body)
    masking = study.plan.masking
    assert told["clients"] == masking.clients
    assert told["segments"] == [list(segment) for segment in masking.ring.segments]
    assert bytes.fromhex(told["offers"][1])[0] == 1
    again = desk.ask("GET", f"/v1/runs/{study.run}", headers={"if-none-match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")


def test_a_panel_of_the_registrars_own_keys_well_signed_is_refused(calm, tmp_path: Path) -> None:
    """Under the run's name, whole and consistent: the page's digest alone tells it from the study."""
    study, desk, _, _ = calm
    lie = study_of_devices(tmp_path, 12)
    lie = dataclasses.replace(lie, roster=dataclasses.replace(lie.roster, run=study.roster.run))
    keys = [ps.secagg.HelperKeys(each, place, lie.plan.masking, lie.roster) for place, each in enumerate(lie.members)]
    panel = ps.secagg.Panel(tuple(each.public for each in lie.members), tuple(key.offer for key in keys))
    body = Manifest.of(lie.plan, lie.roster, panel, 0).body
    dial = DeskDial(lambda: desk)
    dial.ask = lambda *_, **__: Reply(200, {}, body)
    assert DeviceRun.open(dial, study.run, lie.pin).plan == lie.plan  # what a link with a pin of its own would open
    with pytest.raises(LocalProtocolError, match="shows another plan or roster than the page names"):
        DeviceRun.open(dial, study.run, study.pin)


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"null", b""])
def test_attack_a_manifest_that_is_none_is_refused_in_a_sentence(calm, tmp_path: Path, body: bytes) -> None:
    """One that is nested 100,000 deep ended a helper and a device in a traceback."""
    study, _, _, _ = calm
    dial = DeskDial(lambda: None)
    dial.ask = lambda *_, **__: Reply(200, {}, body)
    with pytest.raises(LocalProtocolError, match="the manifest does not parse"):
        DeviceRun.open(dial, study.run, study.pin)
    dialler = Helpers(study_of_devices(tmp_path, 3), lambda: None).dialler(1)
    dialler.connect = lambda *_: dial
    with pytest.raises(LocalProtocolError, match="the leader's manifest does not parse"):
        dialler.run()


@pytest.mark.parametrize("change", ["roster", "plan", "offers"])
def test_a_manifest_of_another_run_is_refused_before_a_secret_is_drawn(calm, change: str) -> None:
    study, desk, run, _ = calm
    told = json.loads(desk.ask("GET", f"/v1/runs/{study.run}").body)
    if change == "roster":
        told["roster"] = "00" * 32
    elif change == "plan":
        told["plan"] = told["plan"].replace('"max_records":100', '"max_records":101')
    else:
        damaged = bytearray.fromhex(told["offers"][2])
        damaged[80] ^= 1
        told["offers"][2] = damaged.hex()
    dial = DeskDial(lambda: desk)
    dial.ask = lambda *_, **__: Reply(200, {}, json.dumps(told).encode())
    with pytest.raises(LocalProtocolError, match="another plan or roster|not signed for this plan"):
        DeviceRun.open(dial, study.run, study.pin)


def test_a_body_of_another_size_is_refused_by_its_header(calm) -> None:
    study, desk, _, reports = calm
    assert put(desk, study, 0, reports[0] + b"x") == "too_large"
    assert put(desk, study, 0, reports[0][:-1]) == "wrong_length"
    assert put(desk, study, 0, reports[0], headers={"content-length": ""}) == "length_required"
    assert put(desk, study, 0, reports[0], headers={"transfer-encoding": "chunked"}) == "length_required"
    assert put(desk, study, 0, reports[0], headers={"content-length": "-1"}) == "bad_request"
    short = {"content-type": REPORT, SIGNATURE: reports[0][-64:].hex(), "content-length": str(len(reports[0]))}
    assert desk.ask("PUT", f"/v1/runs/{study.run}/reports/0", reports[0][:100], short).code == "wrong_length"
    assert put(desk, study, 0, reports[0], headers={"content-encoding": "gzip"}) == "wrong_media"
    assert put(desk, study, 0, reports[0], headers={"content-type": "application/json"}) == "wrong_media"


def test_only_the_sender_of_the_address_under_its_own_signature_is_read(calm) -> None:
    study, desk, _, reports = calm
    assert put(desk, study, 1, reports[0]) == "wrong_sender"
    assert put(desk, study, 0, reports[0], headers={SIGNATURE: reports[1][-64:].hex()}) == "bad_signature"
    assert put(desk, study, 0, reports[0], headers={SIGNATURE: "zz" * 64}) == "bad_signature"
    assert put(desk, study, 12, reports[0]) == "stranger"
    assert put(desk, study, 13, reports[0]) == "stranger"
    forged = bytearray(reports[0])
    forged[-1] ^= 1
    assert put(desk, study, 0, bytes(forged)) == "bad_signature"
    version = b"\x02" + reports[0][1:]
    assert put(desk, study, 0, version) == "wrong_version"
    kind = reports[0][:2] + b"\x01" + reports[0][3:]
    assert put(desk, study, 0, kind) == "wrong_type"


def test_a_report_of_another_run_is_refused(calm, tmp_path: Path) -> None:
    study, desk, _, _ = calm
    other = study_of_devices(tmp_path, 12)
    with Desk(other.leader) as elsewhere:
        pumped(other, elsewhere)
        foreign = opened(elsewhere, other).report(other.moments(0), 0, other.identities[0])
    assert put(desk, study, 0, foreign) == "wrong_session"


def test_a_stranger_hears_the_same_of_who_has_reported_and_who_has_not(calm) -> None:
    study, desk, run, reports = calm
    assert put(desk, study, 2, reports[2]) in ("201", "200")
    zeros = [each[:-64] + bytes(64) for each in (reports[2], reports[3])]
    assert put(desk, study, 2, zeros[0]) == put(desk, study, 3, zeros[1]) == "bad_signature"
    assert put(desk, study, 3, reports[3]) in ("201", "200")


def test_two_devices_with_one_code(calm) -> None:
    study, desk, run, reports = calm
    assert put(desk, study, 4, reports[4]) in ("201", "200")
    second = run.report(study.moments(4), 4, study.identities[4])
    assert put(desk, study, 4, second) == "already_here"
    assert put(desk, study, 4, reports[4]) == "200"


def ends(desk: Desk, study: Study, sender: int, report, address: str = "192.0.2.7") -> bool:
    """Whether the answer to a report without a good signature ends its connection."""
    reply = desk.put(study, sender, report, address=address)
    assert reply.code == "bad_signature"
    return reply.headers.get("connection") == "close"


def test_attack_bad_signatures_lock_nobody_out_of_their_address_and_end_connections(calm, monkeypatch) -> None:
    """400 forged reports a second let three devices of a lecture hall's address through in 17 seconds."""
    study, desk, _, reports = calm
    now = [100.0]
    monkeypatch.setattr(desk.app.intake, "penalties", limits.Penalties(20, lambda: now[0]))
    forged = reports[5][:-64] + bytes(64)
    assert [ends(desk, study, 5, forged) for _ in range(400)] == [False] * 20 + [True] * 380
    good = desk.put(study, 5, reports[5])
    assert good.status in (201, 200)
    assert "connection" not in good.headers
    assert not ends(desk, study, 5, forged, "192.0.2.8")
    now[0] += 1
    assert not ends(desk, study, 5, forged)


def test_an_ipv6_host_has_one_bucket_for_its_network(calm, monkeypatch) -> None:
    study, desk, _, reports = calm
    monkeypatch.setattr(desk.app.intake, "penalties", limits.Penalties(2, lambda: 0.0))
    forged = reports[5][:-64] + bytes(64)
    assert [ends(desk, study, 5, forged, f"2001:db8::{host:x}") for host in range(4)] == [False] * 2 + [True] * 2
    assert not ends(desk, study, 5, forged, "2001:db8:0:1::1")


def damaged(report: bytes) -> bytes:
    """A body of this report's length and signature that does not open."""
    return report[:-80] + bytes([report[-80] ^ 1]) + report[-79:]


def test_a_key_with_bodies_that_do_not_open_has_five_an_hour(calm) -> None:
    study, desk, _, reports = calm
    assert [put(desk, study, 6, damaged(reports[6])) for _ in range(6)] == ["bad_body"] * 5 + ["rate"]
    assert put(desk, study, 7, reports[7]) in ("201", "200")


@pytest.mark.ci
def test_500_good_senders_behind_one_address_are_all_taken(tmp_path: Path) -> None:
    with reporting(tmp_path, 500, 1, least=400) as (study, desk, run, reports):
        path = f"/v1/runs/{study.run}/reports"

        async def all_at_once() -> list[int]:
            asked = (
                desk.asked("PUT", f"{path}/{index}", data, {"content-type": REPORT, SIGNATURE: data[-64:].hex()})
                for index, data in enumerate(reports)
            )
            return [reply.status for reply in await asyncio.gather(*asked)]

        assert set(desk.does(all_at_once())) == {201}
        assert desk.owner.sizes.reports == 500
        assert desk.owner.sizes.groups < 250


class Slow:
    """A body that stops after its first piece until it is let go."""

    def __init__(self, first: bytes, rest: bytes) -> None:
        self.first, self.rest, self.taken, self.go = first, rest, 0, asyncio.Event()

    async def receive(self):
        self.taken += 1
        if self.taken == 1:
            return {"type": "http.request", "body": self.first, "more_body": True}
        await self.go.wait()
        return {"type": "http.request", "body": self.rest, "more_body": False}


def asked_slowly(desk: Desk, study: Study, sender: int, report: bytes, slow: Slow):
    sent = []

    async def send(message):
        sent.append(message)

    headers = {"content-type": REPORT, "content-length": str(len(report)), SIGNATURE: report[-64:].hex()}
    scope = {
        "type": "http",
        "method": "PUT",
        "path": f"/v1/runs/{study.run}/reports/{sender}",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("192.0.2.9", 1),
    }

    async def play() -> int:
        await desk.app(scope, slow.receive, send)
        return sent[0]["status"]

    return play()


async def reached(ready: Callable[[], object]) -> None:
    """Let the event loop work until a condition holds."""
    async with asyncio.timeout(60):
        while not ready():
            await asyncio.sleep(0.001)


def test_of_64_slow_bodies_of_one_code_one_is_read(own) -> None:
    study, desk, _, reports = own
    data = reports[0]

    async def play() -> list[int]:
        slow = [Slow(data[:-32], data[-32:]) for _ in range(64)]
        waits = [asyncio.create_task(asked_slowly(desk, study, 0, data, each)) for each in slow]
        await reached(lambda: all(each.taken for each in slow))
        held = desk.app.intake.flight.held
        for each in slow:
            each.go.set()
        return [held, *sorted(await asyncio.gather(*waits))]

    held, *statuses = desk.does(play())
    assert held == len(data)
    assert statuses == [201] + [409] * 63


def test_a_body_beyond_the_bytes_in_flight_is_not_read_and_then_refused(calm, monkeypatch) -> None:
    study, desk, _, reports = calm
    first, second = reports[9], reports[10]
    flight = limits.BytesInFlight(len(first), 0.2)
    monkeypatch.setattr(desk.app.intake, "flight", flight)

    async def play() -> tuple[int, int, int]:
        slow, waiting = Slow(first[:-32], first[-32:]), Slow(second[:-32], second[-32:])
        one = asyncio.create_task(asked_slowly(desk, study, 9, first, slow))
        await reached(lambda: flight.held)
        two = asyncio.create_task(asked_slowly(desk, study, 10, second, waiting))
        await reached(lambda: flight._waiting)
        read = waiting.taken
        waiting.go.set()
        refused = await two
        slow.go.set()
        return read, refused, await one

    assert desk.does(play()) == (1, 503, 201)
    assert flight.held == 0


class Gone(Slow):
    """A body whose connection ends before its last bytes."""

    async def receive(self):
        self.taken += 1
        if self.taken == 1:
            return {"type": "http.request", "body": self.first, "more_body": True}
        return {"type": "http.disconnect"}


@pytest.mark.parametrize("before", ["broken off", "does not open", "confirmed"])
def test_attack_codes_that_come_again_leave_room_for_the_others(tmp_path: Path, monkeypatch, before: str) -> None:
    """Four codes that broke off, or whose report is here, held all the room for reports by coming again for ever.

    Of a code whose bodies come whole and do not open, five an hour had all of the room.
    """
    with reporting(tmp_path, 6) as (study, desk, run, reports):
        size = max(map(len, reports))
        monkeypatch.setattr(desk.app.intake, "flight", limits.BytesInFlight(4 * size, 0.2))
        monkeypatch.setattr(desk.app.intake, "again", limits.BytesInFlight(size, 60.0), raising=False)

        async def first(sender: int) -> None:
            with suppress(IndexError):  # no answer
                await asked_slowly(desk, study, sender, reports[sender], Gone(reports[sender][:-32], b""))

        async def play() -> int:
            slow = [Slow(reports[sender][:-32], reports[sender][-32:]) for sender in range(4)]
            held = [asyncio.create_task(asked_slowly(desk, study, k, reports[k], each)) for k, each in enumerate(slow)]
            await reached(lambda: all(each.taken for each in slow))
            fresh = await asked_slowly(desk, study, 5, reports[5], at_once(reports[5]))
            for each in slow:
                each.go.set()
            assert set(await asyncio.gather(*held)) == {200 if before == "confirmed" else 201}
            return fresh

        for sender in range(4):
            if before == "confirmed":
                assert put(desk, study, sender, reports[sender]) == "201"
            elif before == "does not open":
                assert put(desk, study, sender, damaged(reports[sender])) == "bad_body"
            else:
                desk.does(first(sender))
        assert desk.does(play()) == 201
        assert desk.app.intake.flight.held == 0


def at_once(report: bytes) -> Slow:
    """A body that comes without a pause."""
    whole = Slow(report[:-32], report[-32:])
    whole.go.set()
    return whole


def test_a_body_that_came_to_its_end_after_a_break_counts_no_longer(calm) -> None:
    study, desk, run, _ = calm
    intake, report = desk.app.intake, run.report(study.moments(0), 0, study.identities[0])
    with suppress(IndexError):
        desk.does(asked_slowly(desk, study, 0, report, Gone(report[:-32], b"")))
    assert intake._broken.lately(0)
    assert put(desk, study, 0, report) in ("201", "200")
    assert not intake._broken.lately(0)


def test_a_slow_body_ends_at_its_deadline(own, monkeypatch) -> None:
    study, desk, _, reports = own
    data = reports[0]
    with monkeypatch.context() as patch:
        patch.setattr("privstats.contrib.http.intake._SECONDS", 0.1)
        assert desk.does(asked_slowly(desk, study, 0, data, Slow(data[:-32], data[-32:]))) == 408
    assert put(desk, study, 0, data) == "201"


def test_of_a_large_body_a_stranger_sends_no_more_than_its_first_bytes(tmp_path: Path) -> None:
    study = study_of_devices(tmp_path, 3, 1, least=2, schema=LARGE)
    with Desk(study.leader) as desk:
        pumped(study, desk)
        run = opened(desk, study)
        moments = ps.measure(LARGE, [[0.0] * 20_000], [0])
        report = run.report(moments, 0, study.identities[0])
        pieces = [report[start : start + 1000] for start in range(0, len(report), 1000)]
        left = list(pieces)
        headers = {"content-type": REPORT, SIGNATURE: (bytes(64)).hex()}
        path = f"/v1/runs/{study.run}/reports/0"
        before = desk.app.seen.received
        reply = desk.ask("PUT", path, left, headers)
        assert (reply.code, reply.headers["connection"]) == ("bad_signature", "close")
        assert desk.app.seen.received - before < 70_000 < len(report)
        assert (
            put(desk, study, 0, report, headers={SIGNATURE: ""}) == "bad_signature"
        )  # of this size none comes without
        assert desk.ask("PUT", path, pieces, {**headers, SIGNATURE: report[-64:].hex()}).status == 201


# --- after the step and the run ---


def test_after_the_close_a_new_report_is_late_and_a_repeat_is_confirmed(tmp_path: Path) -> None:
    with reporting(tmp_path, 5) as (study, desk, run, reports):
        assert put(desk, study, 0, reports[0]) == "201"
        with pytest.raises(PrivstatsError, match="reports stay open: .*too_few_clients"):
            desk.call(desk.run.close_reports)
        assert [put(desk, study, index, reports[index]) for index in (1, 2)] == ["201"] * 2
        desk.call(desk.run.close_reports)
        assert put(desk, study, 3, reports[3]) == "closed"
        assert put(desk, study, 1, reports[1]) == "200"
        pumped(study, desk)
        assert put(desk, study, 1, reports[1]) == "200"
        assert put(desk, study, 3, reports[3]) == "over"
        told = desk.ask("GET", f"/v1/runs/{study.run}")
        end = desk.ask("GET", f"/v1/runs/{study.run}/end")
        assert json.loads(told.body)["end"] == end.body.hex()
        assert desk.run.folder.read_end(end.body) == b""
    with Desk(study.leader) as again:  # and after a restart
        assert again.ask("GET", f"/v1/runs/{study.run}/end").body == end.body
        assert put(again, study, 1, reports[1]) == "200"
        assert put(again, study, 3, reports[3]) == "over"


def ended(tmp_path: Path) -> tuple[Study, list[bytes], DeviceRun]:
    """A run with a release; of five people the last two sent nothing."""
    with reporting(tmp_path, 5) as (study, desk, run, reports):
        assert [put(desk, study, index, reports[index]) for index in range(3)] == ["201"] * 3
        desk.call(desk.run.close_reports)
        pumped(study, desk)
        assert desk.run.ended is not None
        assert desk.run.ended.release
    return study, reports, run


def test_after_the_run_a_stranger_hears_nothing_of_who_reported(tmp_path: Path) -> None:
    """The senders 0 to 2 have reported, 3 and 4 have not, and 5 is nobody: who cannot sign hears one word of all."""
    study, reports, _ = ended(tmp_path)
    with Desk(study.leader) as desk:
        for sender in range(6):
            report = reports[min(sender, 4)]
            forged = report[:-64] + bytes(64)
            for wrong in (forged, forged[:-1], b"", bytes(len(report))):
                assert put(desk, study, sender, wrong) == "over", sender
            assert put(desk, study, sender, forged, headers={SIGNATURE: "no"}) == "over"
            if sender < 5:  # the true signature before another body, and a true head under another signature
                broken = bytearray(report)
                broken[-100] ^= 1
                assert put(desk, study, sender, bytes(broken)) == ("200" if sender < 3 else "over")
                assert put(desk, study, sender, forged, headers={SIGNATURE: report[-64:].hex()}) == "over"


def test_after_the_run_another_report_of_a_sender_is_as_late_as_any(tmp_path: Path) -> None:
    study, reports, run = ended(tmp_path)
    with Desk(study.leader) as desk:
        other = run.report(study.moments(1), 1, study.identities[1])
        assert other != reports[1]
        assert put(desk, study, 1, other) == "over"
        assert [put(desk, study, index, reports[index]) for index in range(5)] == ["200"] * 3 + ["over"] * 2


def test_a_run_without_a_sum_leaves_no_list_of_who_sent(tmp_path: Path) -> None:
    with reporting(tmp_path, 5) as (study, desk, _, (report, *_)):
        assert put(desk, study, 0, report) == "201"
        desk.call(desk.run.give_up)
        assert put(desk, study, 0, report) == "over"
    assert not list(study.leader.rglob("answered"))
    with Desk(study.leader) as desk:
        assert put(desk, study, 0, report) == "over"


def test_the_folders_clock_closes_a_minute_late_and_only_when_enough_are_here(tmp_path: Path) -> None:
    now = [0.0]
    with reporting(tmp_path, 5, now=lambda: now[0], closes_in=100.0) as (study, desk, _, reports):
        closes = desk.run.settings.closes.timestamp()
        now[0] = closes + 61
        desk.call(desk.run.tick)
        assert put(desk, study, 0, reports[0]) == "201"  # too few: the step stays open
        now[0] = closes + 59
        assert [put(desk, study, index, reports[index]) for index in (1, 2)] == ["201"] * 2
        desk.call(desk.run.tick)
        assert desk.run.step.name == "report"
        now[0] = closes + 60
        desk.call(desk.run.tick)
        assert desk.run.step.name == "check"


def test_a_run_that_is_given_up_lets_helpers_sign_that_they_answered_nothing(tmp_path: Path) -> None:
    study = study_of_devices(tmp_path, 5)
    with Desk(study.leader) as desk:
        with pytest.raises(PrivstatsError, match="has not begun"):
            desk.call(desk.run.give_up)
        pumped(study, desk)
        assert "given up" in desk.call(desk.run.give_up)
        assert desk.run.statements == b""
        pumped(study, desk)
        assert desk.run.statements != b""
        with pytest.raises(PrivstatsError, match="ended on"):
            desk.call(desk.run.give_up)


# --- helpers ---


def exchange(desk: Desk, study: Study, place: int, nonce: str, identity: Identity, payload: bytes = b"", peer: int = 0):
    peer = peer or len(study.roster) + place - 1
    signed = sign_reply(identity, peer, question_of(desk.run.folder, bytes.fromhex(nonce)), OK, payload)
    return desk.ask("POST", f"/v1/runs/{study.run}/helpers/{place}", signed, {"content-type": REPLY})


def nonce_of(desk: Desk, study: Study, place: int) -> str:
    return exchange(desk, study, place, "00" * 32, study.members[place]).headers[NONCE]


def test_only_the_helper_itself_gets_its_messages(calm) -> None:
    study, desk, _, _ = calm
    nonce = nonce_of(desk, study, 1)
    stranger = Identity.generate(os.urandom)
    for identity, place in ((stranger, 1), (study.members[2], 1), (study.members[1], 2)):
        reply = exchange(desk, study, place, nonce, identity)
        assert (reply.status, reply.code) == (403, "stale_nonce")
    assert exchange(desk, study, 1, nonce, study.members[2], peer=len(study.roster) + 1).code == "stale_nonce"
    assert exchange(desk, study, 1, nonce, study.members[1]).status in (200, 204)
    assert desk.ask("POST", f"/v1/runs/{study.run}/helpers/3", b"x" * 68, {"content-type": REPLY}).code == "stranger"
    assert desk.ask("POST", f"/v1/runs/{study.run}/helpers/1", b"x", {"content-type": REPLY}).code == "stale_nonce"


def test_the_last_two_nonces_hold_and_strangers_use_none_up(calm) -> None:
    study, desk, _, _ = calm
    first = nonce_of(desk, study, 1)
    second = exchange(desk, study, 1, first, study.members[1]).headers[NONCE]
    for _ in range(5):
        assert nonce_of(desk, study, 1) == second  # what anybody hears, however often
    assert exchange(desk, study, 1, first, study.members[1]).status in (200, 204)  # an answer was lost
    third = exchange(desk, study, 1, second, study.members[1]).headers[NONCE]
    assert third not in (first, second)
    assert exchange(desk, study, 1, first, study.members[1]).code == "stale_nonce"


def test_to_ask_for_a_nonce_costs_no_address_anything(calm) -> None:
    study, desk, _, _ = calm
    path = f"/v1/runs/{study.run}/helpers/1"
    asked = [desk.ask("POST", path, b"", {"content-type": REPLY}) for _ in range(30)]
    assert {reply.code for reply in asked} == {"stale_nonce"}
    assert exchange(desk, study, 1, asked[-1].headers[NONCE], study.members[1]).status in (200, 204)


def test_a_large_reply_needs_its_hash_first(calm) -> None:
    study, desk, _, _ = calm
    path, most = f"/v1/runs/{study.run}/helpers/1", desk.app.helpers._most
    assert desk.ask("POST", path, b"x" * (most + 1), {"content-type": REPLY}).code == "too_large"
    assert desk.ask("POST", path, b"", {"content-type": "text/plain"}).code == "wrong_media"


def test_offers_are_the_members_and_kept_once(tmp_path: Path) -> None:
    study = study_of_devices(tmp_path, 5)
    with Desk(study.leader) as desk:
        path = f"/v1/runs/{study.run}/offers"
        parameters = study.plan.masking
        keys = [ps.secagg.HelperKeys(study.members[1], 1, parameters, study.roster) for _ in range(2)]
        ours, other = [key.offer.encode() for key in keys]
        stranger = Identity.generate(os.urandom)
        forged = ps.secagg.HelperKeys(stranger, 1, parameters, study.roster).offer.encode()
        soon = ps.secagg.HelperKeys(
            study.members[1], 1, parameters, study.roster, until=ps.secagg.end_of(None) - 29 * 86_400
        )
        for data in (b"", b"x" * OFFER_BYTES, forged, soon.offer.encode()):
            assert desk.ask("POST", f"{path}/1", data, {"content-type": OFFER}).code == "bad_offer"
        assert desk.ask("POST", f"{path}/2", ours, {"content-type": OFFER}).code == "bad_offer"
        assert desk.ask("POST", f"{path}/3", ours, {"content-type": OFFER}).code == "stranger"
        assert desk.ask("POST", f"{path}/1", ours, {"content-type": OFFER}).status == 201
        assert desk.ask("POST", f"{path}/1", ours, {"content-type": OFFER}).status == 200
        assert desk.ask("POST", f"{path}/1", other, {"content-type": OFFER}).code == "other_offer"
        assert desk.ask("GET", f"/v1/runs/{study.run}").code == "no_panel"
    with Desk(study.leader) as desk:
        assert desk.run.offering == [2]
        assert desk.ask("POST", f"{path}/1", ours, {"content-type": OFFER}).status == 200


def test_a_stranger_at_the_helpers_door_does_not_reach_the_journals_thread(calm, monkeypatch) -> None:
    """Each call of that thread ends a group of reports, so that offers made up would leave one report to a flush."""
    study, desk, _, _ = calm
    kept = desk.run.offered(1)
    monkeypatch.setattr(desk.owner, "call", lambda work: pytest.fail("the owner was called"))
    path = f"/v1/runs/{study.run}/offers"
    assert desk.ask("POST", f"{path}/1", kept, {"content-type": OFFER}).status == 200
    assert desk.ask("POST", f"{path}/1", b"x" * OFFER_BYTES, {"content-type": OFFER}).code == "other_offer"
    for place in (0, 9):
        assert desk.ask("POST", f"{path}/{place}", kept, {"content-type": OFFER}).code == "stranger"


def test_what_strangers_sign_as_helpers_counts_as_bad_signatures_of_their_address(calm, tmp_path: Path) -> None:
    study, desk, _, reports = calm
    stale = [exchange(desk, study, 1, "00" * 32, Identity.generate(os.urandom)) for _ in range(22)]
    assert {(each.code, len(each.headers["privstats-nonce"])) for each in stale} == {("stale_nonce", 64)}
    assert [each.headers.get("connection") for each in stale] == [None] * 20 + ["close"] * 2
    new = study_of_devices(tmp_path, 5)
    with Desk(new.leader, clock=lambda: 0.0) as other:
        path = f"/v1/runs/{new.run}/offers/1"
        bad = [other.ask("POST", path, b"x" * OFFER_BYTES, {"content-type": OFFER}) for _ in range(22)]
        assert {each.code for each in bad} == {"bad_offer"}
        assert [each.headers.get("connection") for each in bad] == [None] * 20 + ["close"] * 2
        offer = ps.secagg.HelperKeys(new.members[1], 1, new.plan.masking, new.roster).offer.encode()
        assert other.ask("POST", path, offer, {"content-type": OFFER}).status == 201


# --- pages of other origins ---


def test_every_answer_carries_the_pages_origin_and_no_other(calm) -> None:
    study, desk, _, reports = calm
    ours, foreign = {"origin": ORIGIN}, {"origin": "https://elsewhere.example.org"}
    for method, path in (
        ("GET", f"/v1/runs/{study.run}"),
        ("GET", "/nothing"),
        ("PUT", f"/v1/runs/{study.run}/reports/0"),
    ):
        told = desk.ask(method, path, headers=ours).headers
        assert told["access-control-allow-origin"] == ORIGIN
        assert told["access-control-expose-headers"] == "Date, ETag, Retry-After"
        assert told["vary"] == "Origin"
        assert "access-control-allow-origin" not in desk.ask(method, path, headers=foreign).headers


def test_a_preflight_allows_the_page_what_it_needs_and_a_foreign_origin_nothing(calm) -> None:
    study, desk, _, _ = calm
    path = f"/v1/runs/{study.run}/reports/0"
    allowed = desk.ask("OPTIONS", path, headers={"origin": ORIGIN})
    assert allowed.status == 204
    assert allowed.headers["access-control-allow-methods"] == "GET, PUT"
    assert SIGNATURE in allowed.headers["access-control-allow-headers"]
    assert allowed.headers["access-control-max-age"] == "86400"
    for origin, where in (("https://elsewhere.example.org", path), (ORIGIN, f"/v1/runs/{study.run}/helpers/1")):
        assert "access-control-allow-methods" not in desk.ask("OPTIONS", where, headers={"origin": origin}).headers


def test_a_bug_of_ours_is_answered_with_a_code_and_logged_without_its_text(calm, monkeypatch) -> None:
    study, desk, _, reports = calm

    def broken(*_: object) -> None:
        raise ValueError("record 17 has the value 3.14")

    monkeypatch.setattr(desk.app.intake, "_verify", broken)
    assert put(desk, study, 0, reports[0]) == "restarting"
    assert "ValueError" in desk.lines[-1]
    assert "3.14" not in desk.lines[-1]
