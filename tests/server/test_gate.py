"""The gate: where requests come from, who makes them, how large and how many they are."""

import asyncio
from pathlib import Path

import pytest

from tests.support.served import Client, asked, site, started
from turnloom import Loom
from turnloom.errors import InboxFull, UsageError
from turnloom.runtime.spec import MOST_MAIL, refuse_flood
from turnloom.server import Limits, asgi
from turnloom.server.limits import RateLimit, is_deeper
from turnloom.server.problems import Refusal, problem_of, respond, without_paths
from turnloom.server.routes.pages import Pages

DEV = "acme:dev:developer"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "127.0.0.1"}, 200),
        ({"host": "[::1]:8321"}, 200),
        ({"host": "LOCALHOST:1"}, 200),
        ({"host": "evil.example"}, 421),
        ({"host": "localhost.evil.example:8321"}, 421),
        ({"host": ""}, 421),
        ({"host": "evil.example:8321@localhost"}, 421),
        ({"origin": "http://localhost:8321"}, 200),
        ({"origin": "http://localhost:9999"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"x-forwarded-for": "8.8.8.8"}, 403),
        ({"forwarded": "for=8.8.8.8"}, 403),
    ],
)
async def test_where_a_request_comes_from(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    async with site(tmp_path) as at:
        reply = await at.client().get("/runs", headers=headers)
        assert reply.status == status
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in reply.headers["content-security-policy"]
        assert not any(name.startswith("access-control") for name in reply.headers)


async def test_other_machines_and_other_sites_are_refused(tmp_path: Path) -> None:
    async with site(tmp_path) as at:
        client = at.client()
        assert (await client.get("/runs", client="10.0.0.7")).status == 403
        forged = {"sec-fetch-site": "cross-site"}
        assert (await client.post("/runs", {"workflow": "Short"}, headers=forged)).status == 403
        plain = {"content-type": "text/plain"}
        assert (await client.post("/runs", {"workflow": "Short"}, headers=plain)).status == 422
        assert (await client.get("/runs")).json["items"] == []


async def test_pages_of_others_may_use_it_if_declared() -> None:
    async with Loom(store="memory") as app:
        api = asgi(app, origins=["https://desk.example"], hosts=["api.example"])
        client = Client(api)
        good = {"origin": "https://desk.example"}
        asks = {**good, "access-control-request-method": "POST"}
        reply = await client.call("OPTIONS", "/runs", headers=asks)
        assert reply.headers["access-control-allow-origin"] == "https://desk.example"
        assert "access-control-allow-credentials" not in reply.headers
        assert (await client.get("/runs", headers=good)).status == 200
        evil = {"origin": "https://evil.example"}
        assert (await client.get("/runs", headers=evil)).status == 403
        assert (await client.get("/runs", headers={"host": "api.example"})).status == 200


async def test_a_key_closes_the_server_to_all_without_one(tmp_path: Path) -> None:
    async with site(tmp_path) as at:
        nobody = at.client()
        assert (await nobody.get("/me")).json["role"] == "developer"
        made = await at.app.keys.create("root", role="admin")
        refused = await nobody.get("/me")
        assert (refused.status, refused.code) == (401, "TURNLOOM-NOT-AUTHENTICATED")
        assert refused.headers["www-authenticate"] == "Bearer"
        admin = at.client(made.token)
        assert (await admin.get("/me")).json["user"] == "root"
        key = (await admin.post("/keys", {"user": "ann", "role": "user"})).json
        ann = at.client(key["token"])
        assert (await ann.get("/keys")).status == 403
        run = await started(ann)
        await asked(ann, run, developer=admin)
        assert (await ann.get(f"/runs/{run}/timeline")).status == 403
        assert (await ann.get(f"/runs/{run}/cost")).status == 403
        listed = (await admin.get("/keys")).json["items"]
        assert {each["user"] for each in listed} == {"root", "ann"}
        assert key["token"] not in str(listed)
        assert (await admin.post(f"/keys/{key['key']['id']}/revoke")).status == 200
        assert (await ann.get("/me")).status == 401
        entries = (await admin.get("/audit?action=run.started")).json["items"]
        assert [(each["who"], each["what"], each["via"]) for each in entries] == [
            ("ann", run, key["key"]["id"])
        ]
        for wrong in ("tlk_x_y", "", "Basic x", "x" * 20_000):
            assert (await at.client(wrong).get("/me")).status == 401


async def test_bodies_are_limited_in_size_depth_and_time(tmp_path: Path) -> None:
    limits = Limits(body=1000, depth=10, body_seconds=0.02)
    async with site(tmp_path, limits=limits) as at:
        client = at.client()
        json = {"content-type": "application/json"}
        large = await client.post("/runs", {"workflow": "x" * 2000})
        assert (large.status, large.code) == (413, "TURNLOOM-LIMIT")
        pieces = [b"x" * 600, b"x" * 600, b""]
        assert (await client.post("/runs", headers=json, pieces=pieces)).status == 413
        said = {**json, "content-length": "99999999999999999999999"}
        assert (await client.post("/runs", headers=said, pieces=[b"{}"])).status == 413
        for deep in (b"[" * 500, b'{"a":' * 100 + b"1" + b"}" * 100):
            assert (await client.post("/runs", headers=json, pieces=[deep])).status == 413
        for broken in (b"{", b"]", b'"', b"\xff\xfe", b'{"workflow": "\\ud800"}'):
            assert (await client.post("/runs", headers=json, pieces=[broken])).status == 422
        slow = await _half_a_body(client)
        assert slow == 408


async def _half_a_body(client: Client) -> int:
    """The status of a request whose body does not arrive."""
    found: list[int] = []

    async def receive() -> dict[str, object]:
        return await asyncio.get_running_loop().create_future()

    async def send(message: dict[str, object]) -> None:
        if message["type"] == "http.response.start":
            found.append(message["status"])  # type: ignore[arg-type]

    scope = client.scope("POST", "/api/v1/runs", {"content-length": "10"})
    async with asyncio.timeout(60):
        await client.api(scope, receive, send)
    return found[0]


async def test_requests_and_starts_are_limited_per_key(tmp_path: Path) -> None:
    limits = Limits(requests_per_minute=20, starts_per_minute=2, failures_per_minute=3)
    async with site(tmp_path, keys=True, limits=limits) as at:
        dev, other = at.client(DEV), at.client("acme:eve:developer")
        statuses = [(await dev.post("/runs", {"workflow": "Short"})).status for _ in range(3)]
        assert statuses == [201, 201, 429]
        replies = [await dev.get("/me") for _ in range(20)]
        assert {reply.status for reply in replies} == {200, 429}
        assert int(replies[-1].headers["retry-after"]) >= 1
        assert (await other.get("/me")).status == 200
        guesses = [(await at.client("guess").get("/me")).status for _ in range(4)]
        assert guesses == [401, 401, 401, 429]
        assert (await other.get("/me")).status == 429  # from the same address, too


def test_a_rate_recovers_with_time() -> None:
    now = [0.0]
    rate = RateLimit(60, "requests", lambda: now[0])
    for _ in range(60):
        rate.take("a")
    with pytest.raises(Refusal) as refused:
        rate.take("a")
    assert refused.value.headers == {"Retry-After": "1"}
    rate.take("b")
    now[0] = 1.0
    rate.take("a")
    with pytest.raises(Refusal):
        rate.take("a")


def test_depth_is_counted_outside_of_texts() -> None:
    assert not is_deeper(b'{"a": [1, {"b": "[[[[[["}]}', 3)
    assert is_deeper(b'{"a": [1, {"b": "x"}]}', 2)
    assert not is_deeper(b'["\\"[[[[", "\\\\"]', 1)
    assert is_deeper(b"[" * 100_000, 64) and is_deeper(b"]" * 100_000, 64)
    assert not is_deeper(b'"' + b'\\"' * 400_000, 64)  # in linear time


def test_errors_name_no_folder_of_this_machine() -> None:
    told = without_paths("Folder '/srv/data/secret.yaml', /etc/passwd; not a/b or http://h/p/q.")
    assert told == "Folder '…/secret.yaml', …/passwd; not a/b or http://h/p/q."


def test_a_problem_names_no_folder_of_this_machine() -> None:
    reply = respond(problem_of(UsageError("There is no '/srv/secret/flow.py'.")))
    assert b"/srv" not in bytes(reply.body) and b"flow.py" in bytes(reply.body)


def test_limits_are_positive() -> None:
    with pytest.raises(UsageError):
        Limits(streams=0)


async def test_files_outside_of_the_ui_are_not_served(tmp_path: Path) -> None:
    static = tmp_path / "static"
    (static / "ui").mkdir(parents=True)
    (static / "index.html").write_text("the ui")
    secret = tmp_path / "secret"
    secret.write_text("CANARY")
    (static / "ui" / "link").symlink_to(secret)
    client = Client(Pages(static))
    for path in (
        "../../secret",
        "%2e%2e/%2e%2e/secret",
        f"..//{secret}",
        "link",
        "\0",
        "a/../link",
    ):
        path = f"/ui/{path}"
        reply = await client.get(path)
        assert (reply.status, reply.body) == (200, b"the ui"), path
        assert "script-src 'self'" in reply.headers["content-security-policy"]


async def test_without_a_build_a_page_says_what_to_do(tmp_path: Path) -> None:
    reply = await Client(Pages(tmp_path / "static")).get("/ui/chat")
    assert reply.status == 200 and b"make web" in reply.body and b"/docs" in reply.body
    assert "default-src 'none'" in reply.headers["content-security-policy"]


async def test_names_and_ids_are_no_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with site(tmp_path, store=tmp_path / "runs.db") as at:
        client, folder = at.client(), tmp_path / "served" / "Short"
        assert (await client.post("/runs", {"workflow": "Short"})).status == 201
        for name in (str(folder), f"{folder}/", "served/Short", "./served/Short", "../Short"):
            reply = await client.post("/runs", {"workflow": name})
            assert (reply.status, reply.code) == (404, "TURNLOOM-UNKNOWN-WORKFLOW"), name
            for path in (
                f"/workflows/{name}",
                f"/workflows/{name}/graph",
                f"/workflows/{name}/check",
            ):
                assert (await client.get(path)).status == 404, path
        for id in ("../runs.db", "..", str(tmp_path / "runs.db"), "a/../b", "%2e%2e/runs.db"):
            for path in (f"/runs/{id}", f"/runs/{id}/timeline", f"/board/artifacts/{id}"):
                assert (await client.get(path)).status == 404, path
        assert len((await client.get("/runs")).json["items"]) == 1


async def test_headers_and_logs_take_no_line_breaks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with site(tmp_path) as at:
        client = at.client()
        broken = "x%0d%0aset-cookie: a=b"
        for path in (f"/runs/{broken}", f"/board/artifacts/{broken}", f"/runs?cursor={broken}"):
            reply = await client.get(path)
            assert reply.status in (400, 404) and "set-cookie" not in reply.headers
        note = {"board": "notes-local", "type": "Note", "payload": {"text": "x"}, "id": "a\r\nb: c"}
        made = await client.post("/board/artifacts", note)
        assert "\n" not in made.headers.get("location", "") and "b" not in made.headers
        assert not [each for each in caplog.messages if "\r" in each or "\n" in each]


def test_a_full_inbox_is_too_many() -> None:
    with pytest.raises(InboxFull) as full:
        refuse_flood("run", MOST_MAIL)
    reply = respond(problem_of(full.value))
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "2")
