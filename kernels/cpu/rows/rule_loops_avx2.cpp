// The steps of optimizers for the instruction set avx2.
#pragma GCC diagnostic ignored "-Wuninitialized"  // of the headers' "undefined" registers
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wpsabi"

#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/cpu/rows/rule_loops.h"

#define TANDEM_VECTOR_WIDTH 8

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace tandem {
namespace rules_avx2 {
namespace {

// Each uses the one before.
// clang-format off
#include "kernels/cpu/pointwise/vector_math.h"
#include "kernels/cpu/rows/isa_avx2.inl"
#include "kernels/cpu/rows/row_access.inl"
// clang-format on

}  // namespace
}  // namespace rules_avx2
}  // namespace tandem

// Formulas are compiled for this instruction set, too: they come after the pragma.
#define TANDEM_RULES rules_avx2
#include "kernels/cpu/rows/rule_loops.inl"

namespace tandem {

const RuleLoops* const rule_loops_avx2 = rules_avx2::table.loops;

}  // namespace tandem

#pragma GCC pop_options
