"""Small faults in a module, one at a time: the mutants that tests ought to notice.

What is changed: comparisons, `and` and `or` and each of their operands, `not`, conditions, constants, arithmetic,
returned values, statements, keyword arguments, entries of displays, slices, and each value that an f-string tells. What
is not: annotations, decorators, imports, docstrings and the wording of f-strings.
"""

import ast
import copy
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

SKIPPED = {"annotation", "returns", "decorator_list", "bases", "format_spec", "ctx", "op", "ops"}
LONGEST = 150  # characters of a mutant's description
COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
OPPOSITES = {"max": "min", "min": "max", "any": "all", "all": "any"}
UNDONE = {"strip", "rstrip", "replace"}  # methods whose object does nearly as well


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault. `code` is the mutated function's, or the module's where it is not within a function."""

    module: str
    function: str
    before: str
    after: str
    number: int
    """Among mutants of this function that read alike, from 1."""
    line: int
    code: CodeType

    @property
    def whole(self) -> bool:
        """Whether the module has to be executed anew for it."""
        return self.code.co_name == "<module>"

    @property
    def key(self) -> str:
        """What tells it from all others, whatever its line."""
        number = f" ({self.number})" if self.number > 1 else ""
        return f"`{self.module}.{self.function}`: `{self.before}` → `{self.after}`{number}"


def mutants(path: Path) -> Iterator[Mutant]:
    """All mutants of a module, in the order of its lines."""
    tree = ast.parse(path.read_text())
    seen: dict[tuple[str, str, str], int] = {}
    for parent, field, index, function in list(_sites(tree, "")):
        node = _get(parent, field, index)
        shown = node if isinstance(node, ast.stmt) or not isinstance(parent, ast.expr | ast.keyword) else parent
        before, line = _text(shown, node), getattr(node, "lineno", getattr(parent, "lineno", 1))
        for other in _alternatives(node, parent):
            _put(parent, field, index, ast.fix_missing_locations(ast.copy_location(other, node)))
            after = _text(other if shown is node else shown, other)
            code = compile(tree, str(path), "exec", dont_inherit=True)
            same = (function, before, after)
            seen[same] = seen.get(same, 0) + 1
            found = _code(code, function)
            yield Mutant(path.stem, function or "module", before, after, seen[same], line, found or code)
            _put(parent, field, index, node)


def _sites(node: ast.AST, function: str) -> Iterator[tuple[ast.AST, str, int | None, str]]:
    """Places of nodes: parent, its field, the index in it, and the qualified name of the function."""
    for field, value in ast.iter_fields(node):
        if field in SKIPPED:
            continue
        inner = function
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and field == "body":
            inner = f"{function}.{node.name}" if function else node.name
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or _no_behaviour(child, node):
                continue
            yield node, field, index, inner
            yield from _sites(child, inner)


def _no_behaviour(node: ast.AST, parent: ast.AST) -> bool:
    if isinstance(node, ast.Constant) and isinstance(parent, ast.JoinedStr):
        return True  # wording
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True  # a docstring
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
        return True
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in ("Literal", "dict"):
        return True  # a type
    return isinstance(node, ast.Import | ast.ImportFrom)


def _alternatives(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare():
            for index, operator in enumerate(node.ops):
                for other in COMPARISONS[type(operator)]:
                    yield _changed(node, ops=[*node.ops[:index], other(), *node.ops[index + 1 :]])
        case ast.BoolOp():
            yield _changed(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
            yield from _shorter(node, "values")
        case ast.UnaryOp():
            yield node.operand
        case ast.BinOp() if type(node.op) in ARITHMETIC:
            yield _changed(node, op=ARITHMETIC[type(node.op)]())
        case ast.Constant():
            yield from _constants(node.value)
        case ast.JoinedStr():
            yield ast.Constant("")
            if sum(isinstance(part, ast.FormattedValue) for part in node.values) + len(node.values) > 2:
                for index, part in enumerate(node.values):
                    if isinstance(part, ast.FormattedValue):
                        yield _changed(node, values=[*node.values[:index], *node.values[index + 1 :]])
        case ast.Return(value=ast.AST() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield ast.Return(ast.Constant(None))
        case ast.Expr() | ast.Assign() | ast.AugAssign() if not isinstance(parent, ast.Module | ast.ClassDef):
            yield ast.Pass()
        case ast.Continue():
            yield ast.Pass()
        case ast.Call():
            yield from _calls(node)
        case ast.Subscript(slice=ast.Slice()):
            yield node.value
        case ast.Dict() if node.keys:
            for index in range(len(node.keys)):
                left = [one for number, one in enumerate(node.keys) if number != index]
                yield ast.Dict(left, [one for number, one in enumerate(node.values) if number != index])
        case ast.Set() | ast.List() | ast.Tuple() if len(node.elts) > 1 and not _is_target(node):
            yield from _shorter(node, "elts")
    yield from _conditions(node)


def _conditions(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.If() | ast.IfExp() | ast.While():
            for value in (True, False):
                yield _changed(node, test=ast.Constant(value))
        case ast.comprehension() if node.ifs:
            for value in (True, False):
                yield _changed(node, ifs=[ast.Constant(value)])


def _constants(value: object) -> Iterator[ast.AST]:
    match value:
        case bool():
            yield ast.Constant(not value)
        case int() | float():
            yield ast.Constant(value + 1)
        case str():
            yield ast.Constant("XX" + value if value else "XX")


def _calls(node: ast.Call) -> Iterator[ast.AST]:
    match node.func:
        case ast.Name(id=name) if name in OPPOSITES:
            yield _changed(node, func=ast.Name(OPPOSITES[name], ast.Load()))
        case ast.Name(id="reversed" | "sorted"):
            yield ast.Call(ast.Name("list", ast.Load()), node.args[:1], [])
        case ast.Attribute(attr=name) if name in UNDONE:
            yield node.func.value
    yield from _shorter(node, "keywords", least=0)


def _shorter(node: ast.AST, field: str, least: int = 1) -> Iterator[ast.AST]:
    parts = getattr(node, field)
    for index in range(len(parts)) if len(parts) > least else ():
        left = [*parts[:index], *parts[index + 1 :]]
        yield left[0] if isinstance(node, ast.BoolOp) and len(left) == 1 else _changed(node, **{field: left})


def _changed(node: ast.AST, **fields: object) -> ast.AST:
    other = copy.copy(node)
    for field, value in fields.items():
        setattr(other, field, value)
    return other


def _is_target(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)


def _get(parent: ast.AST, field: str, index: int | None) -> ast.AST:
    value = getattr(parent, field)
    return value if index is None else value[index]


def _put(parent: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def _text(node: ast.AST, changed: ast.AST) -> str:
    """The code in one line; of a statement with a body, its head."""
    if isinstance(node, ast.If | ast.While):
        return f"if {_text(node.test, changed)}"
    if isinstance(node, ast.comprehension):
        return " ".join(f"if {ast.unparse(one)}" for one in node.ifs)
    if isinstance(node, ast.keyword):
        return f"{node.arg}={_text(node.value, changed)}"
    text = " ".join(ast.unparse(node).split())
    if len(text) <= LONGEST:
        return text
    inner = " ".join(ast.unparse(changed).split())
    begin = max(0, min(text.find(inner), len(text) - LONGEST)) if inner in text and len(inner) < LONGEST else 0
    return ("…" if begin else "") + text[begin : begin + LONGEST] + "…"


def _code(code: CodeType, function: str) -> CodeType | None:
    """The code of the function of that qualified name; None for the module, or the body of a class."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and function:
            if constant.co_qualname == function and constant.co_flags & inspect.CO_OPTIMIZED:
                return constant
            if function.startswith(constant.co_qualname + ".") and (found := _code(constant, function)):
                return found
    return None
