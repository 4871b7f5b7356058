"""``join`` and ``serve``: run Flower's node and SuperLink as supervised child processes that execute only our code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import tomli_w

from privstats.engines.door.ports import free_port
from privstats.engines.flower import addresses, entrypoint_guard, fork_server
from privstats.engines.flower.certificate_checks import SOON, check_authority, check_served, check_shown, remaining_days
from privstats.engines.flower.certificates import check_node_key
from privstats.engines.flower.polling import IDLE, IDLE_SECONDS, WAKE_UP_PIPE, WakeUpPipe
from privstats.engines.flower.replaced_names import check_version
from privstats.engines.network.metrics import metrics_served
from privstats.engines.network.status_file import connections_forgotten, supervised
from privstats.errors import PrivstatsError
from privstats.files.atomic import atomic_write
from privstats.system import require_posix

CONTROL_PORT = 8001
"""The default port of 127.0.0.1 on which the coordinator's ``flwr`` reaches the SuperLink."""

AGAIN_SECONDS = 10.0
"""The pause between two starts of a node that the SuperLink refused, or that ended."""

_LEAST_IDLE, _MOST_IDLE = 0.1, 60.0
_UNANSWERED_SECONDS = 15.0
_GRACE_SECONDS = 20.0
_REFUSED = "[code: 2004]"
_ONLINE = "SuperNode ID:"
_BAD_TLS = "SSL/TLS handshake error"
_RETRYING = "Connection attempt failed"
_AGAIN = "Connection successful after"
_TURNED_AWAY = (
    "the SuperLink still holds our last connection; trying again, or does not know node.pub: ask for "
    '"privstats flower register"'
)
_CLOCK = "the SuperLink ended our connection without a reason: set this machine's clock (at most 5 s ahead)"
_TLS = (
    "the TLS handshake with the SuperLink failed, and its certificate is none that we would refuse: is a proxy "
    "between the two? Its own message is above"
)
_LOST = "the node has ended; starting it again"
_PORT_IN_USE = "address already in use"
_PORT_TAKEN = "another program uses the port that was chosen for the node; starting the node again on another port"

Say = Callable[[str], None]


@dataclass(frozen=True)
class Ending:
    """The end of a node's program, from its exit code and output."""

    code: int
    online: bool = False
    refused: bool = False
    bad_tls: bool = False
    port_in_use: bool = False


def next_step(ending: Ending) -> tuple[bool, str]:
    """Return whether to restart a node that ended like this, and the sentence for its operator."""
    if ending.refused:
        return True, _TURNED_AWAY
    if ending.online:
        return True, _LOST
    if ending.port_in_use:
        return True, _PORT_TAKEN
    if ending.code == 0:
        return False, _CLOCK
    if ending.bad_tls:
        return False, _TLS
    return False, f"flower-supernode ended with exit code {ending.code}: its own words are above"


def no_answer(superlink: str) -> str:
    """Return the operator's sentence about an unreachable ``HOST:PORT``."""
    return (
        f"no answer at {superlink}: is serve running there, are host and port right, does a firewall stop us? It is "
        "tried again"
    )


def join(
    home: Path,
    *,
    superlink: str,
    root_certificates: Path,
    key: Path,
    metrics_port: int | None = None,
    idle_seconds: float = IDLE_SECONDS,
    say: Say = print,
) -> int:
    """Keep a party's node connected until Ctrl-C, or SIGTERM.

    Args:
        root_certificates: PEM file that signs the SuperLink's certificate.
        key: the node's private key (OpenSSH), registered at the SuperLink.
        metrics_port: port of 127.0.0.1 for ``/metrics``, if any.
        idle_seconds: longest time between two polls without messages; .1 to 60.
        say: called with messages; the node's own log goes to stderr.

    Returns:
        0 after Ctrl-C, 1 when the node cannot be started.

    Raises:
        InUseError: another process has joined with this folder.
        PrivstatsError: a wrong version of Flower, or an unusable file, path or certificate.
    """
    require_posix("privstats flower join")
    check_version()
    if not _LEAST_IDLE <= idle_seconds <= _MOST_IDLE:
        raise PrivstatsError(f"--idle-seconds must be {_LEAST_IDLE:g} to {_MOST_IDLE:g}, not {idle_seconds:g}")
    if not home.is_dir():
        raise PrivstatsError(f"there is no folder {home}")
    for what, path in (("root certificate", root_certificates), ("node key", key)):
        _must_exist(what, path)
    check_node_key(key)
    end = check_authority(root_certificates)
    _say_soon(say, str(root_certificates), end)
    with supervised(home, "joined", superlink, end) as connected, metrics_served(home, metrics_port):
        return _joined(home.resolve(), superlink, root_certificates, key, idle_seconds, say, connected)


