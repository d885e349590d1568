// The table of one instruction set: TANDEM_TILE_OPS and the scalar functions, then the members of
// VectorFunctions in their order. Included by vector_functions_*.cpp, inside of the namespace of
// the instruction set, where a tile_NAME of its own hides the one of scalar_tiles.cpp.

constexpr VectorFunctions table = {
    .tile =
        {
#define TANDEM_ENTRY(name) tile_##name,
            TANDEM_TILE_OPS(TANDEM_ENTRY)
#undef TANDEM_ENTRY
#define TANDEM_FUNCTION(function, ...) tile_##function,
#include "engine/operators/scalar_functions.inl"
        },
    .sum = row_sum,
    .maximum = row_maximum,
    .add_rows = add_rows,
    .max_rows = max_rows,
    .flush = flush,
    .log_sum_exp = row_log_sum_exp,
    .softmax = row_softmax,
    .log_softmax = row_log_softmax,
    .softmax_grad = row_softmax_grad,
    .log_softmax_grad = row_log_softmax_grad,
    .scaled_exp = row_scaled_exp,
    .columns_log_sum_exp = columns_log_sum_exp,
    .columns_mean = columns_mean,
    .columns_softmax_less = columns_softmax_less,
    .layer_norm = row_layer_norm,
    .layer_norm_grad = row_layer_norm_grad,
    .moments_rows = moments_rows,
    .moments_plane = moments_plane,
    .grad_sums_rows = grad_sums_rows,
    .grad_sums_plane = grad_sums_plane,
    .affine_rows = affine_rows,
    .affine2_rows = affine2_rows,
    .affine2_plane = affine2_plane,
    .online_softmax = row_online_softmax,
    .probabilities = row_probabilities,
    .score_grad = row_score_grad,
    .dot = row_dot,
    .scale = row_scale,
    .widen = widen,
    .narrow = narrow,
    .widen_float16 = widen_float16,
    .narrow_float16 = narrow_float16,
    .dropout = row_dropout,
    .dropout_grad = row_dropout_grad,
    .transpose4 = transpose4,
};
