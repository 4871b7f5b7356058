"""The pictures of docs/devices.md, made by a real browser, as wide as a phone.

python -m tests.javascript.pictures docs/images
"""

import sys
import tempfile
from pathlib import Path

from tests.browser import browsing
from tests.javascript.study import Study

NAMES = ("devices-words.png", "devices-error.png", "devices-sent.png")


def take(folder: Path) -> None:
    """One picture of each state that a person meets."""
    words, error, sent = (folder / name for name in NAMES)
    with tempfile.TemporaryDirectory() as profile, Study() as study, browsing(Path(profile)) as browser:
        tab = browser.tab(study.link(0))
        tab.until("document.querySelector('form button')")
        tab.wide(375, 760)
        tab.picture(words, whole=False)
        tab.click("#field-0")
        tab.type("370")
        tab.click("#field-1-1")
        tab.click("form button")
        tab.value("scrollTo(0, document.body.scrollHeight)")
        tab.wide(375, 560)
        tab.value("scrollTo(0, document.body.scrollHeight)")
        tab.picture(error, whole=False)
        tab.value("document.querySelector('#field-0').select()")
        tab.type("37")
        tab.click("form button")
        tab.until("document.querySelector('[role=status]').textContent.includes('Thank you')")
        tab.wide(375, 320)
        tab.picture(sent, whole=False)


if __name__ == "__main__":
    take(Path(sys.argv[1]))
