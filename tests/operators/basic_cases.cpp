// Cases of the element-wise operators, moves, reductions and products.
#include "tests/operators/basic_tables.h"

namespace tandem::testing {

void add_basic_cases(std::vector<OperatorCase>& cases) {
  add_elementwise_cases(cases);
  add_move_cases(cases);
  add_index_cases(cases);
  add_reduction_cases(cases);
  add_product_cases(cases);
  add_fused_cases(cases);
}

}  // namespace tandem::testing
