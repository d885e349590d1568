// Training samples by the length of their sequences, so that a batch is filled up to the length of
// its bucket and not to that of the longest sample.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/data/data_source.h"

namespace tandem {

struct Buckets {
  std::vector<std::int64_t> lengths;     // ascending; the last is that of the fields as they are
  std::vector<std::uint8_t> of_samples;  // by sample: the first bucket that holds it
  std::vector<int> fields;  // what is cut to a batch's length, along axis 0 of a sample

  std::int64_t longest() const { return lengths.back(); }
};

/// Gives `sets` its buckets. Reads the field of all training samples. Throws Error{usage} for
/// fields that are not there or are no sequences of the last bucket's length.
void add_buckets(const BucketConfig& config, DataSets& sets);

/// "70 samples up to 32, 30 up to 64".
std::string to_string(const Buckets& buckets);

}  // namespace tandem
