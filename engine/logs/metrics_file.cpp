#include "engine/logs/metrics_file.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

namespace tandem {
namespace {

using LineJson = nlohmann::ordered_json;

/// Numbers that are not finite are texts.
std::optional<double> logged_number(const LineJson& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const std::string& text = value.get_ref<const std::string&>();
  if (text == "nan") return std::nan("");
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

/// {"name": number, …}, or rows [[…], …] of as many numbers as there are rows, possibly with the
/// words of their classes.
std::optional<MetricTable> logged_table(const std::string& name, const LineJson& value) {
  MetricTable table;
  table.metric = name;
  const auto take = [&](const LineJson& one) {
    const std::optional<double> number = logged_number(one);
    if (number) table.numbers.push_back(*number);
    return number.has_value();
  };
  if (value.is_object() && value.contains("rows") && value["rows"].is_array()) {
    auto rows = logged_table(name, value["rows"]);
    const auto classes = value.find("classes");
    if (!rows || classes == value.end() || !classes->is_array() ||
        classes->size() != rows->names.size())
      return std::nullopt;
    for (std::size_t i = 0; i < classes->size(); ++i) {
      if (!(*classes)[i].is_string()) return std::nullopt;
      rows->names[i] = (*classes)[i].get<std::string>();
    }
    return rows;
  }
  if (value.is_object()) {
    for (const auto& [key, one] : value.items()) {
      if (!take(one)) return std::nullopt;
      table.names.push_back(key);
    }
    return table;
  }
  if (!value.is_array()) return std::nullopt;
  table.is_matrix = true;
  for (const LineJson& row : value) {
    if (!row.is_array() || row.size() != value.size()) return std::nullopt;
    for (const LineJson& one : row) {
      if (!take(one)) return std::nullopt;
    }
    table.names.push_back(std::to_string(table.names.size()));
  }
  return table;
}

}  // namespace

std::optional<LoggedLine> logged_line(std::string_view text) {
  const LineJson json = LineJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto step = json.find("step");
  if (step == json.end() || !step->is_number_unsigned()) return std::nullopt;
  LoggedLine line;
  line.step = step->get<std::uint64_t>();
  for (const auto& [name, value] : json.items()) {
    if (name == "step") continue;
    if (name == "phase" && value.is_string()) {
      line.phase = value.get<std::string>();
    } else if (const auto number = logged_number(value)) {
      line.values.emplace_back(name, *number);
    } else if (auto table = logged_table(name, value)) {
      line.tables.push_back(std::move(*table));
    }
  }
  return line;
}

std::size_t read_metrics_file(const std::string& path, FunctionRef<void(LoggedLine&&)> take) {
  std::size_t passed_over = 0;
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) {
    std::optional<LoggedLine> line;
    if (!file.eof()) line = logged_line(text);  // a line without an end is not whole
    if (line)
      take(std::move(*line));
    else
      ++passed_over;
  }
  return passed_over;
}

}  // namespace tandem
