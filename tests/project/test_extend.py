"""The names for authors of other packages stay from version to version, and a page names each of their modules."""

from tests.project.public_names import ROOT, lost


def test_a_name_leaves_the_extension_interface_with_its_next_version_alone():
    head, kept = "# privstats.extend, version 1: words\n", "privstats.extend.kinds.A(b)\n"
    listed = f"{head}{kept}privstats.extend.kinds.B\nprivstats.C\n"
    assert lost(listed, head + kept) == {"privstats.extend.kinds.B"}
    assert lost(listed, head.replace("1", "2") + kept) == set()
    assert lost(listed, listed.replace("A(b)", "A(c)")) == set()
    assert lost("", listed) == set()


def test_the_reference_and_the_page_for_authors_name_every_module():
    modules = {path.stem for path in (ROOT / "privstats" / "extend").glob("[a-z]*.py")}
    reference = (ROOT / "docs" / "reference" / "extend.md").read_text("utf-8")
    page = (ROOT / "docs" / "how_to_add.md").read_text("utf-8")
    assert {name for name in modules if f"automodule:: privstats.extend.{name}\n" not in reference} == set()
    assert {name for name in modules if f"| `extend.{name}` | " not in page} == set()
