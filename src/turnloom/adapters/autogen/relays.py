"""What an agent of the classic line asks its model with, while it takes a turn for a run."""

from collections.abc import Mapping, Sequence
from typing import Any

from autogen import ConversableAgent

from turnloom.adapters.autogen.asking import Asking
from turnloom.adapters.autogen.clients import Clients, Config
from turnloom.adapters.autogen.forms import Response, demands_of, usage_of
from turnloom.adapters.autogen.hearing import Hearing
from turnloom.adapters.autogen.naming import alone
from turnloom.adapters.autogen.transport import Way
from turnloom.agents.logic.endings import Ending
from turnloom.agents.spec import Task, Usage
from turnloom.errors import EngineError

# What configurations hold that is not for one model: tools are the request's.
SHARED = ("config_list", "tools", "functions", "routing_method")

Schemas = Sequence[Mapping[str, Any]]


class Relay:
    """Stands where an agent has its client: the task's tools and form go with each request.

    `usage` is that of all requests, `model` who answered last, if one was made, and `ending` how
    that answer ended.
    """

    def __init__(
        self, agent: Any, task: Task, names: Mapping[str, str], own: Schemas, asking: Asking
    ) -> None:
        self.usage, self.model, self.ending = Usage(), "", Ending()
        self._asking = asking
        self._say = task.say
        self._line: tuple[Way, Hearing] | None = None
        if agent.llm_config:
            self._demands = demands_of(task, names, own)
            self._clients = Clients(_configs(agent.llm_config, self._demands))
            agent.client = self
            for each in agent._reply_func_list:
                if each["reply_func"].__name__ == "a_generate_oai_reply":
                    each["reply_func"] = self.reply

    async def reply(
        self, agent: ConversableAgent, messages: Any, sender: Any, config: Any
    ) -> tuple[bool, Any]:
        """What the agent makes of its model's answer: in a thread, as it waits for it."""

        def ask(way: Way, hearing: Hearing) -> tuple[bool, Any]:
            self._line = way, hearing
            return agent.generate_oai_reply(messages, sender)

        return await self._asking(self._clients.model, ask, self._say)

    def create(self, *, messages: Any, **more: Any) -> Response:
        """What the model answers, as the agent's own client would give it.

        Raises:
            EngineError: the agent asks although no reply is wanted of it.
        """
        if self._line is None:
            raise EngineError("The agent asked its model outside of a reply. Give it another one.")
        response = self._clients.ask({"messages": messages, **self._demands}, *self._line)
        self.usage, self.model = self.usage + usage_of(response), response.model
        self.ending = response.ending
        return response

    def extract_text_or_completion_object(self, response: Response) -> list[Any]:
        """The message of an answer."""
        return [response.message]


def _configs(own: Any, demands: Config) -> list[Config]:
    """The configurations of an agent's models, each whole."""
    common = {key: value for key, value in own.model_dump().items() if key not in SHARED}
    found = [alone(common | each.model_dump(exclude_none=True)) for each in own.config_list]
    if any("response_format" in each for each in found):
        demands["stream"] = False  # nobody reads half an output
    return found
