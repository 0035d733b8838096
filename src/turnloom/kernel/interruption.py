"""The end of a process's work."""


class Interrupted(BaseException):
    """Ends the process's work at once. Nothing may handle this."""
