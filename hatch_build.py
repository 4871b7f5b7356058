"""What a package index shows: the README, with links that lead somewhere from there too.

Links in the README are relative, for readers of a checkout. With the address of the project's pages in
``PRIVSTATS_PROJECT_URL`` a build makes them absolute and names the pages in the metadata; without it each link becomes
the name of the file in the source distribution, so that none is dead.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

ADDRESS = "PRIVSTATS_PROJECT_URL"
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?://)([^)#\s]+)(#[^)\s]*)?\)")
_PAGES = {
    "Documentation": "docs/index.md",
    "Changelog": "CHANGELOG.md",
    "Security": "SECURITY.md",
}


class CustomMetadataHook(MetadataHookInterface):  # type: ignore[misc]  # hatchling finds it by this name
    """Fills in ``readme`` and ``urls``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Put both into the metadata of a build."""
        address = os.environ.get(ADDRESS, "")
        text = Path(self.root, "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": described(text, address)}
        metadata["urls"] = urls(address)


def described(readme: str, address: str) -> str:
    """The README with every relative link made absolute, or told in words where there is no address."""

    def link(found: re.Match[str]) -> str:
        words, path, place = found[1], found[2], found[3] or ""
        if address:
            return f"[{words}]({address.rstrip('/')}/{path}{place})"
        return words if words == path else f"{words} (`{path}`)"

    return _LINK.sub(link, readme)


def urls(address: str) -> dict[str, str]:
    """The project's pages by what they are called; none without an address."""
    if not address:
        return {}
    root = address.rstrip("/")
    return {"Homepage": root, **{name: f"{root}/{path}" for name, path in _PAGES.items()}}
