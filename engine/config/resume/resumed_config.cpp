#include "engine/config/resume/resumed_config.h"

#include <filesystem>

#include "engine/config/keys/config_keys.h"
#include "engine/formats/files.h"

namespace tandem {
namespace {

/// Makes paths absolute that earlier command lines have set relative to the current folder at that
/// time.
void make_absolute(ConfigValue& value, const std::string& key, const std::string& folder) {
  for (ConfigValue::Member& member : value.members)
    make_absolute(member.value, key.empty() ? member.key : key + "." + member.key, folder);
  for (std::size_t i = 0; i < value.items.size(); ++i)
    make_absolute(value.items[i], key + "." + std::to_string(i), folder);
  const bool is_text = value.kind == ConfigValue::Kind::string && !value.text.empty();
  if (!is_text || !is_earlier_command_line(value.where.file)) return;
  const KeyInfo* const info = train_keys().find(key);
  if (info == nullptr || !(info->type & path_value)) return;
  const std::string there = (std::filesystem::path(folder) / value.text).lexically_normal();
  if (path_exists(there)) value.text = there;
}

bool is_length(const std::string& item) {
  const std::string key = item.substr(0, item.find('='));
  return key == "steps" || key == "epochs";
}

}  // namespace

StartRecord without_lengths(StartRecord started) {
  for (GivenKeys& given : started.commands) std::erase_if(given.overrides, is_length);
  std::erase_if(started.commands, [](const GivenKeys& given) { return given.overrides.empty(); });
  return started;
}

void lay_over(ConfigValue& tree, const StartRecord& started, std::vector<Diagnostic>& errors) {
  for (std::size_t i = 0; i < started.commands.size(); ++i) {
    for (const std::string& item : started.commands[i].overrides)
      apply_override(tree, item, errors, earlier_command_line(i));
    make_absolute(tree, "", started.commands[i].folder);
  }
}

}  // namespace tandem
