"""Run the leader's process: two sockets, the owner's thread, and the clock that closes steps.

It ends within seconds after SIGTERM, or when the journal cannot be written; the next process resumes.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Protocol

from privstats.contrib.http.admin import ADMIN_SOCKET, ADMIN_TOKEN, Administration, socket_name
from privstats.contrib.http.leader import Leader
from privstats.contrib.http.owner import Owner
from privstats.contrib.http.run import LeaderRun
from privstats.contrib.http.standing import Standing, standing_of
from privstats.engines.carriers import (
    ConnectionLimiter,
    DoorServer,
    Limits,
    WarningLine,
    listening,
    reason_of,
    supervised,
    supervision,
    write_status,
)
from privstats.errors import LocalProtocolError, PrivstatsError
from privstats.extend.support import atomic_write, read_bounded

_TICK_SECONDS, _STATUS_SECONDS, _LINE_SECONDS = 1.0, 5.0, 60.0
_OF_DEVICES = Limits(unsigned=2048, of_node=4)
_OF_THE_MACHINE = Limits(connections=64, unsigned=64)
_SPARE = 1.15
_ROOM_LEFT = 0.05


@dataclass(frozen=True)
class Address:
    """Address at which devices and helpers reach the leader.

    Attributes:
        host, port: to listen on; the system chooses for port 0.
        certificate: folder with ``server.pem`` and ``server.key``; None without TLS.
        behind_proxy: a proxy on the way ends TLS.

    Raises:
        LocalProtocolError: a plain address that other machines may reach.
    """

    host: str = "127.0.0.1"
    port: int = 0
    certificate: Path | None = None
    behind_proxy: bool = False

    def __post_init__(self) -> None:
        plain = self.certificate is None and not self.behind_proxy
        if plain and not _is_loopback(self.host):
            raise LocalProtocolError(
                f"{self.host} is no loopback address, and devices there would speak without TLS: give --certificate, "
                "or --behind-proxy where a proxy ends TLS"
            )

    @property
    def tls(self) -> tuple[str, str] | None:
        """The files of certificate and key."""
        if self.certificate is None:
            return None
        return str(self.certificate / "server.pem"), str(self.certificate / "server.key")


@dataclass
class Serving:
    """A running leader; ``stop`` is callable from any thread."""

    address: str
    stop: Callable[[], object]


class Sums(Protocol):
    """Sums settled parts."""

    def stop(self) -> None:
        """Stop; the next process sums waiting parts."""


class Summing(Protocol):
    """Starts ``Sums``: ``contrib.parts`` on a cluster."""

    def start(self, run: LeaderRun, call: Callable[[Callable[[], Any]], Any]) -> Sums:
        """Begin with a run's parts; ``call`` is :meth:`Owner.caller`."""


def serve(
    run: LeaderRun,
    address: Address,
    *,
    admin_port: int | None = None,
    cluster: Summing | None = None,
    started: Callable[[Serving], None] = lambda _: None,
    signals: bool = True,
) -> int:
    """Serve a run until SIGTERM, Ctrl-C, or (with exit code 1) a journal that cannot be written.

    Args:
        run: from :meth:`LeaderRun.open`; closed at the end.
        admin_port: a port of 127.0.0.1 that requires the token in ``admin.token``; None for a Unix socket in the
            folder.
        cluster: sums the settled parts of a run that ``defers``; None: the leader does.
        started: called when both sockets accept connections.
    """
    room = _Room(run)
    room.require()
    if run.ended is None:
        run.folder.ask_charge()
    with listening(address.host, address.port) as public:
        name = "{}:{}".format(*public.getsockname()[:2])
        with (
            supervised(run.folder.base, "served", name, _certificate_end(address)),
            _administered(run, admin_port) as (private, token),
        ):
            try:
                process = _Process(run, address, room, token, cluster, started, signals)
                return asyncio.run(process.main(public, private, name))
            finally:
                run.close()


