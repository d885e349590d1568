// What RnnScan and its kernels share: the sizes, settings and activations of a recurrent layer.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/operators/scalar_functions.h"

namespace tandem {

enum class RnnKind : std::uint8_t { rnn, gru, lstm };

/// f(x): a scalar function that is recurrent (scalar_functions.inl), whose attributes are alpha and
/// beta, or one that only recurrent layers have.
enum class RnnActivation : std::uint8_t {
  sigmoid = static_cast<std::uint8_t>(ScalarFunction::sigmoid),
  tanh = static_cast<std::uint8_t>(ScalarFunction::tanh),
  relu = static_cast<std::uint8_t>(ScalarFunction::relu),
  // and every other one
  affine = 254,       // alpha x + beta
  scaled_tanh = 255,  // alpha tanh(beta x)
};

/// ONNX's name of an activation, and the numbers that it reads with their defaults.
struct RnnActivationKind {
  RnnActivation activation;
  std::string name;
  int numbers = 0;  // 1: alpha; 2: alpha and beta
  double alpha = 0, beta = 0;
};
const std::vector<RnnActivationKind>& rnn_activation_kinds();
const RnnActivationKind& rnn_activation_kind(RnnActivation activation);
/// Letters of any case; null where there is no such activation.
const RnnActivationKind* find_rnn_activation(const std::string& name);

struct RnnFunction {
  RnnActivation activation = RnnActivation::tanh;
  double alpha = 0, beta = 0;
};

/// Activations of one direction: f of the gates, g of the candidate, h of the cell. RNN has f, GRU
/// f and g.
using RnnFunctions = std::array<RnnFunction, 3>;

constexpr std::int64_t gates_of(RnnKind kind) {
  return kind == RnnKind::rnn ? 1 : kind == RnnKind::gru ? 3 : 4;
}
constexpr std::size_t activations_of(RnnKind kind) {
  return kind == RnnKind::rnn ? 1 : kind == RnnKind::gru ? 2 : 3;
}
std::optional<RnnKind> rnn_kind_from(const std::string& text);

/// The attributes of RnnScan and RnnScanGrad.
struct RnnSettings {
  RnnKind kind = RnnKind::lstm;
  std::int64_t directions = 1;
  bool first_is_reverse = false;
  std::vector<RnnFunctions> functions;  // one for each direction
  double clip = 0;                      // 0: none
  bool linear_before_reset = false;     // GRU
  bool input_forget = false;            // LSTM: the forget gate is 1 - i

  /// Takes attributes that `infer` has accepted.
  explicit RnnSettings(const Attributes& attributes);

  std::int64_t gates() const { return gates_of(kind); }
  /// Blocks of H that are kept for the gradient at each step: what goes into the activations, and
  /// for a GRU with linear_before_reset R h + bias of the candidate.
  std::int64_t saved() const { return gates() + (linear_before_reset ? 1 : 0); }
  bool is_reverse(std::int64_t direction) const { return first_is_reverse || direction == 1; }
};

}  // namespace tandem
