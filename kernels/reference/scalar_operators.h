// The operators that compute a scalar function, as the lists of kernels go through them.
#pragma once

#include <cctype>
#include <string>
#include <string_view>

#include "engine/operators/scalar_functions.h"

namespace tandem {

/// "LessOrEqual" -> "less_or_equal", "IsNaN" -> "is_nan": what the kernels of an operator are
/// called.
inline std::string kernel_name(std::string_view op) {
  std::string name;
  for (std::size_t i = 0; i < op.size(); ++i) {
    const auto letter = static_cast<unsigned char>(op[i]);
    const bool ends = i + 1 == op.size();
    if (std::isupper(letter) && i > 0 && !ends) name += '_';
    name += static_cast<char>(std::tolower(letter));
  }
  return name;
}

/// Calls f(operator) for each operator with a scalar function, in the order of all_operators().
template <class F>
void for_each_scalar_operator(F&& f) {
  const OperatorSet operators = all_operators();
  for (const Operator& op : operators.all()) {
    if (op.is_scalar()) f(op);
  }
}

}  // namespace tandem
