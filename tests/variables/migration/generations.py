"""One file per generation: before, after, and what becomes of each entry."""

from typing import Any, NamedTuple

from turnloom.kernel.values import Json


class Generation(NamedTuple):
    """A file of one generation, what it is today, and `(name, was, became)` of each entry."""

    title: str
    before: Json
    definitions: dict[str, Any]
    agents: dict[str, Any]
    notes: list[tuple[str, str, str]]


def derived(type: str, default: Json, *triggers: dict[str, Any], **said: Any) -> dict[str, Any]:
    """A derived variable of today's shape."""
    source = {"type": "derived", "default": default, "triggers": list(triggers)}
    return {"type": type, **said, "source": source}


def environment(type: str, env_var: str, default: Json) -> dict[str, Any]:
    """An environment variable of today's shape."""
    return {
        "type": type,
        "source": {"type": "environment", "env_var": env_var, "default": default},
    }


def says(agent: str, text: str, **more: Any) -> dict[str, Any]:
    """A trigger on the whole text of an agent."""
    return {"type": "agent_text", "agent": agent, "match": {"equals": text}, **more}


def answers(tool: str, key: str, **more: Json) -> dict[str, Any]:
    """A trigger on the answer of a UI tool."""
    return {"type": "ui_response", "tool": tool, "response_key": key, **more}


def concepts(**more: Any) -> dict[str, Any]:
    """The overview of a concept, from a database."""
    where = {"database_name": "ideas", "collection": "Concepts"}
    return {"type": "database", **where, "search_by": "app_id", "field": "Overview", **more}


SEED_000 = {
    "derived_variables": [
        {
            "name": "interview_complete",
            "description": "True once the interview agent terminates the onboarding chat.",
            "default": False,
            "triggers": [
                {
                    "type": "agent_text",
                    "agent": "InterviewAgent",
                    "match": {"equals": "TERMINATE"},
                }
            ],
        }
    ]
}

