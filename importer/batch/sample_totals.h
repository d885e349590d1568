// Sums and means over the samples of a file that fixes its batch, where another batch is bound
// anew.
#pragma once

#include <vector>

#include "importer/batch/follow_traits.h"

namespace tandem::importer {

/// Sets the traits `total` and `summed` of what the node has made: it adds samples up, in a
/// reduction or a product of matrices, or passes such a sum on.
void follow_totals(const Scope& scope, const onnx::NodeProto& node,
                   const std::vector<Seen>& operands, const Seen& y, SampleTraits& traits);

/// Whether the number that a sum or a mean of n entries is divided or multiplied by may come from
/// the number of the file's samples: n or n - 1 below a sum; n or n / (n - 1) times a mean, as
/// variances have it.
bool may_count_samples(const SampleTraits& total, bool divides, double number, std::int64_t batch);

}  // namespace tandem::importer
