"""The rules of the test run itself: warnings, marks, network, loop, coverage."""

from collections.abc import Callable

import pytest

from tests.gates.conftest import Outcome, Tree

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

    from turnloom.log import give

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
"""
COVERED = '"""A module."""\n\n\ndef give():\n    return 1\n'
UNSEEN = "\n\ndef unseen():\n" + "    x = 1\n" * 9
UNMEASURED = """\
    import pytest

    from turnloom.log import unseen

    @pytest.mark.repeats
    def test_unseen():
        unseen()
"""


@pytest.fixture(scope="module")
def outcome(new_tree: Callable[[], Tree]) -> Outcome:
    tree = new_tree()
    imports = "import asyncio, socket, time, warnings\nimport pytest\n"
    tree.write("tests/test_plants.py", imports + "".join(text for text, _ in PLANTS.values()))
    return tree.make("test", ALONE)


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_test_fails(outcome: Outcome, name: str) -> None:
    says = PLANTS[name][1]
    assert outcome.code != 0
    assert f"tests/test_plants.py::{name}" in outcome.words
    assert says in outcome.words


def test_a_covered_tree_is_green_and_an_uncovered_one_is_red(tree: Tree) -> None:
    tree.write("tests/test_clean.py", CLEAN)
    tree.write("src/turnloom/log/__init__.py", COVERED)
    outcome = tree.make("test")
    assert outcome.code == 0, outcome.words
    assert "2 passed in" in outcome.words
    tree.write("src/turnloom/log/__init__.py", COVERED + UNSEEN)
    tree.write("tests/test_unseen.py", UNMEASURED)
    outcome = tree.make("test", ALONE)
    assert outcome.code != 0
    assert "is less than fail-under=90" in outcome.words


def test_an_unknown_mark_is_refused(tree: Tree) -> None:
    tree.write("tests/test_mark.py", "import pytest\n\n@pytest.mark.fast\ndef test_x(): ...\n")
    outcome = tree.make("test", ALONE)
    assert outcome.code != 0
    assert "'fast' not found in `markers`" in outcome.words
