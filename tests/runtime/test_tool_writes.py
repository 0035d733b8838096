"""What tools of one answer write takes effect in one order."""

from pathlib import Path

import pytest

from tests.support.plays import call, every, lines, play, solo


@pytest.mark.parametrize("first", ["one", "two"])
async def test_writes_take_effect_in_the_order_of_the_calls(first: str, tmp_path: Path) -> None:
    """Whichever tool ends first, and so does what is derived from them."""
    code = f"""
        import asyncio
        turn = asyncio.Event()

        async def write(context_variables, name):
            if name != {first!r}:
                await turn.wait()
                for _ in range(50): await asyncio.sleep(0)
            turn.set()
            context_variables["stage"] = name

        async def one(context_variables): await write(context_variables, "one")
        async def two(context_variables): await write(context_variables, "two")
        """
    derived = {
        "type": "boolean",
        "source": {
            "type": "derived",
            "default": False,
            "triggers": [{"type": "context_changed", "variable": "stage", "equals": "one"}],
        },
    }
    stage = {"type": "string", "source": {"type": "derived", "default": ""}}
    variables = {"definitions": {"stage": stage, "was_one": derived}, "agents": {}}
    script = lines([call("one"), call("two")], "Done.")
    files = solo(code, "one", "two", script=script, context_variables=variables)
    events = await play(tmp_path, files)
    changes = [(each.name, each.value, each.previous) for each in every(events, "context.changed")]
    assert changes == [("stage", "one", ""), ("was_one", True, False), ("stage", "two", "one")]
    returned = [each.tool for each in every(events, "tool.returned")]
    assert returned[0] == first


async def test_tools_share_helpers_of_their_folder(tmp_path: Path) -> None:
    code = """
        from .helpers import double
        def one(context_variables):
            from helpers import double as again
            assert again is double
            context_variables["n"] = double(2)
        """
    files = solo(code, "one", script=lines(call("one"), "Done."))
    files["helpers.py"] = "def double(n): return 2 * n\n"
    events = await play(tmp_path, files)
    assert [each.value for each in every(events, "context.changed")] == [4]
    assert {"code.py", "helpers.py"} <= events[0].data.code.keys()
