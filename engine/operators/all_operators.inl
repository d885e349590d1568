// The list of all operators. TANDEM_OPERATOR(name): `Operator name()` of name.cpp in
// engine/operators/ or a folder of it, a gradient's next to its operator; TANDEM_OPERATORS(name):
// `void add_name(OperatorSet&)`, which adds several.

// Element by element
TANDEM_OPERATORS(scalar_functions)  // one for each row of scalar_functions.inl
TANDEM_OPERATOR(pow)
TANDEM_OPERATOR(where)
TANDEM_OPERATOR(cast)
TANDEM_OPERATOR(bit_cast)
TANDEM_OPERATORS(float8)  // FromFloat8 and ToFloat8

// Views and moves
TANDEM_OPERATOR(identity)
TANDEM_OPERATOR(stop_gradient)
TANDEM_OPERATOR(reshape)
TANDEM_OPERATOR(transpose)
TANDEM_OPERATOR(slice)
TANDEM_OPERATOR(expand)
TANDEM_OPERATOR(split)
TANDEM_OPERATOR(concat)
TANDEM_OPERATOR(pad)
TANDEM_OPERATOR(slice_grad)
TANDEM_OPERATOR(pad_grad)
TANDEM_OPERATOR(gather)
TANDEM_OPERATOR(gather_grad)
TANDEM_OPERATOR(flat_indices)
TANDEM_OPERATOR(scatter_rows)
TANDEM_OPERATOR(cum_sum)
TANDEM_OPERATOR(top_k)
TANDEM_OPERATOR(resize)
TANDEM_OPERATOR(resize_grad)
TANDEM_OPERATOR(grid_sample)
TANDEM_OPERATOR(grid_sample_grad)
TANDEM_OPERATOR(embedding_bag)
TANDEM_OPERATOR(embedding_bag_grad)
TANDEM_OPERATOR(trilu)
TANDEM_OPERATOR(copy)
TANDEM_OPERATOR(transfer)

// Reductions
TANDEM_OPERATOR(reduce_sum)
TANDEM_OPERATOR(reduce_mean)
TANDEM_OPERATOR(reduce_max)
TANDEM_OPERATOR(reduce_prod)
TANDEM_OPERATOR(sum_of_squares)

// Products
TANDEM_OPERATOR(matmul)
TANDEM_OPERATOR(unpack)
TANDEM_OPERATOR(packed_matmul)
TANDEM_OPERATOR(conv)
TANDEM_OPERATOR(conv_grad_input)
TANDEM_OPERATOR(conv_grad_weight)
TANDEM_OPERATOR(det)
TANDEM_OPERATOR(det_grad)

// Pooling and normalisation
TANDEM_OPERATOR(max_pool)
TANDEM_OPERATOR(max_pool_grad)
TANDEM_OPERATOR(average_pool)
TANDEM_OPERATOR(average_pool_grad)
TANDEM_OPERATOR(roi_align)
TANDEM_OPERATOR(roi_align_grad)
TANDEM_OPERATOR(max_roi_pool)
TANDEM_OPERATOR(batch_normalization)
TANDEM_OPERATOR(batch_normalization_training)
TANDEM_OPERATOR(batch_normalization_grad)
TANDEM_OPERATOR(layer_normalization)
TANDEM_OPERATOR(layer_normalization_grad)

// Softmax, losses, attention, dropout
TANDEM_OPERATOR(softmax)
TANDEM_OPERATOR(softmax_grad)
TANDEM_OPERATOR(log_softmax)
TANDEM_OPERATOR(log_softmax_grad)
TANDEM_OPERATOR(label_weights)
TANDEM_OPERATOR(softmax_cross_entropy)
TANDEM_OPERATOR(softmax_cross_entropy_grad)
TANDEM_OPERATOR(softmax_cross_entropy_with_grad)
TANDEM_OPERATOR(negative_log_likelihood)
TANDEM_OPERATOR(negative_log_likelihood_grad)
TANDEM_OPERATOR(ctc_loss)
TANDEM_OPERATOR(ctc_loss_grad)
TANDEM_OPERATOR(dropout)
TANDEM_OPERATOR(dropout_grad)
TANDEM_OPERATOR(random_uniform_like)
TANDEM_OPERATOR(random_normal_like)
TANDEM_OPERATOR(attention)
TANDEM_OPERATOR(attention_grad)
TANDEM_OPERATOR(rnn_scan)
TANDEM_OPERATOR(rnn_scan_grad)

// Updates
TANDEM_OPERATORS(updates)  // for single parameters: one for each optimizer
TANDEM_OPERATOR(unique_indices)
TANDEM_OPERATOR(split_ids)
TANDEM_OPERATOR(shard_ids)
TANDEM_OPERATOR(shard_rows)
TANDEM_OPERATOR(shard_columns)
TANDEM_OPERATOR(own_rows)
TANDEM_OPERATOR(gather_add)
TANDEM_OPERATOR(rows_update)
TANDEM_OPERATOR(gather_rows)
TANDEM_OPERATOR(rows_without)
TANDEM_OPERATOR(plan_rows)
TANDEM_OPERATOR(gather_parts)
TANDEM_OPERATOR(mark_rows)
TANDEM_OPERATOR(touched_rows)
TANDEM_OPERATOR(rows_sum_of_squares)
TANDEM_OPERATOR(rows_sum)
TANDEM_OPERATOR(clip_scale)
TANDEM_OPERATOR(loss_scale)
TANDEM_OPERATOR(accumulate)
TANDEM_OPERATOR(assign)

// Over all ranks
TANDEM_OPERATOR(all_reduce)
TANDEM_OPERATOR(all_gather)
TANDEM_OPERATOR(reduce_scatter)
TANDEM_OPERATOR(all_to_all)
TANDEM_OPERATOR(exchange_rows)
TANDEM_OPERATOR(gather_states)

// Lowered graphs only
TANDEM_OPERATOR(fused)
TANDEM_OPERATOR(gemm)
TANDEM_OPERATOR(conv_fused)
TANDEM_OPERATOR(gemm_sgd)
TANDEM_OPERATOR(grouped_update)

#undef TANDEM_OPERATOR
#undef TANDEM_OPERATORS