@dataclass
class _Process:
    run: LeaderRun
    address: Address
    room: _Room
    token: str
    cluster: Summing | None
    started: Callable[[Serving], None]
    signals: bool
    began: float = field(default_factory=time.time)
    code: int = 0

    async def main(self, public: socket.socket, private: socket.socket, name: str) -> int:
        self.ending = asyncio.Event()
        self.owner = Owner(self.run, self._failed)
        self.leader = Leader(self.run, self.owner, full=lambda: self.room.full)
        self.owner.start()
        cluster, loop = self.cluster, asyncio.get_running_loop()
        sums = None if cluster is None else cluster.start(self.run, self.owner.caller(loop))
        servers = self._servers(public, private)
        tasks = [asyncio.create_task(server.serve([])) for server in servers]
        clock = asyncio.create_task(self._clock())
        self._listen_to_signals()
        while not all(server.started for server in servers) and not any(task.done() for task in tasks):
            await asyncio.sleep(0.01)
        self.started(Serving(name, partial(loop.call_soon_threadsafe, self.ending.set)))
        await self.ending.wait()
        self.leader.taking = False
        for server in servers:
            server.should_exit = True
        await asyncio.gather(*tasks)
        clock.cancel()
        if sums is not None:
            await asyncio.to_thread(sums.stop)
        await self.owner.stop()
        return self.code

    def _servers(self, public: socket.socket, private: socket.socket) -> tuple[DoorServer, DoorServer]:
        limits, home = self.run.settings.limits, self.run.folder.base
        most = replace(_OF_DEVICES, of_address=limits.connections).within()
        self.limiter = ConnectionLimiter(most, proxies=limits.proxies, names=False)
        admin = Administration(
            self.run, self.owner, self._standing, lambda: supervision(home, "served"), time.time, self.token
        )
        return (
            DoorServer.of(self.leader, public, self.limiter, self.address.tls),
            DoorServer.of(admin, private, ConnectionLimiter(_OF_THE_MACHINE, names=False)),
        )

    def _failed(self, error: Exception) -> None:
        self.run.say(WarningLine(f"the journal could not be written, so the leader ends: {reason_of(error)}"))
        self.code = 1
        self.ending.set()

    def _listen_to_signals(self) -> None:
        if self.signals:
            for number in (signal.SIGINT, signal.SIGTERM):
                with suppress(NotImplementedError):  # Windows
                    asyncio.get_running_loop().add_signal_handler(number, self.ending.set)

    def _standing(self) -> Standing:
        return standing_of(self.run, self.leader, self.owner, self.limiter.status, self.began, time.time())

    async def _clock(self) -> None:
        reported, last_status, last_line = Counter[str](), 0.0, time.monotonic()
        while True:
            with suppress(Exception):
                await self.owner.call(self.run.tick)
                now = time.monotonic()
                if now - last_status >= _STATUS_SECONDS:
                    last_status = now
                    await self.owner.call(lambda: write_status(self.run.folder.base, self._standing()))
                if now - last_line >= _LINE_SECONDS:
                    last_line = now
                    reported = self._say_refusals(reported)
            await asyncio.sleep(_TICK_SECONDS)

    def _say_refusals(self, reported: Counter[str]) -> Counter[str]:
        for code, count in sorted((self.leader.seen.refused - reported).items()):
            self.run.say(WarningLine(f"refused: {code}, {count} in the last minute"))
        return Counter(self.leader.seen.refused)


class _Room:
    """Disk room for all reports, checked at the start: acknowledged data must stay writable."""

    def __init__(self, run: LeaderRun) -> None:
        masking = run.folder.plan.masking
        self._home = run.folder.home
        self._need = int(masking.clients * masking.upload_bytes * _SPARE)
        self._begun = bool(run.reports)

    def require(self) -> None:
        free = shutil.disk_usage(self._home).free
        if not self._begun and free < self._need:
            raise PrivstatsError(
                f"the reports of this run may need {self._need >> 20:,} MiB, and {free >> 20:,} are free: make room"
            )

    @property
    def full(self) -> bool:
        return shutil.disk_usage(self._home).free < self._need * _ROOM_LEFT


@contextmanager
def _administered(run: LeaderRun, port: int | None) -> Iterator[tuple[socket.socket, str]]:
    """Yield a socket of mode 0600 in the folder, or a loopback port with its token."""
    if port is not None:
        path, token = run.folder.base / ADMIN_TOKEN, secrets.token_hex(32)
        with listening("127.0.0.1", port) as listener:
            atomic_write(path, f"{token}\n".encode(), durable=False)
            try:
                yield listener, token
            finally:
                path.unlink(missing_ok=True)
        return
    path = run.folder.base / ADMIN_SOCKET
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        with socket_name(run.folder.base) as name:
            listener.bind(name)
    except OSError as error:
        listener.close()
        raise PrivstatsError(f"cannot make {path} ({error.strerror or error}): give --admin-port") from None
    finally:
        os.umask(before)
    with listener:
        listener.listen()
        yield listener, ""
    path.unlink(missing_ok=True)


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host.strip("[]")).is_loopback
    return host == "localhost"


def _certificate_end(address: Address) -> datetime | None:
    if address.tls is None:
        return None
    from cryptography import x509

    try:
        data = read_bounded(address.tls[0], PrivstatsError, "privstats http new")
        return x509.load_pem_x509_certificate(data).not_valid_after_utc
    except (ValueError, ssl.SSLError) as error:
        raise PrivstatsError(f"cannot read {address.tls[0]} ({error}): give a folder with it and server.key") from None
