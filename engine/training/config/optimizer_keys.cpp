#include "engine/training/config/optimizer_keys.h"

#include <algorithm>
#include <deque>

#include "engine/operators/update_kind.h"
#include "engine/optimizers/optimizer.h"
#include "engine/training/config/option_keys.h"

namespace tandem {
namespace {

/// Texts that the keys point into.
std::string_view keep(std::string text) {
  static std::deque<std::string> texts;
  return texts.emplace_back(std::move(text));
}

unsigned type_of(const OptimizerSetting& setting) {
  return std::holds_alternative<double>(setting.fallback) ? number_value
         : std::holds_alternative<bool>(setting.fallback) ? boolean_value
                                                          : string_value;
}

std::string text_of(const OptimizerValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return toml_number(*number);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  return toml_string(std::get<std::string>(value));
}

/// "1" of 1: of bounds, in words.
std::string bound_text(double bound) {
  std::string text = toml_number(bound);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

/// The settings that are items of a list, which ends before `last`.
using Settings = std::vector<OptimizerSetting>;
Settings::const_iterator end_of_list(const Settings& all, Settings::const_iterator first) {
  return std::find_if(first, all.end(), [&](const OptimizerSetting& setting) {
    return setting.info.list != first->info.list;
  });
}
bool is_in_list(const OptimizerSetting& setting) { return !setting.info.list.empty(); }
/// Another name of the key.
std::string_view other_name(const SettingInfo& info) {
  return info.attribute == info.key ? std::string_view() : info.attribute;
}

std::string list_text(Settings::const_iterator first, Settings::const_iterator last,
                      const OptimizerValues* values) {
  std::string text;
  for (; first != last; ++first) {
    const OptimizerValue& value =
        values == nullptr ? first->fallback : values->find(first->info.key)->second;
    text += (text.empty() ? "" : ", ") + text_of(value);
  }
  return "[" + text + "]";
}

Gathered& gather(std::vector<Gathered>& all, std::string_view kind, std::string_view key,
                 unsigned type, const NumberRange& range, std::string_view help,
                 std::string_view fallback) {
  Gathered& to = gathered(all, key);
  to.type |= type;
  to.low = std::min(to.low, range.low);
  to.high = std::max(to.high, range.high);
  say(to.helps, help, kind);
  say(to.fallbacks, fallback, kind);
  return to;
}

void gather(std::vector<Gathered>& all, const OptimizerKind& kind) {
  constexpr std::string_view places[] = {"first", "second", "third"};
  for (auto setting = kind.settings.begin(); setting != kind.settings.end();) {
    const SettingInfo& info = setting->info;
    if (!is_in_list(*setting)) {
      Gathered& to = gather(all, kind.name, info.key, type_of(*setting), info.range, info.help,
                            text_of(setting->fallback));
      to.allowed = info.choices;
      if (!other_name(info).empty() && !info.attribute.empty())
        gather(all, kind.name, info.attribute, type_of(*setting), info.range,
               "another name of " + std::string(info.key), "(" + std::string(info.key) + ")");
      ++setting;
      continue;
    }
    const auto last = end_of_list(kind.settings, setting);
    Gathered& list = gather(all, kind.name, info.list, list_value, info.range, info.help,
                            list_text(setting, last, nullptr));
    list.item_help = info.range.below ? "below " + bound_text(info.range.high) : "";
    for (std::size_t place = 0; setting != last; ++setting, ++place) {
      gather(all, kind.name, setting->info.key, number_value, setting->info.range,
             "the " + std::string(places[place]) + " of " + std::string(setting->info.list),
             "(" + std::string(setting->info.list) + ")");
    }
  }
}

/// Of kinds whose default is not that of the first, which is the key's: "; by default X for KIND".
std::string other_defaults(const Gathered& key) {
  std::string text;
  for (std::size_t i = 1; i < key.fallbacks.size(); ++i) {
    text += (i == 1 ? "; by default " : ", ") + key.fallbacks[i].text + " for " +
            joined(key.fallbacks[i].kinds, ", ");
  }
  return text;
}

/// `of_group`: the defaults are those of the optimizer's table.
std::vector<KeyInfo> make_keys(const std::string& prefix, bool of_group) {
  std::string names, of_rows;
  std::vector<Gathered> all;
  Gathered rate{.key = "lr"};
  for (const OptimizerKind& kind : all_optimizers()) {
    say(rate.fallbacks, toml_number(kind.lr), kind.name);
    names += (names.empty() ? "" : "|") + std::string(kind.name);
    if (find_update_kind(kind.choose({}).op)->whole_row)
      of_rows += (of_rows.empty() ? "" : ", ") + std::string(kind.name);
    gather(all, kind);
  }
  const auto fallback = [&](const std::string& key, std::string own) {
    return keep(of_group ? "(optimizer." + key + ")" : std::move(own));
  };
  std::vector<KeyInfo> keys{
      {keep(prefix + "kind"), string_value, fallback("kind", "required"), keep(names), "",
       of_group ? "the rule"
                : keep("the rule (" + of_rows + ": for parameters of two dimensions or more)")},
      {keep(prefix + "lr"), number_value, fallback("lr", rate.fallbacks[0].text), "", "",
       keep("learning rate" + other_defaults(rate)), 0}};
  for (const Gathered& key : all) {
    const bool number = (key.type & (number_value | list_value)) != 0;
    const double low = number ? key.low : -1e300, high = number ? key.high : 1e300;
    keys.push_back({keep(prefix + key.key), key.type, fallback(key.key, key.fallbacks[0].text),
                    keep(key.allowed), "", keep(help_of(key) + other_defaults(key)), low, high});
    if ((key.type & list_value) == 0) continue;
    keys.push_back(
        {keep(prefix + key.key + "[]"), number_value, "", "", "", keep(key.item_help), low, high});
  }
  return keys;
}

std::string range_text(const NumberRange& range) {
  std::string text = range.low > -1e300 ? "at least " + toml_number(range.low) : "";
  if (range.high < 1e300)
    text += (text.empty() ? "at most " : ", at most ") + toml_number(range.high);
  return text;
}

void refuse_key(const TableReader& table, std::string_view key, const std::string& of) {
  if (const ConfigValue* value = table.valid(key))
    table.report(value->where, key, "not an option of " + of);
}

class Overlay {
 public:
  /// Quiet where the table's mistakes were reported before.
  Overlay(const TableReader& table, OptimizerOptions& to, bool quiet)
      : table_(table), to_(to), quiet_(quiet) {}

  void read() {
    table_.read("lr", to_.lr);
    const Settings& settings = to_.kind->settings;
    for (auto setting = settings.begin(); setting != settings.end();) {
      if (is_in_list(*setting)) {
        const auto last = end_of_list(settings, setting);
        read_list(setting, last);
        for (; setting != last; ++setting) read_one(*setting, setting->info.key);
        continue;
      }
      read_one(*setting, setting->info.key);
      const std::string_view other = other_name(setting->info);
      if (!other.empty()) {
        read_one(*setting, other);
        if (!quiet_ && table_.valid(setting->info.key) != nullptr)
          refuse_key(table_, other, "a table that has " + std::string(setting->info.key));
      }
      ++setting;
    }
  }

 private:
  void read_one(const OptimizerSetting& setting, std::string_view key) {
    OptimizerValue& to = to_.values.find(setting.info.key)->second;
    std::visit([&](auto& value) { table_.read(key, value); }, to);
    const ConfigValue* value = table_.valid(key);
    const auto* number = std::get_if<double>(&to);
    if (quiet_ || value == nullptr || number == nullptr) return;
    if (*number >= setting.info.range.low && *number <= setting.info.range.high) return;
    table_.report(value->where, key, "out of range for " + std::string(to_.kind->name),
                  range_text(setting.info.range), toml_number(*number));
  }

  void read_list(Settings::const_iterator first, Settings::const_iterator last) {
    const std::string_view key = first->info.list;
    const ConfigValue* list = table_.valid(key);
    if (list == nullptr) return;
    std::vector<double> numbers;
    table_.read(key, numbers);
    const bool reported = std::any_of(list->items.begin(), list->items.end(), [](const auto& item) {
      return item.kind == ConfigValue::Kind::invalid;
    });
    const auto wanted = static_cast<std::size_t>(last - first);
    if (numbers.size() == wanted && !reported) {
      for (std::size_t i = 0; i < wanted; ++i)
        to_.values.find(first[static_cast<std::ptrdiff_t>(i)].info.key)->second = numbers[i];
    } else if (!reported && !quiet_) {
      constexpr std::string_view counts[] = {"", "one number", "two numbers", "three numbers"};
      table_.report(list->where, key, "wrong length", std::string(counts[wanted]),
                    std::to_string(numbers.size()));
    }
    if (quiet_) return;
    for (auto item = first; item != last; ++item)
      refuse_key(table_, item->info.key, "a table that has " + std::string(key));
  }

  const TableReader& table_;
  OptimizerOptions& to_;
  bool quiet_;
};

bool is_known(const OptimizerKind& kind, std::string_view key) {
  return std::any_of(kind.settings.begin(), kind.settings.end(), [&](const auto& setting) {
    const SettingInfo& info = setting.info;
    return info.key == key || info.list == key || other_name(info) == key;
  });
}

void refuse_keys_of_others(const TableReader& table, const OptimizerKind& kind) {
  constexpr std::size_t prefix = std::string_view("optimizer.").size();
  for (const KeyInfo& info : optimizer_keys()) {
    const std::string_view key = info.path.substr(prefix);
    if (key == "kind" || key == "lr" || key.ends_with("[]") || is_known(kind, key)) continue;
    refuse_key(table, key, std::string(kind.name));
  }
}

/// Numbers that must stay below the end of their range; those of a list together.
void check_ends(const TableReader& table, const OptimizerOptions& options,
                const OptimizerOptions* base) {
  const Settings& settings = options.kind->settings;
  for (auto setting = settings.begin(); setting != settings.end();) {
    const auto last = is_in_list(*setting) ? end_of_list(settings, setting) : setting + 1;
    double greatest = -1e300;
    bool inherited = base != nullptr;
    const auto first = setting;
    for (; setting != last; ++setting) {
      if (!setting->info.range.below) continue;
      greatest = std::max(greatest, options.number(setting->info.key));
      if (!inherited) continue;
      const auto before = base->values.find(setting->info.key);
      inherited = before != base->values.end() &&
                  before->second == OptimizerValue(options.number(setting->info.key));
    }
    if (greatest < first->info.range.high || inherited) continue;
    const std::string_view key = is_in_list(*first) ? first->info.list : first->info.key;
    const ConfigValue* value = table.valid(key);
    table.report(value != nullptr ? value->where : table.where(), key, "out of range",
                 "below " + bound_text(first->info.range.high), toml_number(greatest));
  }
}

void check_options(const TableReader& table, const OptimizerOptions& options,
                   const OptimizerOptions* base = nullptr) {
  refuse_keys_of_others(table, *options.kind);
  check_ends(table, options, base);
  const SettingsProblem problem = options.kind->problem(options.values);
  if (problem.key == nullptr) return;
  const bool inherited = base != nullptr && base->kind == options.kind &&
                         base->kind->problem(base->values).key != nullptr;
  if (inherited) return;
  table.report(table.where(), problem.key, problem.message);
}

const OptimizerKind& kind_in(const TableReader& table, const OptimizerKind& fallback) {
  const ConfigValue* value = table.valid("kind");
  const OptimizerKind* kind = value != nullptr ? find_optimizer(value->text) : nullptr;
  return kind != nullptr ? *kind : fallback;
}

OptimizerOptions read_options(const TableReader& table) {
  OptimizerOptions options(kind_in(table, all_optimizers().front()));
  Overlay(table, options, false).read();
  check_options(table, options);
  return options;
}

OptimizerOptions read_group_options(const TableReader& table, const TableReader& group,
                                    const OptimizerOptions& base) {
  OptimizerOptions options(kind_in(group, *base.kind));
  Overlay(table, options, true).read();
  Overlay(group, options, false).read();
  check_options(group, options, &base);
  return options;
}

std::vector<std::pair<std::string, std::string>> option_lines(const OptimizerOptions& options) {
  std::vector<std::pair<std::string, std::string>> lines = {{"kind", toml_string(options.name())},
                                                            {"lr", toml_number(options.lr)}};
  const Settings& settings = options.kind->settings;
  const auto is_plain_number = [](const OptimizerSetting& setting) {
    return std::holds_alternative<double>(setting.fallback) && !is_in_list(setting);
  };
  for (const OptimizerSetting& setting : settings) {
    if (is_plain_number(setting))
      lines.emplace_back(setting.info.key, toml_number(options.number(setting.info.key)));
  }
  for (auto setting = settings.begin(); setting != settings.end();) {
    const auto last = is_in_list(*setting) ? end_of_list(settings, setting) : setting + 1;
    if (is_in_list(*setting))
      lines.emplace_back(setting->info.list, list_text(setting, last, &options.values));
    else if (!is_plain_number(*setting))
      lines.emplace_back(setting->info.key,
                         text_of(options.values.find(setting->info.key)->second));
    setting = last;
  }
  return lines;
}

}  // namespace

const std::vector<KeyInfo>& optimizer_keys() {
  static const std::vector<KeyInfo> keys = make_keys("optimizer.", false);
  return keys;
}

const std::vector<KeyInfo>& group_keys() {
  static const std::vector<KeyInfo> keys = make_keys("optimizer.groups[].", true);
  return keys;
}

const std::vector<KeyInfo>& optimizer_rows() {
  static const std::vector<KeyInfo> rows = [] {
    std::vector<KeyInfo> all = optimizer_keys();
    all.push_back({"optimizer.groups", list_value, "[]", "", "",
                   "other options for some parameters; the last group that covers one takes it"});
    all.push_back({"optimizer.groups[]", table_value, "", "", "",
                   "a selector and the options that differ, kind included"});
    all.push_back(
        {"optimizer.groups[].at", selector_value, "required", "", "", "which parameters"});
    all.insert(all.end(), group_keys().begin(), group_keys().end());
    return all;
  }();
  return rows;
}

void read_optimizer(const TableReader& table, OptimizerConfig& to) {
  to.base = read_options(table);
  for (const TableReader& rule : table.tables("groups")) {
    OptimizerGroup& group = to.groups.emplace_back();
    group.where = rule.where();
    rule.read("at", group.at);
    group.options = read_group_options(table, rule, to.base);
  }
}

std::vector<std::pair<std::string, std::string>> optimizer_lines(const OptimizerConfig& config) {
  auto lines = option_lines(config.base);
  std::string groups;
  for (const OptimizerGroup& group : config.groups) {
    groups += (groups.empty() ? "[\n" : "") + std::string("  { at = ") + toml_string(group.at);
    for (const auto& [key, value] : option_lines(group.options))
      groups += ", " + key + " = " + value;
    groups += " },\n";
  }
  if (!groups.empty()) lines.emplace_back("groups", groups + "]");
  return lines;
}

}  // namespace tandem
