"""Folders of MozaiksAI, of both generations: raw, migrated, checked, and run to their end."""

import json
import re
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.cli.conftest import Call
from tests.support.documents import into_sqlite
from tests.support.folders import contents, write_folder

# 2025: JSON, with the lists of the first formats.
JSON_FOLDER: dict[str, Any] = {
    "orchestrator.json": {
        "workflow_name": "Generator",
        "max_turns": 8,
        "human_in_the_loop": True,
        "startup_mode": "AgentDriven",
        "orchestration_pattern": "DefaultPattern",
        "initial_agent": "InterviewAgent",
        "initial_message": "InterviewAgent, begin.",
    },
    "agents.json": {
        "agents": {
            "InterviewAgent": {"system_message": "Ask.", "max_consecutive_auto_reply": 5},
            "PlanAgent": {"system_message": "Plan.", "auto_tool_mode": False},
        }
    },
    "context_variables.json": {
        "context_variables": {
            "database_variables": [
                {
                    "name": "overview",
                    "type": "string",
                    "database": {
                        "database_name": "ideas",
                        "collection": "Concepts",
                        "search_by": "enterprise_id",
                        "field": "Overview",
                    },
                }
            ],
            "environment_variables": [
                {"name": "beta", "type": "boolean", "env_var": "BETA", "default": True}
            ],
            "derived_variables": [
                {
                    "name": "interview_complete",
                    "default": False,
                    "triggers": [
                        {
                            "type": "agent_text",
                            "agent": "InterviewAgent",
                            "match": {"equals": "NEXT"},
                        }
                    ],
                }
            ],
            "agents": {
                "InterviewAgent": {"variables": ["beta"]},
                "PlanAgent": {"variables": ["overview", "interview_complete"]},
            },
        }
    },
    "handoffs.json": {
        "handoffs": [
            {"from": "user", "to": "InterviewAgent"},
            {
                "from": "InterviewAgent",
                "to": "PlanAgent",
                "condition": "${interview_complete} == True",
            },
            {"from": "InterviewAgent", "to": "user"},
            {"from": "PlanAgent", "to": "terminate"},
        ]
    },
    "script.json": {
        "agents": {"InterviewAgent": ["What for?", "NEXT"], "PlanAgent": ["Here is the plan."]},
        "user": ["Reports."],
    },
}

# 2026: YAML, with seven kinds of sources.
YAML_FOLDER = {
    "orchestrator.yaml": """
        workflow_name: Advisor
        max_turns: 6
        human_in_the_loop: false
        startup_mode: AgentDriven
        orchestration_pattern: DefaultPattern
        initial_agent: ScoutAgent
        """,
    "agents.yaml": """
        agents:
        - name: ScoutAgent
          prompt_sections: [{id: role, heading: '[ROLE]', content: You scout.}]
        - name: AdviceAgent
          prompt_sections: [{id: role, heading: '[ROLE]', content: You advise.}]
        """,
    "context_variables.yaml": """
        definitions:
        - name: tier  # which plans are offered
          type: string
          source: {type: config, env_var: TIER, default: basic}
        - name: open_order
          type: string
          source:
            type: data_reference
            database_name: shop
            collection: Orders
            query_template: {app_id: "{{runtime.app_id}}", owner: "{{runtime.user_id}}", open: true}
            fields: [number]
            refresh_strategy: once
        - name: hours
          type: object
          source: {type: file, path: workflows/Advisor/data/hours.json, format: json}
        - name: scouted
          type: boolean
          source:
            type: state
            default: false
            persist: true
            transitions: []
            triggers: [{type: agent_text, agent: ScoutAgent, match: {contains: DONE}}]
        - name: word_count
          type: integer
          description: How many words were said.
          source: {type: computed, computation: count the words, inputs: [scouted], default: 0}
        - name: ledger
          type: object
          source: {type: data_entity, collection: Ledger}
        - name: weather
          type: object
          source: {type: external, service: weather, operation: today}
        agents:
          ScoutAgent: {variables: [tier, hours]}
          AdviceAgent: {variables: [open_order, word_count, scouted]}
        """,
    "handoffs.yaml": """
        handoff_rules:
        - source_agent: ScoutAgent
          target_agent: AdviceAgent
          handoff_type: condition
          condition_type: expression
          condition_scope: null
          condition: ${scouted} == True
          transition_target: AgentTarget
        - {source_agent: ScoutAgent, target_agent: terminate, handoff_type: after_work}
        - {source_agent: AdviceAgent, target_agent: terminate, handoff_type: after_work}
        """,
    "data/hours.json": '{"monday": "9-17"}',
    "script.yaml": """
        agents: {ScoutAgent: [All is DONE here.], AdviceAgent: [Take the bus.]}
        """,
}


