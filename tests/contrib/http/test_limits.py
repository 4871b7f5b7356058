"""What is counted by which address."""

import pytest

from privstats.contrib.http.limits import peer_of

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
