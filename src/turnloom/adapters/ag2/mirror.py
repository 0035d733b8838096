"""A run's variables, as the context of an agent of AG2 has them."""

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Self

from ag2.context import RESERVED_VARIABLE_PREFIXES

from turnloom.errors import WriteRefused


class Mirror(MutableMapping[str, Any]):
    """The variables of a run over those that an agent was made with; writes go to the run's.

    What AG2 keeps there for itself stays here. A value that was read is the same object when it is
    read again, so that code may change it in place, and `settle` writes it.
    """

    def __init__(self, variables: MutableMapping[str, Any], own: Mapping[str, Any]) -> None:
        self._variables = variables
        self._own = dict(own)
        self._read: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._read:
            if name not in self._variables:
                return self._own[name]
            self._read[name] = self._variables[name]
        return self._read[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if str(name).startswith(RESERVED_VARIABLE_PREFIXES):
            self._own[name] = value
            return
        self._variables[name] = value
        self._read[name] = value

    def __delitem__(self, name: str) -> None:
        found = self._own.pop(name, self) is not self
        if name in self._variables:
            del self._variables[name]
        elif not found:
            raise KeyError(name)
        self._read.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._own, *self._variables)))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return True

    def __ror__(self, own: Mapping[str, Any]) -> Self:
        # AG2 copies what it is given over the agent's own: here those lie below already.
        return self

    def settle(self) -> None:
        """Write what was changed in place.

        Raises:
            WriteRefused: it may not be; the value is again what it was.
        """
        for name, value in list(self._read.items()):
            if name in self._variables and self._variables[name] == value:
                continue
            try:
                self[name] = value
            except WriteRefused:
                del self._read[name]
                raise
