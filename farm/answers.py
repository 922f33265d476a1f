"""What every verb prints with --json, on one page; `farm config schema THING` publishes it.

Each document names its schema in its first field. A version only grows: a field is never renamed,
removed or given another meaning. A field that cannot exist for this document is absent; a value
that could not be had is null.
"""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType


class Answer(Struct, frozen=True, kw_only=True, tag_field="schema"):
    """One JSON document on stdout."""


class Error(Answer, frozen=True, kw_only=True, tag="farm.error/v1"):
    """What went wrong, on stderr: the exit code, what, why, and the next step."""

    code: int
    what: str
    why: str
    hint: str


# ── sweeps on their way ──────────────────────────────────────────────────────────────────────────


class PlannedJob(Struct, frozen=True, kw_only=True):
    """state: measure, measured (a profile answers it), waiting (no device takes it) or skipped.

    why: the reason of that, or of measuring again. job_id is "" for a skipped one.
    """

    job_id: str
    label: str
    labels: dict[str, str]
    state: Literal["measure", "measured", "waiting", "skipped"]
    why: str
    queue: str
    nodes: list[str]


class Plan(Answer, frozen=True, kw_only=True, tag="farm.plan/v1"):
    """What a sweep would measure; expected_s: a guess of the seconds it takes."""

    name: str
    jobs: list[PlannedJob]
    to_measure: int
    reused: int
    skipped: int
    expected_s: float


class Submitted(Answer, frozen=True, kw_only=True, tag="farm.submitted/v1"):
    """A run that is in the queue.

    new, shared: entries that are waiting for a device, and those that another run had sent already.
    unserved: jobs by queue that no live device takes; they wait until one comes.
    """

    run_id: str
    name: str
    jobs: int
    new: int
    shared: int
    reused: int
    skipped: int
    unserved: dict[str, int]


class Missing(Answer, frozen=True, kw_only=True, tag="farm.missing/v1"):
    """The jobs that a run expects and the store lacks."""

    run_id: str
    job_ids: list[str]


class Requeued(Answer, frozen=True, kw_only=True, tag="farm.requeued/v1"):
    """What `resume` or `retry` sent for one run; shared: in flight already."""

    run_id: str
    job_ids: list[str]
    new: int
    shared: int
    unserved: dict[str, int]


class Cancelled(Answer, frozen=True, kw_only=True, tag="farm.cancelled/v1"):
    """What a cancel did to one run's entries.

    cancelled: were waiting. asked: their child is told to end. running: go on. shared: another run
    wants them, so they go on for that one. ended: had ended before.
    """

    run_id: str
    cancelled: int
    asked: int
    running: int
    shared: int
    ended: int


# ── how runs stand ───────────────────────────────────────────────────────────────────────────────


class Run(Struct, frozen=True, kw_only=True):
    """counts: jobs by state, each state named."""

    run_id: str
    name: str
    submitted_at: str
    submitted_by: str
    tags: dict[str, str]
    total: int
    counts: dict[str, int]


class Spool(Struct, frozen=True, kw_only=True):
    """What waits on a node for the store; age_s: of the oldest profile.

    aside: profiles that the store cannot take as they are. trouble: why nothing goes out just now,
    "" while it does. is_full: nothing is claimed there.
    """

    node: str
    profiles: int
    bytes: int
    age_s: float
    aside: int
    trouble: str
    is_full: bool


class Runs(Answer, frozen=True, kw_only=True, tag="farm.runs/v1"):
    """Recent runs, newest first; unserved: entries by queue that no live device takes.

    spools: of the nodes where something waits for the store.
    """

    runs: list[Run]
    unserved: dict[str, int]
    spools: list[Spool] = []


class JobState(Struct, frozen=True, kw_only=True):
    """Where a job of a run stands: its figure in ms if it has one, and the doubts or the cause."""

    job_id: str
    label: str
    state: str
    p50_ms: float | None
    note: str
    profile_id: str


class Jobs(Answer, frozen=True, kw_only=True, tag="farm.jobs/v1"):
    """The jobs of a run, in its order; spools: as in runs."""

    run_id: str
    jobs: list[JobState]
    spools: list[Spool] = []


class Watched(Answer, frozen=True, kw_only=True, tag="farm.watched/v1"):
    """One line of `watch --json`.

    event: `job` when a job's state changed, `counts` now and then, `finished` as the last line,
    with the exit code that the run earns. state: queued, measuring, uploading (measured, and on
    its way to the store), waiting (for another try), done, failed, dead, cancelled. p50_ms: null
    for a job without one.
    """

    event: Literal["job", "counts", "finished"]
    run_id: str
    at: str
    counts: dict[str, int]
    job_id: str | UnsetType = UNSET
    label: str | UnsetType = UNSET
    state: str | UnsetType = UNSET
    node: str | UnsetType = UNSET
    device: str | UnsetType = UNSET
    p50_ms: float | UnsetType | None = UNSET
    note: str | UnsetType = UNSET
    exit_code: int | UnsetType = UNSET