def codes(checked: str) -> list[str]:
    """The codes in a check's output, in order."""
    return [word for line in checked.splitlines() for word in line.split()[1:2] if word[0] == "W"]


def values(log: str) -> dict[str, Any]:
    """The first values of a run."""
    events = [json.loads(line) for line in log.splitlines()]
    [loaded] = [event["data"] for event in events if event["kind"] == "context.loaded"]
    return {each["name"]: each.get("value") for each in loaded["values"]}


def test_the_json_generation(turnloom: Call, tmp_path: Path) -> None:
    files = {name: json.dumps(value) for name, value in JSON_FOLDER.items()}
    folder = Path(write_folder(tmp_path, files, "Generator"))
    into_sqlite(
        tmp_path / ".turnloom" / "documents",
        "ideas",
        "Concepts",
        [{"enterprise_id": "acme", "Overview": "Boats"}],
    )
    raw = turnloom("check", "Generator", code=2)
    assert codes(raw.out + raw.err) == ["W014", "W014"]  # of variables, and of handoffs
    assert "turnloom migrate" in raw.out + raw.err
    done = turnloom("migrate", "Generator")
    assert "lost" not in done.out.replace("0 lost", "")
    assert not turnloom("check", "Generator").out
    said = turnloom("run", "Generator", "--app-id", "acme")
    assert "Here is the plan." in said.out
    found = values(turnloom("log", "last", "--app-id", "acme", "--json").out)
    assert (found["overview"], found["beta"]) == ("Boats", True)
    assert (folder / "migration.txt").read_text("utf-8") in done.out


def paste(folder: Path, refused: str) -> None:
    """Declare the variables that the check refuses as it says."""
    file, yaml = folder / "context_variables.yaml", YAML(typ="safe")
    value = yaml.load(file)
    for line in re.findall(r"Declare it so: `(.*)`", refused):
        value["context_variables"]["definitions"] |= json.loads(f"{{{line}}}")
    yaml.dump(value, file)


def test_the_yaml_generation(turnloom: Call, tmp_path: Path) -> None:
    folder = Path(write_folder(tmp_path, YAML_FOLDER, "Advisor"))
    orders = [
        {"app_id": "acme", "owner": "ann", "open": True, "number": "17"},
        {"app_id": "acme", "owner": "ann", "open": False, "number": "18"},
    ]
    into_sqlite(tmp_path / ".turnloom" / "documents", "shop", "Orders", orders)
    before = contents(folder)
    raw = turnloom("check", "Advisor", code=2)
    # What belongs to other systems is refused at once, with what does it here.
    assert codes(raw.out) == ["W014", "W016", "W016"]
    assert "turnloom migrate" in raw.out
    dry = turnloom("migrate", "Advisor", "--dry-run")
    assert contents(folder) == before
    done = turnloom("migrate", "Advisor")
    assert dry.out.splitlines()[:-1] == done.out.splitlines()[:-1]
    for said in (
        *("tier (definitions[0]): source type 'config' → environment", "hours", "→ file"),
        *("open_order", "→ database", "scouted", "'persist'", "'refresh_strategy'"),
        *("source type 'data_entity' → left", "source type 'external' → left", "`before_chat`"),
        *("word_count", "derive_word_count", "Advisor/agents.yaml: unchanged: ScoutAgent"),
    ):
        assert said in done.out, said
    refused = turnloom("check", "Advisor", code=2).out
    assert codes(refused) == ["W016", "W016"]
    migrated = contents(folder)
    paste(folder, refused)
    assert not turnloom("check", "Advisor").out
    run = ("run", "Advisor", "--app-id", "acme", "--user", "ann")
    out = turnloom(*run).out
    assert "Take the bus." in out and out.count("Write derive_word_count") == 1
    log = turnloom("log", "last", "--app-id", "acme", "--json").out
    found = values(log)
    assert (found["tier"], found["open_order"]) == ("basic", "17")
    assert (found["hours"], found["word_count"]) == ({"monday": "9-17"}, 0)
    assert "Write derive_word_count in derivations.py" in log
    (folder / "context_variables.yaml").write_bytes(migrated["context_variables.yaml"])
    turnloom("migrate", "Advisor", "--undo")
    assert contents(folder) == before


