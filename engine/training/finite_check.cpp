#include "engine/training/finite_check.h"

#include <cmath>
#include <span>

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

}  // namespace

std::set<std::string> infinite_states(const StateStore& states) {
  std::set<std::string> names;
  for (const std::string& name : states.names()) {
    const StateKind kind = states.kind(name);
    if (kind != StateKind::parameter && kind != StateKind::buffer) continue;
    if (worst_of(states.read(name)) == Worst::infinite) names.insert(name);
  }
  return names;
}

void refuse_not_finite(const CheckpointContent& content, const std::set<std::string>& allowed) {
  std::vector<Diagnostic> problems;
  for (const NamedTensor& t : content.model) {
    const Worst worst = worst_of(t.tensor);
    if (worst == Worst::finite) continue;
    if (worst == Worst::infinite && allowed.contains(t.name)) continue;
    Diagnostic d;
    d.path = t.name;
    d.message = "a parameter or running statistic is not finite at step " +
                std::to_string(content.position.step);
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
