// The small languages inside strings: durations, shuffles, file names with braces.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/config/keys/config_check.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

template <class T>
std::optional<T> whole_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::int64_t Duration::steps(std::int64_t steps_per_epoch) const {
  if (unit == Unit::seconds) return 0;
  const double all = unit == Unit::steps ? value : value * static_cast<double>(steps_per_epoch);
  return std::max<std::int64_t>(1, std::llround(std::min(all, 9e18)));
}

std::string to_string(const Duration& duration) {
  constexpr std::string_view units[] = {"step", "epoch", "s"};
  std::string text = toml_number(duration.value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  text += " " + std::string(units[static_cast<int>(duration.unit)]);
  if (duration.unit != Duration::Unit::seconds && duration.value != 1) text += "s";
  return text;
}

std::string to_string(const FreezeRule& rule) {
  return rule.at + (rule.until ? " until " + to_string(*rule.until) : "") +
         (rule.from ? " from " + to_string(*rule.from) : "");
}

std::optional<Duration> parse_duration(std::string_view text) {
  text = trimmed(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value) || value <= 0) return std::nullopt;
  const std::string_view unit = trimmed(text.substr(static_cast<std::size_t>(end - text.data())));
  if (unit == "step" || unit == "steps") {
    if (value != std::floor(value) || value > 9e15) return std::nullopt;
    return Duration{value, Duration::Unit::steps};
  }
  if (unit == "epoch" || unit == "epochs") return Duration{value, Duration::Unit::epochs};
  constexpr std::pair<std::string_view, double> times[] = {
      {"s", 1},        {"sec", 1},      {"second", 1},  {"seconds", 1}, {"min", 60},
      {"minute", 60},  {"minutes", 60}, {"m", 60},      {"h", 3600},    {"hour", 3600},
      {"hours", 3600}, {"d", 86400},    {"day", 86400}, {"days", 86400}};
  for (const auto& [name, seconds] : times) {
    if (unit == name) return Duration{value * seconds, Duration::Unit::seconds};
  }
  return std::nullopt;
}

std::optional<ShuffleConfig> parse_shuffle(std::string_view text) {
  using Kind = ShuffleConfig::Kind;
  text = trimmed(text);
  if (text == "none") return ShuffleConfig{Kind::none};
  if (text == "full") return ShuffleConfig{Kind::full};
  if (!text.starts_with("buffer ")) return std::nullopt;
  const auto size = whole_number<std::int64_t>(trimmed(text.substr(7)));
  if (!size || *size < 1) return std::nullopt;
  return ShuffleConfig{Kind::buffer, *size};
}

namespace {

constexpr std::size_t most_names = 100'000, most_braces = 64;

/// The texts that one pair of braces expands to.
std::optional<std::vector<std::string>> names_in_braces(std::string_view inside) {
  std::vector<std::string> choices;
  const std::size_t dots = inside.find("..");
  if (dots == std::string_view::npos) {
    for (std::size_t start = 0;;) {
      const std::size_t comma = inside.find(',', start);
      choices.emplace_back(inside.substr(start, comma - start));
      if (comma == std::string_view::npos) return choices;
      start = comma + 1;
    }
  }
  const std::string first(inside.substr(0, dots)), last(inside.substr(dots + 2));
  const auto low = whole_number<std::uint64_t>(first), high = whole_number<std::uint64_t>(last);
  if (!low || !high || *low > *high || *high - *low >= most_names) return std::nullopt;
  for (std::uint64_t i = *low; i <= *high; ++i) {
    std::string number = std::to_string(i);
    if (first.size() > 1 && first[0] == '0' && number.size() < first.size()) {  // {000..146}
      number.insert(0, first.size() - number.size(), '0');
    }
    choices.push_back(std::move(number));
  }
  return choices;
}

}  // namespace

std::optional<std::vector<std::string>> expand_braces(const std::string& text) {
  std::vector<std::string> names{""};
  std::size_t at = 0, braces = 0;
  for (std::size_t open; (open = text.find('{', at)) != std::string::npos;) {
    const std::size_t close = text.find('}', open);
    if (close == std::string::npos || ++braces > most_braces) return std::nullopt;
    const auto choices = names_in_braces(std::string_view(text).substr(open + 1, close - open - 1));
    if (!choices || choices->size() * names.size() > most_names) return std::nullopt;
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const std::string& choice : *choices)
        longer.push_back(name + text.substr(at, open - at) + choice);
    }
    names = std::move(longer);
    at = close + 1;
  }
  for (std::string& name : names) name += text.substr(at);
  return names;
}

}  // namespace tandem
