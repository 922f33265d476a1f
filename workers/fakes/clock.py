"""A clock that a script moves."""


class FakeClock:
    """A monotonic clock, ns, that stands still unless it is moved."""

    def __init__(self, now_ns: int = 0, *, read_ns: int = 0) -> None:
        self.now_ns, self._read_ns = now_ns, read_ns

    def __call__(self) -> int:
        self.now_ns += self._read_ns
        return self.now_ns

    def advance(self, ns: int) -> None:
        self.now_ns += ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)
