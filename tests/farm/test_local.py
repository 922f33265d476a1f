"""The agent of this machine: what it said when it would not stay, and how often it is started."""

import pytest

from farm.errors import Bad, FarmError, NoResult, NoVerdict, Refused, TimedOut, Unreachable
from farm.ledger import Node, Spool
from farm.local import Agents, await_spool, said
from tests.farm.agents import Agent


@pytest.mark.parametrize(("code", "kind"), [(2, Refused), (3, NoResult), (4, Unreachable)])
def test_what_the_agent_refused_is_said_as_it_was_said(code, kind):
    """What, why and hint; not the last line of its log, which is the hint."""
    log = (
        "2026-11-30 agent WARNING something\n"
        "error: an older one\n"
        "error: no device 'gpu' to serve\n"
        "  this version serves CPU slots\n"
        "  there is no GPU here\n"
        "\n"
        "hint: use --devices cpu"
    )
    agents = Agents(lambda: Agent(code, log))

    with pytest.raises(kind) as caught:
        agents.look_after()

    assert (
        "no device 'gpu' to serve",
        "this version serves CPU slots\nthere is no GPU here",
        "use --devices cpu",
    ) == (caught.value.what, caught.value.why, caught.value.hint)


@pytest.mark.parametrize(
    ("code", "kind"),
    [(1, Bad), (2, Refused), (3, NoResult), (4, Unreachable), (5, NoVerdict), (124, TimedOut)],
)
def test_an_error_keeps_its_kind_however_it_was_heard(code, kind):
    """`farm up` hears it of its keeper, `farm run` of its agent: neither makes it a bug."""
    heard = said("starting\nerror: a page is damaged\n  at line 3\n", code, who="the farm")

    assert kind is type(heard)
    assert ("a page is damaged", "at line 3", code) == (heard.what, heard.why, heard.exit_code)


def test_an_agent_that_may_come_round_is_started_again_before_its_error_is_raised():
    """A damaged page or a time-out may be gone by the next start; what was refused may not."""
    for code, kind, starts in ((1, Bad, 6), (124, TimedOut, 6), (2, Refused, 1)):
        started = []

        def start(code=code, started=started) -> Agent:
            started.append(Agent(code, "error: no"))
            return started[-1]

        with pytest.raises(kind):
            look_on(Agents(start))
        assert starts == len(started)


@pytest.mark.parametrize(("code", "said"), [(3, ""), (3, "Killed"), (70, "error: x\nlast words")])
def test_an_agent_without_last_words_of_ours_is_our_trouble(code, said):
    """Exit 70, with whatever it printed last."""
    agents = Agents(lambda: Agent(code, said))

    with pytest.raises(FarmError) as caught:
        look_on(agents)

    assert (70, said.splitlines()[-1:] or [""]) == (caught.value.exit_code, [caught.value.why])


def look_on(agents: Agents) -> None:
    """Look after them for as long as they are started again."""
    while True:
        agents.look_after()


def test_an_agent_that_dies_is_started_again_five_times():
    started = []

    def start() -> Agent:
        started.append(Agent(-9))
        return started[-1]

    agents = Agents(start)
    for _ in range(5):
        agents.look_after()

    assert 6 == len(started)
    with pytest.raises(FarmError, match="keeps ending with -9"):
        agents.look_after()


# ── what was measured before ─────────────────────────────────────────────────────────────────────


class Spools:
    """A ledger whose nodes tell one state of their spools after the other."""

    def __init__(self, *told: Spool) -> None:
        self.told = list(told)

    def nodes(self) -> list[Node]:
        spool = self.told.pop(0) if len(self.told) > 1 else self.told[0]
        return [Node(name="n1", state="up", silent_s=0.0, slots=[], spool=spool)]


@pytest.mark.parametrize(
    ("told", "waits", "says"),
    [
        ([Spool()], 0, 0),
        ([Spool(profiles=2), Spool(profiles=1), Spool()], 2, 1),
        ([Spool(profiles=2), Spool(profiles=2, trouble="away")], 1, 1),
        ([Spool(profiles=2)], 300, 1),
    ],
)
def test_a_command_plans_when_what_was_measured_before_is_stored(told, waits, says):
    """Or cannot be just now; not for ever."""
    said: list[str] = []
    slept: list[float] = []

    await_spool(Spools(*told), said.append, sleep=slept.append)  # type: ignore[arg-type]

    assert (waits, says) == (len(slept), len(said))
