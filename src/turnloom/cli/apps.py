"""The app that `--app MODULE:NAME` names."""

import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any, cast

from turnloom.app import Loom
from turnloom.errors import TurnloomError, UsageError
from turnloom.kernel.values import nearest

_REMEDY = "Name a `Loom` of a module, or a function that is given one: `--app module:app`."


@asynccontextmanager
async def opened_app(named: str | None, **settings: Any) -> AsyncGenerator[Loom]:
    """The app that is named, or a new one with these settings. A named function is given a new app,
    and declares its flows and boards.

    Raises:
        UsageError: there is no such module or name, or it does not work.
    """
    found = None if named is None else _member(named)
    if isinstance(found, Loom):
        for name, value in settings.items():
            if value is not None:
                raise UsageError(f"The app of {named!r} has its settings. Leave `--{name}` out.")
        async with found:
            yield found
        return
    async with Loom(**settings) as app:
        if found is not None:
            await _declare(named or "", cast("Callable[[Loom], Any]", found), app)
        yield app


def _member(named: str) -> object:
    module_name, _, name = named.partition(":")
    if not module_name or not name.isidentifier():
        raise UsageError(f"`--app {named}` names no app. {_REMEDY}")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (f"{module_name}.").startswith(f"{error.name}."):
            raise UsageError(f"There is no module {module_name!r} here. {_REMEDY}") from None
        raise UsageError(f"Module {module_name!r} does not load: {error}.") from error
    except TurnloomError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise UsageError(f"Module {module_name!r} does not load: {what}") from error
    found = getattr(module, name, None)
    if isinstance(found, Loom) or (callable(found) and not isinstance(found, type)):
        return found
    near = nearest(name, [each for each in vars(module) if not each.startswith("_")])
    hint = f"Did you mean {near!r}?" if found is None and near else _REMEDY
    raise UsageError(f"Module {module_name!r} has no app {name!r}. {hint}")


async def _declare(named: str, declare: Callable[[Loom], Any], app: Loom) -> None:
    try:
        given = declare(app)
        if isinstance(given, Awaitable):
            await cast("Awaitable[Any]", given)
    except TurnloomError:
        raise
    except Exception as error:
        raise UsageError(f"`--app {named}` failed: {type(error).__name__}: {error}") from error
