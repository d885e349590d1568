// Columns that each look up a table of their own: in which order they fit the tables, and which of
// the whole numbers are categories where there are too few texts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "api/init/data/table_arrays.h"
#include "api/init/fields.h"

namespace tandem::api {

/// Which column goes to each table, so that the one with most values has the largest; empty where
/// that gives one a table with too few rows.
std::vector<std::size_t> order_of_tables(const std::vector<std::int64_t>& values,
                                         const std::vector<std::int64_t>& rows);

/// Where a list of columns does not fit the tables in this order: offers one in which it does, or
/// the list as it is.
void offer_tables(const InputFacts& input, const ArrayFacts& array, FieldGuess& field);

/// Columns for two open inputs, of ids and of numbers.
struct ColumnSplit {
  std::size_t ids = 0, numbers = 0;  // the inputs
  ColumnList words;                  // whole numbers that are taken for words
  ColumnList of_ids, of_numbers;
};
/// Where there are fewer texts than an input of ids takes, and just as many columns too many for
/// the input of numbers: the only whole numbers that, in the order of the file, fit the tables.
std::optional<ColumnSplit> split_columns(const std::vector<InputFacts>& inputs,
                                         const FieldGuesses& guesses, const ColumnList& columns);

}  // namespace tandem::api
