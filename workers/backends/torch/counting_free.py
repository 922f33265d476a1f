"""Operators that cost no floating-point operation by convention, and those that nobody knows.

Bias, elementwise work, norms, softmax, pooling, resampling, indexing, copying and drawing count as
nothing (`measurement.md` §14). An operator that is neither free nor counted is unknown, and lowers
the coverage: forgetting one must never look like a cheap model.
"""

import functools
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from torch._ops import OpOverload

_MAKING: Final = """
    arange bartlett_window blackman_window complex empty empty_like empty_permuted empty_quantized
    empty_strided eye fill full full_like hamming_window hann_window kaiser_window lift linspace
    logspace new_empty new_empty_strided new_full new_ones new_zeros ones ones_like polar range
    scalar_tensor tril_indices triu_indices vander zero zeros zeros_like _efficientzerotensor
    _new_zeros_with_same_feature_meta _nested_tensor_from_mask _nested_tensor_from_tensor_list
    _nested_tensor_from_mask_left_aligned _nested_from_padded _nested_tensor_size
    _nested_tensor_strides _nested_tensor_storage_offsets to_padded_tensor fft_fftfreq fft_rfftfreq
    from_file _empty_affine_quantized _empty_per_channel_affine_quantized
"""
_DRAWING: Final = """
    bernoulli binomial cauchy exponential geometric log_normal multinomial native_dropout normal
    poisson rand rand_like randint randint_like randn randn_like random randperm uniform
    _fused_dropout _cudnn_init_dropout_state normal_functional rrelu_with_noise
    rrelu_with_noise_functional _philox_normal _philox_uniform
"""
_MOVING: Final = """
    affine_grid_generator as_strided_scatter block_diag cat channel_shuffle clone col2im
    constant_pad_nd contiguous copy detach diag_embed diagonal_scatter flip im2col lift_fresh
    pixel_shuffle pixel_unshuffle reflection_pad1d reflection_pad2d reflection_pad3d repeat
    repeat_interleave replication_pad1d replication_pad2d replication_pad3d resize resize_as roll
    rot90 select_scatter set slice_scatter stack tril triu unfold unsafe_chunk unsafe_split
    unsafe_split_with_sizes t transpose squeeze unsqueeze as_strided _chunk_cat _conj_physical
    _copy_from _copy_from_and_resize _lazy_clone _mkldnn_reshape _mkldnn_transpose
    _pack_padded_sequence _pad_packed_sequence _pin_memory _reshape_alias _reshape_copy
    _resize_output _stack _to_copy _to_dense _unsafe_view to_mkldnn to_dense
    _cudnn_rnn_flatten_weight mkldnn_reorder_conv2d_weight mkldnn_reorder_conv3d_weight
    _coalesce _to_sparse _to_sparse_csr _jagged_to_padded_dense_forward
    _padded_dense_to_jagged_forward dequantize int_repr quantize_per_channel quantize_per_tensor
    quantize_per_tensor_dynamic _make_per_channel_quantized_tensor
    _make_per_tensor_quantized_tensor
"""
_CHOOSING: Final = """
    bincount bucketize embedding embedding_bag embedding_renorm gather histc index index_add
    index_copy index_fill index_put index_reduce index_select isin kthvalue masked_fill
    masked_scatter masked_select median mode nanmedian nonzero nonzero_static one_hot put scatter
    scatter_add scatter_reduce searchsorted segment_reduce sort take topk unique_consecutive
    unique_dim _embedding_bag _embedding_bag_forward_only _index_put_impl _local_scalar_dense
    _unique _unique2 _unsafe_index _unsafe_index_put _unsafe_masked_index item
"""
_REDUCING: Final = """
    all allclose amax amin aminmax any argmax argmin count_nonzero cummax cummin cumprod cumsum dist
    equal linalg_vector_norm logcumsumexp logsumexp max mean min nansum native_norm norm prod renorm
    std std_mean sum trace var var_mean _aminmax _cummax_helper _cummin_helper _logcumsumexp
    _is_all_true _is_any_true linalg__powsum
"""
_NORMS: Final = """
    batch_norm_elemt batch_norm_stats cudnn_batch_norm glu log_softmax miopen_batch_norm
    native_batch_norm native_group_norm native_layer_norm softmax _batch_norm_no_update
    _batch_norm_with_update _batch_norm_with_update_functional _fused_rms_norm
    _native_batch_norm_legit_functional _log_softmax _masked_softmax _native_batch_norm_legit
    _native_batch_norm_legit_no_training _nested_tensor_softmax_with_shape _safe_softmax _softmax
    _weight_norm_interface fake_quantize_per_channel_affine_cachemask floor_divide hardswish
    fake_quantize_per_tensor_affine_cachemask linalg_cross log_sigmoid_forward _add_relu
    _fake_quantize_per_tensor_affine_cachemask_tensor_qparams _masked_scale _prelu_kernel
    _thnn_fused_gru_cell _thnn_fused_lstm_cell _transform_bias_rescale_qkv
"""
_POOLING: Final = """
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d
    adaptive_max_pool3d avg_pool1d avg_pool2d avg_pool3d cudnn_grid_sampler fractional_max_pool2d
    fractional_max_pool3d grid_sampler_2d grid_sampler_3d max_pool2d_with_indices
    max_pool3d_with_indices max_unpool2d max_unpool3d mkldnn_adaptive_avg_pool2d mkldnn_max_pool2d
    mkldnn_max_pool3d upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d
    upsample_nearest2d upsample_nearest3d upsample_trilinear3d _adaptive_avg_pool2d
    _adaptive_avg_pool3d _grid_sampler_2d_cpu_fallback _upsample_bicubic2d_aa
    _upsample_bilinear2d_aa _upsample_nearest_exact1d _upsample_nearest_exact2d
    _upsample_nearest_exact3d quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d
"""
_LOSSES: Final = """
    binary_cross_entropy binary_cross_entropy_with_logits huber_loss l1_loss mse_loss
    multi_margin_loss multilabel_margin_loss_forward nll_loss2d_forward nll_loss_forward
    smooth_l1_loss soft_margin_loss
"""
_ASKING: Final = """
    dense_dim dim is_coalesced is_contiguous is_nonzero is_pinned is_same_size is_set_to numel
    q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point
    qscheme record_stream size sparse_dim storage_offset stride sym_constrain_range
    sym_constrain_range_for_size sym_numel sym_size sym_storage_offset sym_stride _assert_async
    _assert_scalar _functional_assert_async _functional_assert_scalar _linalg_check_errors
    _assert_tensor_metadata _fused_sdp_choice _has_same_storage_numel _nnz
    _nested_get_jagged_dummy _nested_get_lengths _nested_get_max_seqlen _nested_get_min_seqlen
    _nested_get_offsets _nested_get_ragged_idx _nested_get_values _nested_view_from_jagged
"""
_FREE: Final = frozenset(
    " ".join(
        (_MAKING, _DRAWING, _MOVING, _CHOOSING, _REDUCING, _NORMS, _POOLING, _LOSSES, _ASKING)
    ).split()
)
_RESHAPING: Final = "resize resize_as set _resize_output"  # of the tensor itself
_READING: Final = "is_nonzero _assert_async _functional_assert_async"
_UNREAD: Final = frozenset([*_ASKING.split(), *_RESHAPING.split()]) - set(_READING.split())
_BACKWARD: Final = ("_backward_data", "_backward")


@functools.cache
def is_free(operator: "OpOverload") -> bool:
    """Whether an operator counts as nothing: a view, elementwise work, or one of the list.

    The in-place form and the derivative of a free operator are free as well.
    """
    import torch

    if operator.namespace in ("prim", "profiler"):
        return True
    if operator.namespace not in ("aten", "prims"):
        return False
    name = operator.overloadpacket.__name__
    if name.startswith("_foreach_") or name.endswith("_copy") or operator.is_view:
        return True
    plain = name.removesuffix("_")
    for ending in _BACKWARD:
        plain = plain.removesuffix(ending)
    if plain in _FREE:
        return True
    # An overload that takes a number in place of a tensor, or works in place, may lack the tag.
    aten = torch.ops.aten
    packets = [getattr(aten, each) for each in (name, plain) if hasattr(aten, each)]
    overloads = [getattr(packet, each) for packet in packets for each in packet.overloads()]
    return any(torch.Tag.pointwise in each.tags for each in overloads)


def reads_nothing(name: str) -> bool:
    """Whether an operator asks no tensor for its numbers, only for its shape or its place."""
    plain = name.removesuffix("_")
    return plain in _UNREAD or name.endswith("_like") or name.startswith("new_")
