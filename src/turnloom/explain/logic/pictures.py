"""Diagrams of workflows."""

from turnloom.conversation.logic.drawing import draw as draw_conversation
from turnloom.conversation.logic.routing import ConversationForm
from turnloom.flow.logic.drawing import draw as draw_flow
from turnloom.flow.logic.flowing import FlowForm
from turnloom.runs.form import Form


def picture(workflow: Form) -> str:
    """Draw a flow or a conversation as a Mermaid flowchart."""
    if isinstance(workflow, FlowForm):
        return draw_flow(workflow.plan)
    assert isinstance(workflow, ConversationForm)
    return draw_conversation(workflow.conversation)
