"""Before Flower starts: which file of TLS will not do, and on which day it ended, in one sentence at either end."""

import shutil
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from privstats.engines.flower.certificate_checks import check_authority, check_served, check_shown, remaining_days
from privstats.engines.flower.certificates import write_certificates
from privstats.errors import PrivstatsError
from tests.engines.flower.tls import answering, showing

NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
"""The time at which the clock of the checks stands still; OpenSSL reads the machine's own, at most 12 hours off."""
YESTERDAY = NOON - timedelta(days=1)


class Stopped(datetime):
    """A clock that stands at noon: a certificate begins on the day on which it is written."""

    @classmethod
    def now(cls, tz=None):
        return NOON


def day(days):
    return f"{NOON + timedelta(days=days):%Y-%m-%d}"


@pytest.fixture(autouse=True)
def stopped(monkeypatch):
    monkeypatch.setattr("privstats.engines.flower.certificate_checks.datetime", Stopped)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folders of certificates by what is odd about them, those that are valid from yesterday on."""
    place = tmp_path_factory.mktemp("made")
    odd = {
        "good": {"days": 300},
        "other": {"days": 300},
        "old": {"now": NOON - timedelta(days=12)},
        "young": {"now": NOON + timedelta(days=12)},
        "elsewhere": {"hosts": ["coordinator.example"]},
    }
    for name, given in odd.items():
        write_certificates(place / name, **{"hosts": ["127.0.0.1"], "days": 10, "now": YESTERDAY, **given})
    return place


@pytest.fixture
def mixed(made, tmp_path):
    """A good folder with some files of another one."""

    def mix(other, *names):
        shutil.copytree(made / "good", tmp_path / "mixed")
        for name in names:
            shutil.copy(made / other / name, tmp_path / "mixed" / name)
        return tmp_path / "mixed"

    return mix


def refusal(check, *given):
    with pytest.raises(PrivstatsError) as refused:
        check(*given)
    return str(refused.value)


class TestServed:
    def test_three_files_that_belong_together_say_when_the_first_ends(self, made):
        assert remaining_days(check_served(made / "good"), NOON) == 299

    @pytest.mark.parametrize(
        ("other", "names", "sentence"),
        [
            ("old", ["ca.pem", "server.pem", "server.key"], "/ca.pem ended on {-2}, and today is {0}: make new files"),
            ("old", ["server.pem", "server.key"], "/server.pem ended on {-2}, and today is {0}: make new files"),
            ("old", ["ca.pem"], "/ca.pem ended on {-2}, and today is {0}: make new files"),
            ("young", ["ca.pem"], "/ca.pem begins on {12}, and today is {0}: set this machine's clock, or wait"),
            ("young", ["server.pem", "server.key"], "/server.pem begins on {12}, and today is {0}: set this machine's"),
            (
                "other",
                ["ca.pem"],
                "/ca.pem has not signed {place}/server.pem: every party that trusts it refuses this server",
            ),
            ("other", ["server.key"], "/server.key does not belong to {place}/server.pem: give a folder whose three"),
        ],
    )
    def test_what_parties_would_refuse_names_the_file_and_the_day(self, mixed, other, names, sentence):
        place = mixed(other, *names)
        for days in (-2, 0, 12):
            sentence = sentence.replace(f"{{{days}}}", day(days))
        assert refusal(check_served, place).startswith(f"{place}{sentence.replace('{place}', str(place))}")

    @pytest.mark.parametrize(
        ("name", "content", "sentence"),
        [
            ("ca.pem", "server.key", "/ca.pem is no certificate: make new files"),
            ("server.pem", "server.key", "/server.pem is no certificate: make new files"),
            (
                "server.key",
                "server.pem",
                "/server.key cannot be used with {place}/server.pem (it holds no private key)",
            ),
            ("ca.pem", "ä", "/ca.pem is no PEM file of printable ASCII characters alone: make new files"),
        ],
    )
    def test_a_file_of_another_kind_is_named(self, mixed, name, content, sentence):
        place = mixed("good")
        data = (place / content).read_bytes() if content.startswith("server") else content.encode()
        (place / name).write_bytes(data)
        assert refusal(check_served, place).startswith(f"{place}{sentence.replace('{place}', str(place))}")

    @pytest.mark.parametrize("name", ["ca.pem", "server.pem", "server.key"])
    def test_what_cannot_be_read_is_named(self, mixed, name):
        place = mixed("good")
        (place / name).unlink()
        assert refusal(check_served, place) == f"cannot read {place / name}: No such file or directory"
        (place / name).mkdir()
        assert refusal(check_served, place) == f"cannot read {place / name}: Is a directory"

    def test_a_key_with_a_passphrase_asks_nobody_for_it(self, mixed):
        place = mixed("good")
        key = load_pem_private_key((place / "server.key").read_bytes(), None)
        locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"words"))
        (place / "server.key").write_bytes(locked)
        assert refusal(check_served, place) == (
            f"{place}/server.key has a passphrase, which no one is there to type: write it without one"
        )

    def test_flowers_own_programs_reach_it_by_loopback(self, tmp_path, monkeypatch):
        """As with a certificate of another authority, which was asked for the host that parties use alone."""
        monkeypatch.setattr("privstats.engines.flower.certificates._LOOPBACK", ())
        write_certificates(tmp_path / "tls", ["coordinator.example"], days=10, now=YESTERDAY)
        assert refusal(check_served, tmp_path / "tls").startswith(
            f"{tmp_path}/tls/server.pem is for coordinator.example and does not name 127.0.0.1, over which Flower's own"
        )


class TestAuthority:
    def test_one_certificate_of_today_is_enough(self, made, tmp_path):
        """While an old and a new authority are trusted, one file holds both."""
        both = tmp_path / "ca.pem"
        both.write_bytes((made / "old" / "ca.pem").read_bytes() + (made / "good" / "ca.pem").read_bytes())
        assert remaining_days(check_authority(both), NOON) == 299

    def test_one_that_has_ended_names_the_day(self, made):
        path = made / "old" / "ca.pem"
        assert refusal(check_authority, path) == (
            f"{path} ended on {day(-2)}, and today is {day(0)}: ask the coordinator for ca.pem"
        )


class TestShown:
    def test_a_certificate_that_is_accepted_says_when_it_ends(self, made):
        with showing(made / "good") as superlink:
            assert remaining_days(check_shown(superlink, made / "good" / "ca.pem"), NOON) == 299

    @pytest.mark.parametrize(
        ("shown", "trusted", "sentence"),
        [
            ("old", "good", "ended on {-2}, and today is {0}: ask the coordinator for a server with a new one"),
            ("young", "good", "begins on {12}, and today is {0}: set this machine's clock, or wait"),
            ("good", "other", "is not signed by {ca}: ask the coordinator for the ca.pem of that server"),
        ],
    )
    def test_one_that_is_refused_names_the_reason_and_the_day(self, made, shown, trusted, sentence):
        authority = made / trusted / "ca.pem"
        for days in (-2, 0, 12):
            sentence = sentence.replace(f"{{{days}}}", day(days))
        with showing(made / shown) as superlink:
            said = refusal(check_shown, superlink, authority)
            assert said == f"the certificate that {superlink} shows {sentence.replace('{ca}', str(authority))}"

    def test_another_host_reads_for_which_it_is(self, made):
        with showing(made / "elsewhere") as superlink:
            other = superlink.replace("127.0.0.1", "127.1")  # the same address under a name that is not on it
            assert refusal(check_shown, other, made / "elsewhere" / "ca.pem") == (
                f"the certificate that {other} shows is for coordinator.example, localhost, 127.0.0.1, not for 127.1: "
                "give --superlink with such a name, or ask the coordinator for a certificate that names it"
            )

    def test_what_does_not_speak_tls_is_named(self, made):
        def greet(connection):
            connection.recv(100)
            connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")

        with answering(greet) as address:
            said = refusal(check_shown, address, made / "good" / "ca.pem")
        assert said == f"{address} does not speak TLS: is it the address for parties at which serve runs?"

    def test_what_does_not_answer_is_left_to_the_nodes_own_attempts(self, made):
        with answering(lambda connection: connection.close()) as address:
            assert check_shown(address, made / "good" / "ca.pem") is None
        assert check_shown(address, made / "good" / "ca.pem") is None
        with pytest.raises(PrivstatsError, match="the address must be HOST:PORT"):
            check_shown("coordinator.example", made / "good" / "ca.pem")
        with pytest.raises(PrivstatsError, match="is no host name or address: give --superlink HOST:PORT"):
            check_shown(f"{'a' * 70}.example:80", made / "good" / "ca.pem")
