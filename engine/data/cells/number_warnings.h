// Warnings about columns of numbers that may not be what they seem.
#pragma once

#include <string>
#include <vector>

#include "engine/data/row_encoder.h"

namespace tandem {

/// A sentence for each column whose mean is more than 5 standard deviations of the training data
/// from the mean there, as the field's `normalize` has both; of columns with 30 values at least.
std::vector<std::string> far_numbers(const TablePlan& plan,
                                     const std::vector<std::vector<ColumnStatistics>>& fields);

/// A sentence for each column of times that holds both dates by ISO 8601 and plain numbers below
/// 100000, which would be seconds of the first day of 1970: years, or days as Excel counts them.
std::vector<std::string> mixed_dates(const TablePlan& plan,
                                     const std::vector<std::vector<ColumnStatistics>>& fields);

}  // namespace tandem
