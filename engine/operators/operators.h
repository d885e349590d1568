// One function per operator; the list in all_operators.cpp calls them.
#pragma once

#include "engine/operators/operator.h"

namespace tandem::operators {

// Element by element: one for each row of scalar_functions.inl, and those with files of their own
void add_scalar_functions(OperatorSet& set);
Operator pow();
Operator where();
Operator cast();

// Views and moves
Operator identity();
Operator reshape();
Operator transpose();
Operator slice();
Operator expand();
Operator split();
Operator concat();
Operator pad();
Operator slice_grad();
Operator pad_grad();
Operator gather();
Operator gather_grad();
Operator flat_indices();
Operator scatter_rows();
Operator cum_sum();
Operator top_k();
Operator resize();
Operator resize_grad();
Operator grid_sample();
Operator grid_sample_grad();
Operator embedding_bag();
Operator embedding_bag_grad();
Operator trilu();
Operator copy();
Operator transfer();

// Reductions
Operator reduce_sum();
Operator reduce_mean();
Operator reduce_max();
Operator reduce_prod();
Operator sum_of_squares();

// Products
Operator matmul();
Operator conv();
Operator conv_grad_input();
Operator conv_grad_weight();

// Pooling and normalisation
Operator max_pool();
Operator max_pool_grad();
Operator average_pool();
Operator average_pool_grad();
Operator batch_normalization();
Operator batch_normalization_training();
Operator batch_normalization_grad();
Operator layer_normalization();
Operator layer_normalization_grad();

// Softmax, losses, attention, dropout
Operator softmax();
Operator softmax_grad();
Operator log_softmax();
Operator log_softmax_grad();
Operator label_weights();
Operator softmax_cross_entropy();
Operator softmax_cross_entropy_grad();
Operator softmax_cross_entropy_with_grad();
Operator negative_log_likelihood();
Operator negative_log_likelihood_grad();
Operator dropout();
Operator dropout_grad();
Operator random_uniform_like();
Operator random_normal_like();
Operator attention();
Operator attention_grad();
Operator rnn_scan();
Operator rnn_scan_grad();

// Updates; those of single parameters are in update.h
Operator unique_indices();
Operator split_ids();
Operator gather_add();
Operator rows_update();
Operator gather_rows();
Operator rows_without();
Operator plan_rows();
Operator gather_parts();
Operator mark_rows();
Operator touched_rows();
Operator rows_sum_of_squares();
Operator clip_scale();
Operator loss_scale();
Operator accumulate();

// Lowered graphs only
Operator fused();
Operator gemm();
Operator conv_fused();
Operator gemm_sgd();
Operator grouped_update();

}  // namespace tandem::operators
