"""What the setting for the windows of models does."""

from collections.abc import Callable
from typing import Any

from tests.parity.observer_effects import configure
from turnloom import Answer, Loom, Task


async def warnings(folder: str, **settings: Any) -> list[int]:
    """The windows that a run warns of."""

    async def engine(task: Task) -> Answer:
        return Answer("Fine.")

    async with Loom(store="memory", engine=engine, **settings) as app:
        run = await app.start(folder)
        await run.finished()
        events = await app.history.events(run.id)
    return [event.data.window for event in events if event.kind == "window.neared"]


async def window_of_the_app(folder: str) -> None:
    for window, told in ((1, [1]), (1000, [])):
        assert await warnings(folder, window=window) == told


async def window_of_a_file(folder: str) -> None:
    configure("window = 1\n")
    assert await warnings(folder) == [1]


WINDOW_SETTINGS: dict[str, Callable[[str], Any]] = {
    "Loom.window": window_of_the_app,
    "Settings.window": window_of_a_file,
}
