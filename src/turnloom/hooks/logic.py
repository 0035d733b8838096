"""The hooks that run at a point of the lifecycle, their order, and the reasons to skip one."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from turnloom.hooks.spec import Hook, Hooks, LifecycleTool
from turnloom.kernel.documents import DeclarationFile, Path
from turnloom.kernel.models import DocumentEntry, Report, readable
from turnloom.kernel.values import Json, as_array, as_object, nearest
from turnloom.variables.logic.conditions import Condition, judge
from turnloom.variables.logic.cycles import cycle_of

# Keys of hooks in workflows of MozaiksAI, whose interface reads them.
FOREIGN = ("tool_type", "auto_invoke", "ui", "ui_contract")
# The triggers of its later releases in our words.
_WORDS: Mapping[str, Mapping[str, str]] = {
    "on_start": {"trigger": "before_chat"},
    "on_complete": {"trigger": "after_chat"},
    "on_fail": {"trigger": "after_chat", "on": "failure"},
}

# The `on` of hooks after the chat, by the status of the run.
ENDINGS = {"finished": "success", "failed": "failure", "cancelled": "failure"}


def hooks_at(hooks: Hooks, trigger: str, agent: str | None) -> list[Hook]:
    """The hooks of a trigger that apply to this agent's turns."""
    found = hooks.get(trigger, ())
    return [hook for hook in found if hook.declared.agent in (None, agent)]


def hooks_after(hooks: Hooks, status: str) -> list[Hook]:
    """The hooks that run after a chat with this final status."""
    ended = ENDINGS[status]
    return [hook for hook in hooks.get("after_chat", ()) if hook.declared.on in (ended, "always")]


def skip_reason(
    hook: Hook, values: Mapping[str, Json], absent: Mapping[str, str], succeeded: Set[str]
) -> str:
    """Why a hook does not run now; empty if it does."""
    missing = [name for name in hook.declared.after if name not in succeeded]
    if missing:
        return f"runs after {', '.join(missing)}, which did not succeed"
    if hook.when is not None:
        verdict = judge(hook.when, values, absent)
        if not verdict.holds:
            return f"only when {hook.declared.when}: {verdict.why_not}"
    return ""


class CheckedHook(NamedTuple):
    """A valid declared hook, with its path."""

    path: Path
    declared: LifecycleTool


def read_hooks(
    report: Report, document: DeclarationFile, entry: DocumentEntry
) -> list[CheckedHook]:
    """The hooks that a document declares, as far as they can be read."""
    items = as_array(entry.value)
    if items is None:
        if entry.value is not None:
            message = "'lifecycle_tools' must be an array."
            report.add(document, entry.path, "W012", message, remedy="Write one entry per hook.")
        return []
    found: list[CheckedHook] = []
    for number, value in enumerate(items):
        path = (*entry.path, number)
        own = _in_our_words(report.foreign(document, DocumentEntry(path, value), FOREIGN))
        declared = report.model(document, own, LifecycleTool) or readable(own.value, LifecycleTool)
        if declared is not None:
            found.append(CheckedHook(path, declared))
    return found


def _in_our_words(entry: DocumentEntry) -> DocumentEntry:
    """A hook whose trigger is one of ours."""
    value = as_object(entry.value) or {}
    said = value.get("trigger")
    words = _WORDS.get(said) if isinstance(said, str) else None
    return DocumentEntry(entry.path, {**value, **words}) if words else entry


def order_hooks(
    report: Report,
    document: DeclarationFile,
    checked: Sequence[CheckedHook],
    conditions: Mapping[int, Condition | None],
    unread: Sequence[Json] = (),
) -> dict[str, tuple[Hook, ...]]:
    """The hooks by trigger, in declared order, but each after those in its `after`.

    Hooks that could not be read may be the ones that others wait for.
    """
    hooks = [Hook(n, each.declared, conditions.get(n)) for n, each in enumerate(checked)]
    ordered: dict[str, tuple[Hook, ...]] = {}
    for trigger in dict.fromkeys(hook.declared.trigger for hook in hooks):
        some = [hook for hook in hooks if hook.declared.trigger == trigger]
        _check_names(report, document, checked, some, unread=unread)
        ordered[trigger] = tuple(_sorted(report, document, checked, some))
    return ordered


def _check_names(
    report: Report,
    document: DeclarationFile,
    checked: Sequence[CheckedHook],
    hooks: Sequence[Hook],
    unread: Sequence[Json],
) -> None:
    names = [hook.name for hook in hooks]
    for place, hook in enumerate(hooks):
        path = checked[hook.number].path
        if hook.name in names[:place] and _is_named(hook.name, hooks):
            message = f"Two hooks of {hook.declared.trigger!r} have the name {hook.name!r}."
            report.add(document, path, "W013", message, remedy="Give one of them another `name`.")
        for name in hook.declared.after:
            if name not in names and not any(_may_be(each, name) for each in unread):
                hint = nearest(name, names)
                remedy = f"Did you mean {hint!r}?" if hint else f"Declared: {', '.join(names)}."
                message = (
                    f"Hook {hook.name!r} runs after {name!r}, which its trigger does not have."
                )
                report.add(document, (*path, "after"), "W052", message, remedy=remedy)


def _may_be(unread: Json, name: str) -> bool:
    """Whether a hook that could not be read may have this name."""
    entry = as_object(unread) or {}
    names = [entry[key] for key in ("name", "function") if isinstance(entry.get(key), str)]
    return name in names or not names


def _is_named(name: str, hooks: Iterable[Hook]) -> bool:
    """Whether a hook refers to this name, so that it must be unique."""
    return any(name in hook.declared.after for hook in hooks)


def _sorted(
    report: Report, document: DeclarationFile, checked: Sequence[CheckedHook], hooks: Sequence[Hook]
) -> list[Hook]:
    names = {hook.name for hook in hooks}
    waiting, placed, done = list(hooks), list[Hook](), set[str]()
    while waiting:
        ready = next((h for h in waiting if not (set(h.declared.after) & names) - done), None)
        if ready is None:
            circle = cycle_of({hook.name: hook.declared.after for hook in waiting})
            message = f"Hooks wait for each other in a cycle: {' → '.join(circle)}."
            first = next(hook.number for hook in waiting if hook.name in circle)
            where = (*checked[first].path, "after")
            report.add(document, where, "W053", message, remedy="Drop one `after`.")
            return [*placed, *waiting]
        waiting.remove(ready)
        placed.append(ready)
        done.add(ready.name)
    return placed
