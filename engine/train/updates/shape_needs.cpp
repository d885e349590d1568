#include "engine/train/updates/shape_needs.h"

#include <algorithm>

#include "engine/config/keys/config_value.h"
#include "engine/graph/parameter_names.h"
#include "engine/graph/shard_conversion.h"
#include "engine/operators/update_kind.h"

namespace tandem {
namespace {

/// Selectors for a parameter, the widest first: "**:bias", "**.norm:bias", "layers.0.norm:bias".
std::vector<std::string> selectors_of(const std::string& path) {
  std::vector<std::string> all{path};
  const std::size_t colon = path.rfind(':');
  if (colon == std::string::npos) return all;
  const std::size_t dot = path.rfind('.', colon);
  if (dot != std::string::npos) all.insert(all.begin(), "**" + path.substr(dot));
  all.insert(all.begin(), "**" + path.substr(colon));
  return all;
}

/// The fewest selectors found that cover all of `unfit` and none of `others`.
std::vector<std::string> covering(const Graph& graph, const std::vector<const State*>& unfit,
                                  const std::vector<const State*>& others) {
  const ParameterNames names(graph);
  const auto covers_any = [&](const Selector& selector, const std::vector<const State*>& states) {
    return std::any_of(states.begin(), states.end(),
                       [&](const State* state) { return names.covers(selector, *state); });
  };
  std::vector<std::string> found;
  for (const State* state : unfit) {
    const bool is_covered = std::any_of(found.begin(), found.end(), [&](const std::string& text) {
      return names.covers(Selector(text), *state);
    });
    if (is_covered) continue;
    for (const std::string& text : selectors_of(state->path)) {
      const Selector selector(text);
      if (!names.covers(selector, *state) || covers_any(selector, others)) continue;
      found.push_back(text);
      break;
    }
  }
  return found;
}

std::string groups_for(const std::vector<std::string>& selectors) {
  constexpr std::size_t most = 12;
  std::string text = "optimizer.groups = [ ";
  for (std::size_t i = 0; i < std::min(selectors.size(), most); ++i)
    text += (i > 0 ? ", " : "") + std::string("{ at = ") + toml_string(selectors[i]) +
            ", kind = \"adamw\" }";
  if (selectors.size() > most) text += ", …";
  return text + " ]";
}

}  // namespace

const char* unmet_need(const Chosen& chosen) {
  const UpdateChoice choice = choose_update(chosen.options, whole_elements(chosen.parameter));
  return find_update_kind(choice.op)->needs(choice.settings, chosen.parameter.start.shape().size());
}

std::vector<Diagnostic> refuse_shapes(const Graph& graph,
                                      const std::vector<const Chosen*>& chosen) {
  std::vector<Diagnostic> problems;
  std::vector<std::string> keys;
  for (const Chosen* first : chosen) {
    const char* const need = unmet_need(*first);
    if (need == nullptr || std::find(keys.begin(), keys.end(), first->kind_key) != keys.end())
      continue;
    keys.push_back(first->kind_key);
    std::vector<const State*> unfit, others;
    for (const Chosen* one : chosen) {
      const bool is_unfit = one->kind_key == first->kind_key && unmet_need(*one) != nullptr;
      (is_unfit ? unfit : others).push_back(&one->parameter);
    }
    const std::string kind = "\"" + std::string(first->options.name()) + "\"";
    const std::string more =
        unfit.size() > 1 ? " and " + std::to_string(unfit.size() - 1) + " more" : "";
    Diagnostic d = at(first->where, first->parameter.path + more,
                      first->kind_key + " = " + kind + " does not take parameters of this shape");
    d.expected = need;
    d.got = to_string(first->parameter.start.type());
    d.fix = "give them another kind, after the groups that are there: " +
            groups_for(covering(graph, unfit, others));
    problems.push_back(std::move(d));
  }
  return problems;
}

}  // namespace tandem
