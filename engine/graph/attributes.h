// The static settings of a node: a small ordered map from name to value.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/graph/types.h"

namespace tandem {

using Ints = std::vector<std::int64_t>;
using Floats = std::vector<double>;

/// Booleans are integers 0 and 1; element types are their names ("float32").
using AttributeValue = std::variant<std::int64_t, double, std::string, Ints, Floats>;

std::string to_string(const AttributeValue& value);

class Attributes {
 public:
  using Entry = std::pair<std::string, AttributeValue>;

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries);

  void set(std::string_view name, AttributeValue value);
  const AttributeValue* find(std::string_view name) const;

  // The attribute must be there with that type: operators declare defaults, the builder fills them.
  std::int64_t integer(std::string_view name) const;
  bool flag(std::string_view name) const { return integer(name) != 0; }
  double number(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  const Ints& integers(std::string_view name) const;
  DType dtype(std::string_view name) const;

  const std::vector<Entry>& entries() const { return entries_; }
  bool operator==(const Attributes&) const = default;

 private:
  std::vector<Entry> entries_;  // sorted by name
};

}  // namespace tandem
