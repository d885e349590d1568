// Public structs of configurations out of settings.
#include <type_traits>
#include <utility>

#include "api/train/config_members.h"
#include "api/train/config_settings.h"
#include "engine/config/keys/config_check.h"
#include "engine/config/keys/config_keys.h"

namespace tandem::api::members {
namespace {

using Kind = ConfigValue::Kind;

class SettingsReader {
 public:
  template <Table T>
  void table(const ConfigValue& from, T& to, const std::string& pattern) const {
    const KeyInfo* const info = pattern.empty() ? nullptr : train_keys().find(pattern);
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

  /// `options`: the table that has the options next to the word.
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

}  // namespace
}  // namespace tandem::api::members

namespace tandem::api {

TrainConfig config_of(const ConfigValue& settings) {
  ConfigValue whole = settings;
  members::add_inherited_kinds(whole);
  TrainConfig config;
  members::SettingsReader().table(whole, config, "");
  return config;
}

}  // namespace tandem::api
