#include "engine/train/start/reader_notes.h"

#include "engine/graph/parameter_names.h"

namespace tandem {
namespace {

/// Rules for an adapter name the weight that it belongs to.
bool is_adapter(const State& state) { return state.name.find("/lora_") != std::string::npos; }

/// "" where the selector means every parameter by its own names, or none.
std::string reader_note(const std::string& key, const std::string& at, const Graph& graph,
                        const ParameterNames& names) {
  constexpr std::size_t most_shown = 3;
  const Selector selector(at);
  std::size_t count = 0;
  std::string shown;
  for (const State& state : graph.states) {
    if (state.kind != StateKind::parameter || !state.derived.is_saved() || is_adapter(state))
      continue;
    const std::string reader = names.matched_reader(selector, state);
    if (reader.empty()) continue;
    if (++count <= most_shown) shown += (count == 1 ? "" : ", ") + state.path + " as " + reader;
  }
  if (count == 0) return "";
  const std::string more =
      count > most_shown ? " and " + std::to_string(count - most_shown) + " more" : "";
  return key + " \"" + at + "\" means " + std::to_string(count) +
         (count == 1 ? " parameter by what reads it: " : " parameters by what reads them: ") +
         shown + more;
}

}  // namespace

std::vector<std::string> reader_notes(const RunConfig& config, const Graph& graph) {
  const ParameterNames names(graph);
  std::vector<std::string> notes;
  const auto add = [&](const std::string& key, const std::string& at) {
    if (at.empty() || at == "**") return;
    if (std::string note = reader_note(key, at, graph, names); !note.empty())
      notes.push_back(std::move(note));
  };
  const auto add_all = [&](const std::string& key, const auto& rules) {
    for (const auto& rule : rules) add(key, rule.at);
  };
  const ParametersConfig& parameters = config.parameters;
  add_all("parameters.freeze", parameters.freeze);
  add_all("parameters.load", parameters.load);
  add_all("parameters.shape", parameters.shape);
  add_all("parameters.init", parameters.init);
  add_all("parameters.storage", parameters.storage);
  add_all("parameters.fixed_rows", parameters.fixed_rows);
  add_all("parameters.head", parameters.head);
  add_all("parameters.lora", parameters.lora);
  add_all("parameters.train", parameters.train);
  add_all("optimizer.groups", config.optimizer.groups);
  for (const std::string& at : config.log.norms) add("log.norms", at);
  for (const std::string& at : config.log.histograms) add("log.histograms", at);
  return notes;
}

}  // namespace tandem
