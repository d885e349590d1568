// ONNX operators that import builds from several of the engine's, over several shapes, for
// gradients by differences.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/graph/attributes.h"
#include "engine/graph/types.h"

namespace tandem::testing {

struct ComposedInput {
  enum class Kind {
    numbers,   // float64 from -1 to 1, none near 0
    positive,  // float64 from 0.5 to 2
    apart,     // float64, no two closer than 0.01
    fixed,     // float32 `values`, no gradient
    window,    // float64 `values`, no gradient
    integers,  // int64 `values`
    booleans,  // bool `values`
    absent
  };
  Kind kind = Kind::numbers;
  Shape shape;
  std::vector<double> values;
};

using ComposedAttribute = std::variant<std::int64_t, double, std::string, Ints>;

struct ComposedCase {
  std::string op;
  int opset = 20;
  std::vector<ComposedInput> inputs;
  std::vector<std::pair<std::string, ComposedAttribute>> attributes;
};

std::vector<ComposedCase> composed_cases();

}  // namespace tandem::testing
