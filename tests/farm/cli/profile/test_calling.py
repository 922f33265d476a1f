"""`farm profile callable`: refused before anything starts, whole or absent, and told as it was."""

import json
import shlex
from pathlib import Path

import msgspec
import numpy as np
import pytest

from farm import interchange, once, schema
from farm.cli.profile import calling
from farm.errors import Bad, NoResult, Refused
from farm.sweep.single import single
from tests.farm import make
from workers.backends import LoadFailed
from workers.backends.torch.calling import make as made

CODE = "def predict(rgb):\n    return rgb\n"
ASK = ("profile", "callable", "--model", "predict.py:predict", "--inputs", "in.npz")


@pytest.fixture
def there(here):
    """A function and its arrays in the current folder."""
    (here / "predict.py").write_text(CODE)
    np.savez(here / "in.npz", rgb=np.zeros((4, 6, 3), "uint8"))
    return here


@pytest.fixture
def asked(there):
    return single("predict.py:predict", "in.npz", root=there, warmup=2, repeats=3)


class Worker:
    """Answers as `once.measure` does; `asked` is what it was asked."""

    def __init__(self, profile, **samples):
        self.profile = profile
        self.samples = samples or {"latency_ns_0": np.array([1e6, 2e6, 3e6])}
        self.asked = None

    def __call__(self, asked, *, say):
        self.asked = asked
        self.code = [each.name for each in Path(asked.bundle).rglob("*.py")]
        say("repeat 1 of 1: latency")
        np.savez(Path(asked.folder) / "samples.npz", **self.samples)
        return once.Measured(profile=self.profile, card=make.card(), folder=Path(asked.folder))


def profiled(asked, worker):
    return calling.profiled(
        asked, measure=worker, say=lambda text: None, run=lambda words, folder: None
    )


def failed(**more):
    return make.profile(status="failed", failure=make.fault(**more))


# ── what is asked ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S1.32")
def test_one_clean_process_with_a_latency_pass_and_nothing_else_is_asked_for(asked):
    """No instrument: memory is that of the timed calls, its peaks reset when they begin."""
    worker = Worker(make.profile(repeats=1))

    profiled(asked, worker)

    assert (("latency",), (), 1) == (
        worker.asked.passes,
        worker.asked.instruments,
        worker.asked.effort.repeats,
    )
    assert ("cpu", True, ["predict.py"]) == (
        worker.asked.device,
        worker.asked.npz.endswith("/in.npz"),
        worker.code,
    )
    assert (2, 3, "rpx") == (
        worker.asked.job.protocol.warmup,
        worker.asked.job.protocol.iterations,
        worker.asked.job.protocol.compat,
    )
    assert not Path(worker.asked.folder).exists()


@pytest.mark.seed("S1.26")
def test_the_samples_of_the_process_that_counts_are_the_files(asked):
    """A disturbed process that was measured anew: calls of two are never mixed."""
    profile = make.profile(repeats=2, repeat_flags=[["contended"], []])
    samples = {"latency_ns_0": np.full(3, 9e6), "latency_ns_1": np.array([1e6, 2e6, 4e6])}

    found = profiled(asked, Worker(profile, **samples))

    assert ([1.0, 2.0, 4.0], 3) == (found.latency_samples_ms, found.measured_calls)


def test_if_every_process_was_disturbed_the_last_one_stands_for_them(asked):
    profile = make.profile(
        repeats=2,
        flags=["contended", "processes_disagree", "repeats_missing", "paging", "not_pinned"],
        repeat_flags=[["contended", "paging"], ["contended"]],
    )
    samples = {"latency_ns_0": np.full(3, 9e6), "latency_ns_1": np.full(3, 1e6)}

    found = profiled(asked, Worker(profile, **samples))

    assert ([1.0] * 3, "invalid") == (found.latency_samples_ms, found.latency_detail.validity)
    assert ["contended", "not_pinned"] == found.flags


# ── what goes wrong ──────────────────────────────────────────────────────────────────────────────


def test_an_exception_in_the_function_is_a_bad_answer_with_its_last_words(asked):
    worker = Worker(failed(kind="model_error", phase="first", message="ValueError: no such frame"))

    with pytest.raises(Bad) as caught:
        profiled(asked, worker)

    assert "model_error in phase first" == caught.value.what
    assert caught.value.why.startswith("ValueError: no such frame\n| Traceback")


@pytest.mark.seed("S1.18")
def test_a_device_that_is_not_here_gives_no_result(asked):
    """What the worker says comes through; nothing falls back to the CPU."""

    def measure(document, *, say):
        raise NoResult("no CUDA device here")

    with pytest.raises(NoResult):
        profiled(asked, measure)
    for kind in ("environment", "no_device"):
        worker = Worker(failed(kind=kind, phase="load", message="cuda was asked for", hint="h"))
        with pytest.raises(NoResult, match="cuda was asked for"):
            profiled(asked, worker)


def _why(function, inputs):
    """How the worker words it."""
    with pytest.raises(LoadFailed) as caught:
        made(function, "step", offer={}, inputs=inputs)
    return caught.value


async def _later(x): ...


def _generates(x):
    yield x


