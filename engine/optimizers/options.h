// An optimizer as a run's configuration names it: its kind and that kind's settings.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>

namespace tandem {

struct OptimizerKind;  // engine/optimizers/optimizer.h

/// The value of a setting: a number, a flag, or the name of a choice.
using OptimizerValue = std::variant<double, bool, std::string>;
/// All settings of a kind by key: "beta1" rather than "betas".
using OptimizerValues = std::map<std::string, OptimizerValue, std::less<>>;

struct OptimizerOptions {
  const OptimizerKind* kind;  // one of all_optimizers()
  double lr;
  OptimizerValues values;

  /// The first kind of the list.
  OptimizerOptions();
  /// That kind with its defaults. Throws std::logic_error where there is none.
  explicit OptimizerOptions(std::string_view name);
  explicit OptimizerOptions(const OptimizerKind& of);

  std::string_view name() const;
  // The value of a key, which must be one of the kind's.
  double number(std::string_view key) const { return std::get<double>(value_of(key)); }
  bool flag(std::string_view key) const { return std::get<bool>(value_of(key)); }
  const std::string& text(std::string_view key) const {
    return std::get<std::string>(value_of(key));
  }
  bool operator==(const OptimizerOptions&) const = default;

 private:
  const OptimizerValue& value_of(std::string_view key) const;
};

}  // namespace tandem
