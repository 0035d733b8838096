"""The builder of flows: a flow checks itself, and can be drawn."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Generic, Self, TypedDict, TypeVar, Unpack

from pydantic import BaseModel

from turnloom.errors import DefinitionError, Diagnostic, UsageError
from turnloom.flow.logic.checking import check
from turnloom.flow.logic.drawing import draw
from turnloom.flow.logic.plans import close, make_plan, placed_lines
from turnloom.flow.spec.builder import AnyPath, Path, StepSettings, as_line, calling, make_step
from turnloom.flow.spec.nodes import DeclaredFlow, FlowPlan, MisplacedCall, Node, NodeSequence, Site
from turnloom.flow.spec.steps import AnyStep
from turnloom.guards.spec import Guards
from turnloom.kernel.markup import grid, visible, written
from turnloom.kernel.values import Json

S = TypeVar("S", bound=BaseModel)


class FlowSettings(TypedDict, Generic[S], total=False):
    """Settings of a flow.

    `variables`, `hooks` and `guards` are the declarations of a workflow folder, in Python.
    `timeout` is the maximum number of seconds of a run. `migrate` converts the fields of a state of
    an earlier model to a state, or its fields.
    """

    version: str
    timeout: float | None
    variables: Mapping[str, Json] | None
    hooks: Sequence[Mapping[str, Json]]
    guards: Guards | Mapping[str, Json] | None
    migrate: Callable[[dict[str, Json]], Mapping[str, object] | S] | None


class Flow(Path[S], Generic[S]):
    """A flow: steps that change a typed state, checked when it is built.

    Raises:
        UsageError: a setting is unknown.
    """

    def __init__(self, name: str, state: type[S], **settings: Unpack[FlowSettings[S]]) -> None:
        unknown = settings.keys() - FlowSettings.__annotations__.keys()
        if unknown:
            known = ", ".join(FlowSettings.__annotations__)
            raise UsageError(f"Flow(): unknown setting {min(unknown)!r}. Known: {known}.")
        super().__init__()
        self.name = name
        self.state = state
        self.version = settings.get("version", "1")
        self.timeout = settings.get("timeout")
        self.variables = settings.get("variables") or {}
        self.hooks = settings.get("hooks", ())
        self.guards = settings.get("guards")
        self.migrate = settings.get("migrate")
        self._failure: NodeSequence | None = None
        self._misplaced: list[MisplacedCall] = []
        self._is_begun = self._is_ended = False
        self._plan: FlowPlan | None = None
        gathered = _gathered.get()
        if gathered is not None:
            gathered.append(self)

    def __repr__(self) -> str:
        steps = ", ".join(node.name for node in self._line.nodes) or "no steps"
        return visible(f"<Flow {self.name!r} of {self.state.__name__}: {steps}>")

    def _repr_html_(self) -> str:
        title = f"Flow {self.name!r} of {self.state.__name__}, version {self.version}"
        problems = [each for each in self.check() if each.severity == "error"]
        if problems:
            return grid(f"{title}: problems", ("line", "problem"), _rows(problems))
        kinds = [(node.name, type(node).__name__.removesuffix("Node")) for node in self._line.nodes]
        return grid(title, ("step", "is"), kinds) + written("Mermaid", self.to_mermaid())

    def start_with(self, step: AnyStep[S], **settings: Unpack[StepSettings[S]]) -> Self:
        """Add the first step."""
        self._put("start_with", make_step(step, calling(), settings))
        self._is_begun = True
        return self

    def finally_(self, step: AnyStep[S], **settings: Unpack[StepSettings[S]]) -> Self:
        """Add the last step.

        Raises:
            DefinitionError: the flow has errors.
        """
        self._put("finally_", make_step(step, calling(), settings))
        self._is_ended = True
        if _gathered.get() is None:
            self.plan  # noqa: B018 - raises errors where the flow is built
        return self

    def on_failure(self, path: AnyPath[S]) -> Self:
        """Add the path for failures that nothing in the flow recovers from; it runs after the
        compensation."""
        if self._failure is not None:
            self._misplaced.append(MisplacedCall("on_failure", calling(), "on_failure"))
        elif not self._is_begun:
            self._misplaced.append(MisplacedCall("on_failure", calling(), ""))
        self._failure = as_line(path)
        self._plan = None
        return self

    def check(self) -> Sequence[Diagnostic]:
        """All errors and warnings of the flow."""
        return check(
            DeclaredFlow(
                self.name,
                self.state,
                self._line,
                self._failure,
                misplaced=self._misplaced,
                timeout=self.timeout,
                is_ended=self._is_ended,
                variables=self.variables,
                migrate=self.migrate,
            )
        )

    @property
    def plan(self) -> FlowPlan:
        """The plan that runs of the flow are pinned to.

        Raises:
            DefinitionError: the flow has errors.
        """
        if self._plan is None:
            problems = self.check()
            if any(each.severity == "error" for each in problems):
                raise DefinitionError(self.name, sorted(problems))
            beside = {"variables": self.variables, "hooks": self.hooks, "guards": self.guards}
            paths = placed_lines(self._line, self._failure)
            version, timeout = self.version, self.timeout
            plan = make_plan(self.name, version, self.state, paths, timeout=timeout, beside=beside)
            self._plan = replace(plan, migrate=self.migrate)
            close(paths, self._line)
        return self._plan

    def as_part(self) -> NodeSequence:
        """The flow as a path of another, which its check refuses."""
        line = self._line
        return NodeSequence(line.nodes, calling(), line.end, flow=self.name)

    def to_mermaid(self) -> str:
        """The flow as a Mermaid flowchart: every path that a run can take.

        Raises:
            DefinitionError: the flow has errors.
        """
        return draw(self.plan)

    @property
    def site(self) -> Site:
        """The file and line where the flow is built."""
        return self._line.site

    def _put(self, call: str, node: Node) -> Self:
        after = self._misplacing(call)
        if after is not None:
            self._misplaced.append(MisplacedCall(call, node.site, after))
        self._plan = None
        return super()._put(call, node)

    def _misplacing(self, call: str) -> str | None:
        """The call that this one must not follow; empty if `start_with` is missing; None if it
        fits."""
        if call == "start_with":
            return call if self._is_begun else None
        if not self._is_begun:
            return ""
        return "finally_" if self._is_ended else None


def _rows(problems: Sequence[Diagnostic]) -> list[tuple[str, str]]:
    return [(f"{each.file}:{each.line}", f"{each.code} {each.message}") for each in problems]


# The flows built inside `gathering()`.
_gathered: ContextVar[list[Flow[Any]] | None] = ContextVar("gathered", default=None)


@contextmanager
def gathering() -> Generator[list[Flow[Any]]]:
    """Collect the flows that are built; those with errors are not refused."""
    found: list[Flow[Any]] = []
    token = _gathered.set(found)
    try:
        yield found
    finally:
        _gathered.reset(token)
