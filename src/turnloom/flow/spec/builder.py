"""Flows as programs write them down: one call after the other."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from inspect import currentframe
from typing import Any, Generic, Self, TypeAlias, TypedDict, Unpack, cast

from pydantic import BaseModel
from typing_extensions import TypeVar

from turnloom.assembly.spec.formats import Budget, ContextFormat
from turnloom.assembly.spec.sources import Source
from turnloom.errors import UsageError
from turnloom.flow.spec.nodes import (
    REJECT,
    ApprovalNode,
    ApprovalRequest,
    BranchNode,
    ForkNode,
    LoopNode,
    Node,
    NodeSequence,
    Option,
    Site,
    StepNode,
    Unmade,
)
from turnloom.flow.spec.steps import AnyStep, Cache, CodeStep, Retry, takes_context
from turnloom.guards.spec import Selection
from turnloom.kernel.values import said

S = TypeVar("S", bound=BaseModel)
# A path that begins with no step says nothing about its state.
S_contra = TypeVar("S_contra", bound=BaseModel, default=Any, contravariant=True)
V = TypeVar("V")


class Complete:
    """Ends a path, and the flow with it."""


def complete() -> Complete:
    """What ends a path, and the flow with it."""
    return Complete()


class StepSettings(TypedDict, Generic[S], total=False):
    """How a step is to be taken.

    `retry` counts the attempts after the first. `timeout`, `compensate_timeout` and `cache` are
    seconds; `cache=True` keeps a result without end, and `cache=Cache(…)` says for whom. A handled
    failure lets the flow go on with `recover`.
    """

    name: str
    context: Sequence[Source]
    budget: Budget
    format: ContextFormat
    retry: int | Retry
    timeout: float
    require_confidence: float
    on_low_confidence: "AnyPath[S]"
    validate: tuple[Callable[[S], bool | Awaitable[bool]], str]
    compensate: CodeStep[S]
    compensate_timeout: float
    on_failure: "AnyPath[S] | Mapping[type[Exception], AnyPath[S]]"
    recover: bool
    cache: float | bool | Cache
    select: Selection


class Path(Generic[S_contra]):
    """Steps one after the other, as a part of a flow."""

    def __init__(self, *steps: AnyStep[S_contra] | Complete) -> None:
        self._line = NodeSequence(site=calling())
        self._numbers: dict[str, int] = {}
        for step in steps:
            self._add(step)

    @property
    def line(self) -> NodeSequence:
        """What the path consists of."""
        return self._line

    def then(self, step: AnyStep[S_contra], **settings: Unpack[StepSettings[S_contra]]) -> Self:
        """A step after what is there."""
        return self._put("then", make_step(step, calling(), settings))

    def branch(
        self,
        on: Callable[[S_contra], V | Awaitable[V]],
        cases: "Mapping[V, AnyPath[S_contra]]",
        *,
        otherwise: "AnyPath[S_contra] | None" = None,
        name: str | None = None,
    ) -> Self:
        """The path whose value `on` gives for the state; afterwards the paths are one again."""
        return self._put(
            "branch",
            BranchNode(
                name=self._named("branch", name),
                site=calling(),
                on=on,
                cases=_cases(cases),
                otherwise=None if otherwise is None else as_line(otherwise),
            ),
        )

    def fork(
        self,
        *paths: "AnyPath[S_contra]",
        join: "AnyStep[S_contra] | Path[S_contra] | None" = None,
        name: str | None = None,
    ) -> Self:
        """All paths at once, each from the same state, and `join` after the last of them."""
        return self._put(
            "fork",
            ForkNode(
                name=self._named("fork", name),
                site=calling(),
                paths=tuple(map(as_line, paths)),
                join=None if join is None else _join(join, calling()),
            ),
        )

    def repeat_until(
        self,
        until: Callable[[S_contra], bool | Awaitable[bool]],
        path: "AnyPath[S_contra]",
        *,
        max_iterations: int = 100,
        name: str | None = None,
    ) -> Self:
        """A path again and again, until a condition holds after it, at most so often."""
        return self._put(
            "repeat_until",
            LoopNode(
                name=self._named("loop", name),
                site=calling(),
                until=until,
                body=as_line(path),
                max_iterations=max_iterations,
            ),
        )

    def await_approval(
        self,
        approver: str,
        *,
        context: str | Callable[[S_contra], object] = "",
        options: Sequence[str | Option] = (),
        timeout: float | None = None,
        on_timeout: "AnyPath[S_contra] | ApprovalRequest | None" = None,
        on_rejection: "AnyPath[S_contra] | None" = None,
        name: str | None = None,
    ) -> Self:
        """A decision of a person that the run waits for; seconds pass until `on_timeout`."""
        return self._put(
            "await_approval",
            ApprovalNode(
                name=self._named("approval", name),
                site=calling(),
                asking=_complete(
                    escalate_to(
                        approver,
                        context=context,
                        options=options,
                        timeout=timeout,
                        on_timeout=on_timeout,
                    ),
                    ApprovalRequest(approver=approver),
                ),
                on_rejection=None if on_rejection is None else as_line(on_rejection),
            ),
        )

    def on_failure(self, path: "AnyPath[S_contra]") -> Self:
        """What a failure in a path of a fork leads to; the path is then joined as recovered."""
        self._change("on_failure")
        if self._line.handler is not None:
            self._line.again.append(("on_failure", calling()))
        self._line.handler = as_line(path)
        return self

    def complete(self) -> Self:
        """End the flow after this path."""
        self._change("complete")
        if self._line.end is not None:
            self._line.again.append(("complete", calling()))
        self._line.end = len(self._line.nodes)
        return self

    def as_part(self) -> NodeSequence:
        """What the path is as a part of a flow."""
        return self._line

    def _add(self, step: Any) -> None:
        if isinstance(step, Complete):
            self.complete()
        else:
            self._line.nodes.append(make_step(step, calling(), {}))

    def _put(self, call: str, node: Node) -> Self:
        self._change(call)
        self._line.nodes.append(node)
        return self

    def _change(self, call: str) -> None:
        """Refuse to change what runs may be pinned to.

        Raises:
            UsageError: the path belongs to a flow that was built.
        """
        if self._line.is_built:
            raise UsageError(
                f"Path.{call}(): the path belongs to a flow that is built. Build another path, or "
                "say this before the flow's `finally_`."
            )

    def _named(self, kind: str, given: str | None) -> str:
        """What a node is called that may have been given a name."""
        if given is not None:
            return given
        number = self._numbers[kind] = self._numbers.get(kind, 0) + 1
        return kind if number == 1 else f"{kind}_{number}"


# What a path is given as: a step, several, or a path that was built.
AnyPath: TypeAlias = AnyStep[S] | Complete | Path[S] | Sequence[AnyStep[S] | Complete]


def escalate_to(
    approver: str,
    *,
    context: str | Callable[[S], object] | None = None,
    options: Sequence[str | Option] = (),
    timeout: float | None = None,
    on_timeout: AnyPath[S] | ApprovalRequest | None = None,
) -> ApprovalRequest:
    """Whom an approval asks next if there is no answer in time: the same, with the same options,
    unless `context` or `options` say otherwise."""
    late = on_timeout
    return ApprovalRequest(
        approver=approver,
        context=context,
        options=tuple(map(_option, options)),
        timeout=timeout,
        then=late if late is None or isinstance(late, ApprovalRequest) else as_line(late),
    )


def _complete(asking: ApprovalRequest, before: ApprovalRequest) -> ApprovalRequest:
    """What is asked, with what it does not say itself as it was asked before."""
    asked = replace(
        asking,
        context=before.context if asking.context is None else asking.context,
        options=asking.options or before.options,
    )
    late = asked.then
    return (
        replace(asked, then=_complete(late, asked)) if isinstance(late, ApprovalRequest) else asked
    )


def as_line(path: Any) -> NodeSequence:
    """What was given as a path: a step, several in a list, or a path that was built."""
    if isinstance(path, Path):
        return path.as_part()
    if isinstance(path, NodeSequence):
        return path
    return Path(*(cast(Sequence[Any], path) if isinstance(path, list | tuple) else (path,))).line


def step_name(step: Any) -> str:
    """What a step is called that is given no name: as its function or class is."""
    if isinstance(step, type) or not hasattr(step, "run") and hasattr(step, "__name__"):
        return step.__name__
    return type(step).__name__


def as_step(step: Any) -> Any:
    """A step as it is called; of a class, the one that it makes."""
    if not isinstance(step, type):
        return step
    try:
        return step()
    except Exception as error:  # noqa: BLE001 - whatever a class raises is told by the check
        return Unmade(step, f"{type(error).__name__}: {said(error)}")


def make_step(step: Any, site: Site, settings: StepSettings[Any]) -> StepNode:
    """A step with its settings in one form."""
    known = StepSettings.__annotations__
    plain: dict[str, Any] = {key: said for key, said in settings.items() if key in known}
    name, failure, low, cache = (
        plain.pop(key, None) for key in ("name", "on_failure", "on_low_confidence", "cache")
    )
    retry, made, undo = plain.pop("retry", 0), as_step(step), as_step(plain.pop("compensate", None))
    return StepNode(
        name=step_name(step) if name is None else name,
        step=made,
        takes_context=takes_context(made),
        site=site,
        retry=retry if isinstance(retry, Retry) else Retry(retry, delay=0.0),
        on_failure=_handlers(failure),
        on_low_confidence=None if low is None else as_line(low),
        compensate=undo,
        undo_takes_context=takes_context(undo),
        cache=_cache(cache),
        unknown=tuple(key for key in settings if key not in known),
        **plain,
    )


def _cache(given: Any) -> Cache | None:
    if given is None or given is False:
        return None
    if isinstance(given, Cache):
        return given
    return Cache() if given is True else Cache(given)


def _handlers(given: Any) -> tuple[tuple[type[BaseException], NodeSequence], ...]:
    """What failures lead to, by their type."""
    if given is None:
        return ()
    by_type = cast(Mapping[Any, Any], given) if isinstance(given, Mapping) else {Exception: given}
    return tuple((kind, as_line(path)) for kind, path in by_type.items())


def _cases(given: object) -> tuple[tuple[Any, NodeSequence], ...]:
    """The paths of a branch by their values; of what maps nothing, none."""
    if not isinstance(given, Mapping):
        return ()
    found = cast(Mapping[Any, Any], given)
    return tuple((value, as_line(path)) for value, path in found.items())


def _join(given: Any, site: Site) -> StepNode:
    """The step that joins the paths of a fork, which a path may give settings. A path that is more
    than its one step remains what it is, which the check refuses."""
    match given.as_part() if isinstance(given, Path) else given:
        case NodeSequence(nodes=[StepNode() as node], end=None, handler=None, flow=None):
            return node
        case [only]:
            return make_step(only, site, {})
        case _:
            return make_step(given, site, {})


def _option(given: str | Option) -> Option:
    if isinstance(given, Option):
        return given
    return Option(given, given, rejects=given == REJECT.id)


def calling() -> Site:
    """The line of the program that made the call that is going on."""
    frame = currentframe()
    assert frame is not None
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        "turnloom.flow."
    ):
        frame = frame.f_back
    return Site(frame.f_code.co_filename, frame.f_lineno)
