// Writes policy.toml: everything on one device, with suggestions for changes.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "api/init/configuration.h"
#include "engine/config/keys/config_value.h"
#include "kernels/device_backend.h"
#include "placement/device_use.h"

namespace tandem::api {
namespace {

constexpr std::int64_t large_table = std::int64_t{64} << 20;  // bytes

/// The first usable accelerator of the families that have a name of their own.
struct UsableDevice {
  std::string name, model;  // "gpu", "NVIDIA H100"; "" if there is none
};

UsableDevice usable_device() {
  for (const DeviceBackend& backend : device_backends()) {
    if (backend.family->name.empty() || !backend.look) continue;
    const DeviceReport report = backend.look();
    for (const FoundDevice& device : report.devices) {
      if (report.problem.empty() && device.problem.empty())
        return {std::string(backend.family->name), device.name};
    }
  }
  return {};
}

/// A selector of the operators that read a table, which also covers the table.
std::string scope_of(const TableFacts& table) {
  const std::size_t colon = table.path.rfind(':');
  return colon == std::string::npos ? table.path : table.path.substr(0, colon) + ".**";
}

std::string rule(const std::string& at, const std::string& device, const std::string& why) {
  return fmt::format("{{ at = {}, on = \"{}\", why = {} }}", toml_string(at), device,
                     toml_string(why));
}

}  // namespace

GuessedPolicy guess_policy(const ModelFacts& model) {
  const UsableDevice device = usable_device();
  const bool found = !device.model.empty();
  const std::string noun = nouns_of(&DeviceFamily::is_hardware);
  GuessedPolicy result;
  std::string lines;
  const auto add = [&](const std::string& text) {
    result.rules.push_back(text);
    lines += "  " + text + ",\n";
  };
  if (found)
    add(rule("**", device.name, device.model + " was found"));
  else
    add(rule("**", "cpu", "no " + noun + " was found"));
  std::set<std::string> scopes;
  for (const TableFacts& table : model.tables) {
    if (!scopes.insert(scope_of(table)).second) continue;
    const std::int64_t bytes = table.rows * table.width * 4;
    const std::string text =
        rule(scope_of(table), "cpu",
             fmt::format("a table of {} rows, of which a batch touches few", table.rows));
    if (found && bytes >= large_table)
      add(text);
    else
      lines += "  # " + text + ",\n";
  }
  const std::string file = std::filesystem::path(model.path).filename().string();
  result.text = comment("Where " + file +
                        " runs, and where its parameters live: the last rule "
                        "that matches wins. `tandem policy names` lists what rules may name, "
                        "`tandem policy plan policy.toml --config train.toml` shows memory, copies "
                        "and time, `tandem policy auto` searches a placement under a budget.");
  if (!model.tables.empty() && result.rules.size() == 1) {
    result.text += comment("Rules after a # keep a table on the host while a " + noun +
                           " computes the rest; use them if tables are larger than its memory.");
  }
  result.text += "policy = 1\nrules = [\n" + lines + "]\n";
  return result;
}

}  // namespace tandem::api
