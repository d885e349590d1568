#include "placement/quantities.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <utility>

#include "engine/graph/text.h"

namespace tandem {
namespace {

// The number at the beginning, and the unit after it.
std::optional<std::pair<double, std::string_view>> number_and_unit(std::string_view text) {
  text = trimmed(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value) || value < 0) return std::nullopt;
  return std::pair(value, trimmed(text.substr(static_cast<std::size_t>(end - text.data()))));
}

std::optional<double> factor(std::string_view unit) {
  constexpr std::pair<std::string_view, double> units[] = {{"B", 1},
                                                           {"kB", 1e3},
                                                           {"KB", 1e3},
                                                           {"MB", 1e6},
                                                           {"GB", 1e9},
                                                           {"TB", 1e12},
                                                           {"KiB", 1024},
                                                           {"MiB", 1048576.},
                                                           {"GiB", 1073741824.},
                                                           {"TiB", 1099511627776.}};
  for (const auto& [name, bytes] : units) {
    if (unit == name) return bytes;
  }
  return std::nullopt;
}

constexpr std::string_view binary_units[] = {"B", "KiB", "MiB", "GiB", "TiB"};

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) {
  const auto parts = number_and_unit(text);
  const auto unit = parts ? factor(parts->second) : std::nullopt;
  if (!unit || parts->first * *unit > 1e18) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(parts->first * *unit));
}

std::optional<double> parse_rate(std::string_view text) {
  const auto parts = number_and_unit(text);
  if (!parts || !parts->second.ends_with("/s")) return std::nullopt;
  std::string unit_text(parts->second.substr(0, parts->second.size() - 2));
  const bool is_bits = unit_text.ends_with('b') && !unit_text.ends_with("ib");
  if (is_bits) unit_text.back() = 'B';
  const auto bytes = factor(unit_text);
  const auto unit = bytes && is_bits ? *bytes / 8 : bytes;
  if (!unit || parts->first <= 0) return std::nullopt;
  return parts->first * *unit;
}

std::optional<double> parse_time(std::string_view text) {
  constexpr std::pair<std::string_view, double> units[] = {
      {"ns", 1e-9}, {"us", 1e-6}, {"µs", 1e-6}, {"ms", 1e-3}, {"s", 1}};
  const auto parts = number_and_unit(text);
  for (const auto& [name, seconds] : units) {
    if (parts && parts->second == name) return parts->first * seconds;
  }
  return std::nullopt;
}

std::optional<double> parse_percent(std::string_view text) {
  const auto parts = number_and_unit(text);
  if (!parts || parts->second != "%" || parts->first <= 0 || parts->first > 100) {
    return std::nullopt;
  }
  return parts->first / 100;
}

std::string size_text(std::uint64_t bytes) {
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(binary_units)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes)
                   : fmt::format("{:.1f} {}", value, binary_units[unit]);
}

std::string exact_size(std::uint64_t bytes) {
  std::size_t unit = 0;
  for (; bytes > 0 && bytes % 1024 == 0 && unit + 1 < std::size(binary_units); ++unit)
    bytes /= 1024;
  return fmt::format("{}{}", bytes, binary_units[unit]);
}

std::string bytes_text(double bytes) {
  if (bytes < 1024) return fmt::format("{:.0f} B", bytes);
  if (bytes < 1024 * 1024) return fmt::format("{:.1f} KiB", bytes / 1024);
  if (bytes < 1024.0 * 1024 * 1024) return fmt::format("{:.1f} MiB", bytes / (1024 * 1024));
  return fmt::format("{:.2f} GiB", bytes / (1024.0 * 1024 * 1024));
}

}  // namespace tandem
