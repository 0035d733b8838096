"""The rules of the test run itself: warnings, marks, network, loop, coverage."""

import re

import pytest

from tests.gates.conftest import Tree

ALONE = "WORKERS=0"  # workers cost more than a handful of tests
PLANTS = {
    "test_warning": (
        "def test_warning():\n    warnings.warn('careful', stacklevel=1)\n",
        "UserWarning: careful",
    ),
    "test_passes_after_all": (
        "@pytest.mark.xfail\ndef test_passes_after_all(): ...\n",
        "[XPASS(strict)]",
    ),
    "test_network": (
        "def test_network():\n    socket.create_connection(('192.0.2.1', 80))\n",
        "NetworkRefused: Tests have no network, only loopback; this one called '192.0.2.1'",
    ),
    "test_name_lookup": (
        "def test_name_lookup():\n    socket.getaddrinfo('example.org', 80)\n",
        "this one called 'example.org'",
    ),
    "test_async_network": (
        "async def test_async_network():\n    await asyncio.open_connection('192.0.2.1', 80)\n",
        "this one called '192.0.2.1'",
    ),
    "test_blocking": (
        "async def test_blocking():\n    time.sleep(0)\n",
        "BlockingCall: time.sleep blocks the event loop",
    ),
    "test_unknown_mark": (
        "def test_unknown_mark():\n    pytest.mark.fast(test_unknown_mark)\n",
        "'fast' not found in `markers`",
    ),
    "test_held_loop": (
        "async def test_held_loop(strict_loop):\n"
        "    asyncio.get_running_loop().slow_callback_duration = 0\n",
        "The loop was held",
    ),
}
CLEAN = """\
    import asyncio
    import time

    import pytest

    from turnloom.log import give, unmeasured

    @pytest.mark.repeats
    async def test_loopback(strict_loop):
        async def greet(reader, writer):
            writer.close()

        server = await asyncio.start_server(greet, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        writer.close()
        server.close()
        await asyncio.to_thread(time.sleep, 0)

    def test_give():
        assert give() == 1

    @pytest.mark.repeats
    def test_unmeasured():
        unmeasured()
"""
GIVE = '"""A module."""\n\n\ndef give():\n    return 1\n'
UNMEASURED = "\n\ndef unmeasured():\n" + "    x = 1\n" * 99


def test_planted_tests_fail_and_clean_ones_pass(tree: Tree) -> None:
    imports = "import asyncio, socket, time, warnings\nimport pytest\n"
    tree.write("tests/test_plants.py", imports + "".join(text for text, _ in PLANTS.values()))
    tree.write("tests/test_clean.py", CLEAN)
    tree.write("src/turnloom/log/__init__.py", GIVE + UNMEASURED)
    outcome = tree.make("test", ALONE)
    assert outcome.code != 0
    for name, (_, says) in PLANTS.items():
        assert re.search(rf"^(FAILED|ERROR) tests/test_plants.py::{name}\b", outcome.words, re.M)
        assert says in outcome.words
    assert "tests/test_clean.py" not in outcome.words
    assert not list(tree.path.glob(".coverage*"))


@pytest.mark.doors
def test_a_tree_is_as_covered_as_its_measured_tests_make_it(tree: Tree) -> None:
    """Tests that repeat what others do run, and count for nothing."""
    tree.write("tests/test_clean.py", CLEAN)
    tree.write("src/turnloom/log/__init__.py", GIVE + UNMEASURED)
    outcome = tree.make("coverage", "WORKERS=1")
    assert outcome.code != 0
    assert "3 passed in" in outcome.words
    assert re.search(r"^src/turnloom/log/__init__.py +102 +99 +3%$", outcome.words, re.M)
    assert "is less than fail-under=90" in outcome.words
    tree.write("src/turnloom/log/__init__.py", GIVE + "\n\nunmeasured = give\n")
    outcome = tree.make("coverage", ALONE)
    assert outcome.code == 0, outcome.words
    assert re.search(r"^coverage: TOTAL .* 100%$", outcome.words, re.M)
