"""Pictures of workflows."""

from weft.agents.spec import Workflow
from weft.conversation.logic.drawing import draw as draw_conversation
from weft.conversation.logic.routing import Conversing
from weft.flow.logic.drawing import draw as draw_flow
from weft.flow.logic.flowing import Flowing


def picture(workflow: Workflow) -> str:
    """A flow or a conversation as a flowchart in the language of Mermaid."""
    if isinstance(workflow, Flowing):
        return draw_flow(workflow.plan)
    assert isinstance(workflow, Conversing)
    return draw_conversation(workflow.conversation)
