#include "api/train/config_settings.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "engine/config/keys/config_check.h"
#include "engine/config/keys/config_keys.h"
#include "engine/config/keys/key_forms.h"

namespace tandem::api {
namespace {

using Kind = ConfigValue::Kind;

/// A type as an argument.
template <class T>
struct Of {
  using Type = T;
};
template <class Enum>
inline constexpr std::string_view words_of_enum = "";
template <class Struct>
inline constexpr std::string_view word_of_kind = "";

#include "api/train/train_config_members.inl"

struct Nothing {
  template <class Member>
  void operator()(const char*, Member) const {}
};
template <class T>
concept Table = requires {
  each_member(Of<T>{}, Nothing{});
};

template <class T>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<std::vector<T>> = true;
template <class T>
inline constexpr bool is_map = false;
template <class T>
inline constexpr bool is_map<std::map<std::string, T>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_choice = false;
/// Whether a type is one of several structs, as `kind` names them.
template <class T>
inline constexpr bool is_kind = false;
template <class T, class... Others>
inline constexpr bool is_choice<std::variant<T, Others...>> = true;
template <class T, class... Others>
inline constexpr bool is_kind<std::variant<T, Others...>> = !word_of_kind<T>.empty();

const KeyInfo* key_at(const std::string& pattern) {
  const std::span<const KeyInfo> keys = train_keys().keys;
  const auto found = std::find_if(keys.begin(), keys.end(),
                                  [&](const KeyInfo& key) { return key.path == pattern; });
  return found == keys.end() ? nullptr : &*found;
}

std::string below(const std::string& table, std::string_view key) {
  return table + (table.empty() ? "" : ".") + std::string(key);
}

// ---------------------------------------------------------------- from structs to settings

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
      const KeyInfo* const info = key_at(pattern);
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

  /// The word under "kind", with the options of that kind beside it.
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

// ---------------------------------------------------------------- from settings to structs

class SettingsReader {
 public:
  template <Table T>
  void table(const ConfigValue& from, T& to, const std::string& pattern) const {
    const KeyInfo* const info = pattern.empty() ? nullptr : key_at(pattern);
    ConfigValue whole;
    const bool is_short = from.kind != Kind::table && info != nullptr;
    if (is_short) whole.add(std::string(info->short_key), from);
    const ConfigValue& table = is_short ? whole : from;
    each_member(Of<T>{}, [&](const char* key, auto member) {
      auto& target = to.*member;
      using Target = std::decay_t<decltype(target)>;
      if constexpr (is_optional<Target>) {
        if constexpr (is_kind<typename Target::value_type>) {
          if (const ConfigValue* word = table.find("kind"))
            kind(word->text, table, target.emplace(), pattern);
          return;
        }
      }
      if (const ConfigValue* value = table.find(key)) read(*value, target, below(pattern, key));
    });
  }

 private:
  template <class T>
  void read(const ConfigValue& from, T& to, const std::string& pattern) const {
    if constexpr (is_optional<T>) {
      read(from, to.emplace(), pattern);
    } else if constexpr (std::is_same_v<T, bool>) {
      to = from.boolean;
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
      to = from.integer;
    } else if constexpr (std::is_same_v<T, double>) {
      to = from.number;
    } else if constexpr (std::is_same_v<T, std::string>) {
      to = from.text;
    } else if constexpr (std::is_same_v<T, Duration>) {
      const auto duration = parse_duration(from.text);
      if (duration) to = {duration->value, static_cast<Duration::Unit>(duration->unit)};
    } else if constexpr (std::is_enum_v<T>) {
      const std::vector<std::string> words = words_of(words_of_enum<T>);
      const auto found = std::find(words.begin(), words.end(), from.text);
      to = static_cast<T>(found - words.begin());
    } else if constexpr (is_list<T>) {
      const bool is_plain = from.kind != Kind::list;
      if (is_plain) read(from, to.emplace_back(), pattern + "[]");
      for (const ConfigValue& item : from.items) read(item, to.emplace_back(), pattern + "[]");
    } else if constexpr (is_map<T>) {
      for (const ConfigValue::Member& item : from.members)
        read(item.value, to[item.key], pattern + ".*");
    } else if constexpr (is_choice<T>) {
      choose(from, to, pattern);
    } else {
      table(from, to, pattern);
    }
  }

  /// Takes the type of a value that a TOML value can be.
  template <class... Types>
  void choose(const ConfigValue& from, std::variant<Types...>& to,
              const std::string& pattern) const {
    bool is_taken = false;
    const auto take = [&](auto of) {
      using Type = typename decltype(of)::Type;
      if (is_taken || !may_be<Type>(from)) return;
      is_taken = true;
      read(from, to.template emplace<Type>(), pattern);
    };
    (take(Of<Types>{}), ...);
  }

  template <class T>
  static bool may_be(const ConfigValue& from) {
    const bool is_text = from.kind == Kind::string;
    if constexpr (std::is_same_v<T, std::int64_t>) return from.kind == Kind::integer;
    if constexpr (std::is_same_v<T, double>)
      return from.kind == Kind::integer || from.kind == Kind::number;
    if constexpr (std::is_enum_v<T> || std::is_same_v<T, std::string>) return is_text;
    if constexpr (is_map<T>) return from.kind == Kind::table;
    return from.kind == Kind::list || is_text;  // a text is a list of one
  }

  /// `table`: what has the options beside the word.
  template <class... Kinds>
  void kind(const std::string& word, const ConfigValue& options, std::variant<Kinds...>& to,
            const std::string& pattern) const {
    const auto take = [&](auto of) {
      using Chosen = typename decltype(of)::Type;
      if (word != word_of_kind<Chosen>) return;
      Chosen& chosen = to.template emplace<Chosen>();
      each_member(Of<Chosen>{}, [&](const char* key, auto member) {
        if (const ConfigValue* value = options.find(key))
          read(*value, chosen.*member, below(pattern, key));
      });
    };
    (take(Of<Kinds>{}), ...);
  }
};

/// Groups without a rule of their own have the optimizer's.
void add_inherited_kinds(ConfigValue& settings) {
  ConfigValue* const optimizer = settings.find("optimizer");
  ConfigValue* const groups = optimizer != nullptr ? optimizer->find("groups") : nullptr;
  const ConfigValue* const kind = optimizer != nullptr ? optimizer->find("kind") : nullptr;
  if (groups == nullptr || kind == nullptr) return;
  const ConfigValue inherited = *kind;
  for (ConfigValue& group : groups->items) {
    if (group.find("kind") == nullptr) group.add("kind", inherited);
  }
}

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

ConfigValue settings_of(const TrainConfig& config) {
  ConfigValue settings = SettingsWriter("TrainConfig").table(config, "");
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
  const SettingsWriter writer("SessionConfig");
  TrainConfig whole{.model = config.model,
                    .policy = config.policy,
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
  return writer.table(whole, "");
}

TrainConfig config_of(const ConfigValue& settings) {
  ConfigValue whole = settings;
  add_inherited_kinds(whole);
  TrainConfig config;
  SettingsReader().table(whole, config, "");
  return config;
}

std::string toml_of(const ConfigValue& settings) {
  std::string text, sections;
  for (const ConfigValue::Member& member : settings.members) {
    if (member.value.kind != Kind::table) {
      text += toml_key(member.key) + " = " + toml_value(member.value) + "\n";
      continue;
    }
    sections += "\n[" + toml_key(member.key) + "]\n";
    for (const ConfigValue::Member& inner : member.value.members)
      sections += toml_key(inner.key) + " = " + toml_value(inner.value) + "\n";
  }
  return text + sections;
}

}  // namespace tandem::api
