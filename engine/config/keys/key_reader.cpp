// Reads visited structs from a table that was checked against the table of keys.
#include <algorithm>

#include "engine/config/keys/key_visitor.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

using Kind = ConfigValue::Kind;

/// Gathers the keys of a kind.
struct KeyNames final : KeyVisitor {
  std::vector<std::string> names;
  void value(std::string_view name, const KeyNotes&, const KeyForm&) override {
    names.emplace_back(name);
  }
  void nested(std::string_view name, const KeyNotes&, const Visit&) override {
    names.emplace_back(name);
  }
};

std::vector<std::string> names_of_kind(const KindVisit& visit, std::size_t kind) {
  return names_of_keys([&](KeyVisitor& v) { visit(v, kind); });
}

class KeyReader final : public KeyVisitor {
 public:
  /// `kind` has the keys that are visited, where they depend on it.
  explicit KeyReader(const TableReader& table, std::string kind = "")
      : table_(table), kind_(std::move(kind)) {}

  void of_kind(const KindList& kinds) override {
    if (!table_.valid("kind") && !(kinds.is_inherited && !table_.find("kind"))) return;
    KeyReader reader(table_, words_of(kinds.names)[kinds.chosen]);
    kinds.visit(reader, kinds.chosen);
    refuse_keys_of_others(kinds);
  }

  void when_read(const std::function<void(const TableReader&)>& act) override { act(table_); }

 protected:
  void value(std::string_view name, const KeyNotes& notes, const KeyForm& form) override {
    expect(name, notes, form.type);
    const ConfigValue* found = table_.valid(name);
    if (!found || !form.read) return;
    if (!kind_.empty()) check_range({table_, name, *found}, notes);
    const std::string_view word = word_meant(notes.info, found->text);
    if (word == found->text) {
      form.read({table_, name, *found});
    } else {
      ConfigValue meant = *found;
      meant.text = word;
      form.read({table_, name, meant});
    }
    if (!notes.time_refusal.empty()) refuse_times(name, *found, notes.time_refusal);
  }

  void nested(std::string_view name, const KeyNotes& notes, const Visit& visit) override {
    expect(name, notes, notes.info.type | table_value);
    const ConfigValue* found = table_.valid(name);
    if (found) read_table(name, *found, notes, visit);
  }

  void items(std::string_view name, const KeyNotes& notes, const TableItems& list) override {
    const ConfigValue* found = table_.valid(name);
    if (!found) return;
    const auto read_item = [&](const std::string& part, const ConfigValue& item,
                               const Where& where) {
      if (item.kind == Kind::invalid) return;
      list.add(part, where);
      read_table(std::string(name) + "." + part, item, notes,
                 [&](KeyVisitor& v) { list.visit(v, list.size() - 1); });
    };
    for (std::size_t i = 0; i < found->items.size(); ++i)
      read_item(std::to_string(i), found->items[i], found->items[i].where);
    for (const ConfigValue::Member& member : found->members)
      read_item(member.key, member.value, member.where);
  }

 private:
  /// Reports a key that the kind needs, and that is not there.
  void expect(std::string_view name, const KeyNotes& notes, unsigned type) const {
    if (kind_.empty() || notes.info.fallback != "required" || table_.find(name)) return;
    table_.report(table_.where(), name, "this key is missing: " + kind_ + " needs it",
                  type_text(type));
  }

  void read_table(std::string_view name, const ConfigValue& value, const KeyNotes& notes,
                  const Visit& visit) {
    ConfigValue table{.where = value.where};
    if (value.kind != Kind::table)
      table.members.push_back({std::string(notes.info.short_key), value.where, value});
    KeyReader reader(table_.part(name, value.kind == Kind::table ? value : table));
    visit(reader);
  }

  /// `value` is a duration, or a list of durations.
  void refuse_times(std::string_view name, const ConfigValue& value,
                    std::string_view refusal) const {
    for (const ConfigValue& item : value.items) refuse_times(name, item, refusal);
    const auto duration = parse_duration(value.text);
    if (duration && duration->unit == Duration::Unit::seconds)
      table_.report(value.where, name, std::string(refusal));
  }

  /// The table of keys has the widest range of all kinds, with its ends; and checks lists.
  void check_range(const Found& found, const KeyNotes& notes) const {
    const double low = notes.info.low, high = notes.info.high;
    const auto number = [](const ConfigValue& value) {
      const bool is_number = value.kind == Kind::number || value.kind == Kind::integer;
      return is_number ? std::optional(value.number) : std::nullopt;
    };
    const bool is_number = number(found.value).has_value();
    double greatest = number(found.value).value_or(-1e300);
    for (const ConfigValue& item : found.value.items)
      greatest = std::max(greatest, number(item).value_or(greatest));
    const bool is_whole = (notes.info.type & number_value) == 0;
    if (is_number && (greatest < low || greatest > high))
      found.report("out of range for " + kind_, range_text(notes.info.type, low, high),
                   is_whole ? std::to_string(std::llround(greatest)) : toml_number(greatest));
    else if (notes.is_below && greatest >= high)
      found.report("out of range", below_text(high), toml_number(greatest));
  }

  void refuse_keys_of_others(const KindList& kinds) const {
    const std::vector<std::string> own =
        names_of_kind(kinds.tell ? kinds.tell : kinds.visit, kinds.chosen);
    std::vector<std::string> others;
    const auto has = [](const std::vector<std::string>& names, const std::string& key) {
      return std::find(names.begin(), names.end(), key) != names.end();
    };
    for (std::size_t i = 0; i < words_of(kinds.names).size(); ++i) {
      for (const std::string& key : names_of_kind(kinds.visit, i))
        if (!has(own, key) && !has(others, key)) others.push_back(key);
    }
    std::vector<Found> found;
    for (const std::string& key : others) {
      if (const ConfigValue* value = table_.valid(key)) found.push_back({table_, key, *value});
    }
    if (kinds.refusal == passed_over && found.size() == others.size()) return;
    for (const Found& one : found) refuse(one, kinds, own);
  }

  void refuse(const Found& found, const KindList& kinds,
              const std::vector<std::string>& own) const {
    std::string message(kinds.refusal), expected, fix;
    if (message.empty() || message == passed_over)
      message = "not an option of " + words_of(kinds.names)[kinds.chosen];
    if (kinds.tell) {
      if (!own.empty()) expected = "its own are " + joined(own);
      fix = did_you_mean(nearest_name(found.key, own), "", "`");
    }
    const ConfigValue* kind = table_.find("kind");
    if (table_.leaves_out(found.key, kind ? kind : kinds.inherited, message)) return;
    found.report(std::move(message), std::move(expected), "", std::move(fix));
  }

  TableReader table_;
  std::string kind_;
};

}  // namespace

std::string below_text(double high) {
  std::string text = toml_number(high);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return "below " + text;
}

void KeyVisitor::place(Where& where) {
  when_read([&](const TableReader& table) { where = table.where(); });
}

std::vector<std::string> names_of_keys(const Visit& visit) {
  KeyNames gathered;
  visit(gathered);
  return std::move(gathered.names);
}

void read_keys(const TableReader& table, const Visit& visit) {
  KeyReader reader(table);
  visit(reader);
}

}  // namespace tandem
