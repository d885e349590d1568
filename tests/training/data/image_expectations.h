// What PIL and torchvision make of the pictures in tests/data/images
// (tests/scripts/image_expectations.py).
#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/harness/folders.h"

namespace tandem::testing {

inline std::string image_path(const std::string& name) {
  return source_folder() + "/tests/data/images/" + name;
}

inline const nlohmann::json& image_expectations() {
  static const nlohmann::json all = [] {
    std::ifstream file(image_path("expected.json"));
    return nlohmann::json::parse(file);
  }();
  return all;
}

inline std::vector<std::uint8_t> bytes_of_digits(const nlohmann::json& digits) {
  const std::string text = digits;
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

/// The greatest difference of two bytes in the same place; 256 if their numbers differ.
inline int greatest_difference(const std::vector<std::uint8_t>& a,
                               const std::vector<std::uint8_t>& b) {
  if (a.size() != b.size() || a.empty()) return 256;
  int most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

}  // namespace tandem::testing
