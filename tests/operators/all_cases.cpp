// All operator cases, from the tables that all_cases.inl lists.
#include "tests/harness/operator_case.h"

namespace tandem::testing {

#define TANDEM_CASES(name) void add_##name##_cases(std::vector<OperatorCase>& cases);
#include "tests/operators/all_cases.inl"

std::vector<OperatorCase> all_cases() {
  std::vector<OperatorCase> cases;
#define TANDEM_CASES(name) add_##name##_cases(cases);
#include "tests/operators/all_cases.inl"
  return cases;
}

}  // namespace tandem::testing
