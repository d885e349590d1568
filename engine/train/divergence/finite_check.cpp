#include "engine/train/divergence/finite_check.h"

#include <atomic>
#include <utility>

#include "engine/formats/parallel_jobs.h"

namespace tandem {
namespace {

bool is_model(StateKind kind) { return kind == StateKind::parameter || kind == StateKind::buffer; }

}  // namespace

// In ranges of rows: a table is not copied whole.
Finiteness finiteness_of(const StateStore& states, const std::string& name, std::int64_t first,
                         std::int64_t rows) {
  constexpr std::size_t range_bytes = std::size_t{1} << 19;  // stays in a cache
  const TensorType& type = states.type(name);
  if (!is_float(type.dtype) || type.elements() == 0) return Finiteness::finite;
  if (type.shape.empty() || !states.has_direct_rows(name)) return finiteness_of(states.read(name));
  std::atomic<Finiteness> worst{Finiteness::finite};
  const std::size_t row_bytes = type.bytes() / static_cast<std::size_t>(type.shape[0]);
  parallel_row_ranges(file_threads(), rows, row_bytes, range_bytes,
                      [&](std::int64_t begin, std::int64_t count) {
                        Shape shape = type.shape;
                        shape[0] = count;
                        HostTensor range(TensorType{type.dtype, std::move(shape)});
                        states.read_rows(name, first + begin, count, range.data());
                        const Finiteness found = finiteness_of(range);
                        Finiteness known = worst;
                        while (known < found && !worst.compare_exchange_weak(known, found)) {
                        }
                      });
  return worst;
}

bool can_be_not_finite(const StateStore& states, const std::string& name) {
  return is_model(states.kind(name)) && is_float(states.type(name).dtype);
}

std::vector<NotFiniteState> not_finite_states(const StateStore& states,
                                              const std::set<std::string>& allowed,
                                              bool parts_alone) {
  std::vector<NotFiniteState> found;
  for (const std::string& name : states.names()) {
    if (!can_be_not_finite(states, name)) continue;
    if (parts_alone && states.shard(name) == nullptr) continue;
    const Finiteness worst = finiteness_of(states, name, 0, row_count(states.type(name)));
    const bool is_bad =
        worst == Finiteness::nan || (worst == Finiteness::infinite && !allowed.contains(name));
    if (is_bad) found.push_back({name, worst});
  }
  return found;
}

Diagnostic diagnostic_of(const NotFiniteState& state, const std::string& where) {
  return {.message = "a parameter or running statistic is not finite" + where,
          .path = state.name,
          .expected = "numbers",
          .got = state.worst == Finiteness::nan ? "nan" : "inf"};
}

}  // namespace tandem