@pytest.mark.parametrize(
    "function", [lambda y: y, lambda x, y: x, _later, _generates], ids=["key", "y", "async", "gen"]
)
def test_what_the_worker_finds_out_about_a_signature_is_a_bad_request_too(asked, function):
    """In the worker's own words, for functions whose source does not settle it."""
    why = _why(function, {"x": 1})
    profile = failed(kind=why.kind, phase="load", message=why.message, hint=why.hint)

    with pytest.raises(Refused) as caught:
        profiled(asked, Worker(profile))

    assert why.message == caught.value.what


def test_an_error_while_a_module_is_imported_is_no_bad_request(asked):
    with pytest.raises(Bad):
        profiled(asked, Worker(failed(kind="model_error", phase="load", message="KeyError: 'a'")))


# ── the file ─────────────────────────────────────────────────────────────────────────────────────


BAD = [
    (("--warmup", "-1"), "error: --warmup -1 makes no sense\n  it is at least 0\n"),
    (("--repeats", "0"), "error: --repeats 0 makes no sense\n"),
    (("--repeats", "many"), "error: invalid value for '--repeats'"),
    (("--precision", ""), "error: --precision '' is no word\n"),
    (("--unit", " "), "error: --unit ' ' is no word\n"),
    (("--device", "tpu"), "error: unknown device 'tpu'\n  known: cpu, cpu:0, gpu, cuda"),
    (("-t", "frames"), "error: tag 'frames' is not KEY=VALUE\n"),
    (("--inputs", "gone.npz"), "error: no file 'gone.npz'\n"),
    (("--model", "predict.py:nothing"), "error: model 'predict.py:nothing': no 'nothing'"),
    (("--frobnicate",), "error: no option '--frobnicate'"),
]


@pytest.mark.seed("S1.44", "S1.8")
@pytest.mark.parametrize(("words", "message"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_a_request_that_makes_no_sense_is_refused_and_leaves_no_file(farm, there, words, message):
    said = farm(*ASK, "--output", "new/out.json", *words)

    assert (2, "") == (said.code, said.out)
    assert said.err.startswith(message)
    assert not (there / "new").exists()


@pytest.mark.parametrize("missing", ["--model", "--inputs", "--output"])
def test_three_flags_are_required(farm, there, missing):
    words = [*ASK, "--output", "out.json"]
    at = words.index(missing)

    said = farm(*words[:at], *words[at + 2 :])

    assert (2, True) == (said.code, f"missing option '{missing}'" in said.err)


@pytest.mark.seed("S1.51")
def test_a_former_result_is_not_overwritten(farm, there):
    """Found before anything is measured."""
    (there / "out.json").write_text("former")

    said = farm(*ASK, "--output", "out.json")

    assert (2, "") == (said.code, said.out)
    assert "error: 'out.json' is there already\n" in said.err
    assert "hint: --force replaces it" in said.err
    assert "former" == (there / "out.json").read_text()


def test_force_allows_a_file_and_no_folder(there):
    (there / "out.json").write_text("former")

    calling.check_output(Path("out.json"), force=True)

    assert "former" == (there / "out.json").read_text()
    for path in (".", "predict.py/out.json"):
        with pytest.raises(Refused, match="cannot write"):
            calling.check_output(Path(path), force=True)


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("output", ["in.npz", "./in.npz", "predict.py", "a-link", "another-name"])
def test_what_the_run_itself_reads_is_never_replaced(farm, there, output, force):
    """By whatever name: --force allows a former result, not the inputs of this one."""
    (there / "a-link").symlink_to("in.npz")
    (there / "another-name").hardlink_to(there / "in.npz")
    before = {name: (there / name).read_bytes() for name in ("in.npz", "predict.py")}

    said = farm(*ASK, "--output", output, *(["--force"] if force else []))

    assert (2, "") == (said.code, said.out)
    assert f"error: '{Path(output)}' is read by this very run\n" in said.err
    assert before == {name: (there / name).read_bytes() for name in before}


def test_what_is_read_need_not_be_there_to_be_kept(there):
    """Installed code may lie in an archive; it is no reason to refuse an output."""
    (there / "out.json").write_text("former")

    calling.check_output(Path("out.json"), force=True, keeps=[Path("gone.npz"), there / "in.npz"])


@pytest.mark.seed("S1.41")
def test_the_folder_of_the_output_is_made(there):
    calling.check_output(Path("a/b/out.json"), force=False)

    assert [] == list((there / "a/b").iterdir())


# ── what is said ─────────────────────────────────────────────────────────────────────────────────


def test_the_next_step_is_a_second_run_and_then_their_comparison(asked, there):
    """Each a command that can be pasted."""
    first, second = there / "out.json", there / "out-2.json"

    words = shlex.split(calling.next_step(asked, first))
    assert ["--output", str(second)] == words[-6:-4]
    assert ["--warmup", "2", "--repeats", "3"] == words[-4:]
    first.write_text("")
    assert f"farm profile compare {first} {second}" == calling.next_step(asked, second)


def test_what_is_written_is_what_was_found(asked, there):
    found = profiled(asked, Worker(make.profile(repeats=1)))

    plain = json.loads(interchange.encode(found))
    assert schema.encode(found) == schema.encode(msgspec.convert(plain, type(found)))