class LogLine(Answer, frozen=True, kw_only=True, tag="farm.log/v1"):
    """One line that a job's children printed."""

    job_id: str
    line: str


class Device(Struct, frozen=True, kw_only=True):
    """A slot of a node; queues: what it takes; reason: why it does not measure, "" if it may.

    state: full where its node's spool takes no more, unfit while its gates forbid it; paused and
    quarantine until a person says otherwise; held and suspect where it should be out, and the valve
    keeps it in: the one claims nothing, the other serves on under a doubt.
    """

    node: str
    slot: str
    device: str
    state: Literal[
        "measuring",
        "idle",
        "draining",
        "full",
        "paused",
        "quarantine",
        "held",
        "suspect",
        "unfit",
    ]
    job: str
    run_id: str
    queues: list[str]
    store: str
    farm_version: str
    silent_s: float
    reason: str = ""


class HealthChange(Struct, frozen=True, kw_only=True):
    """What became of a device, or of a whole node where slot is "": by a person or by its gates."""

    at: str
    node: str
    slot: str
    kind: str
    note: str
    by: Literal["node", "person"]


class Nodes(Answer, frozen=True, kw_only=True, tag="farm.nodes/v1"):
    devices: list[Device]
    unserved: dict[str, int]
    spools: list[Spool] = []
    alerts: list[str] = []
    history: list[HealthChange] = []


# ── profiles and names ───────────────────────────────────────────────────────────────────────────


class ProfileRow(Answer, frozen=True, kw_only=True, tag="farm.profile_row/v1"):
    """One line of `profiles list`; a figure is absent where the job has none."""

    profile_id: str
    job_id: str
    model: str
    precision: str
    batch: int
    device: str
    backend: str
    status: str
    validity: str
    run: str
    node: str
    system_class: str
    tags: dict[str, str]
    taken_at: str
    p50_ms: float | UnsetType = UNSET
    throughput_items_per_s: float | UnsetType | None = UNSET
    null_reasons: dict[str, str] | UnsetType = UNSET


class Fields(Answer, frozen=True, kw_only=True, tag="farm.fields/v1"):
    """The fields that `profiles get` knows of a profile."""

    fields: list[str]


class Value(Answer, frozen=True, kw_only=True, tag="farm.value/v1"):
    """One value; why: the reason of a null."""

    field: str
    value: Any  # whatever JSON holds: a number, a document, null
    why: str


class Tagged(Answer, frozen=True, kw_only=True, tag="farm.tagged/v1"):
    """A name that now points at a run; before: the run it pointed at, "" for none."""

    tag: str
    run_id: str
    before: str


class NamedRun(Struct, frozen=True, kw_only=True):
    """name: of its sweep; name and submitted_at are null where the store lacks the run."""

    tag: str
    run_id: str
    name: str | None
    submitted_at: str | None


class Tags(Answer, frozen=True, kw_only=True, tag="farm.tags/v1"):
    """Every tag of the store, by its name."""

    tags: list[NamedRun]


class Pulled(Answer, frozen=True, kw_only=True, tag="farm.pulled/v1"):
    """What `profiles pull` did to a folder: files written, files that were there and were kept.

    damaged: objects that the store lacks or that are not what they promise.
    """

    folder: str
    profiles: int
    artifacts: int
    kept: int
    damaged: int


class Exported(Answer, frozen=True, kw_only=True, tag="farm.exported/v1"):
    """What `export` wrote; rows: lines of the table, or documents."""

    kind: str
    form: str
    file: str
    rows: int


class Rows(Answer, frozen=True, kw_only=True, tag="farm.rows/v1"):
    """The answer to `query`: names of the columns, and each row in their order.

    left_out: profiles that came so lately that they were not looked at. missing: profiles that the
    catalogue had and the store has lost: the answer is not the whole truth then.
    """

    columns: list[str]
    rows: list[list[Any]]
    left_out: int
    missing: int


class Compacted(Answer, frozen=True, kw_only=True, tag="farm.compacted/v1"):
    """What `store compact` or `rebuild` did. number: of the newest manifest, 0 if there is none.

    added: profiles that are in a part now. already: those that were in one before. unreadable:
    objects of the inbox found to be no profiles. lost: profiles that the catalogue had and that
    cannot be read from the inbox any more.
    """

    number: int
    added: int
    already: int
    parts: int
    unreadable: int
    lost: list[str] = []


