"""Which phase launched what."""

import pytest

from farm.trace.analysis import phases
from farm.trace.analysis.phases import UNATTRIBUTED, UNPHASED
from farm.trace.reading.columns import ANNOTATION, OP
from tests.farm.trace.analysis.traces import Event, gathered, kernel, launch, made, op, span, step

FORWARD, BACKWARD = "## forward ##", "## backward ##"


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("forward", "step/forward"),
        ("to_device", "step/to_device"),
        ("forward", "## forward ##"),
        ("backward", "## backward ##"),
        ("optimizer", "## optimizer ##"),
        ("optimizer", "## zero_grad ##"),
        ("optimizer", "Optimizer.step#SGD.step"),
        ("optimizer", "Optimizer.zero_grad#SGD.zero_grad"),
        ("dataload", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
        ("dataload", "## data_load ##"),
        ("dataload", "## load_batch ##"),
        ("dataload", "## wait_for_next_batch ##"),
        ("forward", "DistributedDataParallel.forward"),
        ("", "## evaluation ##"),
        ("", "step/"),
        ("", "SomethingBackward0"),
    ],
)
def test_a_span_tells_a_phase_by_its_name(word: str, name: str) -> None:
    assert word == phases.word(name, ANNOTATION)


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("backward", "autograd::engine::evaluate_function: ConvolutionBackward0"),
        ("backward", "ConvolutionBackward0"),
        ("backward", "CompiledFunctionBackward"),
        ("backward", "torch::autograd::AccumulateGrad"),
        ("", "aten::convolution_backward"),
        ("", "step/forward"),
        ("", "BackwardHook"),
    ],
)
def test_an_operator_tells_only_the_backward_pass(word: str, name: str) -> None:
    assert word == phases.word(name, OP)


def of(*events: Event) -> list[str]:
    """Return the phase of each kernel by its start."""
    found = gathered(events)
    return [found.words[each] for each in found.phase.tolist()]


def test_a_kernel_is_of_the_phase_that_launched_it_wherever_it_runs() -> None:
    """All run long after the host is through."""
    spans = [span(FORWARD, 0, 50), span(BACKWARD, 50, 50)]
    calls = [launch(10, 1), launch(60, 2), launch(120, 3)]

    found = of(*spans, *calls, *(kernel(1000 * each, 500, each) for each in (1, 2, 3)))

    assert ["forward", "backward", UNPHASED] == found


def test_an_orphan_is_of_no_phase_even_if_it_runs_within_one() -> None:
    assert [UNATTRIBUTED, "forward"] == of(
        span(FORWARD, 0, 500), launch(10, 1), kernel(20, 10, 99), kernel(40, 10, 1)
    )


def test_of_spans_that_cover_a_launch_the_one_that_started_last_counts() -> None:
    outer, inner = span("step/outer", 0, 100), span("step/inner", 40, 20)
    calls = [launch(30, 1), launch(50, 2), launch(70, 3)]

    found = of(outer, inner, *calls, *(kernel(200 + each, 1, each) for each in (1, 2, 3)))

    assert ["outer", "inner", "outer"] == found


def test_a_span_on_the_own_thread_counts_more_than_a_later_one_on_another() -> None:
    spans = [span("step/mine", 0, 100), span("step/other", 40, 20, thread=2)]

    assert ["mine"] == of(*spans, launch(50, 1), kernel(200, 1, 1))


def test_a_thread_without_a_span_launches_for_the_span_that_waits_for_it() -> None:
    """Autograd runs on a thread of its own while the main one waits in its span."""
    assert ["backward"] == of(span(BACKWARD, 0, 100), launch(50, 1, thread=9), kernel(200, 1, 1))


def test_operators_of_another_thread_say_nothing() -> None:
    assert [UNPHASED] == of(op("MmBackward0", 0, 100, thread=2), launch(50, 1), kernel(200, 1, 1))


def test_operators_of_the_own_thread_tell_the_backward_pass() -> None:
    assert ["backward"] == of(op("MmBackward0", 0, 100), launch(50, 1), kernel(200, 1, 1))


@pytest.mark.parametrize("turned", [False, True])
def test_of_spans_that_start_and_end_together_the_order_of_the_file_chooses_none(
    turned: bool,
) -> None:
    pair = [span("step/a", 0, 100), span("step/b", 0, 100)]

    assert ["b"] == of(*(reversed(pair) if turned else pair), launch(50, 1), kernel(200, 1, 1))


