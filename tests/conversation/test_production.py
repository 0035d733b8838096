"""What a check says about production: rules that never fire, agents that nobody reaches."""

from pathlib import Path

from tests.support.checks import examined
from tests.support.folders import write_folder
from turnloom.errors import Diagnostic

FLAGS = {
    "orchestrator.yaml": "{initial_agent: Asker}",
    "agents.yaml": """\
        Asker: {system_message: Ask., engine: scripted}
        Beta: {system_message: Try., engine: scripted}
        Paid: {system_message: Sell., engine: scripted}
        Last: {system_message: End., engine: scripted}
        """,
    "context_variables.yaml": """\
        definitions:
          flag: {type: boolean, source: {type: environment, env_var: FLAG, default: true}}
          context_aware:
            type: boolean
            source:
              type: derived
              default: false
              triggers: [{type: agent_text, agent: Asker, match: {equals: NEXT}}]
        """,
    "handoffs.yaml": """\
        handoff_rules:
          - source_agent: Asker
            target_agent: Beta
            handoff_type: condition
            condition: ${flag} == True
          - source_agent: Asker
            target_agent: Last
            handoff_type: condition
            condition: ${context_aware} == True
          - source_agent: Beta
            target_agent: Paid
            handoff_type: after_work
            condition: monetization_enabled is true AND flag is true
          - {source_agent: Paid, target_agent: Last, handoff_type: after_work}
          - {source_agent: Asker, target_agent: terminate, handoff_type: after_work}
          - {source_agent: Beta, target_agent: terminate, handoff_type: after_work}
        """,
}


def warnings(folder: str, *, production: bool) -> list[Diagnostic]:
    is_right, problems = examined(folder, production=production)
    assert is_right, problems
    assert all(problem.severity == "warning" for problem in problems)
    return sorted(problems)


def test_rules_and_agents_that_production_leaves_out_are_named(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, FLAGS)
    assert warnings(folder, production=False) == []
    beta, paid, first, third = warnings(folder, production=True)
    assert [(each.file, each.line, each.code) for each in (beta, paid, first, third)] == [
        ("Flow/agents.yaml", 2, "W030"),
        ("Flow/agents.yaml", 3, "W030"),
        ("Flow/handoffs.yaml", 5, "W070"),
        ("Flow/handoffs.yaml", 13, "W070"),
    ]
    assert "'Beta'" in beta.message and "'Paid'" in paid.message
    assert all(name in first.message for name in ("'Asker'", "'Beta'", "'flag'"))
    assert all(name in third.message for name in ("'monetization_enabled'", "'flag'"))


def test_what_needs_no_environment_is_silent(tmp_path: Path) -> None:
    lone = {name: FLAGS[name] for name in ("orchestrator.yaml", "agents.yaml")}
    apart = FLAGS | {"handoffs.yaml": "[]"}
    for files, codes in ((lone, ["W030"] * 3), (apart, [*["W030"] * 3, *["W066"] * 2])):
        folder = write_folder(tmp_path / str(len(files)), files)
        found = warnings(folder, production=True)
        assert found == warnings(folder, production=False)
        assert [each.code for each in found] == codes


def test_a_workflow_with_errors_is_not_judged(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, FLAGS | {"orchestrator.yaml": "{initial_agent: Nobody}"})
    is_right, problems = examined(folder, production=True)
    assert not is_right and [problem.code for problem in problems] == ["W020"]
