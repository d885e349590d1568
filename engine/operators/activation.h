// What lowering lets Gemm and ConvFused do to their result: the values of their attribute
// `activation`.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/graph/attributes.h"

namespace tandem {

enum class Activation : std::uint8_t {
  none,
  relu,
  gelu,
  gelu_tanh,
  relu_grad,  // only for Gemm: 0 where multiplier <= 0
};

struct NamedActivation {
  Activation value;
  std::string_view name;
};
inline constexpr NamedActivation activation_names[] = {
    {Activation::none, ""},
    {Activation::relu, "Relu"},
    {Activation::gelu, "Gelu"},
    {Activation::gelu_tanh, "GeluTanh"},
    {Activation::relu_grad, "ReluGrad"},
};

inline std::string name_of(Activation activation) {
  for (const NamedActivation& known : activation_names) {
    if (known.value == activation) return std::string(known.name);
  }
  assert(false && "an activation without a name");
  return "";
}

inline std::optional<Activation> parse_activation(std::string_view name) {
  for (const NamedActivation& known : activation_names) {
    if (known.name == name) return known.value;
  }
  return std::nullopt;
}

/// The activation of a node whose types were inferred, so that its name is a known one.
inline Activation activation_of(const Attributes& attributes) {
  const auto activation = parse_activation(attributes.text("activation"));
  assert(activation && "an unknown activation");
  return activation.value_or(Activation::none);
}

}  // namespace tandem
