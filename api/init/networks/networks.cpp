// The list of networks, and functions that their rules share.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "api/init/networks/network.h"
#include "engine/graph/parameter_names.h"

namespace tandem::api {
namespace networks {
#define NETWORK(name) Network name();
#include "api/init/networks/all_networks.inl"
#undef NETWORK
}  // namespace networks

namespace {

/// Replaces path components that are numbers by `*`.
std::string pattern_of(const std::string& path) {
  std::string pattern;
  for (std::size_t i = 0; i < path.size();) {
    std::size_t end = i;
    while (end < path.size() && std::isdigit(static_cast<unsigned char>(path[end])) != 0) ++end;
    const bool is_part = end > i && (i == 0 || path[i - 1] == '.') &&
                         (end == path.size() || path[end] == '.' || path[end] == ':');
    if (end == i) {
      pattern += path[i++];
      continue;
    }
    pattern += is_part ? "*" : path.substr(i, end - i);
    i = end;
  }
  return pattern;
}

}  // namespace

std::span<const Network> all_networks() {
#define NETWORK(name) networks::name(),
  static const Network all[] = {
#include "api/init/networks/all_networks.inl"
  };
#undef NETWORK
  return all;
}

const Network& network_of(const ModelFacts& model) {
  const auto all = all_networks();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Network& network) { return network.is(model); });
  return found == all.end() ? all.back() : *found;
}

std::int64_t RunLength::warmup() const { return std::clamp<std::int64_t>(steps / 10, 1, 1000); }

std::vector<std::string> table_selectors(const ModelFacts& model,
                                         const std::vector<const TableFacts*>& tables) {
  const ParameterNames names(model.imported.graph);
  std::vector<std::string> selectors;
  for (const TableFacts* table : tables) {
    const std::string pattern = pattern_of(table->path);
    const Selector selector(pattern);
    // The pattern must match these tables and nothing else.
    const bool is_exact = std::all_of(
        model.imported.graph.states.begin(), model.imported.graph.states.end(),
        [&](const State& state) {
          return state.kind != StateKind::parameter || !names.covers(selector, state) ||
                 std::any_of(tables.begin(), tables.end(),
                             [&](const TableFacts* t) { return t->path == state.path; });
        });
    const std::string chosen = is_exact ? pattern : table->path;
    if (std::find(selectors.begin(), selectors.end(), chosen) == selectors.end())
      selectors.push_back(chosen);
  }
  return selectors;
}

std::string rate(double value) { return fmt::format("{:.4g}", value); }

}  // namespace tandem::api