def test_code_that_exists_is_kept_and_completed(turnloom: Call, tmp_path: Path) -> None:
    own = "def helper():\n    return 1\n"
    folder = Path(write_folder(tmp_path, {**YAML_FOLDER, "derivations.py": own}, "Advisor"))
    turnloom("migrate", "Advisor")
    paste(folder, turnloom("check", "Advisor", code=2).out)
    text = (folder / "derivations.py").read_text("utf-8")
    assert text.startswith(own) and "def derive_word_count(event, values):" in text
    assert not turnloom("check", "Advisor").out
    written = text.replace("raise NotImplementedError(", "return 7 or (")
    (folder / "derivations.py").write_text(written, "utf-8")
    assert "was changed after" in turnloom("migrate", "Advisor", "--undo", code=2).err
    turnloom("run", "Advisor", "--app-id", "acme", "--user", "ann")
    assert (
        '"name":"word_count","value":7' in turnloom("log", "last", "--app-id", "acme", "--json").out
    )


def test_there_is_nothing_to_undo(turnloom: Call, tmp_path: Path) -> None:
    write_folder(tmp_path, YAML_FOLDER, "Advisor")
    assert "Advisor" in turnloom("migrate", "Advisor", "--undo", code=2).err


# Variables with several fields of a document, and with a file in YAML; a second file of the first
# format comes later.
FIELDS = {
    **YAML_FOLDER,
    "context_variables.yaml": """
        definitions:
          order:
            source:
              type: data_reference
              database_name: shop
              collection: Orders
              query_template: {owner: "{{runtime.user_id}}"}
              fields: [number, ship.to, gone]
          hours:
            type: object
            source: {type: file, path: ./data/hours.yaml, format: yaml, encoding: utf-8}
          scouted:
            type: boolean
            source:
              type: state
              default: false
              triggers: [{type: agent_text, agent: ScoutAgent, match: {contains: DONE}}]
        agents:
          ScoutAgent: {variables: [order, hours]}
        """,
    "data/hours.yaml": "# opening hours\nmonday: 9-17\nclosed: [sunday]\n",
}


def test_several_fields_and_yaml_files(turnloom: Call, tmp_path: Path) -> None:
    write_folder(tmp_path, FIELDS, "Advisor")
    orders = [{"owner": "ann", "number": 17, "ship": {"to": "Bonn"}}]
    into_sqlite(tmp_path / ".turnloom" / "documents", "shop", "Orders", orders)
    turnloom("migrate", "Advisor")
    assert not turnloom("check", "Advisor").out
    assert "Take the bus." in turnloom("run", "Advisor", "--user", "ann").out
    found = values(turnloom("log", "last", "--json").out)
    assert found["order"] == {"number": 17, "ship.to": "Bonn", "gone": None}
    assert found["hours"] == {"monday": "9-17", "closed": ["sunday"]}
    turnloom("run", "Advisor", "--user", "bob")
    assert values(turnloom("log", "last", "--json").out)["order"] is None
    (tmp_path / "Advisor/data/hours.yaml").write_text("monday: [9-17\n", "utf-8")
    told = turnloom("check", "Advisor", code=2).out
    assert "W069" in told and "line 2" in told


def test_each_migration_can_be_undone(turnloom: Call, tmp_path: Path) -> None:
    folder = Path(write_folder(tmp_path, FIELDS, "Advisor"))
    (folder / "migration.txt").write_text("my own notes", "utf-8")
    start = contents(folder)
    turnloom("migrate", "Advisor")
    once = contents(folder)
    rules = "handoffs: [{from: ScoutAgent, to: AdviceAgent}, {from: AdviceAgent, to: terminate}]"
    (folder / "handoffs.yaml").write_text(rules, "utf-8")
    edited = contents(folder)
    turnloom("migrate", "Advisor")
    kept = {name: text for name, text in edited.items() if name != "handoffs.yaml"}
    assert contents(folder).items() >= kept.items()
    assert {*contents(folder)} - {*edited} == {
        *("handoffs.yaml.bak", "migration.2.txt", ".migration.1.json")
    }
    turnloom("migrate", "Advisor", "--undo")
    assert contents(folder) == edited
    variables = folder / "context_variables.yaml"
    variables.write_text("{}", "utf-8")
    assert "context_variables.yaml" in turnloom("migrate", "Advisor", "--undo", code=2).err
    variables.write_bytes(once["context_variables.yaml"])
    turnloom("migrate", "Advisor", "--undo")
    assert contents(folder) == {**start, "handoffs.yaml": rules.encode()}
    assert "no migration" in turnloom("migrate", "Advisor", "--undo", code=2).err
