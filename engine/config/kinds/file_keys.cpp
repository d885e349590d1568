#include "engine/config/kinds/file_keys.h"

#include <algorithm>

#include "engine/formats/files.h"

namespace tandem {

std::vector<std::string> expand_names(const Found& found, const ConfigValue& text) {
  if (text.kind != ConfigValue::Kind::string) return {};
  auto names = expand_braces(text.text);
  if (names) return *std::move(names);
  Found{found.table, found.key, text}.report("braces do not fit, or make too many names",
                                             "{0..9} or {a,b}, 100000 names at most",
                                             describe(text));
  return {};
}

namespace {

using FileKind = ConfigValue::Kind;

std::vector<std::string> paths_of(const Found& found, const std::string& root,
                                  const ConfigValue& value) {
  std::vector<std::string> result;
  const auto add = [&](const ConfigValue& text) {
    if (text.kind != FileKind::string) return;
    std::string literal = found.table.resolve(text, root);
    if (path_exists(literal)) {  // braces and all
      result.push_back(std::move(literal));
      return;
    }
    for (std::string& name : expand_names(found, text)) {
      ConfigValue one = text;
      one.text = std::move(name);
      result.push_back(found.table.resolve(one, root));
    }
  };
  if (value.kind != FileKind::list) add(value);
  for (const ConfigValue& item : value.items) add(item);
  return result;
}

void read_files(const Found& found, const FilesForm& form, const std::string& root,
                std::vector<ArrayFiles>& to) {
  const bool is_table = found.value.kind == FileKind::table;
  if (is_table ? !form.is_table : !form.is_list) {
    const bool is_any_taken = form.is_table || form.is_list;
    found.report(std::string(form.refusal),
                 !is_any_taken ? ""
                 : is_table    ? "a list"
                               : "a table",
                 "", std::string(form.fix));
    if (!is_table || !is_any_taken) return;
  } else if (!is_table) {
    to.push_back({"", paths_of(found, root, found.value), found.value.where});
  } else {
    for (const ConfigValue::Member& member : found.value.members) {
      if (member.value.kind != FileKind::invalid)
        to.push_back({member.key, paths_of(found, root, member.value), member.where});
    }
  }
  const bool any = std::any_of(to.begin(), to.end(),
                               [](const ArrayFiles& array) { return !array.paths.empty(); });
  if (!any) found.report("no file is named");
}

std::string files_as_toml(const std::vector<ArrayFiles>& files) {
  if (files.empty()) return "";
  if (files.size() == 1 && files[0].name.empty()) return toml_list_of_strings(files[0].paths);
  std::vector<std::pair<std::string, std::string>> values;
  for (const ArrayFiles& array : files)
    values.emplace_back(toml_key(array.name), toml_list_of_strings(array.paths));
  return toml_table(values);
}

}  // namespace

KeyForm files_form(std::vector<ArrayFiles>& member, const DataKind& kind, const std::string& root) {
  return {path_value | list_value | table_value,
          [&](const Found& found) {
            const FilesForm form =
                std::visit([](const auto& of_kind) { return of_kind.files; }, kind);
            read_files(found, form, root, member);
          },
          [&] { return files_as_toml(member); }};
}

}  // namespace tandem
