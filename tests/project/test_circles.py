"""No module imports itself through others: not when it is loaded, and not inside a function either."""

from collections.abc import Mapping, Set

from tests.lacking import needs
from tests.without import WHOLE


def circled(imports: Mapping[str, Set[str]]) -> set[str]:
    """Modules on a circle: each is reached again from what it imports."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        ahead = set(imports[start])
        while ahead:
            seen |= ahead
            ahead = {below for name in ahead for below in imports.get(name, ())} - seen
        return seen

    return {name for name in imports if name in reached(name)}


@WHOLE
def test_no_module_imports_itself_through_others() -> None:
    needs("importlinter")
    import grimp

    graph = grimp.build_graph("privstats", "threat_models", exclude_type_checking_imports=True, cache_dir=None)
    packages = {name for name in graph.modules if graph.find_children(name)}
    modules = graph.modules - packages
    imports = {name: graph.find_modules_directly_imported_by(name) - packages for name in modules}
    found = sorted(circled(imports))
    assert len(modules) > 300
    assert not found, found


def test_a_circle_is_found() -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}, "e": set()}
    assert circled(imports) == {"b", "c"}
