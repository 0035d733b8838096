"""Settings as they may be shown: what opens a door is left out."""

import re
from typing import Any

MASK = "***"

# A password may hold any character, so all up to the last `@` counts as one.
_USERINFO = re.compile(r"(://[^:/?#@]*):.*@", re.DOTALL)
_PARAMETER = re.compile(
    r"([?&;][^=&;]*(?:pass|pwd|secret|token|key|credential|properties)[^=&;]*=)[^&;]*",
    re.IGNORECASE,
)


def masked(value: Any) -> Any:
    """A value without the passwords that a URL in it carries."""
    if not isinstance(value, str):
        return value
    return _PARAMETER.sub(rf"\g<1>{MASK}", _USERINFO.sub(rf"\g<1>:{MASK}@", value))
