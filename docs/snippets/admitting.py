"""A key gets its owner in; what the owner does is on record."""

import asyncio

from pydantic import BaseModel

from turnloom import Flow, Loom
from turnloom.errors import NotAuthenticated


class Order(BaseModel, frozen=True):
    item: str = "tea"
    is_packed: bool = False


def pack(order: Order) -> dict[str, bool]:
    return {"is_packed": True}


packing = Flow("packing", Order).start_with(pack)


async def main() -> None:
    async with Loom(store="memory") as app:
        made = await app.keys.create("ann", role="developer", expires="90d", app_id="acme")
        found = await app.auth.identify(f"Bearer {made.token}")
        print(f"{found.principal} of {found.principal.app_id}")

        view = app.as_principal(found.principal, via=found.name)
        run = await view.start(packing, Order())
        await run.outcome()
        await run.feedback("helpful", score=0.9, comment="Fast.")

        await app.keys.revoke(made.key.id, app_id="acme")
        try:
            await app.auth.authenticate(f"Bearer {made.token}")
        except NotAuthenticated as error:
            print(error.code)
        for entry in await app.audit.list(app_id="acme"):
            print(entry.position, entry.who, entry.action, entry.outcome)


asyncio.run(main())