class Problem(Struct, frozen=True, kw_only=True):
    key: str
    what: str


class Audited(Struct, frozen=True, kw_only=True):
    """What a deep check read besides. objects: of the inbox; waiting: of them in no part yet.

    artifacts: read and found whole. expired: those that a rule of the store may have removed.
    """

    objects: int
    waiting: int
    artifacts: int
    expired: int


class Checked(Answer, frozen=True, kw_only=True, tag="farm.checked/v1"):
    """What `store check` found. problems: damage, each key once; orphans: parts that count no
    longer, or never did; foreign: names that no farm gave; neither of these does harm.

    audited: absent unless the check was deep.
    """

    number: int
    parts: int
    profiles: int
    problems: list[Problem]
    orphans: list[str]
    foreign: list[str]
    audited: Audited | UnsetType = UNSET


# ── the farm itself ──────────────────────────────────────────────────────────────────────────────


class Up(Answer, frozen=True, kw_only=True, tag="farm.up/v1"):
    """A farm that runs on this machine; started: whether it was this command that started it.

    broker: without its password, "" for the embedded one. devices: NODE/SLOT of each.
    """

    started: bool
    pid: int
    broker: str
    store: str
    state: str
    devices: list[str]


class Down(Answer, frozen=True, kw_only=True, tag="farm.down/v1"):
    """A farm that has ended; queued: entries that stay and go on at the next `farm up`."""

    queued: int


class Scheduled(Answer, frozen=True, kw_only=True, tag="farm.scheduled/v1"):
    """One line of `scheduler --json`: what was done about a run."""

    event: Literal["resubmitted", "closed", "damaged"]
    run_id: str
    jobs: int
    why: str


class Setting(Struct, frozen=True, kw_only=True):
    key: str
    value: str
    origin: str


class Config(Answer, frozen=True, kw_only=True, tag="farm.config/v1"):
    """Effective settings with their origins; files: those that are read, the strongest first."""

    settings: list[Setting]
    files: list[str]


class Finding(Struct, frozen=True, kw_only=True):
    """One look of `doctor`: what it found, and the cure where something is wrong."""

    subject: str
    name: str
    state: Literal["ok", "warn", "fail", "skipped"]
    said: str
    cure: str


class Examined(Answer, frozen=True, kw_only=True, tag="farm.doctor/v1"):
    findings: list[Finding]
    ok: int
    warn: int
    fail: int


class Completion(Answer, frozen=True, kw_only=True, tag="farm.completion/v1"):
    shell: str
    script: str


class Schemas(Answer, frozen=True, kw_only=True, tag="farm.schemas/v1"):
    """The things that `config schema THING` knows."""

    things: list[str]


# ── a node by hand ───────────────────────────────────────────────────────────────────────────────


class Slot(Struct, frozen=True, kw_only=True):
    """A slot as its machine offers it; trouble: what keeps it from being measured on, or ""."""

    node: str
    slot: str
    classes: list[str]
    device: str
    system_id: str
    system_class: str
    environment: str
    store: str
    version: str
    trouble: str = ""


class Devices(Answer, frozen=True, kw_only=True, tag="farm.devices/v1"):
    """The slots that a machine offers, as `farm-worker devices` lists them."""

    slots: list[Slot]


class CardDifference(Struct, frozen=True, kw_only=True):
    """A leaf that two system cards do not share, in words; changes_system: it makes another one."""

    path: str
    a: str
    b: str
    changes_system: bool


class CardsDiff(Answer, frozen=True, kw_only=True, tag="farm.cards_diff/v1"):
    """How two cards differ; systems: the `system_id` of each."""

    systems: list[str]
    differences: list[CardDifference]
    verdict: str


class Drained(Answer, frozen=True, kw_only=True, tag="farm.drained/v1"):
    """A node that has ended its work."""

    node: str


ANSWERS: tuple[type[Answer], ...] = (
    *(
        Error,
        Plan,
        Submitted,
        Missing,
        Requeued,
        Cancelled,
        Runs,
        Jobs,
        Watched,
        LogLine,
        Nodes,
        CardsDiff,
    ),
    *(
        ProfileRow,
        Fields,
        Value,
        Tagged,
        Tags,
        Pulled,
        Exported,
        Rows,
        Compacted,
        Checked,
        Up,
        Down,
        Scheduled,
        Config,
        Examined,
    ),
    *(Completion, Schemas, Devices, Drained),
)
