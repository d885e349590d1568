// Operands and attributes for tests that go over all scalar functions.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/operators/scalar_functions.h"

namespace tandem::testing {

/// The range of example operands of a function of one operand: inside [-3, 3], and inside its
/// domain with a margin of 0.1.
inline std::pair<double, double> example_range(const ScalarRow& row) {
  const ScalarDomain& domain = row.options.domain;
  const double low = std::max(domain.low + 0.1, -3.0);
  return {low, std::max(low + 1, std::min(domain.high - 0.1, 3.0))};
}

/// The default attributes, then each attribute with another value: each choice of a text, the other
/// value of a flag, another number nearby.
inline std::vector<Attributes> example_attributes(const ScalarRow& row) {
  Attributes defaults;
  for (const ScalarAttribute& attribute : row.options.attributes)
    defaults.set(attribute.name, attribute.value);
  std::vector<Attributes> all{defaults};
  const auto add = [&](const char* name, AttributeValue value) {
    if (*defaults.find(name) == value) return;
    all.push_back(defaults);
    all.back().set(name, std::move(value));
  };
  for (const ScalarAttribute& attribute : row.options.attributes) {
    const std::string name = attribute.name;
    for (const std::string& choice : attribute.choices) add(attribute.name, choice);
    if (const std::int64_t* flag = std::get_if<std::int64_t>(&attribute.value))
      add(attribute.name, std::int64_t{*flag == 0});
    if (std::holds_alternative<double>(attribute.value))
      add(attribute.name, name == "min" ? -0.5 : name == "max" ? 1.25 : 0.3);
  }
  return all;
}

inline bool takes_floats(const ScalarRow& row) { return takes(row.kind().types, DType::float32); }

}  // namespace tandem::testing
