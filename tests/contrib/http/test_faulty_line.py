"""Attack: a line that fails in every way; the client of helpers and devices is answered again once it is good."""

import threading

import pytest

from privstats.contrib.http.dial import Dial, UnreachableError
from privstats.engines.flower.certificates import write_certificates
from tests.engines.flower.tls import polled
from tests.faulty_proxy import FAULTS, FaultyProxy
from tests.threads import join


@pytest.mark.parametrize("fault", FAULTS)
def test_attack_after_any_fault_the_same_client_is_answered_again(fault, tmp_path):
    write_certificates(tmp_path / "tls", ["127.0.0.1"], days=1)
    authority = str(tmp_path / "tls" / "ca.pem")
    with (
        polled(tmp_path / "tls") as port,
        FaultyProxy(port, delay_seconds=1.0) as proxy,
        Dial(f"https://{proxy.address}", authority, seconds=0.5) as dial,
    ):
        assert dial.ask("POST", "/", b"report").status == 200
        before = proxy.accepted
        proxy.begin(fault)
        healing = threading.Thread(target=lambda: (proxy.struck.wait(60), proxy.heal()))
        healing.start()
        while not proxy.struck.is_set():
            try:
                dial.ask("POST", "/", b"report")
            except UnreachableError as error:
                assert "gave no answer" in str(error)
        join(healing)
        assert dial.ask("POST", "/", b"report").status == 200
        assert proxy.accepted > before, "a fault that nothing notices proves nothing"
