"""What each field does that is declared about who answers: engines and scripts."""

from tests.parity.effects import A, Effect, codes, said

BY_FUNCTION = {(*A, "engine"): {"type": "functions", "file": "one.py", "function": "f"}}
ONE_F = {"A": {"file": "one.py", "function": "f"}}
PLAYED = ("script", "functions", "A")
UNSCRIPTED = {(*A, "engine"): "scripted", ("script",): {}}
BY_SCRIPT = {(*A, "engine"): "scripted", ("script",): {"functions": ONE_F}}
SCRIPTED = {(*A, "engine"): "scripted", ("script",): {"agents": {"A": ["GO"]}, "user": ["Hi."]}}

ANSWER_EFFECTS = {
    "EngineChoice.type": Effect((*A, "engine", "type"), "oracle", codes, [], ["W050"], BY_FUNCTION),
    "EngineChoice.file": Effect(
        (*A, "engine", "file"), "two.py", said, ["one f"] * 3, ["two f"] * 3, BY_FUNCTION
    ),
    "EngineChoice.function": Effect(
        (*A, "engine", "function"), "g", said, ["one f"] * 3, ["one g"] * 3, BY_FUNCTION
    ),
    "Script.agents": Effect(
        ("script", "agents"),
        {"A": ["Go", "x"]},
        said,
        ["GO", "Done."],
        ["Go", "Done."],
        SCRIPTED,
    ),
    "Script.repeats": Effect(("script", "repeats"), ["B"], codes, [], ["W011"], SCRIPTED),
    "Script.functions": Effect(("script", "functions"), ONE_F, said, [], ["one f"] * 3, UNSCRIPTED),
    "ScriptedFunction.file": Effect(
        (*PLAYED, "file"), "two.py", said, ["one f"] * 3, ["two f"] * 3, BY_SCRIPT
    ),
    "ScriptedFunction.function": Effect(
        (*PLAYED, "function"), "g", said, ["one f"] * 3, ["one g"] * 3, BY_SCRIPT
    ),
    "Script.user": Effect(
        ("script", "user"), ["Ho."], lambda seen: seen.user_script, ("Hi.",), ("Ho.",), SCRIPTED
    ),
}
