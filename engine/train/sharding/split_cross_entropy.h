// The cross-entropy of logits of which each rank has a block of the classes.
#pragma once

#include "engine/train/group/sample_exchange.h"

namespace tandem {

/// Operands of a SoftmaxCrossEntropy, or of a NegativeLogLikelihood of a LogSoftmax.
struct SplitLogits {
  SplitValue logits;  // [rows of all, classes of this rank]
  ValueId labels;     // [rows], of the own samples
  ValueId weights;    // the same; may be missing
  double smoothing = 0;
};

struct SplitLosses {
  ValueId losses, log_sum_exp;  // [rows], of the own samples
};

/// No rank ever has all logits. For each sample a rank sends two numbers to the one that has the
/// sample, the logarithm of its sum of exponentials and what the loss subtracts from that
/// (AllToAll); their gradients come back. Labels that are no classes are reported as by one
/// process.
SplitLosses split_cross_entropy(GraphBuilder& g, SampleExchange& exchange, const RankShares& ranks,
                                const SplitLogits& of);

}  // namespace tandem