GENERATIONS = [
    Generation(
        "a flat list of variables",
        {
            "context_variables": {
                "schema_overview": {"enabled": True, "database_name": "ideas"},
                "variables": [
                    {
                        "name": "overview",
                        "description": "What it is about",
                        "database": {
                            "collection": "Concepts",
                            "search_by": "enterprise_id",
                            "field": "Overview",
                        },
                    },
                    {
                        "name": "newest",
                        "default_value": "none yet",
                        "database": {
                            "collection": "concepts",
                            "query": {"type": "overview"},
                            "field": "content",
                        },
                    },
                ],
            }
        },
        {
            "overview": {
                "type": "string",
                "description": "What it is about",
                "source": concepts(search_by="enterprise_id"),
            },
            "newest": {
                "type": "string",
                "source": {
                    "type": "database",
                    "database_name": "ideas",
                    "collection": "concepts",
                    "filter": {"type": "overview"},
                    "field": "content",
                    "default": "none yet",
                },
            },
        },
        {},
        [
            ("schema_overview", "key 'schema_overview'", "lost"),
            ("overview", "older format 'variables', source type 'database'", "database"),
            ("newest", "older format 'variables', source type 'database'", "database"),
        ],
    ),
    Generation(
        "derived_variables (seed 000, verbatim)",
        SEED_000,
        {
            "interview_complete": derived(
                "boolean",
                False,
                says("InterviewAgent", "TERMINATE", exact=True),
                description="True once the interview agent terminates the onboarding chat.",
            )
        },
        {},
        [("interview_complete", "older format 'derived_variables'", "derived")],
    ),
    Generation(
        "a list per kind of source",
        {
            "context_variables": {
                "database_variables": [
                    {"name": "overview", "type": "string", "source": concepts()},
                    {"name": "plan", "type": "str", "database": concepts(field="Plan")},
                ],
                "environment_variables": [
                    {"name": "beta", "type": "bool", "env_var": "BETA", "default": "yes"}
                ],
                "declarative_variables": [
                    {"name": "tier", "value": "beta"},
                    {"name": "limit", "type": "int", "value": 25},
                ],
                "derived_variables": [
                    {
                        "name": "done",
                        "type": "boolean",
                        "default": False,
                        "triggers": [{"type": "agent_text", "agent": "A", "equals": "NEXT"}],
                    }
                ],
            }
        },
        {
            "overview": {"type": "string", "source": concepts()},
            "plan": {"type": "string", "source": concepts(field="Plan")},
            "beta": environment("boolean", "BETA", True),
            "tier": {"source": {"type": "static", "value": "beta"}},
            "limit": {"type": "integer", "source": {"type": "static", "value": 25}},
            "done": derived("boolean", False, says("A", "NEXT", exact=True)),
        },
        {},
        [
            ("overview", "older format 'database_variables', source type 'database'", "database"),
            ("plan", "older format 'database_variables', source type 'database'", "database"),
            ("beta", "older format 'environment_variables'", "environment"),
            ("tier", "older format 'declarative_variables'", "static"),
            ("limit", "older format 'declarative_variables'", "static"),
            ("done", "older format 'derived_variables'", "derived"),
        ],
    ),
    Generation(
        "four types, exposures, hidden words, statics that tools set",
        {
            "context_variables": {
                "definitions": {
                    "overview": {"type": "string", "source": concepts()},
                    "done": derived("boolean", False, says("A", "NEXT", ui_hidden=True)),
                    "plan": {"type": "json", "source": {"type": "derived", "default": {}}},
                    "diagram": {"type": "string", "source": {"type": "static", "default": ""}},
                },
                "agents": {
                    "A": {
                        "variables": ["overview", "done"],
                        "exposures": [
                            {
                                "header": "Context",
                                "template": "About {overview}",
                                "variables": ["overview", "done"],
                                "placement": "append",
                                "null_label": "null",
                            }
                        ],
                    },
                    "B": {"variables": ["diagram"]},
                },
            }
        },
        {
            "overview": {"type": "string", "source": concepts()},
            "done": derived("boolean", False, says("A", "NEXT", ui_hidden=True)),
            "plan": {"type": "object", "source": {"type": "derived", "default": {}}},
            "diagram": derived("string", ""),
        },
        {
            "A": {
                "variables": ["overview"],
                "header": "Context",
                "template": "About {overview}",
                "placement": "append",
                "null_label": "null",
            },
            "B": {"variables": ["diagram"]},
        },
        [
            ("overview", "source type 'database'", "unchanged"),
            ("done", "source type 'derived'", "unchanged"),
            ("plan", "source type 'derived'", "derived"),
            ("diagram", "source type 'static'", "derived"),
            ("A", "'agents' with 'exposures'", "exposure"),
            ("B", "'agents'", "unchanged"),
        ],
    ),
    Generation(
        "six types, transitions",
        {
            "context_variables": {
                "definitions": {
                    "aware": {
                        "type": "boolean",
                        "source": {"type": "config", "env_var": "AWARE", "default": True},
                    },
                    "overview": {
                        "type": "string",
                        "source": {
                            "type": "data_reference",
                            "db_type": "mongodb",
                            "database_name": "ideas",
                            "collection": "Concepts",
                            "query_template": {"app_id": "{{runtime.app_id}}"},
                            "fields": ["Overview"],
                        },
                    },
                    "done": {
                        "type": "boolean",
                        "source": {
                            "type": "state",
                            "default": False,
                            "transitions": [{"to": True, "trigger": says("A", "NEXT")}],
                        },
                    },
                    "stage": {
                        "type": "string",
                        "source": {
                            "type": "state",
                            "default": "open",
                            "transitions": [
                                {"from": "open", "to": "shut", "trigger": says("A", "END")}
                            ],
                        },
                    },
                    "accepted": {
                        "type": "string",
                        "source": {
                            "type": "state",
                            "default": "pending",
                            "transitions": [{"trigger": answers("plan", "verdict")}],
                        },
                    },
                    "plan": {"type": "object", "source": {"type": "computed", "default": None}},
                    "ledger": {"type": "object", "source": {"type": "data_entity"}},
                    "rate": {"type": "number", "source": {"type": "external"}},
                },
                "agents": {"A": {"variables": ["overview", "plan", "app_id"]}},
            }
        },
        {
            "aware": environment("boolean", "AWARE", True),
            "overview": {"type": "string", "source": concepts()},
            "done": derived("boolean", False, says("A", "NEXT")),
            "stage": derived("string", "open", says("A", "END", value="shut")),
            "accepted": derived("string", "pending", answers("plan", "verdict", apply="auto")),
            "plan": derived("object", None, {"type": "function", "function": "derive_plan"}),
            "ledger": {"type": "object", "source": {"type": "data_entity"}},
            "rate": {"type": "number", "source": {"type": "external"}},
        },
        {"A": {"variables": ["overview", "plan", "app_id"]}},
        [
            ("aware", "source type 'config'", "environment"),
            ("overview", "source type 'data_reference'", "database"),
            ("done", "source type 'state'", "derived"),
            ("stage", "source type 'state'", "derived"),
            ("accepted", "source type 'state'", "derived"),
            ("plan", "source type 'computed'", "derived"),
            ("ledger", "source type 'data_entity'", "left"),
            ("rate", "source type 'external'", "left"),
            ("A", "'agents'", "unchanged"),
        ],
    ),
    Generation(
        "seven types, as lists, without the outer key",
        {
            "definitions": [
                {
                    "name": "done",
                    "type": "boolean",
                    "source": {
                        "type": "state",
                        "default": False,
                        "triggers": [says("A", "NEXT", ui_hidden=True)],
                    },
                },
                {
                    "name": "files",
                    "type": "array",
                    "source": {
                        "type": "data_reference",
                        "collection": "ChatSessions",
                        "query_template": {
                            "app_id": "{{runtime.app_id}}",
                            "_id": "{{runtime.chat_id}}",
                        },
                        "fields": ["attachments"],
                    },
                },
                {
                    "name": "graph",
                    "type": "object",
                    "source": {"type": "file", "path": "graph.json", "default": {}},
                },
            ],
            "agents": [{"agent_name": "A", "variables": ["done", "graph"]}],
        },
        {
            "done": derived("boolean", False, says("A", "NEXT", hide=True)),
            "files": {
                "type": "array",
                "source": {
                    "type": "database",
                    "collection": "ChatSessions",
                    "search_by": "app_id",
                    "filter": {"_id": "${chat_id}"},
                    "field": "attachments",
                },
            },
            "graph": {
                "type": "object",
                "source": {"type": "file", "path": "graph.json", "format": "json"},
            },
        },
        {"A": {"variables": ["done", "graph"]}},
        [
            ("done", "source type 'state'", "derived"),
            ("files", "source type 'data_reference'", "database"),
            ("graph", "source type 'file'", "file"),
            ("A", "'agents'", "unchanged"),
        ],
    ),
    Generation(
        "source type runtime, which no schema had",
        {
            "definitions": [
                {
                    "name": "user_name",
                    "type": "string",
                    "source": {"type": "runtime", "default": None},
                },
                {"name": "results", "type": "dict", "source": {"type": "runtime"}},
            ]
        },
        {
            "user_name": derived("string", None),
            "results": {"type": "object", "source": {"type": "derived", "triggers": []}},
        },
        {},
        [
            ("user_name", "source type 'runtime'", "derived"),
            ("results", "source type 'runtime'", "derived"),
        ],
    ),
    Generation(
        "names without sections",
        {
            "context_variables": {
                "scope": {"type": "string", "description": "Platform or app", "default": None},
                "delivery": {
                    "type": "string",
                    "enum": ["pending", "delivered", "failed"],
                    "default": "pending",
                },
            }
        },
        {
            "scope": derived("string", None, description="Platform or app"),
            "delivery": derived("string", "pending", enum=["pending", "delivered", "failed"]),
        },
        {},
        [
            ("scope", "older format without sections", "derived"),
            ("delivery", "older format without sections", "derived"),
        ],
    ),
    Generation(
        "several shapes in one file",
        {
            "context_variables": {
                "variables": [{"name": "level", "value": "beta"}],
                "derived_variables": [{"name": "done", "triggers": [says("A", "NEXT")]}],
                "definitions": {"tier": {"source": {"type": "static", "value": "final"}}},
                "exposures": {"A": {"header": "Now", "variables": ["done"]}},
                "agents": {"A": {"variables": ["tier"]}},
                "schema_overview": {"enabled": True},
            }
        },
        {
            "level": {"source": {"type": "static", "value": "beta"}},
            "done": derived("boolean", False, says("A", "NEXT", exact=True)),
            "tier": {"source": {"type": "static", "value": "final"}},
        },
        {"A": {"variables": ["done"], "header": "Now"}},
        [
            ("level", "older format 'variables'", "static"),
            ("done", "older format 'derived_variables'", "derived"),
            ("tier", "source type 'static'", "unchanged"),
            ("A", "older format 'exposures'", "exposure"),
            ("A", "'agents'", "exposure"),
            ("schema_overview", "key 'schema_overview'", "lost"),
        ],
    ),
]
