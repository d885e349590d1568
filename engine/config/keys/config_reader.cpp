#include "engine/config/keys/config_reader.h"

#include <filesystem>

#include "engine/config/resume/moved_paths.h"
#include "engine/formats/files.h"

namespace tandem {

using Kind = ConfigValue::Kind;

const ConfigValue* TableReader::valid(std::string_view key) const {
  const ConfigValue* value = find(key);
  return value && value->kind != Kind::invalid ? value : nullptr;
}

void TableReader::read(std::string_view key, bool& to) const {
  if (const ConfigValue* value = valid(key)) to = value->boolean;
}
void TableReader::read(std::string_view key, double& to) const {
  if (const ConfigValue* value = valid(key)) to = value->number;
}
void TableReader::read(std::string_view key, std::string& to) const {
  if (const ConfigValue* value = valid(key)) to = value->text;
}

void TableReader::read_path(std::string_view key, std::string& to) const {
  if (const ConfigValue* value = valid(key)) to = resolve(*value);
}

TableReader TableReader::table(std::string_view key) const {
  const ConfigValue* value = valid(key);
  if (value && value->kind != Kind::table) value = nullptr;
  return {value, (path_.empty() ? "" : path_ + ".") + std::string(key), folder_, errors_, notes_,
          moved_};
}

TableReader TableReader::part(std::string_view key, const ConfigValue& value) const {
  return {&value, (path_.empty() ? "" : path_ + ".") + std::string(key), folder_, errors_, notes_,
          moved_};
}

std::vector<TableReader> TableReader::tables(std::string_view key) const {
  std::vector<TableReader> result;
  const ConfigValue* value = valid(key);
  if (!value) return result;
  const std::string path = (path_.empty() ? "" : path_ + ".") + std::string(key);
  for (std::size_t i = 0; i < value->items.size(); ++i) {
    if (value->items[i].kind != Kind::table) continue;
    result.emplace_back(&value->items[i], path + "." + std::to_string(i), folder_, errors_, notes_,
                        moved_);
  }
  return result;
}

std::string TableReader::resolve(const ConfigValue& text, const std::string& folder) const {
  namespace fs = std::filesystem;
  if (text.text.find('\0') != std::string::npos)
    report(text.where, "", "a path cannot hold the character NUL", "a path",
           toml_string(text.text));
  const fs::path path(text.text);
  std::error_code ignored;
  if (text.where.file == command_line && path_exists(text.text)) {
    return fs::absolute(path, ignored).lexically_normal().string();
  }
  std::string result = (fs::path(folder) / path).lexically_normal().string();
  if (result.size() > 1 && result.back() == '/') result.pop_back();
  return moved_ != nullptr ? moved_->now(result) : result;
}

bool TableReader::leaves_out(std::string_view key, const ConfigValue* choice,
                             const std::string& why) const {
  const ConfigValue* value = valid(key);
  if (!value || !choice || !outranks(choice->where, value->where)) return false;
  if (notes_ != nullptr) {
    notes_->push_back(at(value->where, (path_.empty() ? "" : path_ + ".") + std::string(key),
                         why + ", which the " + choice->where.file + " sets: this is left out"));
  }
  return true;
}

void TableReader::report(const Where& where, std::string_view key, std::string message,
                         std::string expected, std::string got, std::string fix) const {
  std::string path = path_;
  if (!key.empty()) path += (path.empty() ? "" : ".") + std::string(key);
  errors_.push_back(at(where, std::move(path), std::move(message), std::move(expected),
                       std::move(got), std::move(fix)));
}

}  // namespace tandem
