"""Paths of a fork become one again."""

from collections.abc import Sequence

from turnloom.errors import InvalidUpdate
from turnloom.flow.logic.states import REPLACED, StateModel
from turnloom.flow.spec.progress import Strand


def clash(states: StateModel, paths: Sequence[Strand]) -> None:
    """See that no two paths replaced one field.

    Raises:
        InvalidUpdate: two did, and which of them counts would be chance.
    """
    writers: dict[str, str] = {}
    for path in paths:
        for name in {name for delta in path.deltas for name in delta}:
            if states.reducers.get(name) != REPLACED:
                continue
            first = writers.setdefault(name, path.id)
            if first != path.id:
                raise InvalidUpdate(
                    f"Paths {first!r} and {path.id!r} both set {name!r}. Let one of them, or give "
                    f"the field a reducer: `Annotated[…, append]`."
                )
