"""Find leftovers: notes, history, former names, machine paths, debug calls."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

TEXT_SUFFIXES = {
    *("", ".cfg", ".css", ".html", ".ini", ".js", ".json", ".lock", ".md", ".py", ".sh"),
    *(".sql", ".toml", ".ts", ".tsx", ".txt", ".yaml", ".yml"),
}


@dataclass(frozen=True)
class Rule:
    name: str
    pattern: re.Pattern[str]
    says: str


@dataclass(frozen=True)
class Exemption:
    glob: str
    rules: frozenset[str]
    because: str


LINE_RULES = (
    Rule("note", re.compile(r"\b(TODO|FIXME|XXX|HACK)\b"), "a note to self; do it or drop it"),
    Rule(
        "history",
        re.compile(
            r"\b(for now|legacy|phase[ -]?\d+|formerly|used to be|renamed from|moved from"
            r"|refactored|backwards?[- ]compat\w*|temporary (fix|hack)"
            r"|(old|new) (way|code|implementation)|(issue|ticket|pull request) #?\d+)\b",
            re.IGNORECASE,
        ),
        "history; say what is, not what was",
    ),
    Rule(
        "machine path",
        re.compile(r"(?<![\w.~-])/(home|root|work|tmp|Users)/\w"),
        "a path of one machine",
    ),
)
LOCK_RULE = Rule(
    "host",
    re.compile(r"://|--(extra-)?index-url|--find-links|file:"),
    "the lock names a host or a place; `make lock` writes none",
)
# No file is exempt from this rule, so the pattern must not match itself.
FORMER_NAME = re.compile("[w][e][f][t]", re.IGNORECASE)
DEBUG_CALLS = {"breakpoint", "print", "pprint"}
EMPTY_CLASS = re.compile(r"^(Base|Abstract)(?=[A-Z])|(Manager|Helpers?|Utils?|Base|Abstract)$")
EMPTY_MODULE = re.compile(r"(^|_)(managers?|helpers?|utils?|base|abstract|common|misc)(_|$)")
DATED_NAME = re.compile(r"_(old|new|legacy|tmp|v\d+)$|(Old|New|Legacy|V\d+)$")

ALL = frozenset(rule.name for rule in LINE_RULES)
EXEMPT = (
    Exemption("gates/residue.py", ALL, "it contains its patterns"),
    Exemption("tests/gates/*", ALL, "its tests plant violations"),
    Exemption("LICENSE", ALL, "the text is not ours"),
    Exemption("CHANGELOG.md", frozenset({"history"}), "history is its subject"),
    Exemption("docs/decisions/*", frozenset({"history"}), "a dated record of a choice"),
)


def list_files() -> list[Path]:
    """List the files that git tracks or would track."""
    done = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    paths = sorted(Path(name) for name in set(done.stdout.split("\0")) if name)
    return [path for path in paths if path.is_file()]


def is_exempt(path: Path, rule: str) -> bool:
    return any(rule in item.rules and fnmatch(path.as_posix(), item.glob) for item in EXEMPT)


def check_lines(path: Path, text: str) -> Iterator[str]:
    rules = (*LINE_RULES, LOCK_RULE) if path.suffix == ".lock" else LINE_RULES
    active = [rule for rule in rules if not is_exempt(path, rule.name)]
    for number, line in enumerate(text.splitlines(), start=1):
        for rule in active:
            if found := rule.pattern.search(line):
                yield f"{path.as_posix()}:{number}: {found[0]!r} is {rule.says}"


def check_source(path: Path, text: str) -> Iterator[str]:
    where = path.as_posix()
    for part in path.with_suffix("").parts:
        if EMPTY_MODULE.search(part) or DATED_NAME.search(part):
            yield f"{where}:1: module name {part!r} is generic; name the thing"
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        yield f"{where}:{error.lineno}: cannot be read: {error.msg}"
        return
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(name)) if name in DEBUG_CALLS:
                yield f"{where}:{node.lineno}: call of {name!r} is a leftover"
            case ast.ClassDef(name) if EMPTY_CLASS.search(name) or DATED_NAME.search(name):
                yield f"{where}:{node.lineno}: class name {name!r} is generic; name the thing"
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) if DATED_NAME.search(name):
                yield f"{where}:{node.lineno}: function name {name!r} is dated; name the thing"
            case _:
                pass


def check_name(path: Path, text: str) -> Iterator[str]:
    """Find the former name of the project in paths and texts."""
    where = path.as_posix()
    if found := FORMER_NAME.search(where):
        yield f"{where}:1: {found[0]!r} in the path is the project's former name"
    if found := FORMER_NAME.search(text):
        line = text.count("\n", 0, found.start()) + 1
        yield f"{where}:{line}: {found[0]!r} is the project's former name"


def check(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        text = path.read_text(encoding="utf-8", errors="replace")
        yield from check_name(path, text)
        if path.suffix in TEXT_SUFFIXES:
            yield from check_lines(path, text)
        if path.suffix == ".py" and path.parts[0] == "src":
            yield from check_source(path, text)


def main() -> int:
    problems = list(check(list_files()))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
