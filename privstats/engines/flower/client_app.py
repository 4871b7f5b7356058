"""The app of a party's node: one message in, one answer out, whatever happens.

It holds nothing: what is kept between messages is in the party's folder. Each message has a process of its own, forked
from one that has loaded this module.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from privstats.engines.flower import records
from privstats.engines.network import entry
from privstats.errors import PrivstatsError

__all__ = ["PARTIES", "app", "home"]

PARTIES = "PRIVSTATS_PARTIES"
"""Names, for a simulation, the folder that holds the parties' folders ``0``, ``1``, ...: its nodes have no config."""

app = ClientApp()


@app.query("privstats")
def answer(message: Message, context: Context) -> Message:
    """Hand the message to the party; Flower would send the text of an exception to the server, so none leaves."""
    return Message(records.pack(*_answer(message, context)), reply_to=message)


def home(node_config: Mapping[str, object]) -> Path:
    """The party's folder, from the node's own configuration.

    Raises:
        PrivstatsError: it names none.
    """
    named = node_config.get("privstats-home")
    if isinstance(named, str) and Path(named).is_absolute():
        return Path(named)
    if PARTIES in os.environ and isinstance(place := node_config.get("partition-id"), int):
        return Path(os.environ[PARTIES]) / str(place)
    raise PrivstatsError('the node names no folder: start it with "privstats flower join"')


def _answer(message: Message, context: Context) -> tuple[str, bytes]:
    try:
        kind, data = records.unpack(message.content, "server")
        said = entry.answer(home(context.node_config), kind, data)
    except Exception:
        traceback.print_exc(file=sys.stderr)
        return "failed", b""
    return said.code, said.data
