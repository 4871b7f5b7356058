"""``join`` and ``serve``: run Flower's node and SuperLink as supervised child processes that execute only our code.

A child is measured by its work (``pulse``). One that does none is ended with its process group and started again,
without end, after a growing pause.
"""

from __future__ import annotations

import math
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import TextIO

import tomli_w

from privstats.engines.door.ports import free_port
from privstats.engines.flower import addresses, entrypoint_guard, fork_server
from privstats.engines.flower.certificate_checks import SOON, check_authority, check_served, check_shown, remaining_days
from privstats.engines.flower.certificates import check_node_key
from privstats.engines.flower.polling import IDLE, IDLE_SECONDS, WAKE_UP_PIPE, WakeUpPipe
from privstats.engines.flower.pulse import ANSWERED, FAILED, HEARTBEAT, PULSE, Pulse, PulsePipe
from privstats.engines.flower.replaced_names import check_version
from privstats.engines.flower.server_clock import clock_difference, clock_sentence
from privstats.engines.network.metrics import metrics_served
from privstats.engines.network.status_file import SILENT_SECONDS, connections_forgotten, supervised
from privstats.errors import PrivstatsError
from privstats.files.atomic import atomic_write
from privstats.system import require_posix

CONTROL_PORT = 8001
"""The default port of 127.0.0.1 on which the coordinator's ``flwr`` reaches the SuperLink."""

AGAIN_SECONDS = 1.0
"""The pause before the first new start of a child; it doubles with each start until the server answers."""

MOST_AGAIN_SECONDS = 60.0
"""The longest pause between two starts of a child."""

_LEAST_IDLE, _MOST_IDLE = 0.1, 60.0
_UNANSWERED_SECONDS = 15.0
_LOOK_SECONDS = 1.0
_PROBE_SECONDS = 10.0
_GRACE_SECONDS = 20.0
_REFUSED = "[code: 2004]"
_BAD_TLS = "SSL/TLS handshake error"
_TURNED_AWAY = (
    "the SuperLink still holds our last connection; trying again, or does not know node.pub: ask for "
    '"privstats flower register"'
)
_NO_REASON = "the SuperLink ended our connection without a reason"
_TLS = (
    "the TLS handshake with the SuperLink failed, and its certificate is none that we would refuse: is a proxy "
    "between the two? Its own message is above"
)
_LOST = "the node has ended"
_STOPPED = f"the node had no answer for {SILENT_SECONDS:.0f} s and was ended"
_SERVER_ENDED = "the SuperLink has ended"
_SERVER_STOPPED = f"the SuperLink answered no request for {SILENT_SECONDS:.0f} s and was ended"
_PORT_IN_USE = "address already in use"
_PORT_TAKEN = "another program uses the port that was chosen for the node; the next start uses another port"

Say = Callable[[str], None]


@dataclass(frozen=True)
class Ending:
    """The end of a child, from its exit code, output and work.

    Attributes:
        online: the server answered it at least once.
        stopped: it did no work any more, and was ended.
        lasted: its seconds.
    """

    code: int
    online: bool = False
    refused: bool = False
    bad_tls: bool = False
    port_in_use: bool = False
    stopped: bool = False
    lasted: float = field(default=0.0, compare=False)


