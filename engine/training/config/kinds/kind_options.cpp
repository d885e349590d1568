#include "engine/training/config/kinds/kind_options.h"

#include <cassert>

#include "engine/training/config/key_visitor.h"

namespace tandem {
namespace {

OptionValue empty_option(const OptionInfo& info) {
  if ((info.type & list_value) != 0) return std::vector<double>();
  if ((info.type & number_value) != 0) return 0.0;
  if ((info.type & integer_value) != 0) return std::int64_t{0};
  if ((info.type & boolean_value) != 0) return false;
  return std::string();
}

/// A value of the file, or the default as TOML; nothing where it is an empty list.
void set_option(const Found& found, const OptionInfo& info, OptionMap& options) {
  OptionValue option = empty_option(info);
  std::visit([&](auto& value) { form(value).read(found); }, option);
  const auto* list = std::get_if<std::vector<double>>(&option);
  if (list == nullptr || !list->empty()) options.insert_or_assign(std::string(info.key), option);
}

bool has_default(const OptionInfo& info) {
  return !info.fallback.empty() && !info.fallback.starts_with('(') && info.fallback != "required";
}

void set_default(const TableReader& table, const OptionInfo& info, OptionMap& options) {
  if (!has_default(info) || table.valid(info.key)) return;
  const ConfigValue root = parse_toml("x = " + std::string(info.fallback), "", table.errors());
  set_option({table, info.key, *root.find("x")}, info, options);
}

KeyForm option_form(const OptionInfo& info, OptionMap& options) {
  return {info.type, [&](const Found& found) { set_option(found, info, options); },
          [&] {
            const auto found = options.find(info.key);
            if (found == options.end()) return std::string();
            return std::visit([](auto& value) { return form(value).write(); }, found->second);
          },
          std::string(info.allowed)};
}

}  // namespace

void visit_options(KeyVisitor& v, const std::vector<OptionInfo>& infos, OptionMap& options) {
  for (const OptionInfo& info : infos) {
    v.when_read([&](const TableReader& table) { set_default(table, info, options); });
    const auto items = [&](KeyNotes& notes) {
      if ((info.type & list_value) != 0)
        parts("[]", number_value, info.item_help, between(info.low, info.high))(notes);
    };
    v.key(info.key, option_form(info, options), by_default(info.fallback),
          between(info.low, info.high), items, info.help);
  }
}

OptionMap default_options(const std::vector<OptionInfo>& infos) {
  OptionMap options;
  std::vector<Diagnostic> errors;
  const ConfigValue none;
  const std::string folder;
  const TableReader table(&none, "", folder, errors);
  for (const OptionInfo& info : infos) set_default(table, info, options);
  assert(errors.empty());
  return options;
}

}  // namespace tandem
