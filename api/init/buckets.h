// data.buckets for sequences of different lengths, over a free dimension of the file.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/init/fields.h"

namespace tandem::api {

struct BucketGuess {
  std::string dimension;
  std::vector<std::int64_t> lengths;  // ascending; the last one is that of the samples
  std::string measured;               // the field whose values tell how long a sample is
  std::int64_t pad = 0;
  std::vector<std::string> cut;  // fields, in order
  std::string why;               // the reason for the key, as a comment

  /// The key's value.
  std::string toml() const;
};

/// A guess where one free dimension is that of sequences, many of which are much shorter than the
/// longest. `inputs` have the file's names of dimensions.
std::optional<BucketGuess> guess_buckets(const std::vector<InputFacts>& inputs,
                                         const FieldGuesses& fields);

}  // namespace tandem::api
