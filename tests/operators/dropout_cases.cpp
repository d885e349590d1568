// Cases of Dropout and of random numbers.
#include "tests/operators/network_cases.h"

namespace tandem::testing {

void add_dropout_cases(Cases& cases) {
  add_case(cases, "Dropout", "nothing_dropped", {patterned({3, 5})}, {{"ratio", 0.0}});
  cases.back().expected = pattern(15);
  add_case(cases, "Dropout", "half", {random_input({7, 9})}, {{"ratio", 0.5}});
  add_case(cases, "Dropout", "most", {random_input({2, 3, 5})}, {{"ratio", 0.9}});
  add_case(cases, "Dropout", "one_element", {random_input({1})}, {{"ratio", 0.1}});
  add_case(cases, "Dropout", "many", {random_input({5, 1027})}, {{"ratio", 0.25}});
  cases.back().check_gradient = false;
  cases.back().why = "too many differences; the smaller cases check the gradient";
  add_case(cases, "Dropout", "second_axis_of_samples", {random_input({3, 4, 5})},
           {{"ratio", 0.5}, {"samples", Ints{1, 2, 10}}});
  for (const char* op : {"RandomUniformLike", "RandomNormalLike"}) {
    const bool normal = std::string(op) == "RandomNormalLike";
    const char *first = normal ? "mean" : "low", *second = normal ? "scale" : "high";
    add_case(cases, op, "plain", {random_input({7, 9})});
    add_case(cases, op, "moved", {random_input({2, 3, 5})}, {{first, -2.0}, {second, 0.5}});
    add_case(cases, op, "constant", {random_input({2, 2})},
             {{first, 0.75}, {second, normal ? 0.0 : 0.75}});
    cases.back().expected = {0.75, 0.75, 0.75, 0.75};
    add_case(cases, op, "nothing", {random_input({0, 3})});
    add_case(cases, op, "of_several_ranks", {random_input({4, 3})}, {{"samples", Ints{0, 1, 9}}});
  }
  const CaseInput mask = valued({2, 3}, {1, 0, 0, 1, 1, 0}, DType::boolean);
  add_case(cases, "DropoutGrad", "half", {valued({2, 3}, {1, 2, 3, 4, 5, 6}), mask},
           {{"ratio", 0.5}});
  cases.back().expected = {2, 0, 0, 8, 10, 0};
  add_case(cases, "DropoutGrad", "one_element", {patterned({1}), valued({1}, {1}, DType::boolean)},
           {{"ratio", 0.5}});
  add_case(cases, "DropoutGrad", "maps",
           {patterned({2, 3, 2, 2}),
            {.shape = {2, 3, 2, 2}, .dtype = DType::boolean, .fill = Fill::booleans}},
           {{"ratio", 0.75}});
  add_case(
      cases, "DropoutGrad", "quarter",
      {patterned({9, 11}), {.shape = {9, 11}, .dtype = DType::boolean, .fill = Fill::booleans}},
      {{"ratio", 0.25}});
}

}  // namespace tandem::testing
