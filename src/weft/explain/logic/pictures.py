"""Pictures of workflows."""

from weft.agents.spec import Workflow
from weft.conversation.logic.drawing import draw as draw_conversation
from weft.conversation.logic.routing import Conversing
from weft.errors import UsageError
from weft.flow.logic.drawing import draw as draw_flow
from weft.flow.logic.flowing import Flowing


def picture(workflow: Workflow) -> str:
    """A flow or a conversation as a flowchart in the language of Mermaid.

    Raises:
        UsageError: it is a board, whose agents are woken by what is published.
    """
    match workflow:
        case Flowing(plan=plan):
            return draw_flow(plan)
        case Conversing(conversation=conversation):
            return draw_conversation(conversation)
        case _:
            raise UsageError(
                f"{workflow.name!r} is a board, which has no ways to be drawn: its agents are "
                "woken by what is published. `weft show plan RUN` prints what they subscribe to."
            )
