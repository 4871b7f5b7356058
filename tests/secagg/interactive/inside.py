"""Inside a machine: the one place where the tests of this room reach what a machine keeps to itself.

A lying server or client is an honest machine that is made to say something else, so the tests read its state, its keys
and its channels, and have it seal what it would not send. What they may reach is listed here.
"""

from typing import Any, ClassVar

from privstats.secagg import Client, Server
from privstats.secagg.interactive.client_secrets import ClientSecrets

CLIENT = ("state", "vector", "secrets", "channel", "secrets_cache", "channel_cache")
SERVER = (
    "state",
    "graph",
    "context",
    "public",
    "kem",
    "kem_key",
    "sum",
    "sent",
    "sent_to",
    "inbox",
    "forget",
    "receivers",
    "channel",
    "send",
    "accept_share",
    "rows",
    "weights",
    "weights_cache",
    "pair_weights_cache",
    "sample_weights",
)
SECRETS = ("kem",)


class Inside:
    """The listed private attributes of one machine, without their underscore; they can be read, called and replaced."""

    OPEN: ClassVar[dict[type, tuple[str, ...]]] = {Client: CLIENT, Server: SERVER, ClientSecrets: SECRETS}

    def __init__(self, machine: object) -> None:
        object.__setattr__(self, "machine", machine)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.machine, self.private(name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.machine, self.private(name), value)

    def private(self, name: str) -> str:
        for kind, names in self.OPEN.items():
            if isinstance(self.machine, kind) and name in names:
                return f"_{name}"
        raise AttributeError(f"{name} of a {type(self.machine).__name__} is not open to tests: list it in inside.py")


inside = Inside
