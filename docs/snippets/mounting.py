"""Mount the server in an app of your own."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from turnloom import Loom
from turnloom.server import Limits, asgi

app = Loom(store="memory")
app.workflows.add("docs/snippets/Triage")


@asynccontextmanager
async def lifespan(site: FastAPI) -> AsyncGenerator[None]:
    async with app:
        await app.serving.pick_up()
        yield


site = FastAPI(lifespan=lifespan)
site.mount("/agents", asgi(app, hosts=["agents.example"], limits=Limits(starts_per_minute=10)))

print(*(f"{each.form} {each.name}" for each in app.workflows.served("local")), sep="\n")
