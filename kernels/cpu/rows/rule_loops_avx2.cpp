// The steps of optimizers for the instruction set avx2.
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/cpu/pointwise/intrinsics.h"
#include "kernels/cpu/rows/rule_loops.h"

#define TANDEM_NAMESPACE rules_avx2
#define TANDEM_VECTOR_WIDTH 8
#define TANDEM_ISA_FUNCTIONS "kernels/cpu/pointwise/isa_avx2.inl"

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "kernels/cpu/rows/rule_loops.inl"

const tandem::RuleLoops* const tandem::rule_loops_avx2 = rules_avx2::table.loops;

#pragma GCC pop_options
