// Makes the table of keys out of visits: types and defaults are those of the members.
#include <algorithm>
#include <deque>

#include "engine/config/keys/key_visitor.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

/// The texts that rows point into live as long as the program.
std::string_view keep(std::string text) {
  static std::deque<std::string> texts;
  return texts.emplace_back(std::move(text));
}

std::span<const KeyOfKind> keep(std::vector<KeyOfKind> kinds) {
  static std::deque<std::vector<KeyOfKind>> lists;
  return lists.emplace_back(std::move(kinds));
}

/// What is written about a key, and the kinds that it applies to.
struct Said {
  std::string text;
  std::vector<std::string> kinds;
};

void say(std::vector<Said>& all, std::string_view text, const std::string& kind) {
  auto found = std::find_if(all.begin(), all.end(), [&](const Said& s) { return s.text == text; });
  if (found == all.end()) found = all.insert(all.end(), {std::string(text), {}});
  found->kinds.push_back(kind);
}

/// As KeyInfo::fallback: that of most kinds, then those of others.
std::string fallback_of(std::vector<Said> all) {
  if (all.size() == 1) return all[0].text;
  const auto most = std::max_element(all.begin(), all.end(), [](const Said& a, const Said& b) {
    return a.kinds.size() < b.kinds.size();
  });
  std::rotate(all.begin(), most, most + 1);
  std::vector<std::string> texts;
  for (const Said& said : all) {
    texts.push_back((said.text.empty() ? "none" : said.text) +
                    (texts.empty() ? "" : " for " + joined(said.kinds, ", ")));
  }
  return "(" + joined(texts, "; ") + ")";
}

/// The rows of keys that some kinds have; a key of several kinds is listed once.
class RowsOfKinds {
 public:
  explicit RowsOfKinds(std::vector<std::string> kinds) : kinds_(std::move(kinds)) {}

  void add(const std::string& kind, const KeyInfo& row) {
    auto found = std::find_if(rows_.begin(), rows_.end(),
                              [&](const SharedRow& g) { return g.row.path == row.path; });
    if (found == rows_.end()) found = rows_.insert(rows_.end(), {row, {}, {}, {}});
    found->kinds.push_back({keep(kind), row.type, row.fallback, row.allowed, row.help});
    found->row.type |= row.type;
    found->row.low = std::min(found->row.low, row.low);
    found->row.high = std::max(found->row.high, row.high);
    say(found->helps, row.help, kind);
    // Other kinds do without it.
    say(found->fallbacks, row.fallback == "required" ? "" : row.fallback, kind);
  }

  std::vector<KeyInfo> rows() const {
    std::vector<KeyInfo> rows;
    for (const auto& [row, helps, fallbacks, of_kinds] : rows_) {
      std::vector<std::string> texts;
      for (const auto& [text, having] : helps)
        texts.push_back(text + whose(having, helps.size() == 1));
      KeyInfo& all = rows.emplace_back(row);
      if (!row.path.ends_with("[]")) all.help = keep(joined(texts, "; "));
      all.fallback = keep(fallback_of(fallbacks));
      all.kinds = keep(of_kinds);
    }
    return rows;
  }

 private:
  struct SharedRow {
    KeyInfo row;
    std::vector<Said> helps, fallbacks;
    std::vector<KeyOfKind> kinds;
  };

  /// The kinds that have it; or those that lack it, where no kind has another value and that is
  /// shorter.
  std::string whose(const std::vector<std::string>& having, bool is_all) const {
    std::vector<std::string> lacking;
    for (const std::string& kind : kinds_) {
      if (std::find(having.begin(), having.end(), kind) == having.end()) lacking.push_back(kind);
    }
    if (lacking.empty()) return "";
    if (is_all && lacking.size() < having.size()) return " (not for " + joined(lacking, ", ") + ")";
    return " (" + joined(having, ", ") + ")";
  }

  std::vector<std::string> kinds_;
  std::vector<SharedRow> rows_;
};

class KeyLister final : public KeyVisitor {
 public:
  KeyLister(std::string prefix, std::vector<KeyInfo>& rows)
      : prefix_(std::move(prefix)), rows_(rows) {}

  void of_kind(const KindList& kinds) override {
    const std::vector<std::string> names = words_of(kinds.names);
    RowsOfKinds gathered(names);
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::vector<KeyInfo> own;
      KeyLister lister(prefix_, own);
      kinds.visit(lister, i);
      for (const KeyInfo& row : own) gathered.add(names[i], row);
    }
    for (const KeyInfo& row : gathered.rows()) rows_.push_back(row);
  }

 protected:
  void value(std::string_view name, const KeyNotes& notes, const KeyForm& form) override {
    KeyInfo row = notes.info;
    std::string own;
    if (row.fallback.empty() && form.write) row.fallback = own = form.write();
    add(name, row);
    for (const KeyInfo& part : notes.parts) add(std::string(name) + std::string(part.path), part);
  }

  void nested(std::string_view name, const KeyNotes& notes, const Visit& visit) override {
    KeyInfo row = notes.info;
    row.type |= table_value;
    add(name, row);
    KeyLister inside(prefix_ + std::string(name) + ".", rows_);
    visit(inside);
  }

  void items(std::string_view name, const KeyNotes& notes, const TableItems& list) override {
    KeyInfo row = notes.info, item = {.type = row.type, .help = list.item_help};
    std::swap(row.short_key, item.short_key);
    row.type = list.is_named ? table_value : list_value;
    add(name, row);
    list.add("", {});
    const Visit visit = [&](KeyVisitor& v) { list.visit(v, list.size() - 1); };
    nested(std::string(name) + (list.is_named ? ".*" : "[]"), {item}, visit);
  }

 private:
  void add(std::string_view name, KeyInfo row) {
    row.path = keep(prefix_ + std::string(name));
    for (std::string_view* text : {&row.fallback, &row.allowed, &row.help})
      *text = keep(std::string(*text));
    rows_.push_back(row);
  }

  std::string prefix_;
  std::vector<KeyInfo>& rows_;
};

}  // namespace

std::vector<KeyInfo> list_keys(const Visit& visit) {
  std::vector<KeyInfo> rows;
  KeyLister lister("", rows);
  visit(lister);
  return rows;
}

}  // namespace tandem
