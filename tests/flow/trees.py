"""Random flows: steps that fail or not, in branches, loops, forks and approvals."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tests.flow.notes import Doomed, Notes, undo
from turnloom import Flow, Path, Retry


@dataclass(frozen=True)
class Leaf:
    """A step that fails so often, is retried so often, and is handled so."""

    fails: int
    retries: int
    compensated: bool
    handled: str


@dataclass(frozen=True)
class Tree:
    """Paths, and what is made of them; `how` says more, as each kind takes it."""

    kind: str
    paths: tuple[tuple[Any, ...], ...]
    how: int


leaves = st.builds(
    Leaf,
    fails=st.sampled_from([0, 0, 0, 0, 1, 2, 9]),
    retries=st.sampled_from([0, 0, 1]),
    compensated=st.booleans(),
    handled=st.sampled_from(["", "", "recover", "handle"]),
)


def _trees(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    path = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(
            Tree,
            st.just("fork"),
            st.lists(path, min_size=2, max_size=3).map(tuple),
            st.integers(0, 7),
        ),
        st.builds(Tree, st.just("loop"), st.tuples(path), st.integers(1, 3)),
        st.builds(Tree, st.just("branch"), st.tuples(path, path), st.integers(0, 1)),
        st.builds(Tree, st.just("approval"), st.tuples(path), st.integers(0, 3)),
    )


nodes = st.recursive(leaves, _trees, max_leaves=14)
lines = st.lists(nodes, min_size=1, max_size=5).map(tuple)


@dataclass
class Grown:
    """A flow made of trees, and what is to be known of it."""

    flow: Flow[Notes]
    compensated: set[str] = field(default_factory=set[str])
    answers: dict[str, str] = field(default_factory=dict[str, str])
    most: dict[str, int] = field(default_factory=dict[str, int])
    count: int = 0
    is_after: bool = False  # what comes after a failure is not made up for

    def answer(self, question: Any) -> str:
        """What an approver says."""
        return self.answers[question.payload["approval"]]

    def name(self, kind: str) -> str:
        """A name that nothing else has."""
        self.count += 1
        return f"{kind}{self.count}"

    def path(self, trees: tuple[Any, ...]) -> Path:
        """A path of trees."""
        path = Path()
        for tree in trees:
            self.put(path, tree)
        return path

    def put(self, path: Path, tree: Leaf | Tree) -> None:
        """Put a tree at the end of a path."""
        if isinstance(tree, Leaf):
            self._leaf(path, tree)
        else:
            getattr(self, f"_{tree.kind}")(path, tree)

    def _leaf(self, path: Path, leaf: Leaf) -> None:
        name = self.name("step")
        settings: dict[str, Any] = {"name": name, "retry": Retry(leaf.retries, delay=0)}
        if leaf.compensated and not self.is_after:
            self.compensated.add(name)
            settings["compensate"] = undo(name)
        if leaf.handled:
            handler = Path()
            self._leaf(handler, Leaf(0, 0, False, ""))
            settings |= {"on_failure": handler, "recover": leaf.handled == "recover"}
        path.then(_step(leaf), **settings)

    def _fork(self, path: Path, tree: Tree) -> None:
        paths = [self.path(each) for each in tree.paths]
        for number, each in enumerate(paths):
            if tree.how >> number & 1:
                rescue = Path()
                self._leaf(rescue, Leaf(0, 0, True, ""))
                each.on_failure(rescue)
        path.fork(*paths, join=Path().then(_step(Leaf(0, 0, False, "")), name=self.name("join")))

    def _loop(self, path: Path, tree: Tree) -> None:
        name = self.name("loop")
        self.most[name] = tree.how
        path.repeat_until(
            lambda state: len(state.said) % 3 == 0,
            self.path(tree.paths[0]),
            max_iterations=tree.how,
            name=name,
        )

    def _branch(self, path: Path, tree: Tree) -> None:
        cases = dict(enumerate(map(self.path, tree.paths)))
        path.branch(lambda state: len(state.said) % 2, cases, name=self.name("branch"))

    def _approval(self, path: Path, tree: Tree) -> None:
        name = self.name("approval")
        self.answers[name] = "reject" if tree.how & 1 else "approve"
        rejected = self.path(tree.paths[0]) if tree.how & 2 else None
        path.await_approval("boss", on_rejection=rejected, name=name)


def _step(leaf: Leaf) -> Callable[..., Any]:
    async def step(state: Notes, ctx: Any) -> Any:
        if ctx.attempt <= leaf.fails:
            raise Doomed(ctx.step)
        return {"said": [ctx.step]}

    return step


def grow(main: tuple[Any, ...], failure: tuple[Any, ...] | None) -> Grown:
    """A flow of trees, with a path for failures if there is one."""
    grown = Grown(Flow("grown", Notes))
    grown.flow.start_with(_step(Leaf(0, 0, False, "")), name="first")
    for tree in main:
        grown.put(grown.flow, tree)
    if failure is not None:
        grown.is_after = True
        grown.flow.on_failure(grown.path(failure))
    return grown
