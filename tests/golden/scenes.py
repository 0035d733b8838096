"""The registry of scenes: what programs do, of which the logs are golden."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.support.world import World

# Plays a scene in a world; the folder is for the files that it needs.
Scene = Callable[[World, Path], Awaitable[None]]

SCENES: dict[str, Scene] = {}


def scene(play: Scene) -> Scene:
    """Register a scene under the name of its function."""
    assert play.__name__ not in SCENES, f"two scenes are called {play.__name__!r}"
    SCENES[play.__name__] = play
    return play
