// parameters.init of train.toml: its kinds with their keys, and the values that each gives.
#pragma once

#include <cmath>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/config/keys/config_types.h"

namespace tandem {

/// PyTorch's fans of a shape [out, in, kernel...].
struct Fans {
  double in = 1, out = 1;
};

/// How each value is drawn: u is uniform in [0, 1), n normal.
struct Distribution {
  enum class Form { constant, normal, uniform, symmetric };
  Form form = Form::constant;
  double a = 0, b = 0;  // a, a + b n, a + b u, b (2 u - 1)
};
inline Distribution normal_values(double mean, double std) {
  return {Distribution::Form::normal, mean, std};
}
inline Distribution symmetric_values(double bound) {
  return {Distribution::Form::symmetric, 0, bound};
}

/// A number of a rule that a parameter's type may not hold.
struct InitBound {
  std::string key;
  double value = 0;
  double limit = 0;  // the largest absolute value allowed
};

struct InitDefaults {
  /// `most`: the largest number of the parameter's type.
  std::vector<InitBound> bounds(double /*most*/) const { return {}; }
  bool operator==(const InitDefaults&) const = default;
};

struct ZerosInit : InitDefaults {
  static constexpr std::string_view name = "zeros";
  Distribution values(const Fans&) const { return {}; }
  bool operator==(const ZerosInit&) const = default;
};
struct OnesInit : InitDefaults {
  static constexpr std::string_view name = "ones";
  Distribution values(const Fans&) const { return {.a = 1}; }
  bool operator==(const OnesInit&) const = default;
};
struct ConstantInit {
  static constexpr std::string_view name = "constant";
  double value = 0;
  Distribution values(const Fans&) const { return {.a = value}; }
  std::vector<InitBound> bounds(double most) const { return {{"value", value, most}}; }
  bool operator==(const ConstantInit&) const = default;
};
struct NormalInit {
  static constexpr std::string_view name = "normal";
  double mean = 0, std = 1;
  Distribution values(const Fans&) const { return normal_values(mean, std); }
  std::vector<InitBound> bounds(double most) const {
    constexpr double farthest = 9;  // in standard deviations, of a draw of 53 bits
    return {{"mean", mean, most}, {"std", std, (most - std::abs(mean)) / farthest}};
  }
  bool operator==(const NormalInit&) const = default;
};
struct UniformInit {
  static constexpr std::string_view name = "uniform";
  double low = 0, high = 1;
  Distribution values(const Fans&) const { return {Distribution::Form::uniform, low, high - low}; }
  std::vector<InitBound> bounds(double most) const {
    return {{"low", low, most}, {"high", high, most}};
  }
  bool operator==(const UniformInit&) const = default;
};
struct KaimingUniformInit : InitDefaults {
  static constexpr std::string_view name = "kaiming_uniform";
  Distribution values(const Fans& fans) const { return symmetric_values(std::sqrt(6 / fans.in)); }
  bool operator==(const KaimingUniformInit&) const = default;
};
struct KaimingNormalInit : InitDefaults {
  static constexpr std::string_view name = "kaiming_normal";
  Distribution values(const Fans& fans) const { return normal_values(0, std::sqrt(2 / fans.in)); }
  bool operator==(const KaimingNormalInit&) const = default;
};
struct XavierUniformInit : InitDefaults {
  static constexpr std::string_view name = "xavier_uniform";
  Distribution values(const Fans& fans) const {
    return symmetric_values(std::sqrt(6 / (fans.in + fans.out)));
  }
  bool operator==(const XavierUniformInit&) const = default;
};
struct XavierNormalInit : InitDefaults {
  static constexpr std::string_view name = "xavier_normal";
  Distribution values(const Fans& fans) const {
    return normal_values(0, std::sqrt(2 / (fans.in + fans.out)));
  }
  bool operator==(const XavierNormalInit&) const = default;
};

using InitKind =
    std::variant<ZerosInit, OnesInit, ConstantInit, NormalInit, UniformInit, KaimingUniformInit,
                 KaimingNormalInit, XavierUniformInit, XavierNormalInit>;
struct InitRule {
  std::string at;
  InitKind kind = NormalInit{};
  Where where;
  bool operator==(const InitRule&) const = default;
};

}  // namespace tandem
