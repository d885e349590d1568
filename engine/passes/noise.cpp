#include "engine/passes/noise.h"

#include <cmath>
#include <functional>
#include <string_view>

#include "engine/operators/operator.h"

namespace tandem {
namespace {

bool draws(std::string_view op) { return op == "RandomUniformLike" || op == "RandomNormalLike"; }

bool keeps_elements(std::string_view op) {
  return op == "Identity" || op == "Reshape" || op == "Transpose" || op == "Slice" ||
         op == "Expand" || op == "Cast" || op == "StopGradient" || op == "Copy";
}

bool is_comparison(std::string_view op) {
  return op == "Less" || op == "LessOrEqual" || op == "Greater" || op == "GreaterOrEqual" ||
         op == "Equal";
}

/// The result of a comparison: 1 or 0.
double compare(std::string_view op, double a, double b) {
  if (op == "Less") return a < b ? 1 : 0;
  if (op == "LessOrEqual") return a <= b ? 1 : 0;
  if (op == "Greater") return a > b ? 1 : 0;
  if (op == "GreaterOrEqual") return a >= b ? 1 : 0;
  return a == b ? 1 : 0;
}

/// A mask that is `below` where u < share, and `above` elsewhere.
std::optional<Noise> mask_of(const Noise& noise, double share, double below, double above) {
  if (!(share > 0 && share < 1)) return std::nullopt;
  return Noise{Noise::Form::mask, noise.source, below, above, share};
}

/// The mask with f applied to its two values.
Noise mapped(Noise mask, const std::function<double(double)>& f) {
  mask.first = f(mask.first);
  mask.second = f(mask.second);
  return mask;
}

/// noise * factor + shift
Noise affine(Noise noise, double factor, double shift) {
  noise.first = noise.first * factor + shift;
  noise.second = noise.is_mask() ? noise.second * factor + shift : noise.second * factor;
  return noise;
}

}  // namespace

double Noise::mean() const {
  switch (form) {
    case Form::uniform:
      return first + second / 2;
    case Form::normal:
      return first;
    default:
      return share * first + (1 - share) * second;
  }
}

NoiseMap::NoiseMap(const Graph& graph) : graph_(graph) {
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (!draws(node.op->name)) {
      bool all = true, any = false;
      for (const ValueId input : node.inputs) {
        if (!input || graph.is_constant(input)) continue;
        all = all && is_derived(input);
        any = true;
      }
      if (!all || !any) continue;
    }
    const NodeId id{static_cast<std::int32_t>(n)};
    for (const ValueId output : node.outputs) {
      if (output) derived_.emplace(output.index, id);
    }
    if (const auto noise = of(id)) noise_.emplace(node.outputs[0].index, *noise);
  }
}

const Noise* NoiseMap::find(ValueId value) const {
  const auto found = value ? noise_.find(value.index) : noise_.end();
  return found == noise_.end() ? nullptr : &found->second;
}

std::optional<double> NoiseMap::number(ValueId id) const {
  if (!id) return std::nullopt;
  const Value& value = graph_.value(id);
  if (value.kind == ValueKind::computed) {
    const Node& node = graph_.node(value.producer);
    if (!keeps_elements(node.op->name) || node.op->name == "Copy") return std::nullopt;
    return number(node.inputs[0]);
  }
  if (value.kind != ValueKind::constant) return std::nullopt;
  const auto known = numbers_.find(id.index);
  if (known != numbers_.end()) return known->second;
  std::optional<double> result;
  const HostTensor& tensor = *value.constant;
  const std::int64_t count = tensor.type().elements();
  if (count > 0) {
    const double first = tensor.number(0);
    std::int64_t i = 1;
    while (i < count && tensor.number(i) == first) ++i;
    if (i == count) result = first;
  }
  return numbers_[id.index] = result;
}

std::optional<Noise> NoiseMap::compared(const Node& node, const Noise& noise, bool noise_first,
                                        double number) const {
  const auto truth = [&](double x) {
    return noise_first ? compare(node.op->name, x, number) : compare(node.op->name, number, x);
  };
  if (noise.is_mask()) return mapped(noise, truth);
  if (noise.form != Noise::Form::uniform || noise.second == 0 || node.op->name == "Equal")
    return std::nullopt;
  const double share = (number - noise.first) / noise.second;
  return mask_of(noise, share, truth(number - noise.second), truth(number + noise.second));
}

std::optional<Noise> NoiseMap::of(NodeId id) const {
  const Node& node = graph_.node(id);
  const std::string_view op = node.op->name;
  if (op == "RandomUniformLike") {
    const double low = node.attributes.number("low"), high = node.attributes.number("high");
    return Noise{Noise::Form::uniform, id, low, high - low};
  }
  if (op == "RandomNormalLike") {
    return Noise{Noise::Form::normal, id, node.attributes.number("mean"),
                 node.attributes.number("scale")};
  }
  if (op == "Where") {
    const Noise* noise = find(node.inputs[0]);
    const auto then = number(node.inputs[1]), otherwise = number(node.inputs[2]);
    if (noise == nullptr || !noise->is_mask() || !then || !otherwise) return std::nullopt;
    return mapped(*noise, [&](double x) { return x != 0 ? *then : *otherwise; });
  }
  const Noise* a = find(node.inputs[0]);
  if (node.inputs.size() == 1) {
    if (a == nullptr) return std::nullopt;
    const bool to_whole = op == "Cast" && !is_float(graph_.type(node.outputs[0]).dtype);
    if (keeps_elements(op) && !to_whole) return *a;
    if (op == "Neg") return affine(*a, -1, 0);
    if (a->is_mask()) {
      if (op == "Not") return mapped(*a, [](double x) { return x == 0 ? 1.0 : 0.0; });
      if (op == "Floor") return mapped(*a, [](double x) { return std::floor(x); });
      if (!to_whole) return std::nullopt;
      const bool to_bool = graph_.type(node.outputs[0]).dtype == DType::boolean;
      return mapped(*a, [&](double x) { return to_bool ? (x != 0 ? 1.0 : 0.0) : std::trunc(x); });
    }
    if (op != "Floor" || a->form != Noise::Form::uniform || !(a->second > 0)) return std::nullopt;
    // Floor is a mask where the range of the numbers crosses a single whole number.
    const double low = std::floor(a->first), step = low + 1;
    if (a->first + a->second > step + 1) return std::nullopt;
    return mask_of(*a, (step - a->first) / a->second, low, step);
  }
  if (node.inputs.size() != 2) return std::nullopt;
  const Noise* b = find(node.inputs[1]);
  if ((a == nullptr) == (b == nullptr)) return std::nullopt;
  const Noise& noise = a != nullptr ? *a : *b;
  const auto other = number(node.inputs[a != nullptr ? 1 : 0]);
  if (!other) return std::nullopt;
  if (is_comparison(op)) return compared(node, noise, a != nullptr, *other);
  if (op == "Add") return affine(noise, 1, *other);
  if (op == "Mul") return affine(noise, *other, 0);
  if (op == "Sub") return a != nullptr ? affine(noise, 1, -*other) : affine(noise, -1, *other);
  if (op == "Div" && a != nullptr && *other != 0) return affine(noise, 1 / *other, 0);
  return std::nullopt;
}

}  // namespace tandem
