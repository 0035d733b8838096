"""What each field does that is declared of what stands around turns, and of who answers in them."""

from tests.parity.effects import A, Effect, Path, said

COMPONENTS: Path = (*A, "components")
LOUD = {"file": "work.py", "function": "loud"}
AROUND = {COMPONENTS: [LOUD]}
FIRST, THEN = ({"type": "functions", "file": "one.py", "function": name} for name in "fg")

USUAL = ["Hello.", " go ", "Done."]
SHOUTED = ["HELLO.", " GO ", "Done."]

COMPONENT_EFFECTS: dict[str, Effect] = {
    "Agent.components": Effect(COMPONENTS, [LOUD], said, USUAL, SHOUTED),
    "ComponentChoice.file": Effect(
        (*COMPONENTS, 0, "file"),
        "other.py",
        said,
        SHOUTED,
        ["Hello.Hello.", " go  go ", "STOPSTOP"],
        AROUND,
    ),
    "ComponentChoice.function": Effect(
        (*COMPONENTS, 0, "function"), "soft", said, SHOUTED, ["hello.", " go ", "Done."], AROUND
    ),
    "Agent.engines": Effect((*A, "engines"), [FIRST, THEN], said, USUAL, ["one g"] * 3),
}
