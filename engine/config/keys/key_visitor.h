// A key is declared once: the visit of a struct names each key with its member, range and help.
// Configurations are read, checked, written and documented by visitors.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/config/keys/key_forms.h"
#include "engine/config/keys/key_notes.h"

namespace tandem {

class KeyVisitor;
using Visit = std::function<void(KeyVisitor&)>;
using KindVisit = std::function<void(KeyVisitor&, std::size_t kind)>;

/// A list of tables, or a table of tables by name.
struct TableItems {
  std::string_view item_help;
  bool is_named = false;
  std::function<std::size_t()> size;
  std::function<void(const std::string& name, const Where&)> add;
  std::function<std::string(std::size_t)> name;
  std::function<void(KeyVisitor&, std::size_t)> visit;
};

/// Keys that depend on the word under "kind". `visit` is asked for the keys of any kind; those of
/// kinds that are not chosen may go to a struct that is thrown away.
struct KindList {
  std::string_view names;  // "a|b|c"
  std::size_t chosen = 0;
  KindVisit visit;
  /// Message for keys of other kinds, in place of "not an option of KIND".
  std::string_view refusal = "";
  /// Visits all keys of a kind, where `visit` has only some of them: the message lists these.
  KindVisit tell = {};
  bool is_inherited = false;               // "kind" may be absent
  const ConfigValue* inherited = nullptr;  // the value that another table has for it then
};
/// A refusal that makes keys of other kinds pass without a message where all of them are present,
/// as in files of earlier versions.
inline constexpr std::string_view passed_over = "passed over";

/// The names of a variant's kinds.
template <class... Kinds>
const std::string& kind_names(const std::variant<Kinds...>&) {
  static const std::string names = [] {
    std::string all;
    ((all += (all.empty() ? "" : "|") + std::string(Kinds::name)), ...);
    return all;
  }();
  return names;
}
/// A kind with its defaults.
template <class... Kinds>
void choose(std::variant<Kinds...>& chosen, std::size_t kind) {
  std::size_t i = 0;
  ((i++ == kind ? void(chosen = Kinds{}) : void()), ...);
}
template <class... Kinds>
KeyForm form(std::variant<Kinds...>& chosen) {
  return word(
      kind_names(chosen), [&] { return chosen.index(); },
      [&](std::size_t kind) { choose(chosen, kind); });
}

class KeyVisitor {
 public:
  virtual ~KeyVisitor() = default;

  template <class T, class... Notes>
  void key(std::string_view name, T&& member, const Notes&... notes) {
    const KeyForm member_form = form(std::forward<T>(member));
    KeyNotes all{{.type = member_form.type, .allowed = member_form.allowed}};
    (note(all, notes), ...);
    value(name, all, member_form);
  }

  template <class... Notes>
  void table(std::string_view name, const Visit& visit_it, const Notes&... notes) {
    KeyNotes all;
    (note(all, notes), ...);
    nested(name, all, visit_it);
  }
  /// A table with the keys of a struct that has a visit.
  template <class Config, class... Notes>
  void section(std::string_view name, Config& config, const Notes&... notes) {
    table(
        name, [&](KeyVisitor& v) { visit(v, config); }, notes...);
  }

  /// A list of tables; the struct has the members that `visit_item` visits, and `where`.
  template <class T, class VisitItem, class... Notes>
  void tables(std::string_view name, std::vector<T>& list, std::string_view item_help,
              const VisitItem& visit_item, const Notes&... notes) {
    add_tables(name, list, static_cast<std::string T::*>(nullptr), item_help, visit_item, notes...);
  }
  /// Tables by name, which becomes a member.
  template <class T, class VisitItem, class... Notes>
  void named_tables(std::string_view name, std::vector<T>& list, std::string T::*item_name,
                    std::string_view item_help, const VisitItem& visit_item,
                    const Notes&... notes) {
    add_tables(name, list, item_name, item_help, visit_item, notes...);
  }

  virtual void of_kind(const KindList&) {}
  /// The keys of a variant's kinds, each of which has a visit.
  template <class... Kinds>
  void of_kind(std::variant<Kinds...>& chosen, std::string_view refusal = "") {
    const auto visit_kind = [&](KeyVisitor& v, std::size_t kind) {
      std::variant<Kinds...> other;
      choose(other, kind);
      std::visit([&](auto& keys) { visit(v, keys); }, kind == chosen.index() ? chosen : other);
    };
    of_kind(KindList{kind_names(chosen), chosen.index(), visit_kind, refusal});
  }
  /// What happens when a file is read, with the table that holds the keys: defaults that depend on
  /// something, and checks of several keys.
  virtual void when_read(const std::function<void(const TableReader&)>&) {}
  void place(Where& where);

 protected:
  virtual void value(std::string_view name, const KeyNotes&, const KeyForm&) = 0;
  virtual void nested(std::string_view, const KeyNotes&, const Visit&) {}
  virtual void items(std::string_view, const KeyNotes&, const TableItems&) {}

 private:
  template <class T, class VisitItem, class... Notes>
  void add_tables(std::string_view name, std::vector<T>& list, std::string T::*item_name,
                  std::string_view item_help, const VisitItem& visit_item, const Notes&... notes) {
    KeyNotes all{{.fallback = item_name == nullptr ? "[]" : ""}, !list.empty()};
    (note(all, notes), ...);
    items(name, all,
          {.item_help = item_help,
           .is_named = item_name != nullptr,
           .size = [&] { return list.size(); },
           .add =
               [&, item_name](const std::string& of, const Where& where) {
                 T& item = list.emplace_back();
                 item.where = where;
                 if (item_name != nullptr) item.*item_name = of;
               },
           .name = [&, item_name](std::size_t i) { return list[i].*item_name; },
           .visit = [&](KeyVisitor& v, std::size_t i) { visit_item(v, list[i]); }});
  }
};

/// The rows of a table of keys that a visit makes; it adds items to lists of what it visits.
std::vector<KeyInfo> list_keys(const Visit& visit);
/// The names of the keys that a visit makes, without those inside of tables.
std::vector<std::string> names_of_keys(const Visit& visit);
/// Reads a checked table.
void read_keys(const TableReader& table, const Visit& visit);
/// As TOML.
std::string write_keys(const Visit& visit);

}  // namespace tandem
