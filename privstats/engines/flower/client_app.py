"""The app of a party's node: it answers every message with exactly one reply, also after an error."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from privstats.engines.flower import records
from privstats.engines.network import operator_log, party
from privstats.engines.network.transport import FAILED, Answer
from privstats.errors import PrivstatsError

PARTIES = "PRIVSTATS_PARTIES"
"""For a simulation, the variable that names the folder with the parties' folders ``0``, ``1``, ..."""

_PARTITION = "partition-id"

app = ClientApp()


@app.query(records.ACTION)
def answer(message: Message, context: Context) -> Message:
    """Pass the message to the party, and its log to the node's standard error."""

    def find_home() -> Path:
        operator_log.configure_log()
        return home(context.node_config)

    return answered(message, context, find_home)


def answered(message: Message, context: Context, find_home: Callable[[], Path]) -> Message:
    """Return the folder's answer; exceptions are caught: Flower would send their text to the server.

    Only simulated nodes have a partition, so a node without one refuses a simulation's keys.
    """
    try:
        place = find_home()
        kind, data = records.unpack(message.content, "server")
        result = party.answer(place, kind, data, simulated=_PARTITION in context.node_config)
    except Exception as error:
        operator_log.PARTY.error("%s", operator_log.reason_of(error))
        result = Answer(FAILED)
    return Message(records.pack(result.code, result.data), reply_to=message)


def home(node_config: Mapping[str, object]) -> Path:
    """Return the party's folder from the node's configuration, or raise ``PrivstatsError``."""
    folder = folder_of(node_config, os.environ)
    if folder is None:
        raise PrivstatsError('the node names no folder: start it with "privstats flower join"')
    return folder


def folder_of(node_config: Mapping[str, object], environment: Mapping[str, str]) -> Path | None:
    """Return the folder named by the node's configuration, or for a simulated node by the environment."""
    named = node_config.get("privstats-home")
    if isinstance(named, str) and Path(named).is_absolute():
        return Path(named)
    if PARTIES in environment and isinstance(place := node_config.get(_PARTITION), int):
        return Path(environment[PARTIES]) / str(place)
    return None
