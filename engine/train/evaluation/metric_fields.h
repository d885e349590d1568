// Data fields with an integer for each sample, which metrics group and slice samples by.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/data/data_source.h"

namespace tandem {

/// Its index in source.fields(). Throws Error{usage} where `metric` of eval.metrics cannot read it:
/// it is not there, or not one integer for each sample.
int metric_field(const DataSource& source, const std::string& field, const std::string& metric);

/// The field's values in samples first, first + 1, … of a source.
std::vector<std::int64_t> field_values(const DataSource& source, int field, std::int64_t first,
                                       std::int64_t count);

/// All different values, ascending. Throws Error{data} where `metric` would be sliced by more than
/// `most` of them, naming their number.
std::vector<std::int64_t> slice_values(const DataSource& source, int field, std::size_t most,
                                       const std::string& metric);

/// Calls f(first, count) for pieces of all samples of a source, until it returns false.
template <class F>
void each_piece(const DataSource& source, F f) {
  constexpr std::int64_t piece = 4096;
  for (std::int64_t first = 0; first < source.samples(); first += piece) {
    const std::int64_t left = source.samples() - first;
    if (!f(first, left < piece ? left : piece)) return;
  }
}

}  // namespace tandem
