"""The golden traces G8: ten steps of 10 ms, by the numbers that they are made of.

Each step has four spans of a quarter, 20 equal kernels, each with a launch of its own just before
it, names dealt in turn from seven, and one copy of 100 µs on another stream.
"""

from tests.farm.trace.analysis.traces import (
    Event,
    call,
    copy,
    kernel,
    launch,
    repeated,
    span,
)

NAMES = (
    "volta_h884gemm_64x64_ldg8_nn",
    "ampere_sgemm_128x64_nn",
    "void at::native::vectorized_elementwise_kernel<4, AddFunctor<float> >(int)",
    "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512>(float)",
    "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, uint>(float*)",
    "void cudnn::ops::nchwToNhwcKernel<float, float>(float)",
    "mystery_work",
)
PHASES = ("to_device", "forward", "backward", "optimizer")
STEPS, KERNELS, STEP_US = 10, 20, 10_000


def golden(length: float, *, streams: int = 1, mallocs: int = 0) -> list[Event]:
    """Return a trace whose kernels take so many µs each, of streams in turn."""

    def of_step(number: int, start: float) -> list[Event]:
        quarter = STEP_US / len(PHASES)
        found = [
            span(f"step/{name}", start + at * quarter, quarter) for at, name in enumerate(PHASES)
        ]
        for each in range(KERNELS):
            at, of = start + 20 + each * STEP_US / KERNELS, 100 * number + each + 1
            where = 7 + each % streams
            found.append(launch(at - 10, of, length=5))
            found.append(kernel(at, length, of, name=NAMES[each % 7], stream=where))
        found += [launch(start + 5, 100 * number + 99), copy(start + 20, 100, 100 * number + 99)]
        found[-2]["name"] = "cudaMemcpyAsync"
        return [*found, *(call("cudaMalloc", start + 20 * each, 5) for each in range(mallocs))]

    return repeated(STEPS, STEP_US, of_step)
