"""Where code decides by the text of an error, or by its code string, instead of by its class.

An error is what `except … as name` binds, a parameter or a field annotated with an exception, and an attribute named
`error`. Its text is str(error), its parts (`what`, `why`, `code`, …), and what a call makes of a text. The functions
of one module are followed: a text that is passed to one of them is a text there.
INVARIANT  the search sees names, not types: what it does not see is a text that crosses modules or is kept in a field.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tests.statements import parsed

_EXCEPTION = re.compile(r"\b(?:\w*(?:Error|Exception|Bug|Missing|Gone|Unreachable|Failed|Closed|Overtaken)|FixRequest"
                        r"|FixData|NotFound|Unsupported|OutcomeUnknown|PublishPending|Fenced|Stopped)\b")  # fmt: skip
_PARTS = {"what", "why", "fix", "code", "args", "strerror", "message", "msg", "sqlstate", "pgcode"}
_ANSWERS = {"getCondition", "getErrorClass", "getSqlState", "getMessage", "toString", "str", "name"}
_SEARCHES = {"startswith", "endswith", "find", "rfind", "index", "count"}
_MATCHES = {"search", "match", "fullmatch", "finditer", "findall"}
_LOOK_UPS = {"get", "pop"}
_NO_TEXT = {"len", "bool", "isinstance", "say", "print"}
_CODE = re.compile(r"TS\d{4}")
_COMPARED = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, order=True)
class Decision:
    """One place: the function that holds it (`Class.method`, empty for the module), the line and its source."""

    function: str
    line: int
    source: str


@dataclass
class _Known:
    """Names of a function that hold an error or the text of one; both only grow."""

    errors: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)

    def size(self) -> int:
        return len(self.errors) + len(self.texts)


def find_decisions(source: str) -> list[Decision]:
    """Of one module, in the order of its lines."""
    return sorted(set(_Module(parsed(source)).decisions()))


def find_code_strings(source: str) -> list[Decision]:
    """Texts `TS####` that are not the code of an error that is made there."""
    if not _CODE.search(source):
        return []
    tree = parsed(source)
    nodes = list(ast.walk(tree))
    made = {
        id(node.args[0])
        for node in nodes
        if isinstance(node, ast.Call) and node.args and _name(node.func)[:1].isupper()
    }
    functions = dict(_functions(tree))
    return sorted(
        Decision(_holder(functions, node), node.lineno, node.value)
        for node in nodes
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and _CODE.fullmatch(node.value)
        and id(node) not in made
    )


def _name(node: ast.expr) -> str:
    """The last part of a name with dots."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Functions with the names of their classes; those inside a function belong to it."""
    for node in tree.body:
        if isinstance(node, Function):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for one in node.body:
                if isinstance(one, Function):
                    yield f"{node.name}.{one.name}", one


def _holder(functions: Mapping[str, Function], node: ast.expr) -> str:
    for name, function in functions.items():
        if function.lineno <= node.lineno <= (function.end_lineno or 0):
            return name
    return ""


def _parameters(function: Function) -> list[ast.arg]:
    named = [*function.args.posonlyargs, *function.args.args]
    return [*(one for one in named if one.arg not in ("self", "cls")), *function.args.kwonlyargs]


