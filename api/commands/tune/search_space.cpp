#include "api/commands/tune/search_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>
#include <string_view>

#include "engine/config/keys/config_keys.h"
#include "engine/config/keys/config_value.h"
#include "engine/data/random.h"
#include "engine/graph/error.h"
#include "engine/graph/text.h"

namespace tandem::api {
namespace {

constexpr const char* over_option = "--over";
constexpr std::size_t most_choices = 1000, longest_text = 1 << 16;

Diagnostic over_problem(const std::string& text, std::string message, std::string expected = "",
                        std::string fix = "") {
  return {.message = std::move(message),
          .file = over_option,
          .expected = std::move(expected),
          .got = text,
          .fix = std::move(fix)};
}

/// The items between commas that are outside quotes and brackets; empty where these do not match.
std::optional<std::vector<std::string>> split_items(std::string_view text) {
  std::vector<std::string> items;
  std::string item;
  std::string open;  // brackets
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\' && quote == '"' && i + 1 < text.size())
        item += text[i++];  // the escaped character
      else if (c == quote)
        quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      open += c;
    } else if (c == ']' || c == '}') {
      if (open.empty() || open.back() != (c == ']' ? '[' : '{')) return std::nullopt;
      open.pop_back();
    } else if (c == ',' && open.empty()) {
      items.emplace_back(trimmed(item));
      item.clear();
      continue;
    }
    item += text[i];
  }
  if (quote != 0 || !open.empty()) return std::nullopt;
  items.emplace_back(trimmed(item));
  return items;
}

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

/// Whether trials of a search set this key themselves.
bool is_of_trials(const std::string& key) { return key == "run_dir" || key == "name"; }

class SpaceReader {
 public:
  explicit SpaceReader(std::vector<Diagnostic>& problems) : problems_(problems) {}

  std::optional<SearchedKey> read(const std::string& text) {
    text_ = text;
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || text.size() > longest_text)
      return refuse("not a key with its possible values", "KEY=log(a,b), uniform(a,b) or [a,b,c]");
    SearchedKey key{.key = std::string(trimmed(std::string_view(text).substr(0, equals)))};
    const std::string value(trimmed(std::string_view(text).substr(equals + 1)));
    const KeyInfo* info = known(key.key);
    if (info == nullptr) return std::nullopt;
    if (is_of_trials(key.key)) return refuse("each trial sets this key itself", "another key");
    if (value.starts_with("log(") && value.ends_with(")")) {
      key.kind = SearchedKey::Kind::logarithmic;
      return read_range(std::move(key), *info, value.substr(4, value.size() - 5));
    }
    if (value.starts_with("uniform(") && value.ends_with(")")) {
      key.kind = SearchedKey::Kind::uniform;
      return read_range(std::move(key), *info, value.substr(8, value.size() - 9));
    }
    if (value.starts_with("[") && value.ends_with("]")) return read_choices(std::move(key), value);
    return refuse("not a set of values that a key can be drawn from",
                  "log(a,b), uniform(a,b) or [a,b,c]",
                  "a single value is given among the keys: " + text);
  }

 private:
  std::nullopt_t refuse(std::string message, std::string expected = "", std::string fix = "") {
    problems_.push_back(
        over_problem(text_, std::move(message), std::move(expected), std::move(fix)));
    return std::nullopt;
  }

  /// The key; null, with an error that names the nearest key, where it is unknown.
  const KeyInfo* known(const std::string& key) {
    if (const KeyInfo* found = train_keys().find(key)) return found;
    try {
      explain_config_key(key);
      refuse("unknown key");
    } catch (const Error& error) {
      for (Diagnostic d : error.diagnostics()) {
        d.file = over_option;
        problems_.push_back(std::move(d));
      }
    }
    return nullptr;
  }

  std::optional<SearchedKey> read_range(SearchedKey key, const KeyInfo& info,
                                        const std::string& inside) {
    if ((info.type & (integer_value | number_value)) == 0)
      return refuse("this key takes no numbers", "[a,b,c]");
    key.is_whole = (info.type & number_value) == 0;
    const auto items = split_items(inside);
    const auto low = items && items->size() == 2 ? number_in((*items)[0]) : std::nullopt;
    const auto high = items && items->size() == 2 ? number_in((*items)[1]) : std::nullopt;
    if (!low || !high) return refuse("a range has two finite numbers", "(a,b) with a < b");
    if (!(*low < *high)) return refuse("an empty range", "(a,b) with a < b");
    const bool is_log = key.kind == SearchedKey::Kind::logarithmic;
    if (is_log && *low <= 0)
      return refuse("a logarithm needs numbers above 0", "log(a,b) with 0 < a < b",
                    "uniform(a,b) takes others");
    if (key.is_whole && (std::trunc(*low) != *low || std::trunc(*high) != *high ||
                         std::abs(*low) > 0x1p53 || std::abs(*high) > 0x1p53))
      return refuse("this key takes only whole numbers", "whole numbers as ends");
    key.low = *low;
    key.high = *high;
    return key;
  }

  std::optional<SearchedKey> read_choices(SearchedKey key, const std::string& value) {
    const auto items = split_items(std::string_view(value).substr(1, value.size() - 2));
    if (!items) return refuse("brackets or quotes that do not match", "[a,b,c]");
    key.choices = *items;
    if (key.choices.size() > 1 && key.choices.back().empty()) key.choices.pop_back();  // "[a, b, ]"
    for (const std::string& item : key.choices) {
      if (item.empty()) return refuse("an empty value in the list", "[a,b,c]");
    }
    if (key.choices.size() > most_choices)
      return refuse("too many values", fmt::format("at most {}", most_choices));
    std::set<std::string> different(key.choices.begin(), key.choices.end());
    if (different.size() < key.choices.size()) return refuse("a value is twice in the list");
    return key;
  }

  std::vector<Diagnostic>& problems_;
  std::string text_;
};

