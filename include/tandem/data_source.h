// Samples that a program gives to a training itself, in place of files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tandem/dtype.h"

namespace tandem::api::inline v1 {

/// What every sample has under one name: an input of the model, or labels that the loss compares.
struct DataField {
  std::string name;
  DType dtype = DType::float32;
  std::vector<std::int64_t> shape;  ///< extents of one sample, without the batch axis
};

/// A data set that a Trainer reads through these functions: it shuffles, shares samples between ranks, evaluates,
/// checks labels and ids, and resumes as with files. Fields and number of samples stay as they are; all functions are
/// called by several threads at a time, `data.workers` of them ahead of the steps.
class DataSource {
 public:
  virtual ~DataSource();
  virtual std::vector<DataField> fields() const = 0;
  virtual std::int64_t samples() const = 0;  ///< above 0
  /// Writes these samples of `fields()[field]` one after the other, row-major, which is indices.size() times the bytes
  /// of a sample. The same index gives the same values each time. An exception ends the run as Error{data}.
  virtual void fill(std::size_t field, std::span<const std::int64_t> indices, void* to) const = 0;
  virtual std::string describe(std::int64_t sample) const;  ///< the sample in messages; by default "sample 17"
  /// Tells these samples from others, such as a version or a checksum: a run that was trained on them resumes only with
  /// a source of the same identity, number of samples and fields.
  virtual std::string identity() const = 0;
};

}  // namespace tandem::api::inline v1
