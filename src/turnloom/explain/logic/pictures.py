"""Pictures of workflows."""

from turnloom.conversation.logic.drawing import draw as draw_conversation
from turnloom.conversation.logic.routing import Conversing
from turnloom.flow.logic.drawing import draw as draw_flow
from turnloom.flow.logic.flowing import Flowing
from turnloom.runs.form import Form


def picture(workflow: Form) -> str:
    """A flow or a conversation as a flowchart in the language of Mermaid."""
    if isinstance(workflow, Flowing):
        return draw_flow(workflow.plan)
    assert isinstance(workflow, Conversing)
    return draw_conversation(workflow.conversation)
