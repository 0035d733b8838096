"""The variables of a run where agents of the classic line look for them."""

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, cast

from autogen.agentchat.group.context_variables import ContextVariables

from turnloom.kernel.values import Json, as_array, as_object
from turnloom.variables.logic.types import apart, is_json, same
from turnloom.variables.spec import Context


class LentVariables(MutableMapping[str, Any]):
    """The variables of a run; lists and objects may be changed in place, as tools there do."""

    def __init__(self, variables: Context) -> None:
        self._variables = variables
        self._open: dict[str, tuple[Any, Json]] = {}

    def __getitem__(self, name: str) -> Any:
        if name in self._open:
            return self._open[name][0]
        return self._lend(name, self._variables[name])

    def __setitem__(self, name: str, value: Any) -> None:
        self._variables[name] = value
        self._open.pop(name, None)
        self._lend(name, value)

    def __delitem__(self, name: str) -> None:
        del self._variables[name]
        self._open.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def _lend(self, name: str, value: Any) -> Any:
        if (as_object(value) is not None or as_array(value) is not None) and is_json(value):
            self._open[name] = value, apart(value)
        return value

    def copy(self) -> dict[str, Any]:
        """All values of this moment."""
        return dict(self)

    def settle(self) -> None:
        """Write what was changed in place.

        Raises:
            WriteRefused: it cannot be written, or not with this value.
        """
        lent, self._open = self._open, {}
        for name, (value, before) in lent.items():
            if not same(value, before):
                self._variables[name] = value


class ContextVariablesMirror(ContextVariables):
    """The variables of a run, by the methods that agents and tools of the classic line use."""

    def __init__(self, lent: LentVariables) -> None:
        super().__init__()
        self.data = cast("dict[str, Any]", lent)

    def update(self, other: Mapping[str, Any]) -> None:
        """Write what differs: who gives back all that there is has not written all of it."""
        for name, value in dict(other).items():
            if name not in self.data or not alike(self.data[name], value):
                self.data[name] = value


def alike(value: Any, other: Any) -> bool:
    """Whether nothing changed: what is not JSON is alike only if it is the same object."""
    return value is other or (is_json(value) and same(value, other))
