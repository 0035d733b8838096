"""States that a run began with another model of: as the model of today has them."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from turnloom.errors import InvalidUpdate
from turnloom.flow.logic.plans import deciding, planned_reducers
from turnloom.flow.logic.states import StateModel
from turnloom.flow.spec.nodes import FlowPlan
from turnloom.flow.spec.progress import Progress
from turnloom.kernel.values import Json, preview, said


def differs_in_state(old_text: str, new_text: str) -> bool:
    """Whether nothing that decides differs between the texts of two plans but the state, and fields
    that both models have are reduced alike."""
    old, new = deciding(old_text), deciding(new_text)
    before, now = planned_reducers(old_text), planned_reducers(new_text)
    is_alike = all(before[name] == now[name] for name in before.keys() & now.keys())
    return is_alike and {**old, "state": ""} == {**new, "state": ""}


def is_current(states: StateModel, written: Mapping[str, Json]) -> bool:
    """Whether the model of today has every field of a state, and takes its values."""
    if not written.keys() <= states.reducers.keys():
        return False
    try:
        states.load(written)
    except ValidationError:
        return False
    return True


def migrate(plan: FlowPlan, states: StateModel, written: Mapping[str, Json]) -> dict[str, Json]:
    """A state as the model of today has it: with its new fields, or as `migrate` of the flow says.

    Raises:
        InvalidUpdate: neither gives a state.
    """
    if is_current(states, written):
        return states.dump(states.load(written))
    if plan.migrate is None:
        gone = written.keys() - states.reducers.keys()
        why = f"it has no field {min(gone)!r} any more" if gone else _refused(states, written)
        raise InvalidUpdate(
            f"{states.model.__name__} does not take the state of this run: {why}. Give new fields "
            "a default, or say what becomes of such a state: `Flow(…, migrate=…)`."
        )
    _refuse_reduced(states, written)
    try:
        given = plan.migrate({**written})
    except Exception as error:
        raise InvalidUpdate(f"`migrate` failed: {type(error).__name__}: {said(error)}") from error
    found = given if isinstance(given, BaseModel) else _as_state(states, given)
    return states.dump(found)


def migrate_all(
    plan: FlowPlan, states: StateModel, progress: Progress
) -> dict[str, dict[str, Json]]:
    """The states of a run by the lines of work that have them, as far as they change.

    Raises:
        InvalidUpdate: one of them is none, or paths of a fork changed what there is no more.
    """
    found = {id: migrate(plan, states, each.state) for id, each in progress.strands.items()}
    for strand in progress.strands.values():
        for delta in strand.deltas:
            if not delta.keys() <= states.reducers.keys():
                raise InvalidUpdate(
                    f"A path of a fork changed {min(delta.keys() - states.reducers.keys())!r}, "
                    "which the state does not have any more. Let the fork end first."
                )
    return {id: state for id, state in found.items() if state != progress.strands[id].state}


def _refuse_reduced(states: StateModel, written: Mapping[str, Json]) -> None:
    """Refuse fields that are gone and may have had a reducer, which is not known any more.

    Raises:
        InvalidUpdate: there is one.
    """
    for name in sorted(written.keys() - states.reducers.keys()):
        if isinstance(written[name], list | dict):
            raise InvalidUpdate(
                f"{states.model.__name__} has no field {name!r} any more, which may have had a "
                "reducer. Keep the field until no run has it."
            )


def _refused(states: StateModel, written: Mapping[str, Json]) -> str:
    try:
        states.load(written)
    except ValidationError as error:
        return said(error)
    return ""


def _as_state(states: StateModel, given: Any) -> Any:
    if not isinstance(given, Mapping):
        raise InvalidUpdate(f"`migrate` gives a state or its fields, not {preview(given)}.")
    try:
        return states.model.model_validate(given, by_name=True)
    except ValidationError as error:
        raise InvalidUpdate(f"What `migrate` gives is no state: {said(error)}") from error
