// All operator cases, from their tables.
#include "tests/harness/operator_case.h"

namespace tandem::testing {

std::vector<OperatorCase> all_cases() {
  std::vector<OperatorCase> cases;
  add_basic_cases(cases);
  add_network_cases(cases);
  return cases;
}

}  // namespace tandem::testing
