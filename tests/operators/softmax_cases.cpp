// Cases of Softmax and LogSoftmax.
#include "tests/operators/network_cases.h"

namespace tandem::testing {

void add_softmax_cases(Cases& cases) {
  for (const std::string op : {"Softmax", "LogSoftmax"}) {
    const auto add = [&](const std::string& name, const Shape& shape, std::int64_t axis) {
      const Attributes attributes{{"axis", axis}};
      const bool torch = name.starts_with("torch_");
      CaseInput x = torch ? patterned(shape) : random_input(shape);
      if (!torch) x.low = -5, x.high = 5;
      add_case(cases, op, name, {x}, attributes);
      const std::vector<CaseInput> y = outputs_of(op, {patterned(shape)}, attributes);
      add_case(cases, op + "Grad", name, {patterned(shape, 3), y[0]}, attributes);
    };
    add("torch_middle", {2, 5, 3}, 1);
    add("torch_last", {2, 5, 3}, 2);
    add("first", {4, 3, 2}, 0);
    add("vector", {9}, 0);
    add("one_element", {3, 1}, 1);
    add("wide", {3, 131}, 1);
    add("four_axes", {2, 2, 3, 17}, 3);
    add("channels", {2, 5, 3, 3}, 1);
    add("no_rows", {0, 4}, 1);
    add_case(cases, op, "large", {valued({1, 3}, {-1e4, 0, 1e4})}, {{"axis", 1}});
    cases.back().expected =
        op == "Softmax" ? std::vector<double>{0, 0, 1} : std::vector<double>{-2e4, -1e4, 0};
  }
}

}  // namespace tandem::testing
