"""The documentation as a reader gets it: it builds, every link leads somewhere, no page is huge, notebooks run."""

import html
import importlib
import importlib.util
import json
import re
import runpy
import subprocess
import sys
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

import privstats as ps
from tests.lacking import needs
from tests.project.test_examples import ROOMS
from tests.project.test_pages import MEASURED

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = sorted((DOCS / "gallery").glob("plot_*.py"))
LARGEST = 700_000  # bytes of a page; the reference was one of 2.6 million


class Page(HTMLParser):
    """The anchors of a page, and what it links to or shows."""

    def __init__(self, path: Path):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        self.ids |= {value for name, value in attrs if name in ("id", "name")}
        self.links += [value for name, value in attrs if name in ("href", "src") and value]


def dead_links(site: Path) -> set[str]:
    """Links to a file, or to a place on a page, that is not there."""
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    dead = set()
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            file, place = urldefrag(link)
            target = (path.parent / unquote(file.partition("?")[0])).resolve() if file else path
            if not target.exists() or (place and target in pages and unquote(place) not in pages[target].ids):
                dead.add(f"{path.name}: {link}")
    return dead


def test_a_link_to_nothing_is_found(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#here"></a><a href="b.html#no"></a><a href="c.html"></a>')
    (tmp_path / "b.html").write_text('<p id="here"></p><a href="https://x.y"></a><a href="#"></a>')
    assert dead_links(tmp_path) == {"a.html: b.html#no", "a.html: c.html"}


def built(folder: Path) -> None:
    """Build the documentation as docs/how_to_add.md says; fails at the first warning.

    The side bar of a page lists no classes and functions here: each page would copy all of them, a third of the time.
    """
    needs("sphinx")
    page = (ROOT / "docs" / "how_to_add.md").read_text("utf-8")
    line = re.search(r"^python -m sphinx (.*) docs/_build$", page, re.MULTILINE)
    command = [sys.executable, "-m", "sphinx", "-D", "toc_object_entries=0", *line[1].split(), str(folder)]
    assert "-W" in command
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.ci
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_of_the_gallery_runs(example, tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(DOCS)
    pyplot = importlib.import_module("matplotlib.pyplot")
    pyplot.close("all")  # figures of other tests
    with matplotlib.rc_context():
        importlib.import_module("house_style").apply()
        runpy.run_path(str(example), run_name="__main__")
        for number in pyplot.get_fignums():
            check_thumbnail(pyplot.figure(number), example)
        pyplot.close("all")


def check_thumbnail(figure, example):
    """Words of 8 points are 7 pixels of a thumbnail that is 290 wide; colours are the house's, or grey."""
    from matplotlib.text import Text

    width, height = figure.get_size_inches()
    words = [text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible()]
    assert width / height >= 640 / 448 - 0.01, "a higher picture is shrunk to fit"
    assert min(text.get_fontsize() for text in words) * 290 / (72 * width) > 7
    whole = figure.get_tightbbox()
    assert (whole.x1, whole.y1) < (width + 0.05, height + 0.05), "cut off"
    assert "#" not in "".join(re.findall(r'"#[0-9a-f]{6}"', example.read_text("utf-8")))


def test_the_certificate_that_a_page_shows_is_of_the_example_and_the_checker_has_read_it(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    page = importlib.import_module("certificate_page")
    text = resources.files("privstats.cli").joinpath("plan.toml").read_text("utf-8")
    shown = page.card()
    digest = ps.Plan.from_toml(text).digest
    assert f'<p class="verdict">holds: plan {digest}, epsilon 1 at delta 1e-05' in shown
    assert json.loads(html.unescape(re.search(r"<pre>(.*?)</pre>", shown, re.DOTALL)[1]))["plan_digest"] == digest
    assert "281474976710652 to 281474976710660" in shown  # B: to the digit in which both ends differ
    assert "1 of class 0 with x0 = 4096" in shown
    other = page.card(text.replace("epsilon = 1.0", "epsilon = 0.5"))
    assert digest not in other
    assert "epsilon 1/2 at delta 1/100000" in other
    assert "```{certificate}\n```" in (DOCS / "certificate.md").read_text("utf-8")


def test_imported_names_are_asked_of_packages_alone():
    """Of a module they are whatever it works with, each named twice: a page of simulations held `DataError`."""
    for page in (DOCS / "reference").glob("*.md"):
        for name in re.findall(r"automodule:: (\S+)\n +:imported-members:", page.read_text("utf-8")):
            assert hasattr(importlib.import_module(name), "__path__"), name


@pytest.mark.ci
@pytest.mark.waits
@pytest.mark.timeout(900)
def test_the_documentation_is_written_and_every_link_leads_somewhere(tmp_path):
    built(tmp_path)
    assert dead_links(tmp_path) == set()
    assert {path.name: size for path in tmp_path.rglob("*.html") if (size := path.stat().st_size) > LARGEST} == {}
    examples = {path.stem for path in EXAMPLES}
    assert {path.stem for path in (tmp_path / "_downloads").rglob("*.ipynb")} == examples


def slugs(heading: str) -> set[str]:
    """The anchors of a heading: the one that Markdown gives it, and that of the page that is built."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading).lower()
    return {re.sub(r"[^\w -]", "", words).strip().replace(" ", "-"), re.sub(r"[^a-z0-9]+", "-", words).strip("-")}


def anchors(page: Path) -> set[str]:
    text = page.read_text("utf-8")
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    named = re.findall(r"^\(([\w-]+)\)=$", prose, re.MULTILINE)  # of HTML in a page the builder knows no anchor
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return set().union(*map(slugs, headings), named)


def lost(page: Path) -> set[str]:
    """Relative links of a page, as it is written, to a file or a heading that is not there."""
    found = set()
    prose = re.sub(r"```.*?```|`[^`]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        file, place = urldefrag(link)
        target = page.parent / file if file else page
        if re.match(r"[a-z]+:", link):
            continue
        if not target.exists() or (place and target.suffix == ".md" and place not in anchors(target)):
            found.add(link)
    return found


@pytest.mark.parametrize(
    "page",
    [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md")), *MEASURED],
    ids=lambda page: page.relative_to(ROOT).with_suffix("").as_posix(),
)
def test_what_a_page_links_to_is_there_before_it_is_built(page):
    assert lost(page) == set()


def test_a_link_of_a_page_to_nothing_is_found(tmp_path):
    links = "[x](b.md#no) [y](#on-b) [z](c.md) [w](https://x.y#z) [v](b.md#target) [u](b.md#html)"
    (tmp_path / "a.md").write_text(f"# On `b`\n{links}")
    (tmp_path / "b.md").write_text('# Yes\n(target)=\nHere.\n<a id="html"></a>There.\n')
    assert lost(tmp_path / "a.md") == {"b.md#no", "c.md", "b.md#html"}


def test_every_public_room_has_its_page():
    pages = "\n".join(path.read_text("utf-8") for path in (DOCS / "reference").glob("*.md"))
    shown = set(re.findall(r"automodule:: (\S+)", pages))
    assert set(ROOMS) - shown - NOT_SHOWN == set()
    assert shown & NOT_SHOWN == set()


NOT_SHOWN = {
    "privstats",  # the names of the other rooms
    *(f"privstats.files.{room}" for room in ("atomic", "envelope", "result_cache", "signing", "text")),
    *(f"privstats.{room}" for room in ("printable", "python_values", "estimates.score")),
    "privstats.contrib.sweep.frame",
    "privstats.workflows.readers",
    "privstats.workflows.tables.reader",  # its names are those of privstats.workflows.tables
    "privstats.testing.contracts",  # its names are those of privstats.testing
}


@pytest.mark.nightly
def test_the_notebooks_are_valid_and_one_runs(tmp_path, monkeypatch):
    pytest.importorskip("sphinx_gallery")
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    spec = importlib.util.spec_from_file_location("notebooks", DOCS / "notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = {path.stem: json.loads(path.read_text("utf-8")) for path in module.write(tmp_path)}
    assert set(made) == {path.stem for path in EXAMPLES}
    for notebook in made.values():
        assert (notebook["nbformat"], notebook["metadata"]["kernelspec"]["language"]) == (4, "python")
        assert [cell["cell_type"] for cell in notebook["cells"]][:2] == ["markdown", "code"]
        assert all({"cell_type", "metadata", "source"} <= cell.keys() for cell in notebook["cells"])
        assert all({"outputs", "execution_count"} <= c.keys() for c in notebook["cells"] if c["cell_type"] == "code")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for cell in made["plot_ledger"]["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), "plot_ledger.ipynb", "exec"), namespace)
    assert namespace["together"][0] == pytest.approx(1.0)
