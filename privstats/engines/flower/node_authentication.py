"""Authenticate nodes: verify who signed a request before the first byte of its body is read.

Flower reads a complete body, of any size and for any time, before it looks at the signature headers. Here a registered
node may send :data:`MOST_REQUEST` bytes of content, and :data:`MOST_OF_A_MESSAGE` of anything else. Other signers may
send :data:`MOST_OF_A_STRANGER` at a low rate, so that Flower can explain what they lack; all others are refused.
"""

from __future__ import annotations

import binascii
import datetime
import math
import time
from base64 import b64decode
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from cryptography.exceptions import UnsupportedAlgorithm
from flwr.common.constant import SYSTEM_TIME_TOLERANCE, TIMESTAMP_HEADER, TIMESTAMP_TOLERANCE
from flwr.supercore.constant import FLEET_HTTP_PUBLIC_KEY_HEADER, FLEET_HTTP_SIGNATURE_HEADER
from flwr.supercore.primitives import asymmetric
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers

from privstats.engines.door.connection_limits import CONNECTION, AdmittedConnection, ConnectionLimiter, Why
from privstats.engines.flower.addresses import MOST_REQUEST, App, Receive, Scope, Send, refuse

MOST_OF_A_MESSAGE = 64 << 10
"""The most bytes of a node's request without content: names of some 800 pieces, which are 4 GiB.

Two bytes of a list are an empty message, for which the parser takes 90 to 230: 6 MiB of them were hundreds of MiB.
"""

MOST_OF_A_STRANGER = 4 << 10
"""The most bytes of a request that no registered node has signed: Flower's node introduces itself in 250."""

_CONTENT = "/v1/fleet/push-object"  # one field of bytes, which are not parsed
_MOST_HEADERS = 64
_MOST_OF_A_KEY = 512  # in PEM; Flower logs the key that is not registered, and its node's have 215
_KNOWN_SECONDS = 10.0
_REMEMBERED = 1024

Verify: TypeAlias = Callable[[Any, bytes, bytes], bool]
"""Whether a public key signed a message: ``verify(key, message, signature)``."""


@dataclass(frozen=True)
class Login:
    """The signer of a request."""

    key: bytes
    registered: bool


class Logins:
    """Reads from a request's headers who signed it.

    Args:
        registered: checked again after some seconds.
    """

    def __init__(
        self,
        registered: Callable[[bytes], bool],
        verify: Verify = asymmetric.verify_signature,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registered, self._verify, self._clock = registered, verify, clock
        self._known: dict[bytes, float] = {}  # registered keys alone, so strangers do not fill it

    def read(self, headers: Headers) -> Login | None:
        """Return the key that signed this request just now; None where a header is missing or wrong."""
        try:
            key = b64decode(headers[FLEET_HTTP_PUBLIC_KEY_HEADER], validate=True)
            signature = b64decode(headers[FLEET_HTTP_SIGNATURE_HEADER], validate=True)
            stamp = headers[TIMESTAMP_HEADER]
            age = (datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(stamp)).total_seconds()
            if not -SYSTEM_TIME_TOLERANCE < age < TIMESTAMP_TOLERANCE + SYSTEM_TIME_TOLERANCE:
                return None
            if len(key) > _MOST_OF_A_KEY:
                return None
            if not self._verify(asymmetric.bytes_to_public_key(key), stamp.encode("ascii"), signature):
                return None
        except (KeyError, ValueError, TypeError, AttributeError, binascii.Error, UnsupportedAlgorithm):
            return None  # AttributeError: a key of a kind that signs nothing
        return Login(key, self._is_registered(key))

    def _is_registered(self, key: bytes) -> bool:
        if self._known.get(key, -math.inf) < self._clock():
            self._known.pop(key, None)
            if not self._registered(key):
                return False
            self._known[key] = self._clock() + _KNOWN_SECONDS
        return True


def remembered(verify: Verify) -> Verify:
    """Cache signature checks of 1.4 ms each, because Flower repeats those of this layer."""

    @lru_cache(_REMEMBERED)
    def once(key: bytes, message: bytes, signature: bytes) -> bool:
        return verify(asymmetric.bytes_to_public_key(key), message, signature)

    def verified(key: Any, message: bytes, signature: bytes) -> bool:
        return once(asymmetric.public_key_to_bytes(key), message, signature)

    return verified


class NodeAuthentication:
    """An ASGI app that passes nodes' signed requests on to Flower's app, and bounds their size and time.

    A request's connection is in its scope under :data:`CONNECTION`.
    """

    def __init__(self, app: App, logins: Logins, limiter: ConnectionLimiter) -> None:
        self._app, self._logins, self._limiter = app, logins, limiter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request of a node; answer 401, 413, 431 or 503 to others, and close their connection."""
        admitted: AdmittedConnection = scope["state"][CONNECTION]
        self._limiter.allow(admitted)
        if len(scope["headers"]) > _MOST_HEADERS:
            await self._refuse(send, 431, "size", admitted)
            return
        login, size = await run_in_threadpool(self._logins.read, Headers(scope=scope)), _bytes_of(scope)
        if login is None:
            await self._refuse(send, 401, "login", admitted)
        elif size > _most(scope, login):
            await self._refuse(send, 413, "size", admitted)
        elif not login.registered:
            may = self._limiter.introduce(admitted)
            await (self._app(scope, *self._timed(admitted, size, receive, send)) if may else refuse(send, 503))
        else:
            with self._limiter.request(admitted, login.key) as may:
                await (self._app(scope, *self._timed(admitted, size, receive, send)) if may else refuse(send, 503))

    async def _refuse(self, send: Send, status: int, why: Why, admitted: AdmittedConnection) -> None:
        self._limiter.turn_away(why, admitted.host)
        await refuse(send, status)

    def _timed(self, admitted: AdmittedConnection, size: int, receive: Receive, send: Send) -> tuple[Receive, Send]:
        received_bytes = 0

        async def received() -> MutableMapping[str, Any]:
            message = await receive()
            if not message.get("more_body", False):
                admitted.until = math.inf  # the server must answer now
            return message

        async def sent(message: MutableMapping[str, Any]) -> None:
            nonlocal received_bytes
            received_bytes += len(message.get("body", b""))
            self._limiter.allow(
                admitted, received_bytes
            )  # before, because it waits for who does not take the answer before this
            await send(message)

        self._limiter.allow(admitted, size)
        return received, sent


def _most(scope: Scope, login: Login) -> int:
    if not login.registered:
        return MOST_OF_A_STRANGER
    return MOST_REQUEST if scope["path"] == _CONTENT else MOST_OF_A_MESSAGE


def _bytes_of(scope: Scope) -> int:
    """Return the declared body size, which the server enforces; above the limit if undeclared."""
    sizes = [value for name, value in scope["headers"] if name == b"content-length"]
    chunked = any(name == b"transfer-encoding" for name, _ in scope["headers"])
    return int(sizes[0]) if len(sizes) == 1 and sizes[0].isdigit() and not chunked else MOST_REQUEST + 1
