"""The API: what each route does, and what it refuses."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.served import Client, asked, site, started

ANN, BOB, DEV, OTHER = "acme:ann:user", "acme:bob:user", "acme:dev:developer", "other:dev:developer"


async def test_a_conversation_over_http(tmp_path: Path) -> None:
    async with site(tmp_path) as at:
        client = at.client()
        run = await started(client)
        question = await asked(client, run)
        waiting = (await client.get("/questions")).json["items"]
        assert [(each["run"], each["question"]["id"]) for each in waiting] == [
            (run, question["id"])
        ]
        for number, said in enumerate(["More.", "And?"], 2):
            answer = {"question": question["id"], "value": said}
            assert (await client.post(f"/runs/{run}/answers", answer)).json["delivery"] == "taken"
            again = (await client.post(f"/runs/{run}/answers", answer)).json
            assert (again["delivery"], again["by"]) == ("repeated", "local")
            question = await asked(client, run, number)
        read = (await client.get(f"/runs/{run}")).json
        assert (read["run"], read["status"], read["workflow"]) == (run, "waiting", "Chat")
        assert (await client.post(f"/runs/{run}/cancel", {"reason": "x"})).json == {
            "was_open": True
        }
        assert (await client.post(f"/runs/{run}/cancel")).json == {"was_open": False}
        assert (await client.get("/questions")).json["items"] == []


async def test_explanations_are_those_of_the_app(tmp_path: Path) -> None:
    async with site(tmp_path) as at:
        client, explain, history = at.client(), at.app.explain, at.app.history
        run = await started(client)
        await asked(client, run)
        route = next(event.seq for event in await history.events(run) if "route" in event.kind)
        expected: dict[str, Any] = {
            "timeline": await explain.timeline(run),
            "cost": {"cost": await explain.cost(run)},
            "turns/1": await explain.turn(run, 1),
            "variables/mood": await explain.variable(run, "mood"),
            f"routes/{route}": await explain.route(run, route),
            "blame?text=CANARY-variable": await explain.blame(run, "CANARY-variable"),
            "state?at=5": await history.state(run, at=5),
        }
        for path, found in expected.items():
            reply = await client.get(f"/runs/{run}/{path}")
            assert (reply.status, reply.body) == (200, msgspec.json.encode(found)), path
        page = await client.get(f"/runs/{run}/page")
        assert page.body.startswith(b"<!doctype html>")
        assert "sandbox" in page.headers["content-security-policy"]
        assert (await client.get(f"/runs/{run}/turns/1/diff")).code == "TURNLOOM-USAGE"


async def test_a_flow_starts_with_a_state_and_a_fork_begins_elsewhere(tmp_path: Path) -> None:
    async with site(tmp_path) as at:
        client = at.client()
        reply = await client.post("/runs", {"workflow": "adding", "input": {"numbers": [1, 2]}})
        run = reply.json["run"]
        assert reply.headers["location"] == f"/api/v1/runs/{run}"
        assert (await at.app.handle(run).outcome()).state.total == 3  # type: ignore[attr-defined]
        wrong = await client.post("/runs", {"workflow": "adding", "input": {"numbers": "x"}})
        assert (wrong.status, wrong.code) == (422, "TURNLOOM-UPDATE")
        forked = await client.post(f"/runs/{run}/fork", {"at": 3, "tools": "live"})
        assert forked.status == 201 and forked.json["run"] != run
        again = await client.post(f"/runs/{run}/retry", {"since": "add"})
        assert again.status == 202
        assert (await client.get(f"/runs/{run}/budget")).json["spent"]["tokens"] == 0


async def test_runs_are_listed_in_pages(tmp_path: Path) -> None:
    async with site(tmp_path) as at:
        client = at.client()
        runs = [await started(client, "Short") for _ in range(5)]
        first = (await client.get("/runs?limit=3&workflow=Short")).json
        then = (await client.get(f"/runs?limit=3&workflow=Short&cursor={first['next']}")).json
        listed = [each["run"] for page in (first, then) for each in page["items"]]
        assert listed == runs[::-1] and then["next"] is None
        await at.app.handle(runs[0]).finished()
        for chosen, count in (
            ("workflow=None", 0),
            ("since=1h&status=finished&status=unfinished", 5),
            ("since=2030-01-01T00:00:00Z", 0),
            ("until=1h", 0),
            ("feedback=quality", 0),
            ("find=SHORT+finished", 5),
            (f"find={runs[1][:12]}", 1),
            ("find=short+elsewhere", 0),
        ):
            assert len((await client.get(f"/runs?{chosen}")).json["items"]) == count, chosen
        waiting = await started(client)
        assert waiting in str((await client.get("/runs?unfinished=true")).json)
        assert (await client.get("/runs?status=odd")).code == "TURNLOOM-USAGE"
        events = (await client.get(f"/runs/{runs[0]}/events?limit=2")).json
        assert [each["seq"] for each in events["items"]] == [1, 2] and events["next"] == 2


async def test_workflows_are_shown_checked_and_drawn(tmp_path: Path) -> None:
    async with site(tmp_path) as at:
        client = at.client()
        listed = (await client.get("/workflows")).json["items"]
        assert {(each["name"], each["form"]) for each in listed} == {
            ("Chat", "conversation"),
            ("Short", "conversation"),
            ("Tale", "conversation"),
            ("adding", "flow"),
            ("notes-local", "reaction"),
        }
        assert "agents.json" in (await client.get("/workflows/Chat")).json["files"]
        shown = (await client.get("/workflows/adding")).json
        assert shown["input"]["properties"].keys() == {"numbers", "total"}
        for name in ("Chat", "adding"):
            assert (await client.get(f"/workflows/{name}/check")).json == {
                "passes": True,
                "problems": [],
            }
            assert (await client.get(f"/workflows/{name}/graph")).json["mermaid"]
        assert (await client.get("/workflows/notes-local")).json["form"] == "reaction"
        assert (await client.get("/workflows/notes-local/check")).json["passes"]
        undrawn = await client.get("/workflows/notes-local/graph")
        assert (undrawn.status, undrawn.code) == (400, "TURNLOOM-USAGE")
        assert (await client.get("/workflows/notes-acme/check")).status == 404
        schema = (await client.get("/workflows/adding/schema")).json["input"]
        assert schema == shown["input"]
        for name in ("Chat", "notes-local"):
            assert (await client.get(f"/workflows/{name}/schema")).json == {"input": None}
        assert (await client.get("/workflows/none/schema")).status == 404
        unknown = await client.post("/runs", {"workflow": "adding", "input": {"number": [1]}})
        assert (unknown.status, unknown.code) == (422, "TURNLOOM-UPDATE")
        (tmp_path / "served" / "Chat" / "agents.json").write_text('{"agents": {"Poet": 5}}')
        checked = (await client.get("/workflows/Chat/check")).json
        assert not checked["passes"]
        assert all(each["where"].startswith("Chat/") for each in checked["problems"])
        refused = await client.post("/runs", {"workflow": "Chat"})
        assert (refused.status, refused.code) == (422, "TURNLOOM-DEFINITION")
        assert refused.json["errors"] and str(tmp_path) not in refused.body.decode()


async def test_artifacts_are_published_and_read(tmp_path: Path) -> None:
    async with site(tmp_path, keys=True) as at:
        dev, ann = at.client(DEV), at.client(ANN)
        body = {"board": "notes-acme", "type": "Note", "payload": {"text": "one"}, "id": "n1"}
        made = await ann.post("/board/artifacts", body)
        assert (made.status, made.json["id"]) == (201, "n1")
        assert (await ann.post("/board/artifacts", body)).status == 201
        changed = await ann.post("/board/artifacts", {**body, "payload": {"text": "two"}})
        assert (changed.status, changed.code) == (409, "TURNLOOM-ARTIFACT-EXISTS")
        hidden = {**body, "id": "n2", "visibility": {"kind": "private", "agents": ["x"]}}
        assert (await dev.post("/board/artifacts", hidden)).status == 201
        where = '/board/artifacts?where=["text","eq","one"]&count=true'
        assert [each["id"] for each in (await ann.get(where)).json["items"]] == ["n1"]
        assert (await ann.get("/board/artifacts/n2")).status == 404
        assert (await dev.get("/board/artifacts/n2")).status == 200
        assert (await dev.get("/board/artifacts/n1/lineage")).json["ancestors"] == []
        assert (await dev.get("/board/summary")).json["total"] == 2
        assert (await at.client(OTHER).get("/board/artifacts/n1")).status == 404
        for wrong in ({"type": "None"}, {"payload": {}}, {"visibility": {"kind": "odd"}}):
            assert (await ann.post("/board/artifacts", body | {"id": "n3"} | wrong)).status == 422


async def test_runs_are_backtested_and_retried_as_jobs(tmp_path: Path) -> None:
    async with site(tmp_path, keys=True) as at:
        dev, other = at.client(DEV), at.client(OTHER)
        run = await started(dev, "Short")
        await at.app.handle(run, app_id="acme").finished()
        for kind, body in (
            ("backtest", {"workflow": "Short", "last": 5}),
            ("retry", {"runs": [run]}),
        ):
            begun = await dev.post(f"/jobs/{kind}", body)
            assert begun.status == 202 and begun.json["total"] == 1
            path = begun.headers["location"]
            await at.api.state.served.jobs.ended("acme", begun.json["id"])
            assert (await dev.get(path)).json["status"] == "done"
            result = (await dev.get(f"{path}/result")).json
            assert [each["run"] for each in result["runs"]] == [run]
            assert (await dev.post(f"{path}/cancel")).json["status"] == "done"
            assert (await other.get(path)).status == 404
        assert len((await dev.get("/jobs")).json["items"]) == 2
        assert (await dev.post("/jobs/backtest", {"workflow": "Short"})).status == 400
        assert (await at.client(ANN).post("/jobs/retry", {"runs": [run]})).status == 403


@pytest.mark.parametrize("who", [ANN, DEV])
async def test_what_is_not_yours_is_not_found(tmp_path: Path, who: str) -> None:
    async with site(tmp_path, keys=True) as at:
        owner = at.client("other:eve:user")
        theirs, client = await started(owner), at.client(who)
        question = await asked(owner, theirs, developer=at.client(OTHER))
        for run in (theirs, "none"):
            for method, path, body in (
                ("GET", "", None),
                ("POST", "/cancel", {}),
                ("POST", "/resume", None),
                ("GET", "/questions", None),
                ("POST", "/answers", {"question": question["id"], "value": "x"}),
            ):
                reply = await client.call(method, f"/runs/{run}{path}", body)
                problem = {**reply.json, "detail": reply.json["detail"].replace(run, "RUN")}
                assert (reply.status, problem["code"]) == (404, "TURNLOOM-UNKNOWN-RUN"), path
        assert (await client.get("/runs")).json["items"] == []


async def test_a_user_sees_the_chat_alone(tmp_path: Path) -> None:
    async with site(tmp_path, keys=True) as at:
        ann, bob = at.client(ANN), at.client(BOB)
        run = await started(ann)
        await asked(ann, run, developer=at.client(DEV))
        for path in ("timeline", "turns/1", "state", "events", "page", "budget", "variables/mood"):
            refused = await ann.get(f"/runs/{run}/{path}")
            assert (refused.status, refused.code) == (403, "TURNLOOM-FORBIDDEN"), path
            assert b"CANARY" not in refused.body
        assert (await ann.get("/workflows/Chat")).status == 403
        assert len((await ann.get(f"/runs/{run}/questions")).json["items"]) == 1
        assert (await bob.get(f"/runs/{run}")).status == 404


async def test_the_chat_of_a_user(tmp_path: Path) -> None:
    async with site(tmp_path, keys=True) as at:
        ann, bob, dev = at.client(ANN), at.client(BOB), at.client(DEV)
        run = await started(ann)
        await asked(ann, run, developer=dev)
        sent = await ann.post(f"/runs/{run}/messages", {"text": "More.", "id": "m1"})
        assert (sent.status, sent.json["run"], sent.json["repeated"]) == (202, run, False)
        again = await ann.post(f"/runs/{run}/messages", {"text": "More.", "id": "m1"})
        assert again.json["repeated"]
        await asked(ann, run, 2, developer=dev)
        page = (await ann.get(f"/runs/{run}/chat")).json["items"]
        texts = [each["text"] for each in page if each["kind"] == "agent.text"]
        assert texts == ["Roses are red.", "Violets are blue."]
        first = (await ann.get(f"/runs/{run}/chat?limit=2")).json
        assert [first["items"][-1]["seq"]] == [first["next"]]
        async with ann.stream(f"/runs/{run}/chat") as stream:
            await ann.post(f"/runs/{run}/cancel")
            frames = await stream.rest()
        seen = [frame.data["event"] for frame in frames if frame.event == "message"]
        assert seen[: len(page)] == page and seen[-1]["status"] == "cancelled"
        assert "CANARY" not in str(frames) and frames[-1].event == "end"
        async with ann.stream(f"/events?run={run}&chat=true") as stream:
            assert len(await stream.rest()) == len(frames)
        for other in (bob, at.client(OTHER)):
            assert (await other.get(f"/runs/{run}/chat")).status == 404
            async with other.stream(f"/runs/{run}/chat") as stream:
                assert await stream.next_status() == 404
            reply = await other.post(f"/runs/{run}/messages", {"text": "x"})
            assert reply.status == 404
        given = await ann.post(f"/runs/{run}/feedback", {"name": "quality", "score": 1})
        assert given.status == 201 and given.json["who"] == "ann"
        assert len((await dev.get(f"/runs/{run}/feedback")).json["items"]) == 1
        assert (await bob.get(f"/runs/{run}/feedback")).status == 404


async def test_a_server_says_how_it_is(tmp_path: Path) -> None:
    async with site(tmp_path) as at:
        client: Client = at.client()
        assert (await client.get("/health/live")).json["status"] == "ok"
        assert (await client.get("/health/ready")).json["checks"]["scheduler"] == "stopped"
        await at.app.serving.pick_up()
        assert (await client.get("/health/ready")).json["status"] == "ok"
        await at.app.aclose()
        assert (await client.get("/health/live")).status == 200
        assert (await client.get("/health/ready")).status == 503


async def test_pages_beside_new_runs_lose_and_repeat_nothing(tmp_path: Path) -> None:
    async with site(tmp_path) as at:
        client = at.client()
        runs = [await started(client, "Short") for _ in range(5)]
        listed: list[str] = []
        cursor = ""
        while cursor is not None:
            page = (await client.get(f"/runs?limit=2{cursor and f'&cursor={cursor}'}")).json
            listed += [each["run"] for each in page["items"]]
            cursor = page["next"]
            await started(client, "Short")
        assert listed == runs[::-1]
