// Assigns columns to tables that they each look up on their own: the order in which they fit, and
// which whole numbers are categories where there are too few text columns.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "api/init/data/table_arrays.h"
#include "api/init/fields.h"

namespace tandem::api {

/// Which column goes to each table, so that the column with most values has the largest; empty
/// where some table would then have too few rows.
std::vector<std::size_t> order_of_tables(const std::vector<std::int64_t>& values,
                                         const std::vector<std::int64_t>& rows);

/// Where a list of columns does not fit the tables in this order: offers an order in which it does,
/// or else the list as it is.
void offer_tables(const InputFacts& input, const ArrayFacts& array, FieldGuess& field);

/// Columns for two open inputs, one of ids and one of numbers.
struct ColumnSplit {
  std::size_t ids = 0, numbers = 0;  // the inputs
  ColumnList words;                  // whole numbers that are read as words
  ColumnList of_ids, of_numbers;
};
/// Where there are fewer text columns than an input of ids needs, and exactly as many columns too
/// many for the input of numbers: the only columns of whole numbers that fit the tables in the
/// order of the file.
std::optional<ColumnSplit> split_columns(const std::vector<InputFacts>& inputs,
                                         const FieldGuesses& guesses, const ColumnList& columns);

}  // namespace tandem::api
