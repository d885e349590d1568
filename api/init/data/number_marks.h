// How the numbers of a table are written: the marks before fractions and between thousands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/init/facts.h"
#include "engine/graph/structures/function_ref.h"

namespace tandem::api {

/// The marks of all columns, and which columns have others.
struct NumberMarks {
  DecimalMark decimal = DecimalMark::point;
  ThousandsMark thousands = ThousandsMark::none;
  std::string why;               // the reason, for train.toml; "": numbers are written plainly
  std::vector<bool> has_commas;  // by column: decimal commas, where `decimal` is a point
  std::vector<std::string> notes;
};

/// Calls its argument with rows of the table.
using EachRow = FunctionRef<void(FunctionRef<void(const std::vector<std::string_view>& row)>)>;

/// Finds the marks by which most columns hold numbers, and decimal points where no other marks make
/// more. Given marks are kept. `by_commas`: commas separate the cells. `is_missing`: whether a cell
/// says that there is no value.
NumberMarks find_number_marks(const SaidOfData& said, const std::vector<ArrayFacts>& columns,
                              bool by_commas, FunctionRef<bool(std::string_view cell)> is_missing,
                              EachRow each_row);

}  // namespace tandem::api
