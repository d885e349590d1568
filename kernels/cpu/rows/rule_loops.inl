// The loops of all rules for one instruction set, and their table. Included by rule_loops_*.cpp
// under its pragma; TANDEM_NAMESPACE has its vectors.

namespace tandem {
namespace TANDEM_NAMESPACE {
namespace {

// Each uses the one before.
// clang-format off
#include "kernels/cpu/pointwise/vector_math.h"
#include TANDEM_ISA_FUNCTIONS
#include "kernels/cpu/rows/row_access.inl"
// clang-format on

}  // namespace
}  // namespace TANDEM_NAMESPACE
}  // namespace tandem

// Formulas are compiled for this instruction set, too: they come after its pragma.
#include "engine/optimizers/rules.h"

namespace tandem {
namespace TANDEM_NAMESPACE {
namespace {

// Exact rather than fast: no usual setting needs it.
__attribute__((noinline)) V power_of(V x, float exponent) {
  float lanes[width];
  store(lanes, x);
  for (float& lane : lanes) {
    lane =
        static_cast<float>(__builtin_pow(static_cast<double>(lane), static_cast<double>(exponent)));
  }
  return load(lanes);
}

}  // namespace
}  // namespace TANDEM_NAMESPACE

template <>
struct FormulaMath<TANDEM_NAMESPACE::V> {
  using V = TANDEM_NAMESPACE::V;
  static TANDEM_INLINE V sqrt(V x) { return TANDEM_NAMESPACE::sqrt_of(x); }
  static TANDEM_INLINE V abs(V x) { return TANDEM_NAMESPACE::abs_of(x); }
  static TANDEM_INLINE V power(V x, float exponent) { return TANDEM_NAMESPACE::power_of(x, exponent); }
};

namespace TANDEM_NAMESPACE {
namespace {

/// The states of a rule; a copy that no store to memory can change.
struct States {
  float* at[most_states];
};

template <unsigned kept, int k = 0>
TANDEM_INLINE void load_states(const States& states, std::int64_t i, V* own) {
  if constexpr (k < most_states) {
    if constexpr ((kept >> k & 1u) != 0) own[k] = load(states.at[k] + i);
    load_states<kept, k + 1>(states, i, own);
  }
}
template <unsigned kept, int k = 0>
TANDEM_INLINE void store_states(const States& states, std::int64_t i, const V* own) {
  if constexpr (k < most_states) {
    if constexpr ((kept >> k & 1u) != 0) store(states.at[k] + i, own[k]);
    store_states<kept, k + 1>(states, i, own);
  }
}
template <unsigned kept, int k = 0>
TANDEM_INLINE void load_states_rest(const States& states, std::int64_t i, std::int64_t n, V* own) {
  if constexpr (k < most_states) {
    if constexpr ((kept >> k & 1u) != 0) own[k] = load_rest(states.at[k] + i, n);
    load_states_rest<kept, k + 1>(states, i, n, own);
  }
}
template <unsigned kept, int k = 0>
TANDEM_INLINE void store_states_rest(const States& states, std::int64_t i, std::int64_t n,
                                     const V* own) {
  if constexpr (k < most_states) {
    if constexpr ((kept >> k & 1u) != 0) store_rest(states.at[k] + i, own[k], n);
    store_states_rest<kept, k + 1>(states, i, n, own);
  }
}

/// w = f(w, g, states) of n elements; f may replace the states of `kept`.
template <unsigned kept, class Row, class F>
TANDEM_INLINE void update_elements(Row w, States states, const float* g, std::int64_t n, F f) {
  std::int64_t i = 0;
  for (; i + width <= n; i += width) {
    V own[most_states] = {};
    load_states<kept>(states, i, own);
    w.set(i, f(w.at(i), load(g + i), own));
    store_states<kept>(states, i, own);
  }
  if (i < n) {
    const std::int64_t rest = n - i;
    V own[most_states] = {};
    load_states_rest<kept>(states, i, rest, own);
    w.set_rest(i, f(w.rest(i, rest), load_rest(g + i, rest), own), rest);
    store_states_rest<kept>(states, i, rest, own);
  }
}

/// The sum of f(w, g, states) over n elements. Lanes past the end hold zeros, of which f must make
/// 0.
template <unsigned kept, class Row, class F>
TANDEM_INLINE float sum_elements(Row w, States states, const float* g, std::int64_t n, F f) {
  V sum = {};
  std::int64_t i = 0;
  for (; i + width <= n; i += width) {
    V own[most_states] = {};
    load_states<kept>(states, i, own);
    sum = sum + f(w.at(i), load(g + i), own);
    store_states<kept>(states, i, own);
  }
  if (i < n) {
    const std::int64_t rest = n - i;
    V own[most_states] = {};
    load_states_rest<kept>(states, i, rest, own);
    sum = sum + f(w.rest(i, rest), load_rest(g + i, rest), own);
    store_states_rest<kept>(states, i, rest, own);
  }
  return sum_lanes(sum);
}

/// f(step), where the compiler knows the step's flags: each way gets loops of its own.
template <int k = 0, class Step, class F>
TANDEM_INLINE void with_known_flags(Step step, F f) {
  if constexpr (requires { Step::flags; }) {
    if constexpr (k < Step::flags) {
      if (step.flag(k)) {
        step.flag(k) = true;
        with_known_flags<k + 1>(step, f);
      } else {
        step.flag(k) = false;
        with_known_flags<k + 1>(step, f);
      }
      return;
    }
  }
  f(step);
}

template <class R>
TANDEM_INLINE typename R::Step step_of(const void* factors) {
  typename R::Step step;
  __builtin_memcpy(&step, factors, sizeof step);
  return step;
}
TANDEM_INLINE States states_of(float* const* states) {
  States copy;
  for (int k = 0; k < most_states; ++k) copy.at[k] = states[k];
  return copy;
}

template <class R, class Row>
TANDEM_INLINE void update_row(const typename R::Step& given, Row w, States states, const float* g,
                              std::int64_t n) {
  using Kind = typename R::Kind;
  with_known_flags(given, [&](const typename R::Step& step) TANDEM_LAMBDA {
    if constexpr (R::whole_row) {
      constexpr unsigned kept = R::set & ~row_states<Kind>;
      const float sum = sum_elements<kept>(w, states, g, n, [step](V x, V d, V* own) TANDEM_LAMBDA {
        return Kind::first(step, x, d, own);
      });
      float none = 0;
      const float factor =
          Kind::factor(step, sum, static_cast<float>(n),
                       R::row_state < 0 ? none : *states.at[R::row_state < 0 ? 0 : R::row_state]);
      update_elements<kept>(w, states, g, n, [step, factor](V x, V d, V* own) TANDEM_LAMBDA {
        return Kind::last(step, x, d, own, factor);
      });
    } else {
      update_elements<R::set>(w, states, g, n, [step](V x, V d, V* own) TANDEM_LAMBDA {
        return Kind::template element<R::set>(step, x, d, own);
      });
    }
  });
}

template <class R>
void update_whole(const void* factors, float* w, float* const* states, const float* g,
                  std::int64_t n) {
  update_row<R>(step_of<R>(factors), WholeRow{w}, states_of(states), g, n);
}
template <class R>
void update_split(const void* factors, std::uint16_t* tops, std::int16_t* tails,
                  float* const* states, const float* g, std::int64_t n) {
  update_row<R>(step_of<R>(factors), SplitRow{tops, tails}, states_of(states), g, n);
}

// A vector's elements as doubles, in two halves.
using HalfVector = float __attribute__((vector_size(2 * TANDEM_VECTOR_WIDTH)));
using HalfDoubles = double __attribute__((vector_size(4 * TANDEM_VECTOR_WIDTH)));
TANDEM_INLINE void add_squares(V x, HalfDoubles& low, HalfDoubles& high) {
  HalfVector halves[2];
  __builtin_memcpy(halves, &x, sizeof(x));
  const HalfDoubles a = __builtin_convertvector(halves[0], HalfDoubles),
                    b = __builtin_convertvector(halves[1], HalfDoubles);
  low += a * a;
  high += b * b;
}
TANDEM_INLINE double sum_doubles(HalfDoubles x) {
  double sum = 0;
  for (int i = 0; i < width / 2; ++i) sum += x[i];
  return sum;
}

template <class R>
void first_walk(const void* factors, const float* w, float* const* all_states, const float* g,
                std::int64_t n, double* sums) {
  using Kind = typename R::Kind;
  const typename R::Step step = step_of<R>(factors);
  const States states = states_of(all_states);
  HalfDoubles low[Kind::terms] = {}, high[Kind::terms] = {};
  std::int64_t i = 0;
  for (; i + width <= n; i += width) {
    V own[most_states] = {}, terms[Kind::terms];
    load_states<R::set>(states, i, own);
    Kind::first(step, load(w + i), load(g + i), own, terms);
    store_states<R::set>(states, i, own);
    for (int k = 0; k < Kind::terms; ++k) add_squares(terms[k], low[k], high[k]);
  }
  if (i < n) {
    const std::int64_t rest = n - i;
    V own[most_states] = {}, terms[Kind::terms];
    load_states_rest<R::set>(states, i, rest, own);
    Kind::first(step, load_rest(w + i, rest), load_rest(g + i, rest), own, terms);
    store_states_rest<R::set>(states, i, rest, own);
    for (int k = 0; k < Kind::terms; ++k) {
      float lanes[width];  // lanes beyond the end may be no numbers: 0 / 0
      store(lanes, terms[k]);
      add_squares(load_part(lanes, rest), low[k], high[k]);
    }
  }
  for (int k = 0; k < Kind::terms; ++k) sums[k] += sum_doubles(low[k] + high[k]);
}

template <class R>
void last_walk(const void* factors, float factor, float* w, float* const* all_states,
               std::int64_t n) {
  using Kind = typename R::Kind;
  const typename R::Step step = step_of<R>(factors);
  const States states = states_of(all_states);
  std::int64_t i = 0;
  for (; i + width <= n; i += width) {
    V own[most_states] = {};
    load_states<R::set>(states, i, own);
    store(w + i, Kind::last(step, load(w + i), own, factor));
  }
  if (i < n) {
    const std::int64_t rest = n - i;
    V own[most_states] = {};
    load_states_rest<R::set>(states, i, rest, own);
    store_rest(w + i, Kind::last(step, load_rest(w + i, rest), own, factor), rest);
  }
}

#include "kernels/cpu/rows/factored_loops.inl"

template <class R>
constexpr RuleLoops loops_of() {
  RuleLoops loops;
  if constexpr (R::factored) {
    loops.statistics = walk_statistics<R>;
    loops.move_columns = move_columns<R>;
    loops.square_directions = square_directions<R>;
    loops.step_directions = step_directions<R>;
  } else if constexpr (R::whole_tensor) {
    loops.first = first_walk<R>;
    loops.last = last_walk<R>;
  } else {
    loops.whole = update_whole<R>;
    loops.split = update_split<R>;
  }
  return loops;
}

struct Table {
  RuleLoops loops[rule_count];
};
template <class... Rules>
constexpr Table table_of(RuleList<Rules...>) {
  return {{loops_of<Rules>()...}};
}
constexpr Table table = table_of(RulesOf<float>{});

}  // namespace
}  // namespace TANDEM_NAMESPACE
}  // namespace tandem
