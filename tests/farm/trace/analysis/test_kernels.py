"""What a kernel does and whether matrix units did it, as far as its name tells."""

import csv
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.trace.analysis import kernels
from farm.trace.analysis.kernels import Kind, categories, core_name, kind
from tests.farm.counted import lines_run

NAMES = Path(__file__).parents[5] / "shared" / "data" / "kernel_names.tsv"
AT = "void at::native::"


@pytest.mark.parametrize(
    ("category", "name"),
    [
        ("memcpy", "__amd_rocclr_copyBuffer"),
        ("memcpy", "memset32_post"),
        ("comm", "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"),
        ("comm", "multimem_all_reduce_kernel"),
        ("attention", "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64> >(Params)"),
        ("optimizer", f"{AT}multi_tensor_apply_kernel<Meta<4>, AdamFunctor<float> >(Meta<4>)"),
        ("norm", "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true>(float)"),
        ("softmax", f"{AT}(anonymous namespace)::cunn_SoftMaxForward<8, float>(float*)"),
        ("pool", f"{AT}(anonymous namespace)::max_pool_backward_nchw<float, float>(int)"),
        ("layout", "batched_transpose_32x32_half"),
        ("gemm", "volta_scudnn_128x64_relu_interior_nn_v1"),
        ("gemm", "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex0_bt256x128x32"),
        ("gemm", "void splitKreduce_kernel<32, 16, int, float, float>(cublasSplitKParams<float>)"),
        ("gemm", "triton_tem_fused_mm_4"),
        ("reduction", f"{AT}reduce_kernel<512, 1, ReduceOp<float, MeanOps<float> > >(ReduceOp)"),
        ("reduction", "triton_per_fused_sum_3"),
        ("indexing", "void cub::DeviceRadixSortOnesweepKernel<cub::Policy>(int*)"),
        ("elementwise", "triton_poi_fused_relu_1"),
        ("elementwise", "void vllm::rotary_embedding_kernel<float, true>(long const*)"),
        ("embedding", f"{AT}(anonymous namespace)::EmbeddingBag_updateOutputKernel<float>(long)"),
        ("other", "busy_work"),
        ("other", ""),
    ],
)
def test_a_real_name_tells_its_category(category: str, name: str) -> None:
    assert category == kind(name).category


@pytest.mark.parametrize(
    ("category", "name"),
    [
        ("embedding", "void fbgemm_gpu::permute_2D_data_kernel<false, int, float>(int, float*)"),
        (
            "layout",
            f"{AT}vectorized_elementwise_kernel<4, {AT}direct_copy_kernel_cuda(int)::lambda>(int)",
        ),
        ("attention", "void FmhaBatchPrefillWithPagedKVCacheKernel<float>(Params)"),
        ("elementwise", f"{AT}elementwise_kernel<128, {{lambda()#1}}::operator()() const>(int)"),
        ("elementwise", "void cudnn::ops::scalePackedTensor_kernel<float, float>(long, float*)"),
        ("indexing", "void moe::routingIndicesOffsetsKernel<int>(int*)"),
        ("gemm", "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x64>(Params)"),
        ("embedding", "split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel"),
        ("reduction", "triton_red_fused_add_native_layer_norm_5"),
    ],
)
def test_a_name_that_a_search_for_words_takes_for_something_else(category: str, name: str) -> None:
    """Of an fbgemm no gemm, of a prefill no fill, of a lambda no optimizer (LAMB), and so on."""
    assert category == kind(name).category


