// Matrices that are sharded for the products that read them: tensor parallelism.
#pragma once

#include "engine/graph/graph.h"
#include "engine/train/graph/rank_sums.h"

namespace tandem {

class OperatorSet;

/// Whether `shards` has rows or columns of a matrix that products of this graph read.
bool shards_products(const Graph& graph, const Shardings& shards);

/// The graph, its losses included, with this rank's block in place of each such matrix. Samples
/// stay distributed over the ranks, and a product is computed for those of all ranks:
///
///   what the product makes is split (y = x W, columns of W):
///     x -> AllGather -> MatMul: the own columns of y for all samples
///   what it sums over is split (z = y V, rows of V):
///     the own columns of y -> MatMul -> ReduceScatter: z of the own samples
///
/// Between both, values stay split where operators act element by element (each rank takes its
/// block of a bias, which stays whole), move the split axis (Reshape, Transpose) or do not touch it
/// (Softmax along another one, products and attention by heads). Everything else gets its own
/// samples back whole (AllToAll). So a pair of products costs an AllGather and a ReduceScatter of
/// its input's and its result's size, and as much in backward: what an AllReduce of them each way
/// would. Cross-entropy reads split logits (split_cross_entropy.h). Gradients of blocks include all
/// samples, since the gradients of exchanges are exchanges.
///
/// Throws Error{usage} where something else than such products reads a matrix, or there are too few
/// rows or columns for every rank to have one.
Graph shard_products(const OperatorSet& operators, const Graph& graph, const Shardings& shards,
                     const RankShares& ranks);

}  // namespace tandem
