// The steps of optimizers for the instruction set avx512.
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/cpu/pointwise/intrinsics.h"
#include "kernels/cpu/rows/rule_loops.h"

#define TANDEM_NAMESPACE rules_avx512
#define TANDEM_VECTOR_WIDTH 16
#define TANDEM_ISA_FUNCTIONS "kernels/cpu/pointwise/isa_avx512.inl"

#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#include "kernels/cpu/rows/rule_loops.inl"

const tandem::RuleLoops* const tandem::rule_loops_avx512 = rules_avx512::table.loops;

#pragma GCC pop_options
