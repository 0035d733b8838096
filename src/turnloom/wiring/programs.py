"""Files of code: the flows that they build, and the chats of AG2's classic line that they start."""

from os.path import abspath

from turnloom.conversation.logic.chats import check_chats, classic
from turnloom.errors import Diagnostic
from turnloom.wiring.adapters import adapter
from turnloom.wiring.flows import examine as examine_flows


def examine(file: str) -> list[Diagnostic]:
    """Everything that is wrong with a file of code: with its chats, as it reads, and with the flows
    that it builds when it is run. One that has chats and no flow is not run."""
    program = classic(adapter("files").source(file))
    if program is None:
        return examine_flows(file)
    flows = examine_flows(file) if program.names_flows else []
    return sorted([*check_chats(program, abspath(file)), *flows])
