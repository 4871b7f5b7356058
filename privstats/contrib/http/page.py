"""Write the page on which people answer, one file, and its headers, which pin this release's bundle.

A separate party must serve it, never the leader or a helper, because its server can replace it (docs/devices.md).
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from urllib.parse import urlsplit

import msgspec

from privstats.errors import LocalProtocolError, PrivstatsError
from privstats.extend.support import atomic_write, from_json, read_bounded

BUNDLE = "privstats.bundle.js"
WORDS = "words.json"
_TLS_ONLY_SECONDS = 365 * 86_400  # people type the address: from the first visit on the browser asks by TLS alone
_HERE = {"localhost", "127.0.0.1", "[::1]"}


@dataclass(frozen=True)
class Page:
    """A page as a web server serves it.

    Attributes:
        headers: required of the server; a meta tag could not refuse frames.
        integrity: hash of the bundle, ``sha256-`` and base64; fixed per release.
    """

    html: str
    headers: dict[str, str]
    integrity: str


def page_of(leader: str, run: str, study: str) -> Page:
    """Return one study's page.

    Args:
        leader: the leader's address, https; http on this machine alone.
        run: the roster's run, 32 to 64 hex digits.
        study: ``study_of`` run, plan and roster, 64 hex digits, also on people's letters.
    """
    origin = _origin(leader)
    for name, value, least, most in (("run", run, 32, 64), ("study", study, 64, 64)):
        if not re.fullmatch(r"(?:[0-9a-f]{2})+", str(value)) or not least <= len(value) <= most:
            raise LocalProtocolError(f"{name} must be lower-case hex digits, as study.json has them; copy them again")
    style, script, words = (_text(name) for name in ("page.css", BUNDLE, WORDS))
    named = {"leader": html.escape(origin), "run": run, "study": study}
    text = Template(_text("page.html")).substitute(named, style=style, script=script, words=words)
    return Page(text, _headers(origin, _hash(script), _hash(style)), _hash(script))


def client_file(name: str) -> Traversable:
    """Return a file of the JavaScript client."""
    beside = files("privstats.contrib.http") / name
    return beside if beside.is_file() else Path(__file__).parents[3] / "clients" / "javascript" / name


def _text(name: str) -> str:
    return client_file(name).read_text("utf-8")


def _origin(leader: str) -> str:
    parts = urlsplit(str(leader))
    plain = parts.scheme == "http" and parts.netloc.rsplit(":", 1)[0] in _HERE
    if not (parts.scheme == "https" or plain) or not re.fullmatch(r"[A-Za-z0-9.:\[\]-]+", parts.netloc):
        raise LocalProtocolError(
            "the leader's address must begin with https:// and a host's name; give leader's address"
        )
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise LocalProtocolError("the leader's address must be scheme and host alone, without a path; shorten it")
    return f"{parts.scheme}://{parts.netloc}"


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _headers(leader: str, script: str, style: str) -> dict[str, str]:
    allowed = (
        "default-src 'none'",
        f"script-src '{script}'",
        f"style-src '{style}'",
        "img-src data:",
        f"connect-src {leader}",
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    )
    return {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": "; ".join(allowed),
        "Strict-Transport-Security": f"max-age={_TLS_ONLY_SECONDS}",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }


class _Study(msgspec.Struct, forbid_unknown_fields=True):
    leader: str
    run: str
    study: str


def write_page(study: Path, out: Path) -> Page:
    """Write ``index.html``, ``headers.json`` and ``nginx-headers.conf`` into a new folder.

    Args:
        study: the JSON file of ``privstats http invite``.
    """
    data = read_bounded(study, LocalProtocolError, "privstats http invite")
    try:
        named = from_json(data, _Study)
    except msgspec.DecodeError:
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