class _Module:
    """The functions of a module, searched until no name is added."""

    def __init__(self, tree: ast.Module) -> None:
        self._functions = dict(_functions(tree))
        self._nodes = {name: list(ast.walk(function)) for name, function in self._functions.items()}
        self._known = {name: _Known() for name in self._functions}
        for name, nodes in self._nodes.items():
            self._bind(self._known[name], nodes)
        before = -1
        while before != (before := sum(known.size() for known in self._known.values())):
            for name, nodes in self._nodes.items():
                self._spread(self._known[name], nodes)

    def decisions(self) -> Iterator[Decision]:
        """Each comparison, search and look-up of a text."""
        for name, nodes in self._nodes.items():
            known = self._known[name]
            for node in nodes:
                if isinstance(node, ast.expr) and self._decides(known, node):
                    yield Decision(name, node.lineno, ast.unparse(node))
                elif isinstance(node, ast.Match) and self._is_text(known, node.subject):
                    yield Decision(name, node.lineno, f"match {ast.unparse(node.subject)}")

    @staticmethod
    def _bind(known: _Known, nodes: list[ast.AST]) -> None:
        """Errors by their annotation, or since they were caught."""
        for node in nodes:
            if isinstance(node, ast.ExceptHandler) and node.name:
                known.errors.add(node.name)
            elif isinstance(node, ast.arg) and _is_exception(node.annotation):
                known.errors.add(node.arg)

    def _spread(self, known: _Known, nodes: list[ast.AST]) -> None:
        """Over assignments, and into the functions that are called."""
        for node in nodes:
            match node:
                case ast.Assign(targets=[target], value=value) | ast.NamedExpr(target=target, value=value):
                    self._assign(known, target, value)
                case ast.comprehension(target=target, iter=value):
                    self._assign(known, target, value)
                case ast.Call():
                    self._pass_on(known, node)

    def _assign(self, known: _Known, target: ast.expr, value: ast.expr) -> None:
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=False))
        for one, given in pairs:
            if isinstance(one, ast.Name) and self._is_text(known, given):
                known.texts.add(one.id)
            elif isinstance(one, ast.Name) and self._is_error(known, given):
                known.errors.add(one.id)

    def _pass_on(self, known: _Known, call: ast.Call) -> None:
        called = _name(call.func)
        for name, function in self._functions.items():
            if name.rpartition(".")[2] != called:
                continue
            parameters = _parameters(function)
            given = list(zip((one.arg for one in parameters), call.args, strict=False))
            given += [(word.arg, word.value) for word in call.keywords if word.arg]
            for parameter, value in given:
                if self._is_text(known, value):
                    self._known[name].texts.add(parameter)
                elif self._is_error(known, value):
                    self._known[name].errors.add(parameter)

    def _is_error(self, known: _Known, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name):
                return name in known.errors
            case ast.Attribute(attr=name):
                return name in ("error", "java_exception", "__cause__")
            case ast.Call(func=func, args=args):  # one error made of another
                return _name(func) == "translate" and any(self._is_error(known, one) for one in args)
        return False

    def _is_text(self, known: _Known, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name):
                return name in known.texts
            case ast.Attribute(value=value, attr=attribute):
                return attribute in _PARTS and self._is_error(known, value)
            case ast.Subscript(value=value):
                return self._is_text(known, value)
            case ast.JoinedStr(values=values) | ast.BoolOp(values=values):
                return any(self._is_text(known, one) for one in values)
            case ast.FormattedValue(value=value):
                return self._is_text(known, value) or self._is_error(known, value)
            case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
                return self._is_text(known, left) or self._is_text(known, right)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return any(self._is_text(known, one) for one in parts)
            case ast.Starred(value=value):
                return self._is_text(known, value)
            case ast.Call():
                return self._is_text_of_call(known, node)
        return False

    def _is_text_of_call(self, known: _Known, call: ast.Call) -> bool:
        name, func = _name(call.func), call.func
        if name in _NO_TEXT or (name[:1].isupper()):
            return False
        if isinstance(func, ast.Attribute):
            if name in _ANSWERS and self._is_error(known, func.value):
                return True
            if self._is_text(known, func.value):
                return True
        if name in ("str", "repr") or self._returns_text(name):
            return any(self._is_error(known, one) or self._is_text(known, one) for one in call.args)
        return any(self._is_text(known, one) for one in call.args)

    def _returns_text(self, name: str) -> bool:
        return any(
            function.returns is not None and ast.unparse(function.returns) == "str"
            for one, function in self._functions.items()
            if one.rpartition(".")[2] == name
        )

    def _decides(self, known: _Known, node: ast.expr) -> bool:
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others):
                return any(isinstance(one, _COMPARED) for one in ops) and any(
                    self._is_text(known, one) or _is_code(one) for one in (left, *others)
                )
            case ast.Call(func=ast.Attribute(value=value, attr=name), args=args):
                if name in _SEARCHES:
                    return self._is_text(known, value) or _is_code(value)
                return name in _MATCHES | _LOOK_UPS and any(self._is_text(known, one) for one in args)
            case ast.Subscript(value=value, slice=at):
                return self._is_text(known, at) or (_name(value) == "args" and self._is_text(known, value))
        return False


def _is_exception(annotation: ast.expr | None) -> bool:
    return annotation is not None and _EXCEPTION.search(ast.unparse(annotation)) is not None


def _is_code(node: ast.expr) -> bool:
    """`x.code`, whatever x is: only errors have one that is not called."""
    return isinstance(node, ast.Attribute) and node.attr == "code"
