"""Workflow folders for tests, written where they are needed."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from textwrap import dedent

from ruamel.yaml import YAML

INTERVIEW = {
    "orchestrator.yaml": """
        initial_agent: Asker
        initial_message: Begin.
        human_in_the_loop: true
        """,
    "agents.yaml": """
        agents:
          Asker: {system_message: Ask until you know enough.}
          Planner: {system_message: Make a plan.}
        """,
    "context_variables.yaml": """
        definitions:
          tier: {type: string, source: {type: static, value: beta}}
          flag: {type: boolean, source: {type: environment, env_var: FLAG, default: false}}
          known:
            type: boolean
            source:
              type: derived
              default: false
              triggers:
                - {type: agent_text, agent: Asker, match: {contains: NEXT}, hide: true}
          stage:
            type: string
            source:
              type: derived
              default: asking
              triggers:
                - {type: agent_text, agent: Asker, match: {contains: NEXT}, value: planning}
                - {type: agent_text, agent: Planner, match: {contains: DONE}, value: done}
        agents:
          Asker: {variables: [tier, flag, known]}
          Planner: {variables: [stage, user_id]}
        """,
    "handoffs.yaml": """
        handoff_rules:
          - source_agent: Asker
            target_agent: Planner
            handoff_type: condition
            condition: ${known} == True
          - {source_agent: Asker, target_agent: user, handoff_type: after_work}
          - source_agent: Planner
            target_agent: terminate
            handoff_type: condition
            condition: ${stage} == "done"
          - {source_agent: Planner, target_agent: Planner, handoff_type: after_work}
          - {source_agent: user, target_agent: Asker, handoff_type: after_work}
        """,
}

# Everything that derives: words, cascades, counts, timers and functions.
GARDEN = {
    "orchestrator.yaml": "initial_agent: Gardener",
    "agents.yaml": "Gardener: {system_message: Grow it.}\nCook: {system_message: Cook it.}",
    "context_variables.yaml": """
        definitions:
          seeds: {type: string, source: {type: derived, triggers: [
            {type: agent_text, agent: Gardener, match: {regex: 'sow (\\w+)'}, capture: 1}]}}
          sown: {type: boolean, source: {type: derived, default: false, triggers: [
            {type: context_changed, variable: seeds, equals: peas}]}}
          watched: {type: boolean, source: {type: derived, default: false, triggers: [
            {type: context_changed, variable: sown, equals: true}]}}
          dry: {type: boolean, source: {type: derived, default: false, triggers: [
            {type: timer_expired, after: PT90S, since: 'variable:sown'}]}}
          alarmed: {type: boolean, source: {type: derived, default: false, triggers: [
            {type: context_changed, variable: dry, equals: true}]}}
          tired: {type: boolean, source: {type: derived, default: false, triggers: [
            {type: agent_turn_count, agent: Gardener, count: 3}]}}
          words: {type: integer, source: {type: derived, default: 0, triggers: [
            {type: function, function: count_words}]}}
          chatty: {type: boolean, source: {type: derived, default: false, triggers: [
            {type: function, function: many}]}}
        agents:
          Gardener: {variables: [seeds, sown, watched, dry]}
          Cook: {variables: [words, chatty, alarmed, tired]}
        """,
    "handoffs.yaml": """
        handoff_rules:
          - source_agent: Gardener
            target_agent: Cook
            handoff_type: condition
            condition: alarmed is true
          - {source_agent: Gardener, target_agent: user, handoff_type: after_work}
          - {source_agent: user, target_agent: Gardener, handoff_type: after_work}
          - {source_agent: Cook, target_agent: terminate, handoff_type: after_work}
        """,
    "derivations.py": """
        from turnloom.variables.spec import UNCHANGED, derivation

        @derivation
        def count_words(event, values):
            if event.kind != "agent.text":
                return UNCHANGED
            return values["words"] + len(event.data.text.split())

        @derivation
        def many(event, values):
            changed = event.kind == "context.changed" and event.data.name == "words"
            return event.data.value > 4 if changed else UNCHANGED
        """,
}


def write_folder(where: Path, files: Mapping[str, str], name: str = "Flow") -> str:
    """A workflow folder with these files."""
    folder = where / name
    for file, text in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), "utf-8")
    return str(folder)


def as_json(files: Mapping[str, str]) -> dict[str, str]:
    """The same files, their YAML as JSON: that is read in a third of the time."""
    return {
        name.replace(".yaml", ".json"): _json(text) if name.endswith(".yaml") else text
        for name, text in files.items()
    }


@cache
def _json(text: str) -> str:
    return json.dumps(YAML(typ="safe").load(dedent(text)))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder by its path."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
