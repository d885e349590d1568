#include "engine/training/checkpoints/kept_defaults.h"

#include <algorithm>

#include "engine/graph/error.h"
#include "engine/training/config/config_value.h"
#include "engine/training/config/run_config.h"

namespace tandem {
namespace {

// The only default that has changed so far: that of lazy_adam, from "pytorch" to "onnx".
constexpr const char* key = "epsilon_form";

/// The option's value of this key; null where the options lack it.
const std::string* value_in(const OptimizerOptions& options) {
  const auto found = options.values.find(key);
  return found == options.values.end() ? nullptr : std::get_if<std::string>(&found->second);
}

bool says(const ConfigValue* table) { return table != nullptr && table->find(key) != nullptr; }

}  // namespace

std::vector<std::string> kept_defaults(const std::string& text, const std::string& file,
                                       const std::vector<std::string>& overrides,
                                       const std::string& resolved) {
  std::vector<std::string> kept;
  try {
    const OptimizerConfig now = parse_run_config(text, file, overrides).optimizer,
                          then = parse_run_config(resolved, file).optimizer;
    std::vector<Diagnostic> ignored;
    ConfigValue tree = parse_toml(text, file, ignored);
    for (const std::string& item : overrides) apply_override(tree, item, ignored);
    const ConfigValue* const optimizer = tree.find("optimizer");
    if (says(optimizer)) return kept;
    const auto keep = [&](const OptimizerOptions& a, const OptimizerOptions& b,
                          const std::string& path) {
      const std::string *is = value_in(a), *was = value_in(b);
      if (a.kind != b.kind || is == nullptr || was == nullptr || *is == *was) return;
      kept.push_back(path + "." + key + "=" + *was);
    };
    keep(now.base, then.base, "optimizer");
    const ConfigValue* const groups = optimizer != nullptr ? optimizer->find("groups") : nullptr;
    for (std::size_t i = 0; i < std::min(now.groups.size(), then.groups.size()); ++i) {
      if (groups == nullptr || i >= groups->items.size() || says(&groups->items[i])) continue;
      keep(now.groups[i].options, then.groups[i].options, "optimizer.groups." + std::to_string(i));
    }
  } catch (const Error&) {  // the caller that needs a valid one reports it
    kept.clear();
  }
  return kept;
}

}  // namespace tandem
