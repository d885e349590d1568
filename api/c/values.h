// Numbers with names, which the C library gives.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "tandem/c_values.h"

namespace tandem::c_library {

/// Owns what a TandemValues points to; moved, but never copied.
class NamedValues {
 public:
  NamedValues() = default;
  explicit NamedValues(std::vector<std::pair<std::string, double>> all) : all_(std::move(all)) {
    for (const auto& [name, value] : all_) items_.push_back({name.c_str(), value});
  }
  NamedValues(NamedValues&&) noexcept = default;
  NamedValues& operator=(NamedValues&&) noexcept = default;

  TandemValues values() const { return {items_.data(), items_.size()}; }

 private:
  std::vector<std::pair<std::string, double>> all_;  // its elements stay in place when it is moved
  std::vector<TandemValue> items_;
};

}  // namespace tandem::c_library
