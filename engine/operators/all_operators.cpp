// The list of all operators.
#include "engine/operators/operators.h"
#include "engine/operators/update.h"

namespace tandem {

OperatorSet all_operators() {
  OperatorSet set;

  // Element by element
  operators::add_scalar_functions(set);
  set.add(operators::pow());
  set.add(operators::where());
  set.add(operators::cast());

  // Views and moves
  set.add(operators::identity());
  set.add(operators::reshape());
  set.add(operators::transpose());
  set.add(operators::slice());
  set.add(operators::expand());
  set.add(operators::split());
  set.add(operators::concat());
  set.add(operators::pad());
  set.add(operators::slice_grad());
  set.add(operators::pad_grad());
  set.add(operators::gather());
  set.add(operators::gather_grad());
  set.add(operators::flat_indices());
  set.add(operators::scatter_rows());
  set.add(operators::cum_sum());
  set.add(operators::top_k());
  set.add(operators::resize());
  set.add(operators::resize_grad());
  set.add(operators::grid_sample());
  set.add(operators::grid_sample_grad());
  set.add(operators::embedding_bag());
  set.add(operators::embedding_bag_grad());
  set.add(operators::trilu());
  set.add(operators::copy());
  set.add(operators::transfer());

  // Reductions
  set.add(operators::reduce_sum());
  set.add(operators::reduce_mean());
  set.add(operators::reduce_max());
  set.add(operators::reduce_prod());
  set.add(operators::sum_of_squares());

  // Products
  set.add(operators::matmul());
  set.add(operators::conv());
  set.add(operators::conv_grad_input());
  set.add(operators::conv_grad_weight());

  // Pooling and normalisation
  set.add(operators::max_pool());
  set.add(operators::max_pool_grad());
  set.add(operators::average_pool());
  set.add(operators::average_pool_grad());
  set.add(operators::batch_normalization());
  set.add(operators::batch_normalization_training());
  set.add(operators::batch_normalization_grad());
  set.add(operators::layer_normalization());
  set.add(operators::layer_normalization_grad());

  // Softmax, losses, attention, dropout
  set.add(operators::softmax());
  set.add(operators::softmax_grad());
  set.add(operators::log_softmax());
  set.add(operators::log_softmax_grad());
  set.add(operators::label_weights());
  set.add(operators::softmax_cross_entropy());
  set.add(operators::softmax_cross_entropy_grad());
  set.add(operators::softmax_cross_entropy_with_grad());
  set.add(operators::negative_log_likelihood());
  set.add(operators::negative_log_likelihood_grad());
  set.add(operators::dropout());
  set.add(operators::dropout_grad());
  set.add(operators::random_uniform_like());
  set.add(operators::random_normal_like());
  set.add(operators::attention());
  set.add(operators::attention_grad());
  set.add(operators::rnn_scan());
  set.add(operators::rnn_scan_grad());

  // Updates
  for (const UpdateKind& kind : update_kinds()) set.add(operators::update_operator(kind));
  set.add(operators::unique_indices());
  set.add(operators::split_ids());
  set.add(operators::gather_add());
  set.add(operators::rows_update());
  set.add(operators::gather_rows());
  set.add(operators::rows_without());
  set.add(operators::plan_rows());
  set.add(operators::gather_parts());
  set.add(operators::mark_rows());
  set.add(operators::touched_rows());
  set.add(operators::rows_sum_of_squares());
  set.add(operators::clip_scale());
  set.add(operators::loss_scale());
  set.add(operators::accumulate());

  // Lowered graphs only
  set.add(operators::fused());
  set.add(operators::gemm());
  set.add(operators::conv_fused());
  set.add(operators::gemm_sgd());
  set.add(operators::grouped_update());

  return set;
}

}  // namespace tandem
