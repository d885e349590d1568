// Small training graphs for tests of lowering, plan and executor.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/operators/operator.h"

namespace tandem::testing {

using Feeds = std::vector<std::pair<std::string, HostTensor>>;

enum class Update { sgd, momentum, adam };

/// x [batch, widths[0]] -> Linear, Relu, ... -> softmax cross-entropy of `labels`; weights are
/// stored [out, in] and transposed, as exporters do. With backward and updates; outputs `loss` and
/// `logits`.
Graph mlp_training(const OperatorSet& operators, std::int64_t batch,
                   const std::vector<std::int64_t>& widths, Update update);

/// x [2, 3, 8, 8] -> Conv, BatchNormalization, Relu, MaxPool, a residual block, mean, Linear ->
/// loss.
Graph convolution_training(const OperatorSet& operators);

/// x [2, 5, 8] -> Linear to 24, Split, heads by Reshape and Transpose, Attention, Linear, Gelu ->
/// loss.
Graph attention_training(const OperatorSet& operators);

/// Random element-wise nodes, products, views, Concat, Split and reductions in float64; with
/// gradients and plain SGD updates of some states for odd seeds.
Graph random_graph(const OperatorSet& operators, std::uint64_t seed);

/// Random numbers for all inputs of a graph; labels are integers 0..2, `lr` is 0.1, `step` is
/// `step`.
Feeds random_feeds(const Graph& graph, std::uint64_t seed, std::int64_t step);

}  // namespace tandem::testing
