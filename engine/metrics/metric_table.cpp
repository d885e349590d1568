#include "engine/metrics/metric_table.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tandem {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson number_json(double value) {
  if (std::isfinite(value)) {
    const bool is_count = value == std::floor(value) && std::abs(value) < 9007199254740992.0;
    return is_count ? OrderedJson(static_cast<std::int64_t>(value)) : OrderedJson(value);
  }
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

std::string number_text_of(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{:.6g}", value);
}

std::size_t widest(const std::vector<std::string>& texts) {
  std::size_t width = 0;
  for (const std::string& text : texts) width = std::max(width, text.size());
  return width;
}

std::string matrix_text(const MetricTable& table) {
  const std::size_t count = table.names.size();
  std::vector<std::string> cells = table.names;
  for (const double number : table.numbers) cells.push_back(number_text_of(number));
  const std::size_t width = widest(cells) + 2, head = widest(table.names) + 2;
  std::string text =
      fmt::format("{} (rows: labels, columns: predictions)\n{:{}}", table.metric, "", head);
  for (const std::string& name : table.names) text += fmt::format("{:>{}}", name, width);
  for (std::size_t row = 0; row < count; ++row) {
    text += fmt::format("\n{:>{}}", table.names[row], head);
    for (std::size_t column = 0; column < count; ++column)
      text += fmt::format("{:>{}}", cells[count + row * count + column], width);
  }
  return text + "\n";
}

}  // namespace

std::string table_json(const MetricTable& table) {
  const std::size_t count = table.names.size();
  OrderedJson json = table.is_matrix ? OrderedJson::array() : OrderedJson::object();
  bool has_words = false;
  for (std::size_t row = 0; row < count; ++row) {
    if (!table.is_matrix) {
      json[table.names[row]] = number_json(table.numbers[row]);
      continue;
    }
    has_words = has_words || table.names[row] != std::to_string(row);
    OrderedJson& cells = json.emplace_back(OrderedJson::array());
    for (std::size_t column = 0; column < count; ++column)
      cells.push_back(number_json(table.numbers[row * count + column]));
  }
  if (has_words) json = {{"classes", table.names}, {"rows", std::move(json)}};
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string table_text(const MetricTable& table, std::size_t most) {
  const std::size_t count = table.names.size(), shown = std::min(count, most);
  if (table.is_matrix && count > most)
    return fmt::format("{}: {} by {} numbers, in metrics.jsonl\n", table.metric, count, count);
  if (table.is_matrix) return matrix_text(table);
  std::string text = table.metric + "\n";
  const std::size_t head = widest(table.names) + 2;
  for (std::size_t i = 0; i < shown; ++i)
    text += fmt::format("{:>{}}  {}\n", table.names[i], head, number_text_of(table.numbers[i]));
  if (shown < count) text += fmt::format("  and {} more, in metrics.jsonl\n", count - shown);
  return text;
}

}  // namespace tandem
