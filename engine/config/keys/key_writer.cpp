// Writes visited structs as TOML that reads back to equal ones.
#include "engine/config/keys/key_visitor.h"

namespace tandem {
namespace {

class KeyWriter final : public KeyVisitor {
 public:
  explicit KeyWriter(std::string path) : path_(std::move(path)) {}

  /// Lines of a section, the tables in it after its other keys; a table without any is left out.
  std::string section() const {
    std::string text;
    for (const auto& [key, value] : values_) text += key + " = " + value + "\n";
    if (!text.empty() && !path_.empty()) text.insert(0, "\n[" + path_ + "]\n");
    return text + sections_;
  }

  std::string line() const { return toml_table(values_); }

  void of_kind(const KindList& kinds) override { kinds.visit(*this, kinds.chosen); }

 protected:
  void value(std::string_view name, const KeyNotes& notes, const KeyForm& form) override {
    if (!notes.is_written || !form.write) return;
    std::string text = form.write();
    if (!text.empty()) values_.emplace_back(name, std::move(text));
  }

  void nested(std::string_view name, const KeyNotes& notes, const Visit& visit) override {
    if (!notes.is_written) return;
    KeyWriter inside((path_.empty() ? "" : path_ + ".") + std::string(name));
    visit(inside);
    if (notes.is_on_one_line)
      values_.emplace_back(name, inside.line());
    else
      sections_ += inside.section();
  }

  void items(std::string_view name, const KeyNotes& notes, const TableItems& list) override {
    if (!notes.is_written) return;
    KeyWriter by_name((path_.empty() ? "" : path_ + ".") + std::string(name));
    std::string text = "[\n";
    for (std::size_t i = 0; i < list.size(); ++i) {
      KeyWriter item("");
      list.visit(item, i);
      if (list.is_named) by_name.values_.emplace_back(toml_key(list.name(i)), item.line());
      text += "  " + item.line() + ",\n";
    }
    if (list.is_named)
      sections_ += by_name.section();
    else
      values_.emplace_back(name, text + "]");
  }

 private:
  std::string path_;  // path of the section
  std::vector<std::pair<std::string, std::string>> values_;
  std::string sections_;
};

}  // namespace

std::string write_keys(const Visit& visit) {
  KeyWriter writer("");
  visit(writer);
  return writer.section();
}

}  // namespace tandem
