"""The effects of triggers that read the user's messages."""

from tests.parity.effects import (
    CHANGED,
    DEFINITIONS,
    GO,
    RULES,
    SETUP,
    TRIGGER,
    Effect,
    changes,
    codes,
)

HEARD = {TRIGGER: {"type": "user_text", "match": {"equals": " YES. "}}}
HEARD_TWICE = {
    SETUP: {"max_turns": 8},
    RULES: [
        {"source_agent": "A", "target_agent": "user", "handoff_type": "after_work"},
        {"source_agent": "user", "target_agent": "A", "handoff_type": "after_work"},
    ],
    (*GO, "triggers"): [
        {"type": "user_text", "match": {"equals": "yes."}},
        {"type": "agent_text", "agent": "A", "match": {"equals": "GO"}, "value": False},
    ],
}
HEARD_WORD = {
    (*DEFINITIONS, "word"): {
        "type": "string",
        "source": {
            "type": "derived",
            "triggers": [{"type": "user_text", "match": {"regex": "(y)(es)"}, "capture": 1}],
        },
    }
}
TEXT_EFFECTS: dict[str, Effect] = {
    "UserTextTrigger.type": Effect(
        (*TRIGGER, "type"), "function", codes, [], ["W011", "W010"], HEARD
    ),
    "UserTextTrigger.match": Effect(
        (*TRIGGER, "match"), {"equals": "no"}, changes, CHANGED, [], HEARD
    ),
    "UserTextTrigger.value": Effect(
        (*TRIGGER, "value"), None, changes, CHANGED, [("go", None)], HEARD
    ),
    **{
        f"UserTextTrigger.{key}": Effect((*TRIGGER, key), to, changes, CHANGED, [], HEARD)
        for key, to in (("trim", False), ("ignore_case", False), ("exact", True))
    },
    "UserTextTrigger.once": Effect(
        (*TRIGGER, "once"),
        True,
        changes,
        [("go", True), ("go", False), ("go", True)],
        [("go", True), ("go", False)],
        HEARD_TWICE,
    ),
    "UserTextTrigger.capture": Effect(
        (*DEFINITIONS, "word", "source", "triggers", 0, "capture"),
        2,
        changes,
        [("word", "Y"), ("go", True)],
        [("word", "es"), ("go", True)],
        HEARD_WORD,
    ),
}
