"""The app of a party's node: it answers every message with exactly one reply, also after an error.

It has no state: the party's folder stores everything between messages. Each message has a process of its own, forked
from one that has loaded this module.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from privstats.engines.flower import records
from privstats.engines.network import operator_log, party
from privstats.errors import PrivstatsError

__all__ = ["PARTIES", "app", "home"]

PARTIES = "PRIVSTATS_PARTIES"
"""For a simulation, the variable that names the folder with the parties' folders ``0``, ``1``, ..."""

app = ClientApp()


@app.query("privstats")
def answer(message: Message, context: Context) -> Message:
    """Pass the message to the party; catch exceptions, because Flower would send their text to the server."""
    return Message(records.pack(*_answer(message, context)), reply_to=message)


def home(node_config: Mapping[str, object]) -> Path:
    """The party's folder, from the node's own configuration.

    Raises:
        PrivstatsError: the configuration names no folder.
    """
    named = node_config.get("privstats-home")
    if isinstance(named, str) and Path(named).is_absolute():
        return Path(named)
    if PARTIES in os.environ and isinstance(place := node_config.get("partition-id"), int):
        return Path(os.environ[PARTIES]) / str(place)
    raise PrivstatsError('the node names no folder: start it with "privstats flower join"')


def _answer(message: Message, context: Context) -> tuple[str, bytes]:
    try:
        operator_log.configure()
        kind, data = records.unpack(message.content, "server")
        said = party.answer(home(context.node_config), kind, data)
    except Exception as error:
        operator_log.PARTY.error("%s", operator_log.reason_of(error))
        return "failed", b""
    return said.code, said.data
