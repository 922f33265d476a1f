"""A hundred devices on which nothing is wrong, and a thousand jobs: nobody is taken out."""

from random import Random
from typing import Any

from farm.gates import gates
from tests.workers import make
from workers.fakes import FakeClock
from workers.gates import Finding
from workers.gpu import Process, Reading, State
from workers.gpu.probe import Samples
from workers.gpu.record import Board
from workers.host import Host
from workers.sentry import Sentry
from workers.telemetry import Sample

S = 1_000_000_000
DEVICES, JOBS_EACH = 100, 10


class Healthy:
    """A device that lives: warm after work, some corrected errors, a replay now and then."""

    def __init__(self, random: Random, clock: FakeClock) -> None:
        self.random, self.clock = random, clock
        self.warm_until = 0
        self.corrected = self.replays = 0
        self.idle_c = random.randint(28, 45)
        self.reserved = random.randint(0, 200) << 20

    def state(self, _uuid: str) -> State:
        cooling = max(0, self.warm_until - self.clock()) // S
        values: dict[str, Any] = {
            "temperature_c": self.idle_c + min(14, cooling),
            "slowdown_c": 90,
            "power_limit_mw": 700_000,
            "power_default_mw": 700_000,
            "utilization_pct": self.random.choice((0, 0, 0, 3)),
            "memory_used_bytes": self.reserved + (self.random.randint(0, 40) << 20),
            "ecc_corrected": self.corrected,
            "ecc_uncorrected": 0,
            "remapped": (0, 0, 0, 0),
            "retired_pending": 0,
            "recovery_action": 0,
            "pcie_replays": self.replays,
            "pcie_width": 16,
            "pcie_gen": 5,
            "nvlink_errors": 0,
            "compute_mode": 0,
        }
        readings = {name: Reading(value) for name, value in values.items()}
        processes: list[Process] = []
        return State(at_ns=self.clock(), readings=readings, xids=[], processes=processes)

    def watch(self, _uuid: str, hz: float) -> float:
        return hz

    def samples(self, _uuid: str, *, since_ns: int = 0) -> Samples:
        """A quiet pass; one in fifty meets the power limit, which is no fault."""
        capped = 0x4 if self.random.random() < 0.02 else 0
        begin, end = since_ns, self.clock()
        counters = dict.fromkeys(("sw_power_ns", "sw_thermal_ns", "hw_thermal_ns"), 0)
        return Samples(
            10.0,
            [
                Sample(
                    at_ns=at,
                    sm_clock_hz=1.98e9 * self.random.uniform(0.995, 1.0),
                    power_w=500.0,
                    temperature_c=60.0,
                    events=capped,
                    power_brake_ns=0,
                    **counters,
                )
                for at in range(begin, end + S // 10, S // 10)
            ],
        )

    def work(self) -> None:
        """A repeat of two seconds, after which it is warm."""
        self.clock.advance(2 * S)
        self.warm_until = self.clock() + 10 * S
        self.corrected += self.random.choice((0, 0, 0, 1))
        self.replays += self.random.choice((0, 0, 0, 0, 1))


def board(number: int) -> Board:
    return Board(
        uuid=f"GPU-{number}",
        kind="gpu",
        name="NVIDIA H100 80GB HBM3",
        pci_bdf="",
        index=number,
        memory_bytes=80 << 30,
        sm_count=132,
    )


def test_no_healthy_device_is_taken_out_or_doubted(seed: int) -> None:
    random, table = Random(seed), gates(enforced=True)
    quarantined: list[Finding] = []
    doubted = 0
    for number in range(DEVICES):
        clock = FakeClock(now_ns=S * random.randint(1, 1000))
        device: Any = Healthy(random, clock)
        sentry = Sentry(
            device,
            board(number),
            gates=table,
            host=Host(),
            base_clock_hz=1.6e9,
            clock=clock,
            sleep=clock.sleep,
        )
        for job in range(JOBS_EACH):
            sentry.ready()  # which raises for one that is not fit
            sentry.watch()
            begin = clock()
            device.work()
            edges = (make.edge(begin / S), make.edge(clock() / S))
            left = sentry.closed(make.record(latency_edges=edges), job=str(job))
            doubted += bool({"not_quiet", "device_fault", "throttled"} & set(left.flags))
            clock.advance(random.randint(0, 30) * S)
        quarantined += [sentry.fault] if sentry.fault is not None else []

    assert [] == quarantined
    assert 0 == doubted