def backward_only() -> list[Event]:
    """Two steps with a backward span each, on the thread 1, and launches around it."""
    found = []
    for number in range(2):
        at = 1000 * number
        found += [step(number, at, 1000), op("MmBackward0", at + 500, 200)]
        for each, (when, thread) in enumerate([(100, 1), (600, 1), (800, 1), (200, 2)]):
            of_ = 10 * number + each + 1
            found += [launch(at + when, of_, thread=thread), kernel(at + when + 5000, 1, of_)]
    return found


def test_without_forward_spans_what_comes_before_the_first_backward_is_forward() -> None:
    """On the thread of the step only, and it is said."""
    found = gathered(backward_only())
    by_start = [found.words[each] for each in found.phase.tolist()]

    assert ["forward", UNPHASED, "backward", UNPHASED] * 2 == by_start
    assert found.inferred


def test_an_op_is_of_the_inferred_forward_as_its_launches_are() -> None:
    """On another thread, after the backward pass and outside a step it is of no phase."""
    ops = [op("aten::mm", 90, 20), op("aten::add", 750, 9), op("aten::mm", 190, 20, thread=2)]

    found = gathered([*backward_only(), *ops, op("late", 2500, 5)])
    at = (found.ops.start // 1000).tolist()
    phase = {when: found.words[each] for when, each in zip(at, found.op_phase, strict=True)}

    assert phase == {
        **{90: "forward", 190: UNPHASED, 500: "backward", 750: UNPHASED},
        **{1500: "backward", 2500: UNPHASED},
    }


def test_ops_alone_make_an_inferred_forward_that_is_said() -> None:
    """A trace of a CPU has no launch."""
    found = gathered([step(0, 0, 1000), op("aten::mm", 10, 5), op("MmBackward0", 500, 200)])

    assert found.inferred
    assert ["forward", "backward"] == [found.words[each] for each in found.op_phase.tolist()]


def test_with_one_forward_span_nothing_is_inferred() -> None:
    found = gathered([*backward_only(), span(FORWARD, 100, 1)])

    assert not found.inferred
    assert ["forward", "unphased"] == [found.words[found.phase[each]] for each in (0, 4)]


def test_without_steps_nothing_is_inferred() -> None:
    events = [each for each in backward_only() if not each["name"].startswith("ProfilerStep")]

    assert not gathered(events).inferred


@pytest.mark.parametrize("turned", [False, True])
def test_of_steps_that_two_threads_mark_alike_the_order_of_the_file_chooses_none(
    turned: bool,
) -> None:
    """The thread of a step tells whose launches are forward."""
    marks = [step(0, 0, 1000, thread=each) for each in (1, 2)]
    calls = [launch(100, 1), launch(110, 2, thread=2), op("MmBackward0", 500, 200)]
    work = [kernel(5000 + each, 1, each) for each in (1, 2)]

    found = gathered([*(reversed(marks) if turned else marks), *calls, *work])

    assert ["forward", UNPHASED] == [found.words[each] for each in found.phase.tolist()]


def test_a_step_without_a_backward_pass_infers_nothing() -> None:
    """The backward span of the next step says nothing about it."""
    found = gathered(
        [
            *(step(each, 1000 * each, 1000) for each in range(2)),
            op("MmBackward0", 1500, 200),
            launch(100, 1),
            kernel(5000, 1, 1),
        ]
    )

    assert [UNPHASED] == [found.words[each] for each in found.phase.tolist()]


def test_without_launches_the_own_start_of_a_kernel_counts() -> None:
    assert ["forward", UNPHASED] == of(span(FORWARD, 0, 50), kernel(10, 5), kernel(60, 5))


@pytest.mark.seed("S4.72")
def test_phases_are_listed_in_the_order_of_a_step_and_what_is_in_none_last() -> None:
    words = ["optimizer", "backward", "forward", "to_device", "dataload", "preprocess", "mine"]
    spans = [span(f"step/{each}", 10 * at, 10) for at, each in enumerate(words)]
    calls = [launch(5, 1), launch(500, 2)]

    found = made([*spans, *calls, *(kernel(600 + each, 1, each) for each in (1, 2, 99))])

    ordered = ["dataload", "to_device", "preprocess", "forward", "backward", "optimizer", "mine"]
    assert [*ordered, UNPHASED, UNATTRIBUTED] == [each.phase for each in found.analysis.phases]
