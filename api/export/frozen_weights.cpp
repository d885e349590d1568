#include "api/export/frozen_weights.h"

#include <algorithm>
#include <set>

#include "engine/formats/sha256.h"
#include "engine/graph/error.h"
#include "engine/graph/shard_conversion.h"
#include "engine/operators/packed/packing.h"
#include "engine/train/checkpoints/frozen_states.h"
#include "engine/train/loading/initialise.h"

namespace tandem::api {
namespace {

NamedTensor* find_tensor(CheckpointContent& content, const std::string& name) {
  const auto found = std::find_if(content.model.begin(), content.model.end(),
                                  [&](const NamedTensor& tensor) { return tensor.name == name; });
  return found == content.model.end() ? nullptr : &*found;
}

NamedTensor& tensor_of(CheckpointContent& content, const std::string& name) {
  if (NamedTensor* tensor = find_tensor(content, name)) return *tensor;
  throw Error(ErrorKind::usage,
              Diagnostic{.message = "the checkpoint does not have this state",
                         .path = name,
                         .fix = "parameters.lora may not change after the training"});
}

/// The entries of `hashes` for whose names `has` returns true.
template <class Has>
std::map<std::string, std::string> hashes_where(const std::map<std::string, std::string>& hashes,
                                                const Has& has) {
  std::map<std::string, std::string> kept;
  for (const auto& [name, hash] : hashes) {
    if (has(name)) kept.emplace(name, hash);
  }
  return kept;
}

void remove_adapters(CheckpointContent& content, const std::vector<AdaptedWeight>& adapted) {
  std::set<std::string> gone;
  for (const AdaptedWeight& weight : adapted) {
    for (const std::string& part : weight.parts()) gone.insert(part);
  }
  std::erase_if(content.model, [&](const NamedTensor& t) { return gone.contains(t.name); });
}

std::vector<HostTensor> parts_of(CheckpointContent& content, const AdaptedWeight& weight) {
  std::vector<HostTensor> parts;
  for (const std::string& part : weight.parts()) parts.push_back(tensor_of(content, part).tensor);
  return parts;
}

[[noreturn]] void refuse_nodes(const AdaptedWeight& weight, const AdapterKind& kind) {
  throw Error(ErrorKind::usage, Diagnostic{.message = std::string(kind.not_written),
                                           .path = weight.path,
                                           .expected = "adapters without " + std::string(kind.name),
                                           .fix = "export with --lora merged or --format peft"});
}

}  // namespace

void add_frozen_weights(CheckpointContent& content, ConfiguredModel& model,
                        const std::string& path) {
  const RunConfig& config = model.config();
  const Graph& graph = model.micro_batch().graph;
  const std::map<std::string, HostTensor> changed =
      initial_values(config.parameters, config.seed, graph, model.loading_parts());
  std::map<std::string, std::string> now;
  const std::map<std::string, PackedTensor>& stored = model.stored().packed();
  const std::set<std::string> scales = scales_names(stored);
  for (const State& state : graph.states) {
    if (state.held_by != HeldBy::model || find_tensor(content, state.name) != nullptr) continue;
    const auto value = changed.find(state.name);
    const HostTensor tensor = value == changed.end() ? state.start : value->second;
    now[state.name] = sha256(tensor.data(), tensor.bytes());
    if (scales.contains(state.name)) continue;
    // What parameters.storage packed is written as the numbers that it stands for; weights that are
    // packed in the model file keep its bytes.
    if (const auto packed = stored.find(state.name); packed != stored.end())
      content.model.push_back({state.name, unpack(packed->second)});
    else if (!is_packed(state))
      content.model.push_back({state.name, tensor});
  }
  content.aliases = model.micro_batch().aliases;
  const auto is_here = [&](const std::string& name) {
    const State* state = graph.find_state(name);
    return state == nullptr ? !names_teacher(name) : state->held_by == HeldBy::model;
  };
  const std::map<std::string, std::string>& before = content.position.frozen;
  const auto was_compared = [&](const std::string& name) { return before.contains(name); };
  refuse_other_frozen(hashes_where(before, is_here), hashes_where(now, was_compared), config, path);
}

void restore_frozen_states(StateStore& states, const CheckpointContent& content,
                           const RunConfig& config, const Graph& graph, const LoadingParts& parts,
                           const std::string& path) {
  const auto is_held = [&](const std::string& name, HeldBy by) {
    return states.has(name) && states.held_by(name) == by;
  };
  const std::vector<std::string> names = states.names();
  const bool any = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return states.held_by(name) != HeldBy::checkpoint;
  });
  if (!any) return;
  for (const auto& [name, value] : initial_values(config.parameters, config.seed, graph, parts)) {
    if (!is_held(name, HeldBy::model)) continue;
    const StateShard* const shard = states.shard(name);
    states.write(name, shard != nullptr ? part_of(value, *shard) : value);
  }
  const std::map<std::string, std::string> now = frozen_hashes(states);
  const std::map<std::string, std::string> before =
      without_unknown(content.position.frozen, states, now);
  const auto has = [&](const std::string& name) { return states.has(name); };
  const auto was_compared = [&](const std::string& name) { return before.contains(name); };
  refuse_other_frozen(hashes_where(before, has), hashes_where(now, was_compared), config, path);
}

void merge_adapters(CheckpointContent& content, const std::vector<AdaptedWeight>& adapted) {
  for (const AdaptedWeight& weight : adapted) {
    NamedTensor& own = tensor_of(content, weight.name);
    // The sum is rounded once, to the type of the exported file.
    own.tensor =
        merged_weight(weight, own.tensor.converted(DType::float32), parts_of(content, weight));
  }
  remove_adapters(content, adapted);
}

std::vector<WeightAdapters> take_adapters(CheckpointContent& content,
                                          const std::vector<AdaptedWeight>& adapted,
                                          bool are_inputs) {
  std::vector<WeightAdapters> result;
  for (const AdaptedWeight& weight : adapted) {
    const AdapterKind kind = weight.rule.kind();
    if (!kind.not_written.empty()) refuse_nodes(weight, kind);
    result.push_back({weight.name, weight.out_first, weight.rule.scale(), are_inputs});
    kind.write(weight, parts_of(content, weight), result.back());
  }
  remove_adapters(content, adapted);
  return result;
}

}  // namespace tandem::api
