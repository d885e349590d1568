// Makes the numbers and the graph of an operator case, and compares results.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "tests/harness/operator_case.h"

namespace tandem::testing {
namespace {

DType type_of(const CaseInput& input, DType computed) {
  return input.dtype == DType::float32 && !input.fixed ? computed : input.dtype;
}

// Not std::hash, because the value must be equal on every machine.
std::uint64_t hash_of_text(const std::string& text) {
  std::uint64_t h = 14695981039346656037ull;
  for (unsigned char c : text) h = (h ^ c) * 1099511628211ull;
  return h;
}

std::vector<double> numbers(const CaseInput& input, std::mt19937_64& random) {
  using Fill = CaseInput::Fill;
  const std::int64_t count = element_count(input.shape);
  const auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  std::vector<double> values(static_cast<std::size_t>(count));
  switch (input.fill) {
    case Fill::uniform:
      for (double& v : values) v = input.low + (input.high - input.low) * unit();
      break;
    case Fill::positive:
      for (double& v : values) v = 0.5 + 1.5 * unit();
      break;
    case Fill::integers:
      for (double& v : values) v = std::floor(input.low + (input.high - input.low) * unit());
      break;
    case Fill::booleans:
      for (double& v : values) v = random() % 2 == 0 ? 0 : 1;
      break;
    case Fill::distinct:
      for (std::int64_t i = 0; i < count; ++i) {
        values[i] = 0.02 * (static_cast<double>(i) - 0.5 * static_cast<double>(count) + 0.25);
      }
      for (std::int64_t i = count - 1; i > 0; --i) {
        std::swap(values[i], values[random() % static_cast<std::uint64_t>(i + 1)]);
      }
      break;
    case Fill::values:
      values = input.values;
      break;
  }
  return values;
}

}  // namespace

std::vector<HostTensor> case_inputs(const OperatorCase& operator_case, DType computed) {
  std::vector<HostTensor> result;
  for (std::size_t i = 0; i < operator_case.inputs.size(); ++i) {
    const CaseInput& input = operator_case.inputs[i];
    if (input.absent) {
      result.emplace_back();
      continue;
    }
    std::mt19937_64 random(hash_of_text(operator_case.op + operator_case.name) + i);
    const HostTensor plain = HostTensor::from<double>(input.shape, numbers(input, random));
    // Converts to the case's type first, so that float32 and float64 hold the same numbers.
    result.push_back(plain.converted(input.dtype).converted(type_of(input, computed)));
  }
  return result;
}

Graph case_graph(const OperatorCase& operator_case, const OperatorSet& operators, DType computed) {
  const Operator& op = operators.get(operator_case.op);
  const auto build = [&](bool keep_scalars) {
    GraphBuilder g(operators);
    std::vector<ValueId> inputs;
    for (std::size_t i = 0; i < operator_case.inputs.size(); ++i) {
      const CaseInput& input = operator_case.inputs[i];
      if (input.absent) {
        inputs.emplace_back();
        continue;
      }
      const bool is_statistic = i < op.inputs.size() && op.inputs[i].statistic;
      const bool keep =
          (keep_scalars && input.shape.empty()) || (is_statistic && size_of(computed) == 2);
      inputs.push_back(g.input("x" + std::to_string(i),
                               {keep ? input.dtype : type_of(input, computed), input.shape}));
    }
    g.set_scope({operator_case.name});
    const auto outputs =
        g.node(operator_case.op, inputs, operator_case.attributes,
               operator_case.body ? operator_case.body(operators, computed) : nullptr);
    for (std::size_t i = 0; i < outputs.size(); ++i) g.output("y" + std::to_string(i), outputs[i]);
    return g.finish();
  };
  try {
    return build(false);
  } catch (const Error&) {
    if (computed == DType::float32) throw;
  }
  return build(true);
}

std::string compare(const HostTensor& a, const HostTensor& b, double tolerance) {
  if (a.shape() != b.shape()) {
    return fmt::format("shape {} instead of {}", to_string(a.shape()), to_string(b.shape()));
  }
  double largest = 1;
  for (std::int64_t i = 0; i < b.type().elements(); ++i) {
    if (std::isfinite(b.number(i))) largest = std::max(largest, std::fabs(b.number(i)));
  }
  std::string worst;
  double breach = tolerance * largest;
  for (std::int64_t i = 0; i < b.type().elements(); ++i) {
    const double x = a.number(i), y = b.number(i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double distance = std::fabs(x - y);
    if (distance <= breach) continue;
    if (std::isfinite(distance)) breach = distance;
    worst = fmt::format("element {} is {} instead of {} (allowed {:.2g})", i, x, y,
                        tolerance * largest);
    if (!std::isfinite(distance)) return worst;
  }
  return worst;
}

}  // namespace tandem::testing
