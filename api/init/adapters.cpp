#include "api/init/adapters.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "engine/config/keys/config_value.h"
#include "engine/graph/parameter_names.h"
#include "engine/operators/packed/packing.h"
#include "engine/passes/adapted_weights.h"

namespace tandem::api {
namespace {

/// Selectors of the weights that make queries and values, by the names that models give them.
constexpr std::string_view adapted_weights[] = {
    "**.{q_proj,v_proj}:weight", "**.{query,value}:weight",
    "**.{q_lin,v_lin}:weight",   "**.{to_q,to_v}:weight",
    "**.{q,v}:weight",           "**.query_key_value:weight",
    "**.qkv_proj:weight",        "**.qkv:weight",
    "**.c_attn:weight",          "**.{q_proj,v_proj}.MatMul:weight",
    "**.qkv_proj.MatMul:weight"};  // names of onnxruntime-genai

}  // namespace

bool has_packed_weights(const ModelFacts& model) {
  const std::vector<State>& states = model.imported.graph.states;
  return std::any_of(states.begin(), states.end(), is_packed);
}

std::string adapted_selector(const ModelFacts& model) {
  const ParameterNames names(model.imported.graph);
  const std::vector<State>& states = model.imported.graph.states;
  for (const std::string_view text : adapted_weights) {
    const Selector selector{std::string(text)};
    const bool matches = std::any_of(states.begin(), states.end(), [&](const State& state) {
      return state.kind == StateKind::parameter && state.start.shape().size() >= 2 &&
             names.covers(selector, state);
    });
    if (matches) return std::string(text);
  }
  return "";
}

void write_adapters(const ModelFacts& model, Draft& draft) {
  if (!has_packed_weights(model)) return;
  const std::string selector = adapted_selector(model);
  const std::string at = toml_string(selector.empty() ? std::string(all_linear) : selector);
  draft.section("parameters")
      .keys.push_back({"lora", fmt::format("[ {{ at = {}, rank = 8, alpha = 16 }} ]", at),
                       "the model's weights have few bits, which no step changes: adapters next to "
                       "them train (LoRA, arXiv:2106.09685)",
                       ""});
}

}  // namespace tandem::api
