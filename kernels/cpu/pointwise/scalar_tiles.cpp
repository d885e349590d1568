// Steps of the tile interpreter that run a scalar function's code element by element: of those that
// have no code for vectors. For baseline x86-64, since templates are shared with other files.
#include "kernels/cpu/pointwise/vector_functions.h"
#include "kernels/reference/scalar_apply.h"

namespace tandem {
namespace {

template <ScalarFunction f>
void run(const TileCall& call) {
  const scalar::Settings settings{call.s, call.t};
  for (std::int64_t i = 0; i < call.n; ++i) {
    float b = 0;
    if constexpr (is_binary(f)) b = call.b[i];
    if constexpr (is_predicate(f))
      call.y[i] = scalar::apply_predicate<float>(f, settings, call.a[i], b) ? 1.0f : 0.0f;
    else
      call.y[i] = scalar::apply<float>(f, settings, call.a[i], b);
  }
}

}  // namespace

#define TANDEM_FUNCTION(function, ...) \
  void tile_##function(const TileCall& call) { run<ScalarFunction::function>(call); }
#include "engine/operators/scalar_functions.inl"

}  // namespace tandem
