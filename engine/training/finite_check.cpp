#include "engine/training/finite_check.h"

#include <atomic>
#include <cmath>
#include <span>

#include "engine/formats/parallel_jobs.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

enum class Worst { finite, infinite, nan };

// x - x is 0 for finite x and NaN for all others: a sum of these needs no branch.
template <class T>
Worst worst_of(std::span<const T> values) {
  T sum = 0;
  for (const T x : values) sum += x - x;
  if (sum == 0) return Worst::finite;
  for (const T x : values) {
    if (std::isnan(x)) return Worst::nan;
  }
  return Worst::infinite;
}

Worst worst_of(const HostTensor& tensor) {
  if (!is_float(tensor.dtype())) return Worst::finite;
  if (tensor.dtype() == DType::float32) return worst_of(tensor.as<float>());
  if (tensor.dtype() == DType::float64) return worst_of(tensor.as<double>());
  const HostTensor wide = tensor.converted(DType::float32);
  return worst_of(wide.as<float>());
}

// In ranges of rows: a table is not copied whole.
Worst worst_of(const StateStore& states, const std::string& name) {
  constexpr std::size_t range_bytes = std::size_t{1} << 19;  // stays in a cache
  const TensorType& type = states.type(name);
  if (!is_float(type.dtype)) return Worst::finite;
  if (type.bytes() <= range_bytes || type.shape.empty() || !states.has_direct_rows(name)) {
    return worst_of(states.read(name));
  }
  std::atomic<Worst> worst{Worst::finite};
  const std::int64_t rows = type.shape[0];
  parallel_row_ranges(file_threads(), rows, type.bytes() / static_cast<std::size_t>(rows),
                      range_bytes, [&](std::int64_t first, std::int64_t count) {
                        Shape shape = type.shape;
                        shape[0] = count;
                        HostTensor range(TensorType{type.dtype, std::move(shape)});
                        states.read_rows(name, first, count, range.data());
                        const Worst found = worst_of(range);
                        Worst known = worst;
                        while (known < found && !worst.compare_exchange_weak(known, found)) {
                        }
                      });
  return worst;
}

bool is_model(StateKind kind) { return kind == StateKind::parameter || kind == StateKind::buffer; }

}  // namespace

std::set<std::string> infinite_states(const StateStore& states) {
  std::set<std::string> names;
  for (const std::string& name : states.names()) {
    if (is_model(states.kind(name)) && worst_of(states, name) == Worst::infinite)
      names.insert(name);
  }
  return names;
}

void refuse_not_finite(const StateStore& states, std::uint64_t step,
                       const std::set<std::string>& allowed) {
  std::vector<Diagnostic> problems;
  for (const std::string& name : states.names()) {
    if (!is_model(states.kind(name))) continue;
    const Worst worst = worst_of(states, name);
    if (worst == Worst::finite) continue;
    if (worst == Worst::infinite && allowed.contains(name)) continue;
    Diagnostic d;
    d.path = name;
    d.message = "a parameter or running statistic is not finite at step " + std::to_string(step);
    d.expected = "numbers";
    d.got = worst == Worst::nan ? "nan" : "inf";
    d.fix =
        "look for nan or infinite values in the data, or lower optimizer.lr; nothing was saved at "
        "this step, earlier checkpoints are kept";
    problems.push_back(std::move(d));
  }
  if (!problems.empty()) throw Error(ErrorKind::diverged, std::move(problems));
}

}  // namespace tandem
