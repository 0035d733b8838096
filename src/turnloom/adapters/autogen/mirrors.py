"""The run's variables in the form that AutoGen's agents expect."""

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, cast

from autogen.agentchat.group.context_variables import ContextVariables

from turnloom.kernel.values import Json, as_array, as_object
from turnloom.variables.logic.types import apart, is_json, same
from turnloom.variables.spec import Context


class RunVariables(MutableMapping[str, Any]):
    """The run's variables. Lists and objects may be changed in place, as AutoGen's tools do."""

    def __init__(self, variables: Context) -> None:
        self._variables = variables
        self._tracked: dict[str, tuple[Any, Json]] = {}

    def __getitem__(self, name: str) -> Any:
        if name in self._tracked:
            return self._tracked[name][0]
        return self._track(name, self._variables[name])

    def __setitem__(self, name: str, value: Any) -> None:
        self._variables[name] = value
        self._tracked.pop(name, None)
        self._track(name, value)

    def __delitem__(self, name: str) -> None:
        del self._variables[name]
        self._tracked.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def _track(self, name: str, value: Any) -> Any:
        if (as_object(value) is not None or as_array(value) is not None) and is_json(value):
            self._tracked[name] = value, apart(value)
        return value

    def copy(self) -> dict[str, Any]:
        """All current values."""
        return dict(self)

    def settle(self) -> None:
        """Write values that were changed in place.

        Raises:
            WriteRefused: a variable cannot be written, or not with this value.
        """
        tracked, self._tracked = self._tracked, {}
        for name, (value, before) in tracked.items():
            if not same(value, before):
                self._variables[name] = value


class ContextVariablesMirror(ContextVariables):
    """The run's variables with the interface of AutoGen's `ContextVariables`."""

    def __init__(self, tracked: RunVariables) -> None:
        super().__init__()
        self.data = cast("dict[str, Any]", tracked)

    def update(self, other: Mapping[str, Any]) -> None:
        """Write values that differ: tools often return all variables, changed or not."""
        for name, value in dict(other).items():
            if name not in self.data or not alike(self.data[name], value):
                self.data[name] = value


def alike(value: Any, other: Any) -> bool:
    """Whether two values are equal; values that are not JSON must be the same object."""
    return value is other or (is_json(value) and same(value, other))
