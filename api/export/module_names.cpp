#include "api/export/module_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "api/export/peft_places.h"
#include "engine/formats/count_text.h"
#include "engine/graph/parameter_names.h"
#include "importer/parameter_path.h"

namespace tandem::api {
namespace {

bool has_made_up_name(const NamedTensor& tensor) {
  // A single number, such as epsilon or a factor, belongs to no module.
  return tensor.tensor.type().elements() > 1 && importer::is_generated_name(tensor.name);
}

struct NewName {
  std::string before, after;
  bool in_first = false;  // a product reads it as [in, out]
};

/// The names that readers give, each once.
std::vector<NewName> new_names(const CheckpointContent& content, const Graph& graph) {
  const ParameterNames names(graph);
  std::map<std::string, int> taken;
  for (const NamedTensor& tensor : content.model) ++taken[tensor.name];
  for (const auto& [other, name] : content.aliases) ++taken[other];
  std::vector<NewName> found;
  for (const NamedTensor& tensor : content.model) {
    const State* const state = graph.find_state(tensor.name);
    if (!has_made_up_name(tensor) || state == nullptr) continue;
    const std::vector<PeftPlace> places =
        possible_places(tensor.name, tensor.tensor.type(), names.readers(*state));
    if (places.size() != 1) continue;
    found.push_back(
        {tensor.name, places[0].module + "." + places[0].role, is_in_first(graph, *state)});
    ++taken[found.back().after];
  }
  std::erase_if(found, [&](const NewName& name) { return taken[name.after] > 1; });
  return found;
}

/// The first of them, one a line.
std::string listed(const std::vector<NewName>& all) {
  constexpr std::size_t most = 20;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, all.size()); ++i)
    text += fmt::format("  {} is {}{}\n", all[i].before, all[i].after,
                        all[i].in_first ? ", [in, out]" : "");
  if (all.size() > most)
    text += fmt::format("  and {} more, which the metadata of the file lists\n", all.size() - most);
  return text;
}

}  // namespace

bool has_made_up_names(const CheckpointContent& content) {
  return std::any_of(content.model.begin(), content.model.end(), has_made_up_name);
}

std::string name_by_modules(CheckpointContent& content, const Graph& graph) {
  const std::vector<NewName> all = new_names(content, graph);
  std::map<std::string, std::string> after;
  for (const NewName& name : all) after[name.before] = name.after;
  for (NamedTensor& tensor : content.model) {
    if (const auto found = after.find(tensor.name); found != after.end())
      tensor.name = found->second;
  }
  for (auto& [other, name] : content.aliases) {
    if (const auto found = after.find(name); found != after.end()) name = found->second;
  }
  content.aliases.insert(after.begin(), after.end());
  std::string text;
  if (!all.empty())
    text = "names      " + count_text(all.size(), "tensor") +
           " with a name that the exporter made up, by the module that reads it:\n" + listed(all);
  const auto turned =
      std::count_if(all.begin(), all.end(), [](const NewName& name) { return name.in_first; });
  if (turned > 0)
    text += "warning: " + count_text(turned, "weight") +
            " [in, out] as the file's MatMul reads them: PyTorch's Linear has [out, in], so "
            "transpose them (W.T) for load_state_dict\n";
  const auto kept = std::count_if(content.model.begin(), content.model.end(), has_made_up_name);
  if (kept > 0)
    text += "warning: a name that the exporter made up stays for " + count_text(kept, "tensor") +
            ", which no single module reads\n";
  return text;
}

}  // namespace tandem::api
