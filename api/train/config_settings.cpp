#include "api/train/config_settings.h"

#include <type_traits>
#include <utility>

#include "api/train/config_members.h"
#include "engine/config/keys/config_keys.h"
#include "engine/config/keys/key_forms.h"

namespace tandem::api::members {
namespace {

using Kind = ConfigValue::Kind;

class SettingsWriter {
 public:
  /// `source`: what messages name in place of a file.
  explicit SettingsWriter(std::string source) : source_(std::move(source)) {}

  template <Table T>
  ConfigValue table(const T& from, const std::string& pattern) const {
    ConfigValue to = value(Kind::table);
    each_member(Of<T>{}, [&](const char* key, auto member) {
      add(to, key, from.*member, below(pattern, key));
    });
    return to;
  }

  /// Adds what is set; `pattern` is the key's path in the table of keys.
  template <class T>
  void add(ConfigValue& to, const char* key, const T& from, const std::string& pattern) const {
    if constexpr (is_optional<T>) {
      if (!from) return;
      if constexpr (is_kind<typename T::value_type>)
        add_kind(to, *from, pattern);
      else
        put(to, key, written(*from, pattern));
    } else if constexpr (is_list<T>) {
      if (from.empty()) return;
      const KeyInfo* const info = train_keys().find(pattern);
      const bool may_be_plain =
          info != nullptr && (info->type & ~unsigned{list_value | table_value}) != 0;
      if (from.size() == 1 && may_be_plain)
        put(to, key, written(from[0], pattern + "[]"));
      else
        put(to, key, written(from, pattern));
    } else {
      ConfigValue table = written(from, pattern);
      if (!table.members.empty()) put(to, key, std::move(table));
    }
  }

 private:
  ConfigValue value(Kind kind) const {
    ConfigValue made;
    made.kind = kind;
    made.where.file = source_;
    return made;
  }
  void put(ConfigValue& to, const char* key, ConfigValue made) const {
    to.add(key, std::move(made));
    to.members.back().where.file = source_;
  }
  ConfigValue text(std::string words) const {
    ConfigValue made = value(Kind::string);
    made.text = std::move(words);
    return made;
  }

  template <class T>
  ConfigValue written(const T& from, const std::string& pattern) const {
    if constexpr (std::is_same_v<T, bool>) {
      ConfigValue made = value(Kind::boolean);
      made.boolean = from;
      return made;
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
      ConfigValue made = value(Kind::integer);
      made.integer = from;
      made.number = static_cast<double>(from);
      return made;
    } else if constexpr (std::is_same_v<T, double>) {
      ConfigValue made = value(Kind::number);
      made.number = from;
      return made;
    } else if constexpr (std::is_same_v<T, std::string>) {
      return text(from);
    } else if constexpr (std::is_same_v<T, Duration>) {
      return text(
          to_string(tandem::Duration{from.value, static_cast<tandem::Duration::Unit>(from.unit)}));
    } else if constexpr (std::is_enum_v<T>) {
      const std::vector<std::string> words = words_of(words_of_enum<T>);
      return text(words.at(static_cast<std::size_t>(from)));
    } else if constexpr (is_list<T>) {
      ConfigValue made = value(Kind::list);
      for (const auto& item : from) made.items.push_back(written(item, pattern + "[]"));
      return made;
    } else if constexpr (is_map<T>) {
      ConfigValue made = value(Kind::table);
      for (const auto& [name, item] : from) put(made, name.c_str(), written(item, pattern + ".*"));
      return made;
    } else if constexpr (is_choice<T>) {
      return std::visit([&](const auto& chosen) { return written(chosen, pattern); }, from);
    } else {
      return table(from, pattern);
    }
  }

  /// The word under "kind", with the options of that kind next to it.
  template <class Choice>
  void add_kind(ConfigValue& to, const Choice& from, const std::string& pattern) const {
    const std::string owner = pattern.substr(0, pattern.rfind('.'));
    std::visit(
        [&](const auto& chosen) {
          using Chosen = std::decay_t<decltype(chosen)>;
          put(to, "kind", text(std::string(word_of_kind<Chosen>)));
          each_member(Of<Chosen>{}, [&](const char* key, auto member) {
            add(to, key, chosen.*member, below(owner, key));
          });
        },
        from);
  }

  std::string source_;
};

/// A value as TOML on one line.
std::string toml_value(const ConfigValue& value) {
  switch (value.kind) {
    case Kind::boolean:
      return value.boolean ? "true" : "false";
    case Kind::integer:
      return std::to_string(value.integer);
    case Kind::number:
      return toml_number(value.number);
    case Kind::list: {
      std::vector<std::string> items;
      for (const ConfigValue& item : value.items) items.push_back(toml_value(item));
      return toml_list(items);
    }
    case Kind::table: {
      std::vector<std::pair<std::string, std::string>> members;
      for (const ConfigValue::Member& member : value.members)
        members.emplace_back(toml_key(member.key), toml_value(member.value));
      return toml_table(members);
    }
    default:
      return toml_string(value.text);
  }
}

}  // namespace
}  // namespace tandem::api::members

namespace tandem::api {

ConfigValue settings_of(const TrainConfig& config) {
  ConfigValue settings = members::SettingsWriter("TrainConfig").table(config, "");
  ConfigValue* const data = settings.find("data");
  const bool is_of_program = config.data.kind == DataKind::program;
  if (data != nullptr && is_of_program && data->find("train") == nullptr) {
    ConfigValue train = table_setting();
    train.where = data->where;
    data->add("train", std::move(train));
  }
  return settings;
}

ConfigValue settings_of(const SessionConfig& config) {
  const members::SettingsWriter writer("SessionConfig");
  TrainConfig whole{.model = config.model,
                    .device = config.device,
                    .steps = config.steps,
                    .seed = config.seed,
                    .threads = config.threads,
                    .parameters = config.parameters,
                    .loss = config.loss,
                    .optimizer = config.optimizer,
                    .precision = config.precision,
                    .eval = {.metrics = config.metrics}};
  whole.model.file.reset();
  if (const auto* file = config.policy ? std::get_if<std::string>(&*config.policy) : nullptr)
    whole.policy = *file;
  return writer.table(whole, "");
}

std::string toml_of(const ConfigValue& settings) {
  std::string text, sections;
  for (const ConfigValue::Member& member : settings.members) {
    if (member.value.kind != ConfigValue::Kind::table) {
      text += toml_key(member.key) + " = " + members::toml_value(member.value) + "\n";
      continue;
    }
    sections += "\n[" + toml_key(member.key) + "]\n";
    for (const ConfigValue::Member& inner : member.value.members)
      sections += toml_key(inner.key) + " = " + members::toml_value(inner.value) + "\n";
  }
  return text + sections;
}

}  // namespace tandem::api
