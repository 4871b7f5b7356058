"""Lines for a folder's operator, by the loggers ``privstats.host`` and ``privstats.party``.

A line holds no record's value, key, seed or sum: other libraries' errors are logged by type and code location.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime

from privstats.errors import DataError, PrivstatsError
from privstats.printable import Printable

HOST = logging.getLogger("privstats.host")
PARTY = logging.getLogger("privstats.party")
for _logger in (HOST, PARTY):
    _logger.addFilter(Printable())  # in a party's log is text of the server, in the server's that of nodes

FORM, LEVEL = "PRIVSTATS_LOG", "PRIVSTATS_LOG_LEVEL"
"""Variables of the environment: ``text`` or ``json``; and ``DEBUG``, ``INFO``, ``WARNING`` or ``ERROR``."""

_FORMS = ("text", "json")
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


class WarningLine(str):
    """A line that is logged as a warning.

    Example:
        >>> from privstats.engines.carriers import WarningLine
        >>> WarningLine("party 3 is offline")
        'party 3 is offline'
    """

    __slots__ = ()


class ScriptError(DataError):
    """A failure of a party's own ``records.py``: the error's text may hold records, so only the command line shows it.

    Args:
        what: the part that failed, with its verb.

    Attributes:
        logged: the sentence for the log, with the text of system errors only.
    """

    def __init__(self, what: str, cause: BaseException) -> None:
        message, kind = f"{what}: {type(cause).__name__}: {cause}", type(cause).__name__
        withheld = f'{what}: {kind}; "privstats flower check" shows its text, which may hold records'
        self.logged = message if isinstance(cause, OSError) else withheld
        super().__init__(message)


def log_line(line: str) -> None:
    """Log a line for the server's operator: a :class:`WarningLine` as a warning, others as information.

    Example:
        >>> import logging.handlers
        >>> from privstats.engines.carriers import WarningLine, log_line
        >>> host, lines = logging.getLogger("privstats.host"), logging.handlers.BufferingHandler(capacity=9)
        >>> host.addHandler(lines)
        >>> log_line(WarningLine("party 3 is offline"))
        >>> host.removeHandler(lines)
        >>> [(line.levelname, line.getMessage()) for line in lines.buffer]
        [('WARNING', 'party 3 is offline')]
    """
    HOST.log(logging.WARNING if isinstance(line, WarningLine) else logging.INFO, "%s", line)


def reason_of(error: Exception) -> str:
    """Return one sentence for an error of this library; for others the type and code locations, without text.

    Example:
        >>> from privstats.engines.carriers import reason_of
        >>> reason_of(ps.PlanError("epsilon must be positive"))
        'epsilon must be positive'
        >>> reason_of(ValueError("record 17 has the value 3.14"))
        'ValueError'
    """
    if isinstance(error, PrivstatsError):
        return error.logged if isinstance(error, ScriptError) else str(error)
    frames = traceback.extract_tb(error.__traceback__)  # without source lines, which may hold values as well
    places = [f'File "{each.filename}", line {each.lineno}, in {each.name}' for each in frames]
    return ": ".join([*places, type(error).__name__])


def configure_log(environment: Mapping[str, str] = os.environ) -> None:
    """Log ``privstats`` to standard error; a later call replaces this setup.

    Args:
        environment: ``PRIVSTATS_LOG`` is ``text``, the default, or ``json``, one object per line;
            ``PRIVSTATS_LOG_LEVEL`` is a level's name, ``INFO`` by default.

    Raises:
        PrivstatsError: a variable has another value.

    Example:
        >>> from privstats.engines.carriers import configure_log
        >>> configure_log({"PRIVSTATS_LOG": "xml"})
        Traceback (most recent call last):
        ...
        privstats.errors.PrivstatsError: PRIVSTATS_LOG must be one of text, json, not 'xml'; change it ...
    """
    form, level = _chosen(environment, FORM, _FORMS, "text"), _chosen(environment, LEVEL, _LEVELS, "INFO")
    handler = _StandardError()
    handler.setFormatter(_Json() if form == "json" else _Text())
    ours = logging.getLogger("privstats")
    ours.handlers, ours.propagate = [handler], False
    ours.setLevel(level)


def _chosen(environment: Mapping[str, str], name: str, known: tuple[str, ...], usual: str) -> str:
    value = environment.get(name, usual)
    if value not in known:
        raise PrivstatsError(f"{name} must be one of {', '.join(known)}, not {value!r}; change it in the environment")
    return value


class _StandardError(logging.Handler):
    """Looks up standard error at each line, because carriers replace it."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(f"{self.format(record)}\n")
        sys.stderr.flush()


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        return f"{when} privstats: {record.getMessage()}"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": when, "level": record.levelname, "logger": record.name, "message": record.getMessage()}
        return json.dumps(line, ensure_ascii=False)
