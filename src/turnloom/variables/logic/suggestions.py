"""Derived variables that stand for conditions which rules cannot have: `!=`, `>`, OR, NOT."""

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from turnloom.kernel.values import Json, as_data
from turnloom.variables.spec import Derived, VariableDefinition

_TOKEN = re.compile(
    r"""(?P<text>"[^"]*"|'[^']*')|\$\{\s*(?P<braced>\w+)\s*\}|(?P<op>&&|\|\||!(?!=))|(?P<word>\w+)""",
    re.VERBOSE,
)
_WHEN = re.compile(r"\s*when\b", re.IGNORECASE)
_SIGNS = {"&&": " and ", "||": " or ", "!": " not "}
_WORDS = {"true": "True", "false": "False", "null": "None", "none": "None"}
_LOGIC = ("and", "or", "not", "in")

_COMPARED: dict[type, tuple[Callable[[Any, Any], bool], str]] = {
    ast.Eq: (operator.eq, "is"),
    ast.NotEq: (operator.ne, "is_not"),
    ast.Gt: (operator.gt, "over"),
    ast.GtE: (operator.ge, "at_least"),
    ast.Lt: (operator.lt, "below"),
    ast.LtE: (operator.le, "at_most"),
    ast.In: (lambda value, among: value in among, "in"),
    ast.NotIn: (lambda value, among: value not in among, "not_in"),
}
_ORDERED = (ast.Gt, ast.GtE, ast.Lt, ast.LtE)


def suggest(text: str, definitions: Mapping[str, VariableDefinition]) -> str:
    """How to declare a variable that is true where a condition holds; empty if the condition cannot
    be read."""
    node = _parsed(text)
    if node is None or not _names(node):
        return ""
    if isinstance(node, ast.Name) and _is_flag(definitions.get(node.id)):
        return f"Write `${{{node.id}}} == True`."
    name = _fresh(_label(node), {*definitions, *_names(node)})
    triggers = _changes(node, definitions) or [{"type": "function", "function": name}]
    source = {"type": "derived", "default": _at_start(node, definitions), "triggers": triggers}
    declared = f"{as_data(name)}: {as_data({'type': 'boolean', 'source': source})}"
    code = ""
    if triggers[0]["type"] == "function":
        says = ast.unparse(_Values().visit(node))
        line = f"import turnloom; {name} = turnloom.derivation(lambda event, values: {says})"
        code = f" and `{line}` to `derivations.py`"
    return f"Add `{declared}` under `definitions`{code}, and write `${{{name}}} == True`."


def _is_flag(definition: VariableDefinition | None) -> bool:
    return definition is None or definition.type in (None, "boolean")


def variables_in(text: str) -> list[str]:
    """The variables of a condition that rules cannot have; none if it cannot be read."""
    node = _parsed(text)
    return [] if node is None else _names(node)


def _parsed(text: str) -> ast.expr | None:
    """The condition as an expression of Python, if it is one of names, values and comparisons."""
    if when := _WHEN.match(text):
        text = text[when.end() :]
    written = _TOKEN.sub(_token, text)
    written = re.sub(r"==\s*not\b", "!=", written).strip()
    try:
        node = ast.parse(written, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return node if _is_plain(node) else None


def _token(found: re.Match[str]) -> str:
    if found["text"]:
        return repr(found["text"][1:-1])
    if found["op"]:
        return _SIGNS[found["op"]]
    word = found["braced"] or found["word"]
    lowered = word.lower()
    if found["word"] and lowered == "is":
        return "=="
    if found["word"] and lowered in _LOGIC:
        return lowered
    return _WORDS.get(lowered, word) if found["word"] else word


def _is_plain(node: ast.expr) -> bool:
    """Whether an expression has only logic and comparisons of names with values."""
    match node:
        case ast.BoolOp(values=parts):
            return all(map(_is_plain, parts))
        case ast.UnaryOp(op=ast.Not(), operand=part):
            return _is_plain(part)
        case ast.Compare(left=ast.Name(), ops=[op], comparators=[value]):
            return type(op) in _COMPARED and _is_value(value)
        case ast.Name():
            return True
        case _:
            return False


def _is_value(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return False
    return True


def _names(node: ast.expr) -> list[str]:
    return list(dict.fromkeys(each.id for each in ast.walk(node) if isinstance(each, ast.Name)))


def _holds(node: ast.expr, values: Mapping[str, Json]) -> bool:
    """Whether a condition holds for some values; one that cannot be compared does not."""
    match node:
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_holds(each, values) for each in parts)
        case ast.BoolOp(values=parts):
            return any(_holds(each, values) for each in parts)
        case ast.UnaryOp(operand=part):
            return not _holds(part, values)
        case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[value]):
            try:
                return _COMPARED[type(op)][0](values.get(name), ast.literal_eval(value))
            except TypeError:
                return False
        case ast.Name(id=name):
            return bool(values.get(name))
        case _:
            return False


def _at_start(node: ast.expr, definitions: Mapping[str, VariableDefinition]) -> bool:
    """Whether a condition holds for the defaults of its variables."""
    found = {name: definitions[name] for name in _names(node) if name in definitions}
    return _holds(
        node, {name: getattr(each.source, "default", None) for name, each in found.items()}
    )


def _changes(
    node: ast.expr, definitions: Mapping[str, VariableDefinition]
) -> Sequence[dict[str, Json]]:
    """A trigger for each value of the variable of a condition; none if it has several variables, or
    if its values are not known."""
    names = _names(node)
    definition = definitions.get(names[0])
    if len(names) > 1 or definition is None or not isinstance(definition.source, Derived):
        return ()
    possible = (True, False) if definition.type == "boolean" else definition.enum or ()
    return [
        {
            "type": "context_changed",
            "variable": names[0],
            "equals": value,
            "value": _holds(node, {names[0]: value}),
        }
        for value in possible
    ]


class _Values(ast.NodeTransformer):
    """Replaces names by their values, with zero for no value where sizes are compared."""

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Read the value of a comparison."""
        zero = " or 0" if isinstance(node.ops[0], _ORDERED) else ""
        name = ast.unparse(node.left)
        left = ast.parse(f"(values.get({name!r}){zero})", mode="eval").body
        return ast.Compare(left, node.ops, node.comparators)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Read whether there is a value, as of a flag."""
        return ast.parse(f"bool(values.get({node.id!r}))", mode="eval").body


def _label(node: ast.expr) -> str:
    """A name for a condition, from its words."""
    match node:
        case ast.BoolOp(op=op, values=parts):
            return f"_{type(op).__name__.lower()}_".join(map(_label, parts))
        case ast.UnaryOp(operand=part):
            return f"not_{_label(part)}"
        case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[value]):
            said = ast.literal_eval(value)
            if isinstance(said, bool) and isinstance(op, ast.Eq | ast.NotEq):
                return name if said == isinstance(op, ast.Eq) else f"not_{name}"
            return f"{name}_{_COMPARED[type(op)][1]}_{said}"
        case _:
            return ast.unparse(node)


def _fresh(label: str, taken: Set[str]) -> str:
    """A valid name that no variable has."""
    name = re.sub(r"[\W_]+", "_", label).strip("_").lower()[:60]
    while name in taken:
        name = f"{name}_holds"
    return name
