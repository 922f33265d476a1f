import time
from contextlib import suppress

import pytest
import torch
from msgspec.structs import replace
from torch import nn

from farm.schema import Capture, Data, Protocol, Tensor
from workers.backends import LayerAsk, LoadFailed, NotOffered
from workers.backends.torch import calling, iteration, loading, training
from workers.backends.torch.load import _held
from workers.backends.torch.placing import Place
from workers.fakes import FakeClock
from workers.record import CudaPeaks

CPU = Place(device="cpu", accelerator=None, cache_bytes=None)
SYNTHETIC = Data(kind="synthetic", word="synthetic")
GB = 10**9
BATCH = training.Batch((torch.ones(2, 3, 4, 4),), {})


class Net(nn.Module):
    """Notes the sizes of the batches that it is called with."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))
        self.heard = []

    def forward(self, x):
        self.heard.append(len(x))
        return x * self.weight


class Loses(Net):
    def loss(self, raw, targets):
        return raw.sum()


def as_train(assignment, capture=None):
    """The assignment as a training, captured or of a sweep."""
    workload = replace(assignment.job.workload, mode="train")
    made = replace(assignment, job=replace(assignment.job, workload=workload))
    return made if capture is None else replace(made, capture=capture)


def of(target, assignment, *, place=CPU, resolved=None):
    kind = "factory" if isinstance(target, nn.Module) else "step"
    return iteration.of(
        calling.Made(target=target, kind=kind),
        {"x": torch.ones(2, 4)},
        assignment,
        place=place,
        clock=FakeClock(),
        resolved={} if resolved is None else resolved,
        loading=loading,
    )


def names(found):
    return [name for name, _ in found.stages]


# ── of a job ─────────────────────────────────────────────────────────────────────────────────────


def test_an_inference_of_a_job_is_its_forward_pass(assign):
    """As its protocol says, with what prepares it."""
    cached = Place(device="cpu", accelerator=None, cache_bytes=1 << 20)
    run, found, prepare = of(Net(), assign(protocol=Protocol(l2="flushed")), place=cached)

    assert (["forward"], "plain", None) == (names(found), found.kind, found.feed)
    assert torch.equal(torch.ones(2, 4), run())
    assert prepare is not None


@pytest.mark.parametrize("model", [Net, Loses])
def test_a_training_of_a_job_is_a_whole_step_on_its_inputs(model, assign):
    module = model()

    run, found, _ = of(module, as_train(assign()))
    loss = run()

    assert ["forward", "backward", "optimizer"] == names(found)
    assert ([2], (), True) == (module.heard, tuple(loss.shape), module.training)


@pytest.mark.parametrize(
    "said",
    [
        {"input_policy": "rotate"},
        {"l2": "flushed"},
        {"input_scope": "host_pinned"},
        {"output_scope": "host"},
    ],
)
def test_what_a_training_does_not_do_with_its_inputs_is_not_said_of_it(said, assign):
    """A profile would say that caches were cold, and they were not."""
    with pytest.raises(LoadFailed, match=f"{next(iter(said))}: .* is not done for a training"):
        of(Net(), as_train(assign(protocol=Protocol(**said))))


@pytest.mark.parametrize("capture", [None, Capture(data=SYNTHETIC, steps=1)])
def test_a_function_has_nothing_to_train(capture, assign):
    with pytest.raises(LoadFailed, match="a function has nothing to train") as caught:
        of(lambda x: x, as_train(assign(kind="step"), capture))

    assert "unsupported" == caught.value.kind


def test_a_function_has_no_pipeline(assign):
    with pytest.raises(LoadFailed, match="it is a function"):
        of(lambda x: x, replace(assign(kind="step"), capture=Capture(steps=1)))


# ── of a capture ─────────────────────────────────────────────────────────────────────────────────


def test_a_captured_inference_is_the_pipeline_of_its_model(assign):
    run, found, _ = of(Net(), replace(assign(), capture=Capture(steps=1, conf=0.5)))

    assert (["forward"], ("conf", "iou", "max_det", "imgsz")) == (names(found), found.unused)
    assert torch.equal(torch.ones(2, 4), run())


@pytest.mark.parametrize(("instruments", "runs"), [((), 2), (("trace",), 5)])
def test_only_the_instrumented_child_begins_the_data_anew(instruments, runs, assign):
    """A clean window lies within one pass; what looks closer takes longer than that."""
    data = Data(kind="synthetic", word="synthetic-4", count=4)
    asked = replace(as_train(assign(), Capture(data=data, steps=2)), instruments=instruments)
    run, _, _ = of(Net(), asked)
    done = []

    with suppress(LoadFailed):
        for _ in range(5):
            done.append(run())

    assert runs == len(done)


@pytest.mark.parametrize(
    ("model", "data", "source", "experimental", "taken"),
    [
        (Net, "synthetic", "file", False, False),
        (Net, "yaml", "file", False, False),
        (Net, "synthetic", "file", True, True),
        (Net, "callable", "file", False, False),
        (Loses, "synthetic", "file", False, True),
        (Net, "synthetic", "zoo", False, True),
    ],
)
def test_a_model_of_a_person_is_not_trained_on_a_stand_in_unasked(
    model, data, source, experimental, taken, assign
):
    """It brings no loss, and the data no target: the numbers would be of another training."""
    given = Data(kind=data, word="d", reference="own:batches")
    asked = as_train(
        assign(bundle="/here" if source == "file" else ""),
        Capture(data=given, imgsz=32, steps=1, experimental=experimental),
    )
    stages = dict(of(model(), asked)[1].stages)

    if taken:
        assert stages["forward"](BATCH).isfinite()
        return
    with pytest.raises(LoadFailed, match="brings no `loss`, and none fits") as caught:
        stages["forward"](BATCH)
    assert "experimental" == caught.value.kind


def test_a_training_of_a_sweep_may_be_on_a_stand_in(assign):
    """Its columns say `train`, and its profile has the note."""
    run, found, _ = of(Net(), as_train(assign(bundle="/here")))

    run()

    assert 1 == len(found.notes)


# ── the batch that fits ──────────────────────────────────────────────────────────────────────────


class Gpu:
    """A device whose allocator holds 1 % of it and 0.5 % for each item of the last batch.

    most: items that it can hold at all; breaks: the error of more.
    """

    def __init__(self, module, *, most, breaks):
        self.module, self.most, self.breaks = module, most, breaks

    def reset_peaks(self):
        self.module.heard.clear()

    def synchronize(self):
        if (batch := self.module.heard[-1]) > self.most:
            raise self.breaks
        self.peak = round((0.01 + 0.005 * batch) * GB)

    def peaks(self):
        return [
            CudaPeaks(
                visible_index=index,
                allocated_peak_bytes=held,
                reserved_peak_bytes=None,
                requested_peak_bytes=None,
                inactive_split_peak_bytes=None,
                alloc_retries=None,
            )
            for index, held in enumerate((self.peak, None))
        ]


FULL = torch.OutOfMemoryError("CUDA out of memory")


class Takes(Net):
    """A model for images, as small as they get."""

    def forward(self, x):
        self.heard.append(len(x))
        return x.mean() * self.weight


class Heavy(Takes):
    """One item is as much as two hundred."""

    def forward(self, x):
        self.heard.append(len(x) * 200)
        return x.mean() * self.weight


def fitted(module, assign, *, data=SYNTHETIC, most=198, breaks=FULL, **window):
    resolved, capture = {}, Capture(data=data, imgsz=32, fit=True, **window)
    asked = replace(as_train(assign(batch=1), capture), instruments=("trace",))
    device = Gpu(module, most=most, breaks=breaks)
    told = {"cuda_memory_bytes": str(GB)}
    of(
        module,
        asked,
        place=Place(device="cpu", accelerator=device, cache_bytes=None, told=told),
        resolved=resolved,
    )
    return int(resolved["fitted_batch"])


@pytest.mark.seed("S4.15")
def test_the_batch_that_fits_is_found_by_running_steps(assign):
    """About 70 % of the memory: 138 items of the 198 that go in."""
    module = Takes()

    found = fitted(module, assign, warmup=5, steps=20)

    assert 130 <= found <= 138
    assert module.training


@pytest.mark.seed("S4.15")
@pytest.mark.parametrize("most", [1, 40, 100])
def test_a_batch_that_runs_out_of_memory_is_too_large_and_no_failure(most, assign):
    """The memory may be in pieces: then fewer items fit than a line foretells."""
    found = fitted(Takes(), assign, most=most, steps=1)

    assert most - most // 16 - 1 <= found <= most


def test_a_batch_is_never_larger_than_the_data_allow(assign):
    """Their one pass has to fill the window afterwards."""
    data = Data(kind="synthetic", word="synthetic-400", count=400)

    assert 16 == fitted(Takes(), assign, data=data, warmup=5, steps=20)


def test_data_that_fill_no_window_at_all_are_told_before_a_batch_is_looked_for(assign):
    data = Data(kind="synthetic", word="synthetic-8", count=8)

    with pytest.raises(LoadFailed, match="the window needs 25") as caught:
        fitted(Takes(), assign, data=data, warmup=5, steps=20)

    assert "window_not_filled" == caught.value.kind


def test_a_step_that_breaks_otherwise_is_no_full_memory(assign):
    with pytest.raises(RuntimeError, match="a kernel failed"):
        fitted(Heavy(), assign, breaks=RuntimeError("a kernel failed"), steps=1)


def test_a_cpu_has_no_memory_to_fit_a_batch_to(assign):
    asked = as_train(assign(), Capture(data=SYNTHETIC, fit=True))

    with pytest.raises(LoadFailed, match="the memory of a GPU"):
        of(Net(), asked)


# ── loaded ───────────────────────────────────────────────────────────────────────────────────────


def test_a_training_is_looked_into_neither_by_layers_nor_by_flops(assign, load):
    """Both are of a forward pass; the step itself runs, with gradients, whatever the protocol."""
    step = load(as_train(assign(spec={"x": Tensor(shape=("batch", 64))})))

    assert [] == step.check_output(step())
    ask = LayerAsk(
        iterations=1,
        warmup=1,
        budget_ns=None,
        clock=time.perf_counter_ns,
        progress=lambda *_: None,
    )
    for look in (lambda: step.layers(ask), step.cost):
        with pytest.raises(NotOffered, match="not_supported: only a forward pass"):
            look()
    assert not step.inputs_mutated()


@pytest.mark.parametrize(
    ("mode", "capture", "held"),
    [
        ("inference", None, "cuda:0"),
        ("train", None, "cuda:0"),
        ("inference", Capture(), "cuda:0"),
        ("train", Capture(data=SYNTHETIC), "cpu"),
    ],
)
def test_only_a_captured_training_brings_its_inputs_to_the_device_itself(
    mode, capture, held, assign
):
    """Its step has a phase for that, which would find nothing to do."""
    asked = as_train(assign(), capture) if mode == "train" else assign()
    asked = asked if capture is None else replace(asked, capture=capture)

    assert held == _held(asked, "cuda:0")


def test_what_a_capture_found_beside_its_numbers_is_among_the_facts(assign, load):
    asked = as_train(assign(spec={"x": Tensor(shape=("batch", 64))}), Capture(data=SYNTHETIC))
    step = load(asked)

    for _ in range(3):
        step()

    facts = step.facts()
    assert (3, ("workers", "imgsz"), "plain") == (
        len(facts.waits_ns),
        facts.unused,
        facts.pipeline,
    )
    (note,) = facts.notes
    assert "the mean square of its output stands in" in note
