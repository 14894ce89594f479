"""The mutation operators: which faults a source text can be given.

An edit replaces a span of the text and leaves the rest as it is, so that the difference is easy
to read. Left alone are docstrings, annotations, decorators, f-strings, strings with a space,
logging calls, checks of the platform, and what only a type checker reads.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

_Scope: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_COMPARISONS: Final[dict[type[ast.cmpop], tuple[str, str]]] = {
    ast.Eq: (r"==", "!="),
    ast.NotEq: (r"!=", "=="),
    ast.Lt: (r"<", "<="),
    ast.LtE: (r"<=", "<"),
    ast.Gt: (r">", ">="),
    ast.GtE: (r">=", ">"),
    ast.Is: (r"\bis\b", "is not"),
    ast.IsNot: (r"\bis\s+not\b", "is"),
    ast.In: (r"\bin\b", "not in"),
    ast.NotIn: (r"\bnot\s+in\b", "in"),
}
_LOGGERS: Final = re.compile(r"_*log(ger|ging)?", re.IGNORECASE)
_LOG_METHODS: Final = frozenset(
    ("debug", "info", "warning", "error", "exception", "critical", "log")
)
_PLATFORM: Final = frozenset(
    ("sys.version_info", "sys.platform", "os.name", "TYPE_CHECKING", "typing.TYPE_CHECKING")
)
_DECLARATIONS: Final = frozenset(("__all__", "__slots__", "__match_args__"))
# Calls and subscripts whose strings name types.
_TYPE_NAMES: Final = frozenset(("cast", "TypeVar", "ParamSpec", "NewType", "Literal"))
_OPENING_QUOTE: Final = re.compile(rb"[a-zA-Z]*(\"\"\"|'''|\"|')")
_COMMA: Final = re.compile(rb"\s*,")


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """One fault: bytes `start` to `end` of the source are replaced by `text`."""

    start: int
    end: int
    operator: str
    text: str
    # A test that executes one of these lines, the first to the last, may notice the fault.
    first_line: int
    last_line: int
    # True if the span is outside of every function: it runs when the module is imported.
    at_import: bool

    def apply(self, source: str) -> str:
        """Return the source with the fault."""
        data = source.encode()
        return (data[: self.start] + self.text.encode() + data[self.end :]).decode()


def edits_of(source: str) -> list[Edit]:
    """Return every edit of a source text, in the order of their places."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    return sorted(set(finder.edits))


