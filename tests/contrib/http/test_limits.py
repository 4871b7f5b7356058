"""What is counted by which address."""

from urllib.parse import unquote

import pytest

from privstats.contrib.http.dial import Reply
from privstats.contrib.http.exchange import Request
from privstats.engines.carriers import peer_of

PROXY = ("10.0.0.1",)


@pytest.mark.parametrize(
    ("address", "forwarded", "peer"),
    [
        ("192.0.2.7", "for=198.51.100.1", "192.0.2.7"),  # of nobody who was named
        ("10.0.0.1", "for=198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "for=198.51.100.1:443", "198.51.100.1"),
        ("10.0.0.1", 'for="[2001:db8::7]:443";proto=https', "2001:db8::/64"),
        ("10.0.0.1", "for=203.0.113.9, for=198.51.100.1", "198.51.100.1"),  # the first is the client's own word
        ("10.0.0.1", "for=unknown", "10.0.0.1"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("::ffff:192.0.2.7", "", "192.0.2.7"),
        ("2001:db8:1:2:3::4", "", "2001:db8:1:2::/64"),
        ("", "", ""),
    ],
)
def test_only_a_named_proxy_is_believed_and_only_its_last_word(address: str, forwarded: str, peer: str) -> None:
    assert peer_of(address, {"forwarded": forwarded}, PROXY) == peer


@pytest.mark.parametrize(
    ("address", "peer"),
    [("2001:db8::9", "198.51.100.1"), ("2001:db8::7", "2001:db8::/64"), ("::ffff:10.0.0.1", "198.51.100.1")],
)
def test_a_proxy_is_named_by_its_address_in_any_spelling_and_speaks_for_no_neighbour(address: str, peer: str) -> None:
    assert peer_of(address, {"forwarded": "for=198.51.100.1"}, (*PROXY, "2001:DB8:0::9")) == peer


@pytest.mark.parametrize(
    ("stated", "seconds"),
    [("", 0), ("7", 7), ("3600", 3600), ("9" * 10, 3600), ("9" * 400, 3600), ("-1", 0), ("1e9", 0), ("\u0669", 0)],
)
def test_a_leader_sends_nobody_away_for_longer_than_an_hour(stated, seconds):
    """317 years were taken, and 400 digits ended a device in an OverflowError."""
    assert Reply(503, {"retry-after": stated}, b"").after == seconds


def request_of(sent):
    raw, _, query = sent.partition("?")
    scope = {"method": "PUT", "path": unquote(raw), "raw_path": raw.encode(), "query_string": query.encode()}
    return Request.of({**scope, "headers": []}, None)


@pytest.mark.parametrize(
    "sent", ["/v1/reports/%30", "/v1/reports/0?x=1", "/v1%2Freports/0", "/v1/reports/0?", "/v1/r%65ports/0"]
)
def test_an_address_has_one_spelling(sent):
    """A proxy's rule for one of them would not hold for the others."""
    assert request_of(sent).path == ("/v1/reports/0" if sent.endswith("?") else "")
    assert request_of("/v1/reports/0").path == "/v1/reports/0"