@pytest.mark.parametrize(
    ("unit", "name"),
    [
        ("yes", "volta_h884gemm_64x64_ldg8_nn"),
        ("yes", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_warpgroupsize1x1x1"),
        ("yes", "nvjet_tst_64x8_64x16_1x2_h_bz_TNT"),
        ("yes", "Cijk_Ailk_Bljk_HHS_BH_MT64x32x32_MI16x16x1_SN_1LDSB0"),
        ("yes", "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x64>(Params)"),
        ("yes", "void pytorch_flash::flash_fwd_kernel<Traits>(Params)"),
        ("no", "ampere_sgemm_128x64_nn"),
        ("no", "ampere_scudnn_128x64_ffma_nn"),
        ("no", "cutlass_80_simt_sgemm_128x128_8x4_nn_align1"),
        ("no", "SubTensorOpWithScalar1d"),
        ("no", "void gemv2T_kernel_val<int, int, float>(float)"),
        ("no", "Cijk_Ailk_Bljk_SB_MT64x64x8_SN"),
        ("no", "vectorized_elementwise_kernel"),
        ("unknown", "attn_fwd"),
        ("unknown", "_matmul_ogs_NNT_bf16xbf16xmxfp4"),
        ("unknown", "triton__0d1d"),
    ],
)
def test_a_name_tells_whether_matrix_units_did_it_or_nothing(unit: str, name: str) -> None:
    assert unit == kind(name).unit


def test_only_products_and_attention_can_use_matrix_units() -> None:
    """Whatever else stands in the name."""
    assert Kind("layout", "no") == kind("nchwToNhwc_tensorop_wgmma_kernel")
    assert Kind("comm", "no") == kind("ncclKernel_AllReduce_xmma_bf16")
    assert Kind("other", "unknown") == kind("wgmma_something")


@pytest.mark.parametrize(
    ("core", "name"),
    [
        ("at::native::fill", "void at::native::fill<int, foo<float> >(int, bar<2>)"),
        ("at::native::::k", "void at::native::(anonymous namespace)::k<1>(int)"),
        ("_zn7cutlass6kernel<x>", "_zn7cutlass6kernel<x>"),
        ("cutlass_75_gemm", "void cutlass::kernel2<cutlass_75_gemm>(p)"),
        ("flash<a, b>::run", "void cutlass::device_kernel<flash<a, b>::run, other>(p)"),
        ("a>b", "a>b"),
        ("", "()"),
        ("", ""),
    ],
)
def test_the_core_of_a_name_is_what_stands_outside_of_brackets(core: str, name: str) -> None:
    """Its last word; all of a mangled one; of a generic CUTLASS kernel its first argument."""
    assert core == core_name(name)


def test_the_categories_are_those_of_the_rules_and_other() -> None:
    assert "other" == categories()[-1]
    assert {"gemm", "layout", "norm", "elementwise", "comm", "attention"} < set(categories())
    assert len(set(categories())) == len(categories())


@given(st.text(max_size=200))
def test_any_text_has_a_category(name: str) -> None:
    found = kind(name)

    assert found.category in categories()
    assert found.unit in ("yes", "no", "unknown")


PIECES = st.lists(
    st.sampled_from(["<", ">", "(", ")", ",", " ", "::", "gemm", "cutlass", "_z", "k", "a", "1"]),
    min_size=1,
    max_size=60,
)


@given(PIECES)
def test_the_work_grows_with_the_length_of_the_name(pieces: list[str]) -> None:
    """Steps and not time: ten times the name takes at most ten times the lines of Python."""
    name = "".join(pieces)

    once, often = (lines_run(lambda text=each: core_name(text)) for each in (name, name * 10))

    assert often <= 12 * once + 200


@pytest.mark.parametrize("piece", ["<", "(", "<(", ">)", "<>", "k<a,", "cutlass::kernel<", " a"])
def test_no_nesting_makes_it_more(piece: str) -> None:
    small, large = (lines_run(lambda n=n: core_name(piece * n)) for n in (500, 5000))

    assert large <= 11 * small


@pytest.mark.parametrize(
    "piece",
    ["_zck", "gemm_subtensor", "group_norm", "gemm_cktile", "gemm_fmha_cutlass", "attn_bmm_sm1"],
)
def test_no_rule_searches_the_rest_of_a_name_from_each_of_its_parts(piece: str) -> None:
    """Eight times the name, 64 times the work, was what it took; time of this process, as a ratio,
    because a search counts no steps.
    """
    small, large = (
        min(_seconds(piece[:2] + piece * (letters // len(piece)) + "!" * each) for each in range(3))
        for letters in (20_000, 160_000)
    )

    assert large < 30 * small


def _seconds(name: str) -> float:
    before = time.process_time()
    kind(name)
    return time.process_time() - before


def test_every_name_of_the_golden_file_has_its_category_and_its_unit() -> None:
    if not NAMES.is_file():
        pytest.skip("the shared data are not here")
    with NAMES.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))

    wrong = [
        (each["name"], each["category"], each["matrix_unit"], kernels.kind(each["name"]))
        for each in rows
        if (each["category"], each["matrix_unit"]) != kernels.kind(each["name"])
    ]

    assert 834 == len(rows)
    assert [] == wrong