def is_valid(edit: Edit, source: str) -> bool:
    """Return True if the edit changes the source and it still compiles."""
    text = edit.apply(source)
    try:
        compile(text, "<mutant>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return text != source


class _Finder(ast.NodeVisitor):
    """Walks over a module and collects edits."""

    def __init__(self, source: str) -> None:
        self.edits: list[Edit] = []
        self._source = source.encode()
        self._line_starts = [0]
        for line in self._source.splitlines(keepends=True):
            self._line_starts.append(self._line_starts[-1] + len(line))
        self._functions: list[_Scope] = []
        self._lines = (1, 1)

    # -- positions ---------------------------------------------------------------------------

    def _start(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        return self._line_starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        line, column = node.end_lineno, node.end_col_offset
        if line is None or column is None:
            raise ValueError("a parsed node has an end")
        return self._line_starts[line - 1] + column

    def _text(self, node: ast.expr) -> str:
        return self._source[self._start(node) : self._end(node)].decode()

    def _add(self, operator: str, start: int, end: int, text: str) -> None:
        first, last = self._lines
        at_import = not self._functions
        self.edits.append(Edit(start, end, operator, text, first, last, at_import))

    def _replace(self, operator: str, node: ast.expr | ast.stmt, text: str) -> None:
        self._add(operator, self._start(node), self._end(node), text)

    # -- the walk ----------------------------------------------------------------------------

    def visit(self, node: ast.AST) -> None:
        """Visit a node, unless nothing in it is to be changed."""
        if _is_left_alone(node):
            return
        outer = self._lines
        if isinstance(node, ast.stmt):
            self._lines = (node.lineno, _last_line_of_head(node))
        super().visit(node)
        self._lines = outer

    def _visit_all(self, nodes: list[ast.stmt] | list[ast.expr]) -> None:
        for node in nodes:
            self.visit(node)

    def _visit_function(self, node: _Scope) -> None:
        if not isinstance(node, ast.Lambda) and _is_overload(node):
            return
        self._visit_all(node.args.defaults)
        self._visit_all([default for default in node.args.kw_defaults if default is not None])
        self._functions.append(node)
        if isinstance(node, ast.Lambda):
            self.visit(node.body)
        else:
            self._visit_all(node.body)
        self._functions.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Visit the defaults and the body, not the decorators and annotations."""
        self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """Visit the defaults and the body, not the decorators and annotations."""
        self._visit_function(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Visit the defaults and the body."""
        self._visit_function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Visit the body, not the bases and their settings; a protocol has nothing that runs."""
        if not any("Protocol" in _names_in(base) for base in node.bases):
            self._visit_all(node.body)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Visit the value, not the annotation."""
        if node.value is not None and "TypeAlias" not in ast.dump(node.annotation):
            self._remove_attribute(node, [node.target])
            self.visit(node.value)

    # -- operators on expressions ------------------------------------------------------------

    def visit_Constant(self, node: ast.Constant) -> None:
        """Add one to numbers, flip truth values, put XX in front of strings."""
        value = node.value
        if isinstance(value, bool):
            self._replace("number", node, str(not value))
        elif isinstance(value, (int, float)):
            self._replace("number", node, repr(value + 1))
        elif (isinstance(value, str) and " " not in value) or (
            isinstance(value, bytes) and b" " not in value
        ):
            quote = _OPENING_QUOTE.match(self._source, self._start(node))
            if quote is not None:
                self._add("string", quote.end(), quote.end(), "XX")

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Exchange `and` and `or`."""
        word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        start = self._start(node.values[0])
        pieces, at = [], start
        for left, right in zip(node.values, node.values[1:], strict=False):
            gap = self._between(left, right)
            pieces.append(self._source[at : self._end(left)].decode())
            pieces.append(_replace_outside_comments(rf"\b{word}\b", other, gap))
            at = self._start(right)
        pieces.append(self._source[at : self._end(node)].decode())
        self._add("and/or", start, self._end(node), "".join(pieces))
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Exchange a comparison with its opposite, or `<` with `<=`."""
        if len(node.ops) == 1 and not _is_platform_check(node):
            pattern, other = _COMPARISONS[type(node.ops[0])]
            right = node.comparators[0]
            gap = _replace_outside_comments(pattern, other, self._between(node.left, right))
            self._add("comparison", self._end(node.left), self._start(right), gap)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """Negate the condition of `a if b else c`."""
        self._negate(node.test)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Drop one keyword argument."""
        for keyword in node.keywords:
            if keyword.arg is not None:
                comma = _COMMA.match(self._source, self._end(keyword))
                end = comma.end() if comma else self._end(keyword)
                self._add("keyword", self._start(keyword), end, "")
        self.generic_visit(node)

    # -- operators on statements -------------------------------------------------------------

    def visit_Expr(self, node: ast.Expr) -> None:
        """Remove a call, awaited or not, whose value is not used."""
        if isinstance(node.value, ast.Call):
            self._replace("call", node, "pass")
        elif isinstance(node.value, ast.Await):
            self._replace("await", node, "pass")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Remove an assignment to an attribute."""
        self._remove_attribute(node, node.targets)
        self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Remove a change of an attribute."""
        self._remove_attribute(node, [node.target])
        self.visit(node.value)

    def _remove_attribute(self, node: ast.stmt, targets: list[ast.expr]) -> None:
        # Without an assignment in `__init__` nearly every test fails: that shows little.
        function = self._functions[-1] if self._functions else None
        if isinstance(function, ast.FunctionDef) and function.name == "__init__":
            return
        if all(isinstance(target, ast.Attribute) for target in targets):
            self._replace("attribute", node, "pass")

    def visit_Return(self, node: ast.Return) -> None:
        """Return None in place of a value."""
        if node.value is not None and not _is_none(node.value):
            self._replace("return", node, "return None")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        """Go on in place of raising."""
        if node.exc is None or "NotImplementedError" not in self._text(node.exc):
            self._replace("raise", node, "pass")
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        """Go on with the body of the loop."""
        self._replace("jump", node, "pass")

    def visit_Break(self, node: ast.Break) -> None:
        """Go on with the body of the loop."""
        self._replace("jump", node, "pass")

    def visit_If(self, node: ast.If) -> None:
        """Negate the condition."""
        self._negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        """Negate the condition."""
        self._negate(node.test)
        self.generic_visit(node)

    def _negate(self, test: ast.expr) -> None:
        if not isinstance(test, ast.Constant) and not _is_platform_check(test):
            self._replace("condition", test, f"not ({self._text(test)})")

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        """Do nothing about an exception."""
        body = [each for each in node.body if not _is_left_alone(each)]
        if body and not all(isinstance(each, ast.Pass) for each in body):
            outer = self._lines
            self._lines = (node.body[0].lineno, node.body[-1].end_lineno or node.lineno)
            self._add("except", self._start(node.body[0]), self._end(node.body[-1]), "pass")
            self._lines = outer
        self._visit_all(node.body)

    def _between(self, left: ast.expr, right: ast.expr) -> str:
        return self._source[self._end(left) : self._start(right)].decode()


# -- what is left alone ----------------------------------------------------------------------


def _is_left_alone(node: ast.AST) -> bool:
    """Return True for nodes that are not changed, with all that is in them."""
    if isinstance(node, ast.JoinedStr):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or _is_left_alone(node.value)
    if isinstance(node, ast.Call):
        return _is_log_call(node) or _name_of(node.func).split(".")[-1] in _TYPE_NAMES
    if isinstance(node, ast.Subscript):
        return _name_of(node.value).split(".")[-1] in _TYPE_NAMES
    if isinstance(node, ast.Assign):
        return any(_name_of(target) in _DECLARATIONS for target in node.targets)
    if isinstance(node, ast.If):
        name = _name_of(node.test).split(".")[-1]
        return name == "TYPE_CHECKING" or "__name__" in _names_in(node.test)
    return False


def _is_overload(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return True for a function that only a type checker reads."""
    return any(_name_of(each).split(".")[-1] == "overload" for each in node.decorator_list)


def _is_log_call(node: ast.Call) -> bool:
    """Return True for calls such as `_log.info(...)`."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in _LOG_METHODS:
        return False
    logger = _name_of(node.func.value).split(".")[-1]
    return _LOGGERS.fullmatch(logger) is not None


def _is_platform_check(node: ast.expr) -> bool:
    """Return True if an expression asks for the platform: one run sees one answer."""
    return not _PLATFORM.isdisjoint(_names_in(node))


def _names_in(node: ast.AST) -> Iterator[str]:
    """Yield the dotted names in an expression."""
    for each in ast.walk(node):
        if name := _name_of(each):
            yield name


def _name_of(node: ast.AST) -> str:
    """Return a name, dotted or not, as it is written; an empty string for other expressions."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_name_of(node.value)}.{node.attr}".lstrip(".")
    return ""


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _last_line_of_head(node: ast.stmt) -> int:
    """Return the last line of a statement; of a compound one, that of its head."""
    body: list[ast.stmt] | None = getattr(node, "body", None)
    if body:
        return max(node.lineno, body[0].lineno - 1)
    return node.end_lineno or node.lineno


def _replace_outside_comments(pattern: str, text: str, gap: str) -> str:
    """Replace the first match of `pattern` in the code between two expressions."""
    lines = gap.split("\n")
    for number, line in enumerate(lines):
        code, mark, comment = line.partition("#")
        changed, count = re.subn(pattern, text, code, count=1)
        if count:
            lines[number] = changed + mark + comment
            break
    return "\n".join(lines)
