import re

from tests.gates.conftest import ROOT, Tree

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")

RED_EVERYWHERE = {
    "src/turnloom/errors.py": """\
        '''Not formatted, not typed, not clean.'''
        import os
        def give(value):   # TODO type it
            return value
    """,
    "src/turnloom/helpers.py": '"""No concept, so no layer."""\n',
    "src/turnloom/kernel.py": '"""Long."""\n' + "\n" * 600,
}


def test_a_clean_tree_is_green_and_quiet(tree: Tree) -> None:
    outcome = tree.make("check")
    assert (outcome.code, outcome.words) == (0, "")


def test_every_gate_runs_and_each_can_turn_make_check_red(tree: Tree) -> None:
    for name, text in RED_EVERYWHERE.items():
        tree.write(name, text)
    outcome = tree.make("check")
    assert outcome.code != 0
    for name in ["types", "format", "lint", "imports", "size", "residue"]:
        assert f"--- {name} is red" in outcome.words
    assert 'Type annotation is missing for parameter "value"' in outcome.words
    assert "errors.py" in outcome.words.partition("--- format is red")[2]


def test_an_unknown_gate_is_refused(tree: Tree) -> None:
    outcome = tree.gate("beauty")
    assert outcome.code == 2
    assert "Unknown gate: beauty" in outcome.words


def test_continuous_integration_fails_when_any_verb_fails(tree: Tree) -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    tree.write(".ci/run", script)
    verbs = ("test", "test-doors", "check")
    for failing in (None, *verbs):
        rules = [f"{verb}:\n\t@{'false' if verb == failing else 'true'}\n" for verb in verbs]
        tree.write("Makefile", "".join(rules))
        assert tree.run("bash", ".ci/run").code == (1 if failing else 0)


def test_every_verb_is_listed(tree: Tree) -> None:
    verbs = re.findall(r"^([a-z][a-z-]*):", MAKEFILE, re.M)
    (phony,) = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.M)
    listed = [line.split()[0] for line in tree.make("help").words.splitlines()]
    assert listed == verbs == phony.split()
    agents = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
    assert {*re.findall(r"^\| `make ([a-z-]+)`", agents, re.M)} == {*verbs} - {"help", "clean"}
