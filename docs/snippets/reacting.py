"""Publish and react: letters are sorted, and urgent complaints are answered."""

import asyncio

from pydantic import BaseModel

from turnloom import FilterConfig, Loom, Task, artifact_type


@artifact_type
class Letter(BaseModel):
    text: str


@artifact_type
class Complaint(BaseModel):
    about: str
    urgent: bool


@artifact_type
class Reply(BaseModel):
    text: str


async def sort(task: Task) -> Complaint:
    text = task.inputs[0].payload["text"]
    return Complaint(about=text, urgent="today" in text)


async def apologise(task: Task) -> Reply:
    return Reply(text=f"Sorry! {task.inputs[0].payload['about']}")


async def main() -> None:
    async with Loom(store="memory") as app:
        board = app.board("mail")
        board.agent("sorter").consumes(Letter).publishes(Complaint).with_engines(sort)
        (
            board.agent("desk")
            .description("Answers complaints that cannot wait.")
            .consumes(Complaint, where=lambda complaint: complaint.urgent)
            .publishes(Reply, tags={"apology"})
            .with_engines(apologise)
        )

        letter = await board.publish(Letter(text="Come today, the lift is stuck."))
        await board.publish(Letter(text="The lift is slow."))
        await board.run_until_idle()

        replies, total = await board.query_artifacts(FilterConfig(types={"Reply"}), count=True)
        print(total, replies[0].payload["text"])
        chain, _ = await board.query_artifacts(FilterConfig(correlation_id=letter.correlation_id))
        for each in chain:
            print(each.type, "by", each.produced_by, "from", each.parents)

        direct = await board.invoke("desk", Complaint(about="The queue!", urgent=False))
        print(direct[0].payload["text"])


asyncio.run(main())
