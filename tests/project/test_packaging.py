"""What is shipped: the papers beside the code, a description without dead links, advice that works."""

import importlib.util
import re
import sys
import tarfile
import tomllib
import types
from pathlib import Path

import pytest

from privstats import optional_dependencies
from privstats.errors import MissingExtraError

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
README = (ROOT / "README.md").read_text("utf-8")
RELATIVE = re.compile(r"\]\((?!https?://|#)")


@pytest.fixture
def hook(monkeypatch):
    """The build hook, whose only need of hatchling is a base class."""
    if importlib.util.find_spec("hatchling") is None:
        interface = types.ModuleType("hatchling.metadata.plugin.interface")
        interface.MetadataHookInterface = object
        for name in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin"):
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        monkeypatch.setitem(sys.modules, interface.__name__, interface)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def metadata(hook, monkeypatch, address=None):
    monkeypatch.delenv(hook.ADDRESS, raising=False)
    if address is not None:
        monkeypatch.setenv(hook.ADDRESS, address)
    made, filled = hook.CustomMetadataHook.__new__(hook.CustomMetadataHook), {}
    monkeypatch.setattr(hook.CustomMetadataHook, "root", str(ROOT), raising=False)
    made.update(filled)
    return filled


def test_the_readme_of_a_checkout_has_relative_links_that_lead_to_files():
    paths = re.findall(r"\]\((?!https?://|#)([^)#]+)", README)
    assert len(paths) > 5
    assert all((ROOT / path).is_file() for path in paths)


def test_without_an_address_the_description_has_no_link_that_could_be_dead(hook, monkeypatch):
    assert RELATIVE.search(README)
    filled = metadata(hook, monkeypatch)
    assert not RELATIVE.search(filled["readme"]["text"])
    assert "Security (`SECURITY.md`)" in filled["readme"]["text"]
    assert filled["urls"] == {}


def test_with_an_address_every_link_and_url_is_absolute(hook, monkeypatch):
    filled = metadata(hook, monkeypatch, "https://example.org/privstats/")
    assert not RELATIVE.search(filled["readme"]["text"])
    assert "(https://example.org/privstats/docs/core.md)" in filled["readme"]["text"]
    assert filled["urls"]["Homepage"] == "https://example.org/privstats"
    for url in filled["urls"].values():
        assert url.startswith("https://example.org/privstats")
    paths = [url.removeprefix("https://example.org/privstats/") for url in filled["urls"].values()][1:]
    assert all((ROOT / path).is_file() for path in paths)


def test_links_that_are_absolute_already_and_places_on_a_page_are_kept(hook):
    assert hook.described("[a](https://b.c) [d](e.md#f)", "https://x.y") == "[a](https://b.c) [d](https://x.y/e.md#f)"
    assert hook.described("[docs/e.md](docs/e.md)", "") == "docs/e.md"


def test_the_source_distribution_has_the_papers_beside_the_code():
    shipped = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert {"CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "README.md", "constraints.txt"} <= set(shipped)
    assert all((ROOT / name).exists() for name in shipped)
    papers = {path.name for path in ROOT.iterdir() if path.suffix in (".md", ".cff", ".txt")}
    assert papers <= set(shipped)


def test_a_source_distribution_that_is_built_holds_them(tmp_path, monkeypatch):
    builders = pytest.importorskip("hatchling.builders.sdist", reason="hatchling is not installed")
    monkeypatch.chdir(ROOT)
    (archive,) = builders.SdistBuilder(str(ROOT)).build(directory=str(tmp_path))
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {"CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "hatch_build.py"} <= names
    assert "privstats/workflows/report/layout.html" in names


def test_the_classifiers_name_every_version_that_is_supported():
    named = {line.rpartition(" ")[2] for line in PROJECT["project"]["classifiers"] if "Python :: 3." in line}
    assert named == {"3.11", "3.12", "3.13"}
    assert PROJECT["project"]["requires-python"] == ">=3.11"


@pytest.mark.parametrize("module", sorted(optional_dependencies._INSTALL))
def test_advice_works_in_a_checkout_and_from_an_index(module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError) as caught:
        optional_dependencies.load(module, by="a test")
    offered = PROJECT["project"]["optional-dependencies"]
    advice = str(caught.value)
    for extra in re.findall(r"\[([a-z-]+)\]", advice):
        assert extra in offered
    if "privstats[" in advice:
        assert re.search(
            r"install with: pip install 'privstats\[[a-z-]+\]', or in a checkout: pip install -e '\.\[", advice
        )
    else:
        assert advice.endswith(f"install with: pip install {module.partition('.')[0].replace('_', '-')}")
