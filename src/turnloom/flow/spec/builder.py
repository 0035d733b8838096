"""Builder of paths and steps."""

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
from turnloom.kernel.values import error_text

S = TypeVar("S", bound=BaseModel)
# A path without steps does not determine its state.
S_contra = TypeVar("S_contra", bound=BaseModel, default=Any, contravariant=True)
V = TypeVar("V")


class Complete:
    """Ends a path, and the flow with it."""


def complete() -> Complete:
    """End the path, and the flow with it."""
    return Complete()


class StepSettings(TypedDict, Generic[S], total=False):
    """Settings of a step.

    `retry` is the number of attempts after the first. `timeout`, `compensate_timeout` and `cache`
    are seconds; `cache=True` keeps a result forever, and `cache=Cache(…)` can share it. With
    `recover`, the flow continues after a handled failure.
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
    """A sequence of steps, as a part of a flow."""

    def __init__(self, *steps: AnyStep[S_contra] | Complete) -> None:
        self._line = NodeSequence(site=calling())
        self._numbers: dict[str, int] = {}
        for step in steps:
            self._add(step)

    @property
    def line(self) -> NodeSequence:
        """The nodes of the path."""
        return self._line

    def then(self, step: AnyStep[S_contra], **settings: Unpack[StepSettings[S_contra]]) -> Self:
        """Add a step."""
        return self._put("then", make_step(step, calling(), settings))

    def branch(
        self,
        on: Callable[[S_contra], V | Awaitable[V]],
        cases: "Mapping[V, AnyPath[S_contra]]",
        *,
        otherwise: "AnyPath[S_contra] | None" = None,
        name: str | None = None,
    ) -> Self:
        """Take the path for the value that `on` returns; the paths rejoin afterwards."""
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
        """Run all paths at once, each from the same state, then `join`."""
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
        """Repeat a path until a condition holds after it, up to `max_iterations` times."""
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
        approver: str | Sequence[str],
        *,
        context: str | Callable[[S_contra], object] = "",
        options: Sequence[str | Option] = (),
        timeout: float | None = None,
        on_timeout: "AnyPath[S_contra] | ApprovalRequest | None" = None,
        on_rejection: "AnyPath[S_contra] | None" = None,
        name: str | None = None,
    ) -> Self:
        """Wait for a person's decision; after `timeout` seconds, take `on_timeout`. The approver is
        a person or a role, as in `role:admin`, or several of them: the first to answer decides."""
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
                    ApprovalRequest(approver=_approver(approver)),
                ),
                on_rejection=None if on_rejection is None else as_line(on_rejection),
            ),
        )

    def on_failure(self, path: "AnyPath[S_contra]") -> Self:
        """Handle failures in a path of a fork; the path is then joined as recovered."""
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
        """The nodes of the path as a part of a flow."""
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
        """Refuse to change a path that runs may be pinned to.

        Raises:
            UsageError: the path belongs to a flow that was built.
        """
        if self._line.is_built:
            raise UsageError(
                f"Path.{call}(): the path belongs to a flow that is built. Build another path, or "
                "call it before the flow's `finally_`."
            )

    def _named(self, kind: str, given: str | None) -> str:
        """The name of a node: the given one, or its kind with a number."""
        if given is not None:
            return given
        number = self._numbers[kind] = self._numbers.get(kind, 0) + 1
        return kind if number == 1 else f"{kind}_{number}"


# The accepted values for a path: a step, several, or a `Path`.
AnyPath: TypeAlias = AnyStep[S] | Complete | Path[S] | Sequence[AnyStep[S] | Complete]


def _approver(given: str | Sequence[str]) -> str | tuple[str, ...]:
    """One approver, or several; what else is given is left to the check."""
    return tuple(given) if _is_several(given) else cast("str", given)


def _is_several(given: object) -> bool:
    return isinstance(given, list | tuple | set | frozenset)


def escalate_to(
    approver: str | Sequence[str],
    *,
    context: str | Callable[[S], object] | None = None,
    options: Sequence[str | Option] = (),
    timeout: float | None = None,
    on_timeout: AnyPath[S] | ApprovalRequest | None = None,
) -> ApprovalRequest:
    """The next approver if there is no answer in time, with the same context and options unless
    they are given."""
    late = on_timeout
    return ApprovalRequest(
        approver=_approver(approver),
        context=context,
        options=tuple(map(_option, options)),
        timeout=timeout,
        then=late if late is None or isinstance(late, ApprovalRequest) else as_line(late),
    )


def _complete(asking: ApprovalRequest, before: ApprovalRequest) -> ApprovalRequest:
    """A request with its missing context and options taken from the one before."""
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
    """The nodes of a path given as a step, a list of steps, or a `Path`."""
    if isinstance(path, Path):
        return path.as_part()
    if isinstance(path, NodeSequence):
        return path
    return Path(*(cast(Sequence[Any], path) if isinstance(path, list | tuple) else (path,))).line


def step_name(step: Any) -> str:
    """The default name of a step: that of its function or class."""
    if isinstance(step, type) or not hasattr(step, "run") and hasattr(step, "__name__"):
        return step.__name__
    return type(step).__name__


def as_step(step: Any) -> Any:
    """A step as an object; a class is instantiated."""
    if not isinstance(step, type):
        return step
    try:
        return step()
    except Exception as error:  # noqa: BLE001 - the check reports whatever a class raises
        return Unmade(step, f"{type(error).__name__}: {error_text(error)}")


def make_step(step: Any, site: Site, settings: StepSettings[Any]) -> StepNode:
    """A step with its settings in their normal form."""
    known = StepSettings.__annotations__
    plain: dict[str, Any] = {key: each for key, each in settings.items() if key in known}
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
    """The paths for failures, by the type of the error."""
    if given is None:
        return ()
    by_type = cast(Mapping[Any, Any], given) if isinstance(given, Mapping) else {Exception: given}
    return tuple((kind, as_line(path)) for kind, path in by_type.items())


def _cases(given: object) -> tuple[tuple[Any, NodeSequence], ...]:
    """The paths of a branch by value; none if the cases are not a mapping."""
    if not isinstance(given, Mapping):
        return ()
    found = cast(Mapping[Any, Any], given)
    return tuple((value, as_line(path)) for value, path in found.items())


def _join(given: Any, site: Site) -> StepNode:
    """The step that joins the paths of a fork; a path of one step gives it settings. A longer path
    stays as it is, and the check refuses it."""
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
    """The file and line of the user's code that called the builder."""
    frame = currentframe()
    assert frame is not None
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        "turnloom.flow."
    ):
        frame = frame.f_back
    return Site(frame.f_code.co_filename, frame.f_lineno)