def reason_of(ending: Ending) -> str:
    """Return the sentence for the operator of a node that ended like this."""
    if ending.refused:
        return _TURNED_AWAY
    if ending.stopped:
        return _STOPPED
    if ending.online:
        return _LOST
    if ending.port_in_use:
        return _PORT_TAKEN
    if ending.code == 0:
        return _NO_REASON
    if ending.bad_tls:
        return _TLS
    return f"flower-supernode ended with exit code {ending.code}: its own words are above"


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

    A node that ends, or that the SuperLink has not answered for two minutes, is started again, without end.

    Args:
        root_certificates: PEM file that signs the SuperLink's certificate.
        key: the node's private key (OpenSSH), registered at the SuperLink.
        metrics_port: port of 127.0.0.1 for ``/metrics``, if any.
        idle_seconds: longest time between two polls without messages; .1 to 60.
        say: called with messages; the node's own log goes to stderr.

    Returns:
        0 after Ctrl-C.

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
    shown = _shown(superlink, root_certificates)
    if shown is not None:
        _say_soon(say, f"the certificate that {superlink} shows", shown)
    report = _reporter(superlink, connected, say)
    with _sigterm_is_ctrl_c(), WakeUpPipe(Path(environment["FLWR_HOME"]) / "wake-up").opened() as pipe:

        def start() -> Ending | None:
            return _watch(
                [*words, "--port", str(free_port())],
                {**environment, WAKE_UP_PIPE: str(pipe.path)},
                unanswered=lambda: say(no_answer(superlink)),
                connected=report,
            )

        def reason(ending: Ending) -> str:
            try:
                if ending.bad_tls:
                    check_shown(superlink, root_certificates)  # its certificate may have ended since
            except PrivstatsError as refusal:
                return str(refusal)
            sentence = reason_of(ending)
            if sentence == _NO_REASON:  # Flower names none for a signature that is too old or too new
                return clock_sentence(superlink, clock_difference(superlink, root_certificates))
            return sentence

        return _keep(start, say, reason)


def _shown(superlink: str, root_certificates: Path) -> datetime | None:
    """A certificate is refused by the second look: one flipped bit on the line refuses it, too."""
    try:
        return check_shown(superlink, root_certificates)
    except PrivstatsError:
        time.sleep(_LOOK_SECONDS)
        return check_shown(superlink, root_certificates)


def _supernode(home: Path, superlink: str, root_certificates: Path, key: Path) -> list[str]:
    return [
        *entrypoint_guard.command("flower-supernode"),
        *("--superlink", superlink, "--root-certificates", str(root_certificates.resolve())),
        *("--auth-supernode-private-key", str(key.resolve())),
        *("--node-config", f"privstats-home={_quoted(home)}"),
    ]


def _reporter(superlink: str, keep: Callable[[bool], None], say: Say) -> Callable[[bool], None]:
    """Return what stores whether the node is connected, and tells its operator each change with its time."""
    before, since = None, 0.0

    def report(connected: bool) -> None:
        nonlocal before, since
        keep(connected)
        if connected is before or (before is None and not connected):
            return
        now = time.time()
        at = datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds")
        if not connected:
            say(f"not connected since {at}: {superlink} does not answer; trying again")
        else:
            say(f"connected since {at}" + ("" if before is None else f", after {now - since:.0f} s without an answer"))
        before, since = connected, now

    return report


def _keep(
    start: Callable[[], Ending | None],
    say: Say,
    reason: Callable[[Ending], str],
    sleep: Callable[[float], None] = time.sleep,
    *,
    once: bool = False,
) -> int:
    """Start a child again whenever it has ended; ``start`` returns None after Ctrl-C.

    Args:
        once: return the exit code of a child that ended before any of them worked.
    """
    pause, worked = 0.0, False
    while (ending := start()) is not None:
        worked |= ending.online
        if once and not worked:
            return ending.code
        fresh = not pause or (ending.online and ending.lasted >= MOST_AGAIN_SECONDS)
        pause = AGAIN_SECONDS if fresh else min(2 * pause, MOST_AGAIN_SECONDS)
        say(f"{reason(ending)}; starting it again in {pause:g} s")
        try:
            sleep(pause)
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

    One that has answered and then ends, or answers nothing for two minutes, is started again, without end.

    Args:
        certificates: a folder with ``ca.pem``, ``server.pem`` and ``server.key``; ``server.pem`` names both the
            parties' host and 127.0.0.1.
        address: ``HOST:PORT`` on which parties reach the fleet interface, and no other.
        control_port: port of 127.0.0.1 for ``flwr``, without a login: any user with an account on this machine may use
            it.
        metrics_port, say: as for :func:`join`.

    Returns:
        0 after Ctrl-C, else the exit code of a SuperLink that ended before it answered a request.

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
    words = _superlink(flower, certificates, control_port)
    probe = partial(_answers, control_port, certificates / "ca.pem")
    with held as answering, connections_forgotten(home), metrics_served(home, metrics_port), _sigterm_is_ctrl_c():

        def start() -> Ending | None:
            return _watch(words, environment, connected=answering, probe=probe)

        return _keep(start, say, lambda ending: _SERVER_STOPPED if ending.stopped else _SERVER_ENDED, once=True)


