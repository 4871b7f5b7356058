"""Single edits of Python source: what a slip of the hand would change and still run.

Pure: source in, edits out. Strings, annotations, decorators and what a type checker alone reads are left as they are.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.MatMult: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
_UNREAD = (ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Assert)


@dataclass(frozen=True)
class Edit:
    """One change of a file.

    Attributes:
        line: where it begins, counted from 1.
        last: the last line of what it replaces.
        before, after: the text, and what takes its place.
        start, stop: bytes of the file from ``before``'s first to behind its last.

    Example:
        >>> [(edit.before, edit.after) for edit in edits_of("def room(n):\\n    return n < 3\\n")]
        [('n < 3', '(n <= 3)'), ('3', '(4)')]
    """

    line: int
    last: int
    before: str
    after: str
    start: int
    stop: int

    def applied(self, source: str) -> str:
        """The source with this edit in it."""
        data = source.encode()
        return (data[: self.start] + self.after.encode() + data[self.stop :]).decode()


def edits_of(source: str) -> list[Edit]:
    """All edits of a module, in order of place; each leaves a module that compiles."""
    data = source.encode()
    begins = [0]
    for line in data.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    found = []
    for node, after in _changes(ast.parse(source)):
        start = begins[node.lineno - 1] + node.col_offset
        stop = begins[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        before = data[start:stop].decode()
        found.append(Edit(node.lineno, node.end_lineno or node.lineno, before, after, start, stop))
    return sorted(found, key=lambda edit: (edit.start, -edit.stop, edit.after))


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Nodes at and below this one, with the text that takes their place."""
    if isinstance(node, ast.expr):
        yield from ((node, f"({text})") for text in _expressions(node))
    if isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield node, "pass"
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.Compare | ast.UnaryOp):
        yield node.test, f"(not ({ast.unparse(node.test)}))"
    for child in _children(node):
        yield from _changes(child)


def _expressions(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _SWAPPED:
        yield ast.unparse(ast.Compare(node.left, [_other(node.ops[0])], node.comparators))
    elif isinstance(node, ast.BinOp) and type(node.op) in _SWAPPED and not _of_text(node):
        yield ast.unparse(ast.BinOp(node.left, _other(node.op), node.right))
    elif isinstance(node, ast.BoolOp):
        yield ast.unparse(ast.BoolOp(_other(node.op), node.values))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield ast.unparse(node.operand)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield repr(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        larger = node.value + 1
        yield repr(larger if larger != node.value else 2 * node.value)  # 1e100 + 1 is 1e100


def _other(operator: ast.AST) -> ast.AST:
    return _SWAPPED[type(operator)]()


def _of_text(node: ast.BinOp) -> bool:
    """Joined texts and unions of types, where another operator raises in every test alike."""
    kinds = {type(each.value) for each in ast.walk(node) if isinstance(each, ast.Constant)}
    return bool(kinds & {str, type(None)}) or any(isinstance(each, ast.JoinedStr) for each in ast.walk(node))


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """What runs below a node."""
    if isinstance(node, _UNREAD):
        return
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "format_spec", "bases", "keywords"} and not isinstance(
            node, ast.Call
        ):
            continue
        if isinstance(node, ast.If) and name == "body" and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                yield each
