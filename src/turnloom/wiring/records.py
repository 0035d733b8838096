"""Where group chats are put on record that are run elsewhere."""

from contextlib import ExitStack, aclosing
from types import TracebackType
from typing import Self

from anyio.from_thread import BlockingPortal, start_blocking_portal

from turnloom.errors import UsageError
from turnloom.kernel.values import Json
from turnloom.log.events import RunStarted
from turnloom.log.spec import LOCAL, Fact, RunKey
from turnloom.runs.undriven import CHAT, Undriven
from turnloom.runtime.journal import Journal
from turnloom.runtime.logic import base_context, fresh
from turnloom.runtime.spec import LoadedWorkflow
from turnloom.variables.logic.resolution import ResolvedContext
from turnloom.variables.service import ContextSource
from turnloom.variables.spec import Variables
from turnloom.wiring.adapters import adapter
from turnloom.wiring.opening import open_documents, open_store
from turnloom.wiring.schemes import place
from turnloom.wiring.settings import settings


class ChatRecords:
    """A store for what happens in chats, written by a thread of its own while it is open.

    `store` is a file, and `documents` is where database variables are looked up, else what the
    settings say; `user_id` and `app_id` are whose runs they are. `runs` are the ids of what was put
    on record, in the order in which it began.
    """

    def __init__(
        self,
        store: str | None = None,
        *,
        documents: str | None = None,
        user_id: str = "local",
        app_id: str = LOCAL,
    ) -> None:
        self.runs: list[str] = []
        self._chosen = settings({"store": store, "documents": documents})
        place("store", self._chosen.store)
        place("documents", self._chosen.documents)
        self._whose = (app_id, user_id)
        self._open = ExitStack()
        self._portal: BlockingPortal | None = None

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._portal = stack.enter_context(start_blocking_portal())
            self._store = self._portal.call(open_store, self._chosen)
            stack.callback(self._portal.call, self._store.aclose)
            self._open = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._portal = None
        self._open.close()

    def load(self, workflow: LoadedWorkflow, variables: Variables) -> ResolvedContext:
        """The first values of variables, as a run of the workflow would have them.

        Raises:
            MissingContext: one that is required has none.
            UsageError: nothing is open.
        """
        return self._opened().call(self._load, workflow, variables)

    async def _load(self, workflow: LoadedWorkflow, variables: Variables) -> ResolvedContext:
        base: dict[str, Json] = {**base_context("", _started(workflow, *self._whose))}
        async with aclosing(open_documents(self._chosen)) as documents:
            source = ContextSource(adapter("system").SystemEnvironment(), documents)
            return await source.load(variables, base, workflow.database)

    def _opened(self) -> BlockingPortal:
        if self._portal is None:
            raise UsageError("Nothing is recorded outside of `with Records(…) as records:`.")
        return self._portal

    def begin(self, workflow: LoadedWorkflow) -> "RecordedChat":
        """A run whose beginning is on record; nobody else can go on with it. What is told of it
        holds no secrets.

        Raises:
            UsageError: nothing is open to write to.
        """
        portal = self._opened()
        system, store = adapter("system"), self._store
        run = RunKey(self._whose[0], system.SystemEntropy().token())
        held = self._open.enter_context(ExitStack())
        claim = portal.wrap_async_context_manager(store.claims.claim(run))
        fence = held.enter_context(claim)
        form = Undriven(workflow.workflow.name)
        chat = LoadedWorkflow(form, {}, "", "", files={}, code={})
        journal = Journal(store.log, system.SystemClock(), chat, fresh(run, form), secrets=None)
        journal.fence = fence
        recorded = RecordedChat(portal, journal, held)
        recorded.record("start", _started(workflow, *self._whose), "driver", None)
        self.runs.append(run.id)
        return recorded


class RecordedChat:
    """A run of a chat, as whoever runs the chat tells of it; `end` lets go of it."""

    def __init__(self, portal: BlockingPortal, journal: Journal, held: ExitStack) -> None:
        self.run = journal.state.run
        self.end = held.close
        self._portal = portal
        self._journal = journal

    def record(self, id: str, fact: Fact, actor: str, cause: int | None) -> int:
        """Put a fact on record, and wait until it is stored; its place."""
        return self._portal.call(self._record, id, fact, actor, cause)

    async def _record(self, id: str, fact: Fact, actor: str, cause: int | None) -> int:
        event = self._journal.record(id, fact, actor, cause)
        await self._journal.commit()
        return event.seq


def _started(workflow: LoadedWorkflow, tenant: str, user: str) -> RunStarted:
    return RunStarted(
        workflow.workflow.name,
        workflow.workflow.version,
        workflow.definition,
        workflow.root,
        files=workflow.files,
        code=workflow.code,
        tenant=tenant,
        user=user,
        set_aside=workflow.set_aside,
        form=CHAT,
    )
