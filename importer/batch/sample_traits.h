// How a value came from the samples of a file that fixes its batch, where another batch is bound
// anew: what its shape does not say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/graph/types.h"

namespace tandem::importer {

struct SampleTraits {
  enum class Total { none, mean, sum };

  /// Equal samples would have other values at other places of the batch: the file computes sample
  /// numbers from a shape, or orders the samples.
  bool numbered = false;
  /// Made of random numbers, and without an axis that follows the batch.
  bool random = false;
  /// One place of each sample, as x[:, 2] has it: x[arange(B), 2] is exported as x[:,
  /// 2][arange(B)].
  bool placed = false;
  /// The axis, counted from the end, of which these are as many first entries as the file's batch
  /// has samples. 0: none.
  std::size_t cut = 0;
  /// Bit c: column c of the last axis is a constant.
  std::uint64_t constant_columns = 0;
  /// Elements of the axis that holds the batch which lie in front of it; 0: not known.
  std::int64_t before = 1;
  /// A sum or a mean over the samples, and the file's extents that it has taken: first that of the
  /// axis with the batch.
  Total total = Total::none;
  std::shared_ptr<const Shape> summed;
};

}  // namespace tandem::importer
