// Checks and facts of operands that the network operators share, in addition to those of checks.h.
#pragma once

#include <string>

#include "engine/operators/checks.h"

namespace tandem {

inline void require_type(const NodeView& node, std::size_t i, const TensorType& type) {
  require_dtype(node, i, type.dtype);
  require_shape(node, i, type.shape);
}

/// int32 or int64.
inline void require_index(const NodeView& node, std::size_t i) {
  const DType dtype = node.input(i).dtype;
  if (dtype == DType::int32 || dtype == DType::int64) return;
  node.fail("element type of " + input_name(node, i), "int32 or int64",
            std::string(name_of(dtype)));
}

/// Attribute `name` is a number from low to high.
inline void require_between(const NodeView& node, std::string_view name, double low, double high) {
  const double value = node.attributes().number(name);
  if (value >= low && value <= high) return;
  node.fail(std::string(name) + " is out of range",
            std::to_string(low) + " to " + std::to_string(high), std::to_string(value));
}

/// Attribute `name` is a finite number >= 0.
inline void require_not_negative(const NodeView& node, std::string_view name) {
  const double value = node.attributes().number(name);
  if (value >= 0.0 && value <= 1.7e308) return;
  node.fail(std::string(name) + " is out of range", "a finite number >= 0", std::to_string(value));
}

/// Attribute `name` is 0 or 1.
inline void require_flag(const NodeView& node, std::string_view name) {
  const std::int64_t value = node.attributes().integer(name);
  if (value == 0 || value == 1) return;
  node.fail(std::string(name) + " is out of range", "0 or 1", std::to_string(value));
}

/// Attribute `samples` of random operators is empty, or [axis, entries of that axis a sample,
/// entries over all ranks]: what engine/train/sharding/random_samples.h sets.
inline void require_samples(const NodeView& node) {
  const Ints& samples = node.attributes().integers("samples");
  if (samples.empty()) return;
  const Shape& shape = node.input(0).shape;
  const bool is_axis = samples.size() == 3 && samples[0] >= 0 &&
                       samples[0] < static_cast<std::int64_t>(shape.size());
  if (is_axis && samples[1] > 0) {
    const std::int64_t own = shape[static_cast<std::size_t>(samples[0])];
    if (own % samples[1] == 0 && samples[2] % samples[1] == 0 && samples[2] >= own) return;
  }
  node.fail("samples does not fit", "[axis, entries a sample, entries over all ranks]",
            to_string(Shape(samples)));
}

/// Element type of saved statistics (mean, rstd, log-sum-exp): half types keep float32.
inline DType statistics_type(DType x) {
  return x == DType::float64 ? DType::float64 : DType::float32;
}

/// Bytes of all operands: what an operator that reads and writes each once moves.
inline double operand_bytes(const NodeView& node) {
  double bytes = 0;
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    if (node.has_input(i)) bytes += static_cast<double>(node.input(i).bytes());
  }
  for (std::size_t i = 0; i < node.node.outputs.size(); ++i) {
    if (node.node.outputs[i]) bytes += static_cast<double>(node.output(i).bytes());
  }
  return bytes;
}

inline double element_number(const TensorType& type) {
  return static_cast<double>(type.elements());
}

/// `cost` of an operator that takes that many operations for each element of an input.
template <int flops, std::size_t input>
Cost cost_by_elements(const NodeView& node) {
  return {flops * element_number(node.input(input)), operand_bytes(node)};
}

}  // namespace tandem
