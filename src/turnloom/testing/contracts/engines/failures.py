"""Contracts of engines: retries, timeouts, failures and cancellation."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio

from turnloom.agents.spec import Answer, Engine, Task
from turnloom.runtime.spec import Delta
from turnloom.testing.contracts.engines.stage import (
    PLAIN,
    RETRIES,
    EngineSuite,
    FinishedRun,
    workflow_folder,
)
from turnloom.testing.contracts.facts import PATIENCE, until
from turnloom.testing.loopback import (
    BrokenReply,
    HttpRefusal,
    InvalidReply,
    LoopbackModel,
    ModelRequest,
    StalledReply,
)
from turnloom.testing.loopback.script import Line

TEXT = "It is five."

# An error event within a stream, valid in both protocols.
ERROR = {"type": "server_error", "code": "server_error", "message": "Overloaded."}
ERROR_EVENT = json.dumps(ERROR | {"type": "error", "error": ERROR})

# A date beyond every retry delay.
FAR_OFF = "Wed, 21 Oct 2099 07:28:00 GMT"

# Timeout in seconds for tests that wait for it.
SOON = 0.5


class HeldAnswer:
    """Holds back the answer of an engine until the process ends."""

    def __init__(self) -> None:
        self.has_answer = False

    def around(self, engine: Engine) -> Engine:
        """An engine that never returns its answer."""

        async def call(task: Task) -> Answer:
            answer = await engine(task)
            self.has_answer = True
            await anyio.sleep_forever()
            return answer

        return call


class FailuresContract(EngineSuite):
    """A call is recorded once with its result, or not at all."""

    async def test_a_rate_limit(self) -> None:
        """A rate limit is retried after the delay that the provider asks for, and recorded."""
        arrivals: list[float] = []

        def limited(request: ModelRequest) -> Line:
            arrivals.append(anyio.current_time())
            return TEXT if len(arrivals) > 1 else HttpRefusal(429, "Too many.", retry_after=1)

        async with LoopbackModel(limited) as model:
            done = await self.converse(model)
        self._assert_answered_once(done)
        first, second = arrivals
        assert second - first >= 1
        (retried,) = done.facts("model.retried")
        assert retried.error and retried.pause >= 1
        assert "429" in retried.message and "Too many." in retried.message

    async def test_a_server_error(self) -> None:
        """A server error is retried."""
        for status in (408, 500, 502, 503):
            async with LoopbackModel([HttpRefusal(status), TEXT]) as model:
                self._assert_answered_once(await self.converse(model))

    async def test_a_server_error_that_lasts(self) -> None:
        """After the last retry the run fails with the message of the provider."""
        done, model = await self._failed([HttpRefusal(503, "Out for lunch.")] * 9)
        assert len(model.requests) == 1 + RETRIES
        assert "Out for lunch." in done.end.data.message
        retried = done.facts("model.retried")
        assert ["Out for lunch." in each.message for each in retried] == [True] * RETRIES

    async def test_a_request_that_is_refused(self) -> None:
        """A rejected request is not retried."""
        for status in (400, 401, 404, 422):
            done, model = await self._failed([HttpRefusal(status, "It must not be so."), TEXT])
            assert len(model.requests) == 1
            assert "model.retried" not in done.kinds
            assert "It must not be so." in done.end.data.message

    async def test_a_request_that_is_too_large(self) -> None:
        """A request that exceeds the context window fails with `ContextTooLarge`, and is not
        retried."""
        message = "This model's maximum context length is 8192 tokens."
        done, model = await self._failed([HttpRefusal(400, message), TEXT])
        assert len(model.requests) == 1
        (failed,) = done.facts("model.failed")
        assert failed.error == "ContextTooLarge"

    async def test_a_page_in_the_place_of_a_refusal(self) -> None:
        """An HTML error page is not retried, and the failure has its status."""
        page = "<html><body>It must not be so.</body></html>"
        done, model = await self._failed([HttpRefusal(400, page, is_page=True), TEXT])
        assert len(model.requests) == 1
        assert "400" in done.end.data.message

    async def test_a_pause_that_is_too_long(self) -> None:
        """A retry date in the far future fails the run, even if the reply has no `Date` header."""
        done, model = await self._failed([HttpRefusal(429, retry_after=FAR_OFF), TEXT])
        assert len(model.requests) == 1
        assert "429" in done.end.data.message

    async def test_an_invalid_event(self) -> None:
        """An invalid event in a stream is retried."""
        async with LoopbackModel([InvalidReply(), TEXT]) as model:
            self._assert_answered_once(await self.converse(model))

    async def test_an_error_event(self) -> None:
        """An error event in a stream is retried."""
        async with LoopbackModel([InvalidReply(ERROR_EVENT), TEXT]) as model:
            self._assert_answered_once(await self.converse(model))

    async def test_a_stream_that_breaks(self) -> None:
        """A broken stream is retried: listeners receive the text from the start, and it is recorded
        once."""
        async with LoopbackModel([BrokenReply("It is six and "), TEXT]) as model:
            done = await self.converse(model)
        self._assert_answered_once(done)
        assert done.heard == (TEXT if self.streams else "")
        assert len(model.requests) == 2

    async def test_a_stream_that_breaks_again_and_again(self) -> None:
        """After the last retry the run fails, and no partial text is recorded."""
        done, model = await self._failed([BrokenReply("It is six and ")] * 9)
        assert len(model.requests) == 1 + RETRIES
        assert done.end.data.message

    async def test_invalid_answers(self) -> None:
        """An invalid answer fails the run after the last retry."""
        done, _ = await self._failed([InvalidReply()] * 9)
        assert done.end.data.message

    async def test_an_answer_that_does_not_come(self) -> None:
        """A request without an answer times out and is retried."""
        async with LoopbackModel([StalledReply(), TEXT]) as model:
            self._assert_answered_once(await self.converse(model, silence=SOON))
            await until(lambda: model.abandoned == 1)

    async def test_an_answer_that_stops_coming(self) -> None:
        """An answer that stalls times out and is retried."""
        async with LoopbackModel([StalledReply("It is six and "), TEXT]) as model:
            done = await self.converse(model, silence=SOON)
        self._assert_answered_once(done)
        assert done.heard == (TEXT if self.streams else "")

    async def test_an_answer_that_never_comes(self) -> None:
        """After the last timeout the run fails."""
        done, model = await self._failed([StalledReply()] * 9, silence=SOON)
        assert len(model.requests) == 1 + RETRIES
        assert done.end.data.message

    async def test_a_model_that_is_not_there(self) -> None:
        """The run fails if no server listens at the address."""
        async with LoopbackModel([]) as model:
            pass
        done = await self.converse(model)
        assert done.end.kind == "run.failed"

    async def test_cancelling(self) -> None:
        """Cancelling a run during an answer ends it at once and closes the connection."""
        async with LoopbackModel([StalledReply("It is ")]) as model, self.app(model) as app:
            heard: list[Delta] = []
            async with workflow_folder(PLAIN) as folder:
                run = await app.start(folder)
                with run.listening(heard.append):
                    await until(lambda: bool(heard if self.streams else model.requests))
                    with anyio.fail_after(PATIENCE):
                        await run.cancel()
            assert [event.kind for event in await app.history.events(run.id)][-1] == "run.cancelled"
            await until(lambda: model.abandoned == 1)
            assert len(model.requests) == 1

    async def test_a_process_that_ends_during_a_call(self) -> None:
        """A call interrupted by the end of its process is repeated by the next process."""
        async with anyio.TemporaryDirectory() as kept, workflow_folder(PLAIN) as folder:
            store = str(Path(kept, "turnloom.db"))
            async with LoopbackModel([StalledReply("It is "), TEXT]) as model:
                async with self.app(model, store=store) as app:
                    run = (await app.start(folder)).id
                    await until(lambda: bool(model.requests))
                async with self.app(model, store=store) as app:
                    await self._assert_resumes(app, run)
            assert len(model.requests) == 2

    async def test_a_process_that_ends_before_recording(self) -> None:
        """An answer that was not recorded is requested again, with the same messages."""
        async with anyio.TemporaryDirectory() as kept, workflow_folder(PLAIN) as folder:
            store, held = str(Path(kept, "turnloom.db")), HeldAnswer()
            async with LoopbackModel(["It is six.", TEXT]) as model:
                async with self.app(model, store=store, around=held.around) as app:
                    run = (await app.start(folder)).id
                    await until(lambda: held.has_answer)
                async with self.app(model, store=store) as app:
                    await self._assert_resumes(app, run)
            first, second = model.requests
            assert first.messages == second.messages

    async def _assert_resumes(self, app: Any, run: str) -> None:
        resumed = await app.resume(run)
        with anyio.fail_after(PATIENCE):
            await resumed.finished()
        self._assert_answered_once(FinishedRun([*await app.history.events(run)], []))

    def _assert_answered_once(self, done: FinishedRun) -> None:
        assert done.end.kind == "run.finished", done.end.data
        assert done.texts == [TEXT]
        assert done.kinds.count("model.answered") == 1

    async def _failed(
        self, lines: Sequence[Line], *, silence: float = PATIENCE
    ) -> tuple[FinishedRun, LoopbackModel]:
        """A run that fails with these replies, and records no text."""
        async with LoopbackModel(lines) as model:
            done = await self.converse(model, silence=silence)
        assert done.end.kind == "run.failed", done.end.data
        assert done.texts == []
        assert done.kinds.count("model.failed") == 1
        return done, model
