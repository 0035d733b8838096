"""Records of group chats that another library runs."""

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
    """Records group chats in a store, from a background thread.

    `store` and `documents` override the settings; `documents` serves database variables. `user_id`
    and `app_id` own the runs. `runs` lists the ids of recorded runs in order of their start.
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
        self._owner = (app_id, user_id)
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
        """Load the initial values of variables, as a run of the workflow would.

        Raises:
            MissingContext: a required variable has no value.
            UsageError: the records are closed.
        """
        return self._opened().call(self._load, workflow, variables)

    async def _load(self, workflow: LoadedWorkflow, variables: Variables) -> ResolvedContext:
        base: dict[str, Json] = {**base_context("", _started(workflow, *self._owner))}
        async with aclosing(open_documents(self._chosen)) as documents:
            source = ContextSource(adapter("system").SystemEnvironment(), documents)
            return await source.load(variables, base, workflow.database, workflow.data)

    def _opened(self) -> BlockingPortal:
        if self._portal is None:
            raise UsageError("The records are closed. Use `with ChatRecords(…) as records:`.")
        return self._portal

    def begin(self, workflow: LoadedWorkflow) -> "RecordedChat":
        """Start recording a run, which no other process can continue. Facts must contain no
        secrets.

        Raises:
            UsageError: the records are closed.
        """
        portal = self._opened()
        system, store = adapter("system"), self._store
        run = RunKey(self._owner[0], system.SystemEntropy().token())
        held = self._open.enter_context(ExitStack())
        claim = portal.wrap_async_context_manager(store.claims.claim(run))
        fence = held.enter_context(claim)
        form = Undriven(workflow.workflow.name)
        chat = LoadedWorkflow(form, {}, "", "", files={}, code={})
        journal = Journal(store.log, system.SystemClock(), chat, fresh(run, form), secrets=None)
        journal.fence = fence
        recorded = RecordedChat(portal, journal, held)
        recorded.record("start", _started(workflow, *self._owner), "driver", None)
        self.runs.append(run.id)
        return recorded


class RecordedChat:
    """Recorded run of a chat. Call `end` to release it."""

    def __init__(self, portal: BlockingPortal, journal: Journal, held: ExitStack) -> None:
        self.run = journal.state.run
        self.end = held.close
        self._portal = portal
        self._journal = journal

    def record(self, id: str, fact: Fact, actor: str, cause: int | None) -> int:
        """Store a fact and return its position."""
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