std::string number_text(const SearchedKey& key, double value) {
  if (key.is_whole) return fmt::format("{:.0f}", value);
  return toml_number(std::strtod(fmt::format("{:.4g}", value).c_str(), nullptr));
}

std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 0;
  for (const char c : text) hash = mix(hash, static_cast<unsigned char>(c));
  return hash;
}

std::string drawn(const SearchedKey& key, RandomStream random) {
  if (key.kind == SearchedKey::Kind::choice) return key.choices[random.below(key.choices.size())];
  double value = 0;
  // Makes both ends as likely as other values.
  if (key.kind == SearchedKey::Kind::uniform && key.is_whole)
    value = std::min(key.high, std::floor(random.between(key.low, key.high + 1)));
  else if (key.kind == SearchedKey::Kind::uniform)
    value = random.between(key.low, key.high);
  else
    value = std::exp(random.between(std::log(key.low), std::log(key.high)));
  if (key.is_whole) value = std::round(value);
  return number_text(key, std::clamp(value, key.low, key.high));
}

}  // namespace

SearchSpace::SearchSpace(const std::vector<std::string>& over) {
  std::vector<Diagnostic> problems;
  SpaceReader reader(problems);
  if (over.empty())
    problems.push_back(over_problem("", "nothing varies", "at least one key",
                                    "--over 'optimizer.lr=log(1e-5,1e-1)'"));
  std::set<std::string> seen;
  for (const std::string& text : over) {
    std::optional<SearchedKey> key = reader.read(text);
    if (!key) continue;
    if (!seen.insert(key->key).second)
      problems.push_back(over_problem(text, "this key is given twice"));
    else
      keys_.push_back(std::move(*key));
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

std::vector<TrialSettings> SearchSpace::trials(std::uint64_t seed, std::int64_t count) const {
  constexpr int most_draws = 1000;  // for one trial, until its settings are new
  std::vector<TrialSettings> all;
  std::set<TrialSettings> seen;
  for (std::int64_t number = 1; number <= count; ++number) {
    TrialSettings settings;
    bool is_new = false;
    for (int draw = 0; draw < most_draws && !is_new; ++draw) {
      settings.clear();
      const std::uint64_t of_draw =
          mix(mix(seed, static_cast<std::uint64_t>(number)), static_cast<std::uint64_t>(draw));
      for (const SearchedKey& key : keys_)
        settings.emplace_back(key.key, drawn(key, RandomStream(mix(of_draw, hash_of(key.key)))));
      is_new = seen.insert(settings).second;
    }
    if (!is_new) break;  // practically all combinations are used
    all.push_back(std::move(settings));
  }
  return all;
}

std::vector<TrialSettings> SearchSpace::ends() const {
  std::vector<TrialSettings> all;
  for (const SearchedKey& key : keys_) {
    if (key.kind != SearchedKey::Kind::choice) {
      for (const double end : {key.low, key.high})
        all.push_back({{key.key, number_text(key, end)}});
    }
    for (const std::string& choice : key.choices) all.push_back({{key.key, choice}});
  }
  return all;
}

std::vector<std::string> overrides_of(const TrialSettings& settings) {
  std::vector<std::string> overrides;
  for (const auto& [key, value] : settings) overrides.push_back(key + "=" + value);
  return overrides;
}

}  // namespace tandem::api
