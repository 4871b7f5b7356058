"""Text of others as it may be shown: what a terminal or a log would act on is escaped.

A message of the other side, a file's name and a text in a file may hold escape sequences, which move the cursor or
change the window's title, line ends, which forge a line of a log, and marks that turn the direction of what follows.
Everything that prints or logs a text that this machine's owner did not write passes it through here.
"""

from __future__ import annotations

import logging

__all__ = ["Printable", "printable", "printable_lines"]


def printable(text: object) -> str:
    """The text in one line: every character that is not printable (``str.isprintable``) as its escape in Python.

    A backslash stays, so that a path of Windows can be read; two texts may therefore be shown alike.

    Example:
        >>> from privstats.printable import printable
        >>> print(printable("Ulm, Süd"), printable("a\\x1b[2Jb"), printable("one\\ntwo"), printable("\\u202ecod.exe"))
        Ulm, Süd a\\x1b[2Jb one\\ntwo \\u202ecod.exe
    """
    shown = str(text)
    if shown.isprintable():
        return shown
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in shown)


def printable_lines(text: str) -> str:
    """The same of a text of several lines, whose line ends stay.

    Example:
        >>> from privstats.printable import printable_lines
        >>> print(printable_lines("one\\ntwo\\x07"))
        one
        two\\x07
    """
    return "\n".join(map(printable, text.split("\n")))


class Printable(logging.Filter):
    """A filter of a logger, for all of its handlers: every message is one printable line.

    A filter of a handler would leave the handlers of other programs without it. The lines of a traceback stay lines.

    Example:
        >>> import logging
        >>> from privstats.printable import Printable
        >>> record = logging.LogRecord("party", logging.INFO, "", 0, "it says %s", ("no\\n09:00 all is well",), None)
        >>> Printable().filter(record), record.getMessage()
        (True, 'it says no\\\\n09:00 all is well')
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Escape the record's message in place, and keep the record."""
        record.msg, record.args = printable(record.getMessage()), None
        if record.exc_info and not record.exc_text:
            record.exc_text = printable_lines(logging.Formatter().formatException(record.exc_info))
        return True
