"""Every page in a real browser, as wide as a phone: no sideways scroll, no console error, links that work."""

import json
import re
import shutil
import subprocess

import pytest

from privstats.contrib.evidence import evidence_page
from privstats.workflows import report as pages
from tests import made
from tests.workflows.report.test_privacy_report import FINDING
from threat_models.page import render
from threat_models.report import LeakageReport, Row

from .conftest import PLAN

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--allow-file-access-from-files"),
    *("--enable-logging=stderr", "--virtual-time-budget=20000", "--dump-dom"),
)
NARROW = 375

HARNESS = """<!doctype html><body>FRAMES<script>
addEventListener("load", () => {
  const found = {};
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument, root = page.documentElement;
    const links = [...page.querySelectorAll("a[href]")], dead = [];
    for (const link of links) {
      link.click();
      const target = page.getElementById(decodeURIComponent(frame.contentWindow.location.hash.slice(1)));
      if (!target || link.hash !== frame.contentWindow.location.hash) dead.push(link.href);
    }
    const boxes = [...page.querySelectorAll(".wide")].filter(box => box.scrollWidth > box.clientWidth);
    const told = box => frame.contentWindow.getComputedStyle(box, "::before").content !== "none";
    found[frame.id] = {window: root.clientWidth, page: root.scrollWidth, body: page.body.scrollWidth, dead,
      links: links.length, wide: boxes.length, silent: boxes.filter(box => !told(box)).map(box => box.ariaLabel)};
  }
  document.body.innerHTML = "<pre>" + JSON.stringify(found) + "</pre>";
});
</script></body>"""


PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="


def wordy(name):
    return Row(
        attack=name, number=1, goal="membership", adversary="sees the published release; knows " + "a lot, " * 9,
        sees="release", metric="AUC", measured=0.5, interval=(0.4, 0.6), baseline=0.5, ceiling=0.58, verdict="leaks",
    )  # fmt: skip


def written(folder):
    """One page of every kind, with the widest content each can have."""
    exact = made.plan(PLAN.schema, PLAN.cohort)
    chart = pages.Figure("accuracy against epsilon", "Mean and interval.", PIXEL)
    cells = ("LDA", *["97.3 % ± 1.2 %"] * 9)
    scores = pages.Page(
        "A sweep over several budgets", "accuracy", chart, ("head", *map(str, range(9))), [cells], ["a fact"], PLAN
    )
    pages.write_page(scores, folder / "scores.html")
    (folder / "privacy_report.html").write_text(pages.page_of(pages.Statement(PLAN, accounts=(), findings=(FINDING,))))
    (folder / "evidence.html").write_text(evidence_page(pages.Statement(PLAN, findings=(FINDING,))))
    (folder / "exact.html").write_text(pages.page_of(pages.Statement(exact)))
    rows = (wordy("rotation-on-the-grid"), wordy("mean-ratio"))
    (folder / "attack.html").write_text(render(LeakageReport("What an attacker learns", "noise", rows, plan="a" * 64)))
    return ("scores", "privacy_report", "evidence", "exact", "attack")


def seen(folder, names, width):
    """What a browser measures of each page in a window of this width, and what it complains about."""
    frames = "".join(f'<iframe id="{name}" src="{name}.html" width="{width}" height="700"></iframe>' for name in names)
    (folder / "harness.html").write_text(HARNESS.replace("FRAMES", frames))
    done = subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", (folder / "harness.html").as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    told = re.search(r"<pre>(\{.*\})</pre>", done.stdout)
    assert told, done.stdout[-500:] + done.stderr[-2000:]
    return json.loads(told[1]), [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
def test_pages_fit_a_phone_and_their_links_work(tmp_path):
    names = written(tmp_path)
    found, complaints = seen(tmp_path, names, NARROW)
    assert not complaints
    for name in names:
        page = found[name]
        assert page["window"] == NARROW, page
        assert max(page["page"], page["body"]) <= NARROW, (name, page)
        assert not page["dead"], name
        assert not page["silent"], (name, "a table scrolls and does not say so")
    assert found["privacy_report"]["links"] >= 7
    assert found["scores"]["wide"] >= 1  # its table is wider than the phone, and scrolls inside its box
