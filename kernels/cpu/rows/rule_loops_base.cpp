// The steps of optimizers for the instruction set baseline.
#pragma GCC diagnostic ignored "-Wuninitialized"  // of the headers' "undefined" registers
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wpsabi"

#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/cpu/rows/rule_loops.h"

#define TANDEM_VECTOR_WIDTH 4

#pragma GCC push_options

namespace tandem {
namespace rules_baseline {
namespace {

// Each uses the one before.
// clang-format off
#include "kernels/cpu/pointwise/vector_math.h"
#include "kernels/cpu/rows/isa_base.inl"
#include "kernels/cpu/rows/row_access.inl"
// clang-format on

}  // namespace
}  // namespace rules_baseline
}  // namespace tandem

// Formulas are compiled for this instruction set, too: they come after the pragma.
#define TANDEM_RULES rules_baseline
#include "kernels/cpu/rows/rule_loops.inl"

namespace tandem {

const RuleLoops* const rule_loops_base = rules_baseline::table.loops;

}  // namespace tandem

#pragma GCC pop_options
