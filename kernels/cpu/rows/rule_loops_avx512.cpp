// The steps of optimizers for the instruction set avx512.
#pragma GCC diagnostic ignored "-Wuninitialized"  // of the headers' "undefined" registers
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wpsabi"

#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/cpu/rows/rule_loops.h"

#define TANDEM_VECTOR_WIDTH 16

#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")

namespace tandem {
namespace rules_avx512 {
namespace {

// Each uses the one before.
// clang-format off
#include "kernels/cpu/pointwise/vector_math.h"
#include "kernels/cpu/rows/isa_avx512.inl"
#include "kernels/cpu/rows/row_access.inl"
// clang-format on

}  // namespace
}  // namespace rules_avx512
}  // namespace tandem

// Formulas are compiled for this instruction set, too: they come after the pragma.
#define TANDEM_RULES rules_avx512
#include "kernels/cpu/rows/rule_loops.inl"

namespace tandem {

const RuleLoops* const rule_loops_avx512 = rules_avx512::table.loops;

}  // namespace tandem

#pragma GCC pop_options