def _joined(
    home: Path,
    superlink: str,
    root_certificates: Path,
    key: Path,
    idle_seconds: float,
    say: Say,
    connected: Callable[[bool], None],
) -> int:
    environment = {**_environment(home, "flwr-clientapp"), IDLE: str(idle_seconds)}
    words = _supernode(home, superlink, root_certificates, key)
    shown = check_shown(superlink, root_certificates)
    if shown is not None:
        _say_soon(say, f"the certificate that {superlink} shows", shown)
    with _sigterm_is_ctrl_c(), WakeUpPipe(Path(environment["FLWR_HOME"]) / "wake-up").opened() as pipe:

        def start() -> Ending | None:
            ending = _watch(
                [*words, "--port", str(free_port())],
                {**environment, WAKE_UP_PIPE: str(pipe.path)},
                unanswered=lambda: say(no_answer(superlink)),
                connected=connected,
            )
            if ending is not None and ending.bad_tls:
                check_shown(superlink, root_certificates)  # it may have ended since, and names its reason
            return ending

        return _keep(start, say)


def _supernode(home: Path, superlink: str, root_certificates: Path, key: Path) -> list[str]:
    return [
        *entrypoint_guard.command("flower-supernode"),
        *("--superlink", superlink, "--root-certificates", str(root_certificates.resolve())),
        *("--auth-supernode-private-key", str(key.resolve())),
        *("--node-config", f"privstats-home={_quoted(home)}"),
    ]


def _keep(start: Callable[[], Ending | None], say: Say, sleep: Callable[[float], None] = time.sleep) -> int:
    """``start`` returns None after Ctrl-C."""
    while (ending := start()) is not None:
        again, sentence = next_step(ending)
        say(sentence)
        if not again:
            return 1
        try:
            sleep(AGAIN_SECONDS)
        except KeyboardInterrupt:
            break
    return 0


def serve(
    home: Path,
    *,
    certificates: Path,
    address: str,
    control_port: int = CONTROL_PORT,
    metrics_port: int | None = None,
    say: Say = print,
) -> int:
    """Run the coordinator's SuperLink until Ctrl-C, or SIGTERM.

    Args:
        certificates: a folder with ``ca.pem``, ``server.pem`` and ``server.key``; ``server.pem`` names both the
            parties' host and 127.0.0.1.
        address: ``HOST:PORT`` on which parties reach the fleet interface, and no other.
        control_port: port of 127.0.0.1 for ``flwr``, without a login: any user with an account on this machine may use
            it.
        metrics_port, say: as for :func:`join`.

    Returns:
        0 after Ctrl-C, else the SuperLink's exit code.

    Raises:
        InUseError: another process serves this folder.
        PrivstatsError: a wrong version of Flower, or bad files, address or port; see
            :func:`~privstats.engines.flower.certificate_checks.check_served`.
    """
    require_posix("privstats flower serve")
    check_version()
    home, certificates = home.resolve(), certificates.resolve()
    for name in ("ca.pem", "server.pem", "server.key"):
        _must_exist(name, certificates / name)
    _check_control_port(control_port, address)
    end = check_served(certificates)
    _say_soon(say, f"the certificate in {certificates}", end)
    own = {addresses.HOME: str(home), addresses.FLEET_ADDRESS: address}
    environment = {**_environment(home, "flwr-serverapp"), **own}
    flower = environment["FLWR_HOME"]
    connection = home.parent.name if home.parent.name not in ("", "default") else "study"  # Flower's own word
    _write_connection(Path(flower), connection, control_port, certificates / "ca.pem")
    say(f"for every flwr command here: export FLWR_HOME={flower}; the connection is {connection}")
    held = supervised(home, "served", address, end)
    with held, connections_forgotten(home), metrics_served(home, metrics_port), _sigterm_is_ctrl_c():
        ending = _watch(_superlink(flower, certificates, control_port), environment)
    return 0 if ending is None else ending.code


def _check_control_port(control_port: int, address: str) -> None:
    _, port = addresses.host_and_port(address)
    if port == control_port or not 0 < control_port < 1 << 16:
        raise PrivstatsError(
            f"the control port must be up to 65535, and another than the one for parties, {port}: give --control-port"
        )


