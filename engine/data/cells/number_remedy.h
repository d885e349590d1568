// Advice on how to turn a cell that is not a number into one.
#pragma once

#include <string>
#include <string_view>

#include "engine/config/data_config.h"

namespace tandem {

/// A cell of the same file that was read as a number with a point or comma; without text: none was
/// met.
struct FractionCell {
  std::string column, text;
};

/// The key that reads the cell: the marks of numbers, or a spelling of an empty one. Where `other`
/// is not the same number under these marks, the function that reads both, if the field may have
/// it, or else that both have to be written alike. "" where no key is known.
std::string remedy_of_marks(std::string_view cell, const CellText& cells,
                            const FractionCell& other = {}, bool may_have_function = true);

/// As remedy_of_marks; where no key reads the cell, the function or the change of the file that
/// does.
std::string remedy_of_number(std::string_view cell, const CellText& cells,
                             const FractionCell& other = {});

}  // namespace tandem
