"""The folder that a page's host serves: the page, and its headers for people and for nginx."""

from __future__ import annotations

from pathlib import Path

import msgspec

from privstats.engines.http.page import Page, page_of
from privstats.errors import LocalProtocolError, PrivstatsError
from privstats.files.atomic import atomic_write, read_whole

__all__ = ["write_page"]


class _Study(msgspec.Struct, forbid_unknown_fields=True):
    """What a page pins."""

    leader: str
    run: str
    study: str


def write_page(study: Path, out: Path) -> Page:
    """Write ``index.html``, ``headers.json`` and ``nginx-headers.conf`` into a new folder.

    Args:
        study: a file of JSON with ``leader``, ``run`` and ``study``, as ``privstats http invite`` writes it.
        out: a folder that does not exist.

    Raises:
        LocalProtocolError: the file is of another form.
        PrivstatsError: the folder exists, or cannot be written.
    """
    data = read_whole(study, LocalProtocolError, "privstats http invite")
    try:
        named = msgspec.json.decode(data, type=_Study)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise LocalProtocolError(f"{study} must name leader, run and study, in JSON: copy it again") from None
    page = page_of(named.leader, named.run, named.study)
    try:
        out.mkdir()
    except OSError as error:
        raise PrivstatsError(f"cannot make {out}: {error.strerror}; name another folder") from None
    atomic_write(out / "index.html", page.html.encode(), shared=True)
    atomic_write(out / "headers.json", msgspec.json.format(msgspec.json.encode(page.headers)), shared=True)
    lines = (f'add_header {name} "{value}" always;\n' for name, value in page.headers.items() if name != "Content-Type")
    atomic_write(out / "nginx-headers.conf", "".join(lines).encode(), shared=True)
    return page
