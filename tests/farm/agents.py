"""A stand-in for the agent of a machine."""


class Agent:
    """An agent that ended with a code and left a log; None: it still runs."""

    log = "agent.log"

    def __init__(self, code: int | None = None, said: str = "") -> None:
        self.code, self.said = code, said

    def exit_code(self) -> int | None:
        return self.code

    def tail(self) -> str:
        return self.said