def _superlink(flower: str, certificates: Path, control_port: int) -> list[str]:
    return [
        *entrypoint_guard.command("flower-superlink"),
        *("--host", addresses.LOOPBACK, "--port", str(control_port)),
        *("--ssl-ca-certfile", str(certificates / "ca.pem")),
        *("--ssl-certfile", str(certificates / "server.pem"), "--ssl-keyfile", str(certificates / "server.key")),
        *("--enable-supernode-auth", "--disable-runtime-dependency-installation"),
        *("--database", f"{flower}/superlink.db"),  # else a restart would lose all nodes
    ]


@contextmanager
def _sigterm_is_ctrl_c() -> Iterator[None]:
    """systemd and containers stop a program with SIGTERM."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread handles signals
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _must_exist(what: str, path: Path) -> None:
    try:
        missing = not path.is_file()
    except OSError as error:  # the folder is not readable
        raise PrivstatsError(f"cannot read {path}: {error.strerror}") from None
    if missing:
        raise PrivstatsError(f"there is no {what} at {path}; give a PEM file")


def _say_soon(say: Say, what: str, end: datetime) -> None:
    if end - datetime.now(UTC) < SOON:
        say(f"{what} ends on {end:%Y-%m-%d}, in {remaining_days(end)} days: new ones must be at every party before")


def _quoted(home: Path) -> str:
    """Flower's node configuration is TOML."""
    text = str(home)
    if "'" in text or not text.isprintable():
        raise PrivstatsError("the party's folder must have a path without quotes and line breaks: move it")
    return f"'{text}'"


def _environment(home: Path, runs: str) -> dict[str, str]:
    if not home.is_dir():
        raise PrivstatsError(f"there is no folder {home}")
    programs, flower = home / ".programs", home / ".flower"
    entrypoint_guard.write_programs(programs, runs)
    try:
        flower.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise PrivstatsError(f"cannot write {flower}: {error.strerror}; nothing was started") from None
    return {
        **os.environ,
        "PATH": str(programs),
        "FLWR_HOME": str(flower),
        fork_server.PROGRAM: runs,
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_INTERNAL_GRPC_CONTROL_API": "0",  # these listen on ports of their own, on every address
        "FLWR_INTERNAL_GRPC_FLEET_API": "0",
    }


def _write_connection(flower: Path, name: str, port: int, authority: Path) -> None:
    connection = {"address": f"{addresses.LOOPBACK}:{port}", "root-certificates": str(authority)}
    atomic_write(flower / "config.toml", tomli_w.dumps({"superlink": {"default": name, name: connection}}).encode())


def _watch(
    words: list[str],
    environment: Mapping[str, str],
    log: TextIO | None = None,
    unanswered: Callable[[], None] = lambda: None,
    connected: Callable[[bool], None] = lambda _: None,
) -> Ending | None:
    """Run a child to its end, and end its remaining programs; None after Ctrl-C.

    ``unanswered`` is called once if a node has not connected after some seconds.
    """
    child = _started(words, environment)
    seen: set[str] = set()
    reader = threading.Thread(target=_pass_on, args=(child.stdout, log or sys.stderr, seen, connected), daemon=True)
    waiting = threading.Timer(
        _UNANSWERED_SECONDS, lambda: unanswered() if _RETRYING in seen and _ONLINE not in seen else None
    )
    waiting.daemon = True
    reader.start()
    waiting.start()
    try:
        code = child.wait()
    except KeyboardInterrupt:
        _stop(child)
        return None
    finally:
        waiting.cancel()
        reader.join(_GRACE_SECONDS if child.returncode is not None else 0)
        _kill_group(child)
        reader.join()
        connected(False)
    return Ending(code, _ONLINE in seen, _REFUSED in seen, _BAD_TLS in seen, _PORT_IN_USE in seen)


def _started(words: list[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603  # our own interpreter and words, no shell
        words,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def _pass_on(lines: TextIO, log: TextIO, seen: set[str], connected: Callable[[bool], None]) -> None:
    for line in lines:
        log.write(line)
        log.flush()
        if any(word in line for word in (_ONLINE, _AGAIN, _RETRYING)):
            connected(_RETRYING not in line)
        seen.update(word for word in (_ONLINE, _REFUSED, _BAD_TLS, _RETRYING, _PORT_IN_USE) if word in line)


def _stop(child: subprocess.Popen[str]) -> None:
    """Let a child disconnect, so that the SuperLink accepts it again at once."""
    child.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        child.wait(_GRACE_SECONDS)


def _kill_group(child: subprocess.Popen[str]) -> None:
    """The child's programs outlive it for a moment and hold its port."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