def _answers(control_port: int, authority: Path) -> bool:
    """Return whether the SuperLink answers a request, whatever it answers."""
    try:
        trusted = ssl.create_default_context(cafile=authority)
        connection = HTTPSConnection(addresses.LOOPBACK, control_port, timeout=_PROBE_SECONDS, context=trusted)
        with closing(connection):
            connection.request("GET", "/")
            return connection.getresponse().status > 0
    except (OSError, HTTPException):
        return False


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
    probe: Callable[[], bool] | None = None,
) -> Ending | None:
    """Run a child until it ends or does no work, and end its remaining programs; None after Ctrl-C.

    Args:
        unanswered: called once if no request of the child has been answered after some seconds.
        connected: called with each sign of work or of a failure: whether the child works.
        probe: whether the child answers a request, where it gives no signs itself.
    """
    pulse, pipe = Pulse(), PulsePipe()
    child = _started(words, {**environment, PULSE: str(pipe.given)}, pipe.given)
    pipe.begun()
    seen: set[str] = set()
    reader = threading.Thread(target=_pass_on, args=(child.stdout, log or sys.stderr, seen), daemon=True)
    reader.start()
    stopped = False
    try:
        stopped = _followed(child, pulse, pipe, unanswered, connected, probe)
        if stopped:
            _stop(child)
        connected(False)
    except KeyboardInterrupt:
        _stop(child)
        return None
    finally:
        reader.join(0 if stopped or child.returncode is None else _GRACE_SECONDS)
        _kill_group(child)
        reader.join()
        pipe.close()
    return Ending(
        child.returncode,
        pulse.answers > 0,
        refused=_REFUSED in seen,
        bad_tls=_BAD_TLS in seen,
        port_in_use=_PORT_IN_USE in seen,
        stopped=stopped,
        lasted=time.monotonic() - pulse.began,
    )


def _followed(
    child: subprocess.Popen[str],
    pulse: Pulse,
    pipe: PulsePipe,
    unanswered: Callable[[], None],
    connected: Callable[[bool], None],
    probe: Callable[[], bool] | None,
) -> bool:
    """Follow a child's work; return False once it has ended, and True once it has stopped working."""
    probed, heard = -math.inf, False
    while child.poll() is None:
        signs = pipe.wait(_LOOK_SECONDS)
        if signs is None:
            with suppress(subprocess.TimeoutExpired):
                child.wait(_LOOK_SECONDS)
            continue
        if probe is not None and time.monotonic() - probed >= _PROBE_SECONDS:
            signs += ANSWERED + HEARTBEAT if probe() else FAILED
            probed = time.monotonic()
        pulse.note(signs)
        if signs.strip(HEARTBEAT):  # a heartbeat alone is no work
            connected(pulse.connected)
        if pulse.stopped:
            return True
        if pulse.unanswered and not heard and time.monotonic() - pulse.began >= _UNANSWERED_SECONDS:
            heard = True
            unanswered()
    while signs := pipe.wait(0):  # what it wrote since our last look
        pulse.note(signs)
    return False


def _started(words: list[str], environment: Mapping[str, str], pipe: int) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603  # our own interpreter and words, no shell
        words,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        pass_fds=[pipe],
    )


def _pass_on(lines: TextIO, log: TextIO, seen: set[str]) -> None:
    for line in lines:
        log.write(line)
        log.flush()
        seen.update(word for word in (_REFUSED, _BAD_TLS, _PORT_IN_USE) if word in line)


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
