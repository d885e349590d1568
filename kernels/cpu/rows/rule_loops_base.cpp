// The steps of optimizers for the instruction set baseline.
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/cpu/pointwise/intrinsics.h"
#include "kernels/cpu/rows/rule_loops.h"

#define TANDEM_NAMESPACE rules_baseline
#define TANDEM_VECTOR_WIDTH 4
#define TANDEM_ISA_FUNCTIONS "kernels/cpu/pointwise/isa_base.inl"

#include "kernels/cpu/rows/rule_loops.inl"

const tandem::RuleLoops* const tandem::rule_loops_base = rules_baseline::table.loops;
