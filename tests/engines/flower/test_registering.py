"""A folder of public keys: read whole first, registered once, and Flower's refusals in our words."""

import sys

import pytest

from privstats.engines.flower import certificates
from privstats.engines.flower.certificates import Registered, register, write_node_key
from privstats.errors import PrivstatsError

pytest.importorskip("flwr")

FLWR = """
import json, os, sys
from pathlib import Path
log = Path(os.environ["FLWR_HOME"]) / "called"
name = sys.argv[sys.argv.index("--name") + 1]
known = log.read_text().split() if log.exists() else []
log.write_text(" ".join([*known, name]))
if name == "mute": print("no json"); sys.exit(1)
if name in known: print(json.dumps({"success": False, "error-message": "Public key already in use."})); sys.exit(1)
print(json.dumps({"success": True}))
"""


@pytest.fixture
def host(tmp_path, monkeypatch):
    monkeypatch.setattr(certificates, "_FLWR", (sys.executable, "-c", FLWR))
    (tmp_path / "host" / ".flower").mkdir(parents=True)
    (tmp_path / "host" / ".flower" / "config.toml").touch()
    (tmp_path / "keys").mkdir()
    return tmp_path / "host"


def sent(host, *names):
    keys = host.parent / "keys"
    for name in names:
        write_node_key(keys / name)
    return keys


def called(host):
    path = host / ".flower" / "called"
    return path.read_text().split() if path.exists() else []


def test_every_key_is_registered_under_its_files_name_and_a_known_one_stays(host):
    keys = sent(host, "bonn", "st-mary")
    assert register(host, keys) == [Registered("bonn", new=True), Registered("st-mary", new=True)]
    sent(host, "ulm")
    assert [each.new for each in register(host, keys)] == [False, False, True]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: b"",
        lambda _: b"ssh-ed25519 AAAA\n",
        lambda _: b"-----BEGIN PUBLIC KEY-----\n",
        lambda key: key + b"\0" * 8,
        lambda key: b"\xef\xbb\xbf" + key,
    ],
    ids=["empty", "another kind", "PEM without an end", "zeros after the key", "a byte order mark before it"],
)
def test_a_wrong_file_is_named_before_anything_is_registered(host, spoil):
    keys = sent(host, "bonn", "ulm")
    (keys / "ulm.pub").write_bytes(spoil((keys / "ulm.pub").read_bytes()))
    with pytest.raises(PrivstatsError, match=r"ulm\.pub is not what `privstats flower key` writes"):
        register(host, keys)
    assert not called(host)


def test_one_key_under_two_names_is_refused(host):
    keys = sent(host, "bonn")
    (keys / "ulm.pub").write_bytes((keys / "bonn.pub").read_bytes())
    with pytest.raises(PrivstatsError, match="are one key"):
        register(host, keys)
    assert not called(host)


def test_a_key_is_registered_as_its_party_sent_it(host):
    """``privstats flower key node`` writes node.pub, which says nothing of whose it is."""
    keys = sent(host, "bonn", "ulm")
    (keys / "st-mary").mkdir()
    (keys / "ulm.pub").rename(keys / "st-mary" / "node.pub")
    assert [each.name for each in register(host, keys)] == ["bonn", "st-mary"]


def test_a_key_without_a_name_and_two_of_one_name_are_refused(host):
    keys = sent(host, "bonn", "ulm")
    (keys / "bonn").unlink()
    (keys / "bonn").mkdir()
    (keys / "ulm.pub").rename(keys / "bonn" / "node.pub")
    with pytest.raises(PrivstatsError, match="are two keys of one name: keep one of them"):
        register(host, keys)
    (keys / "bonn" / "node.pub").rename(keys / "node.pub")
    with pytest.raises(PrivstatsError, match=r"node\.pub does not say whose key it is: rename it"):
        register(host, keys)
    assert not called(host)


def test_flowers_refusal_names_the_file(host):
    with pytest.raises(PrivstatsError, match=r"mute\.pub was not registered; does serve run\? Flower says: no json"):
        register(host, sent(host, "mute"))


def test_a_folder_without_keys_or_without_a_server_is_one_sentence(host, tmp_path):
    with pytest.raises(PrivstatsError, match="no .pub file"):
        register(host, tmp_path / "keys")
    with pytest.raises(PrivstatsError, match="privstats flower serve .*elsewhere"):
        register(tmp_path / "elsewhere", sent(host, "bonn"))


def test_the_command_says_who_is_new(host, privstats):
    keys = sent(host, "bonn", "ulm")
    for said in ("2 registered: bonn, ulm; 0 were registered before\n", "0 registered; 2 were registered before\n"):
        assert privstats("flower", "register", str(host), str(keys), cwd=host).stdout == said
