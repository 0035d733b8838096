"""Values that a backtest cannot know."""

import msgspec

# The beginning of an unknown value in a text; it marks frames that show one.
TOKEN = "\u27e8unknown:"


class Unknown(msgspec.Struct, frozen=True):
    """A value that an edited definition asks of the world, and that the record of a run does not
    hold. `what` names it, and `why` says what it would come from; `token` marks it in texts. Live
    runs have none."""

    what: str
    why: str
    token: str = TOKEN

    def __str__(self) -> str:
        return f"{TOKEN}{self.what}\u27e9"
