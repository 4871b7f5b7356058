"""A signature states what a caller may pass: types that are known, and defaults of these types."""

import builtins
import importlib
import inspect
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar, Union, overload

from privstats.schema.checks import Required
from tests.lacking import needs
from tests.project.public_names import public_modules
from tests.without import WHOLE


class Unknown:
    """A type that only a type checker imports: any value fits it."""

    def __class_getitem__(cls, _: object) -> type:
        return cls


class Names(dict[str, Any]):
    """Names of a module, for its annotations."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, Unknown)


def public_callables() -> Iterator[tuple[str, Any, str]]:
    """Yield each public function, class and public method: its name, itself, and the module of its annotations."""
    seen = set()
    for module in public_modules():
        loaded = importlib.import_module(module)
        for name in loaded.__all__:
            value = getattr(loaded, name)
            if id(value) in seen:
                continue
            seen.add(id(value))
            if inspect.isfunction(value):
                yield f"{module}.{name}", value, value.__module__
            elif isinstance(value, type) and value.__module__.startswith("privstats."):
                yield f"{module}.{name}", value, value.__module__
                for method, function in vars(value).items():
                    if inspect.isfunction(function) and not method.startswith("_"):
                        yield f"{module}.{name}.{method}", function, function.__module__


def hint_of(parameter: inspect.Parameter, owner: Any, module: str) -> Any:
    """Return a parameter's annotation as a type."""
    if isinstance(owner, type):  # a field belongs to the class that annotates it
        annotating = (cls for cls in owner.__mro__ if parameter.name in vars(cls).get("__annotations__", {}))
        module = next(annotating, owner).__module__
    hint = parameter.annotation
    return eval(hint, {}, Names(vars(importlib.import_module(module)))) if isinstance(hint, str) else hint


def fits(value: object, hint: Any) -> bool:
    """Return whether a value is of a type."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, part) for part in parts)
    if origin is Annotated:
        return fits(value, parts[0])
    if origin is Literal:
        return value in parts
    if hint is None or hint is type(None):
        return value is None
    kind = origin or hint
    if (
        hint in (Any, Unknown)
        or not isinstance(kind, type)
        or isinstance(hint, TypeVar)
        or getattr(kind, "_is_protocol", False)
    ):
        return True
    return isinstance(value, (int, float) if kind is float else kind)


def is_unstated(default: object) -> bool:
    """Return whether a default stands for no value: a required field, or one that a factory fills."""
    return isinstance(default, Required) or repr(default) == "<factory>"


def mistyped(callables: Iterator[tuple[str, Any, str]]) -> Iterator[str]:
    """Yield each parameter whose default is not of its annotation."""
    for name, value, module in callables:
        try:
            parameters: Mapping[str, inspect.Parameter] = inspect.signature(value).parameters
        except ValueError:  # a class of the interpreter's own kind states none
            continue
        for each in parameters.values():
            stated = each.empty not in (each.default, each.annotation)
            if stated and not is_unstated(each.default) and not fits(each.default, hint_of(each, value, module)):
                yield f"{name}: {each}"


def untyped(callables: Iterator[tuple[str, Any, str]]) -> Iterator[str]:
    """Yield each function with overloads whose own signature, which ``help`` prints, states no type."""
    for name, value, _ in callables:
        if inspect.isfunction(value) and typing.get_overloads(value):
            signature = inspect.signature(value)
            hints = {each.name: each.annotation for each in signature.parameters.values()}
            yield from (
                f"{name}: {each}"
                for each, hint in (hints | {"return": signature.return_annotation}).items()
                if hint in (Any, "Any")
            )


@WHOLE
def test_every_default_of_a_public_parameter_is_of_its_type() -> None:
    needs("hypothesis")
    assert list(mistyped(public_callables())) == []


@WHOLE
def test_every_public_function_with_overloads_states_types_itself() -> None:
    needs("hypothesis")
    assert list(untyped(public_callables())) == []


def test_a_default_of_another_type_is_seen() -> None:
    def careless(first: int = ..., second: "float | None" = "x", third: float = 1, fourth: Mapping[str, int] = {}): ...  # type: ignore[assignment]

    assert list(mistyped(iter([("careless", careless, __name__)]))) == [
        "careless: first: int = Ellipsis",
        "careless: second: 'float | None' = 'x'",
    ]


def test_a_function_whose_overloads_alone_state_types_is_seen() -> None:
    @overload
    def doubled(value: int) -> int: ...
    @overload
    def doubled(value: str) -> str: ...
    def doubled(value: Any) -> Any:
        return 2 * value

    assert list(untyped(iter([("doubled", doubled, __name__)]))) == ["doubled: value", "doubled: return"]
