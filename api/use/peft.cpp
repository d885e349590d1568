#include "api/use/peft.h"

#include <algorithm>
#include <cstring>
#include <set>

#include <nlohmann/json.hpp>

#include "engine/graph/error.h"
#include "engine/operators/operator.h"
#include "importer/parameter_path.h"

namespace tandem::api {
namespace {

using PeftJson = nlohmann::ordered_json;

constexpr const char* peft_prefix = "base_model.model.";

[[noreturn]] void refuse_peft(const std::string& path, std::string message, std::string expected,
                              std::string got, std::string fix) {
  throw Error(ErrorKind::usage, Diagnostic{.message = std::move(message),
                                           .path = path,
                                           .expected = std::move(expected),
                                           .got = std::move(got),
                                           .fix = std::move(fix)});
}

HostTensor turned(const HostTensor& matrix) {
  const HostTensor from = matrix.converted(DType::float32);
  const std::int64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
  HostTensor to(TensorType{DType::float32, {columns, rows}});
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c)
      to.as<float>()[static_cast<std::size_t>(c * rows + r)] =
          from.as<float>()[static_cast<std::size_t>(r * columns + c)];
  }
  return to;
}

const HostTensor& tensor_named(const std::vector<NamedTensor>& tensors, const std::string& name) {
  for (const NamedTensor& tensor : tensors) {
    if (tensor.name == name) return tensor.tensor;
  }
  refuse_peft(name, "the checkpoint does not have this adapter", "", "",
              "parameters.lora may not change after the training");
}

/// Where a PyTorch model has a tensor: "blocks.0.fc1" and "weight".
struct PeftPlace {
  std::string module, role;
  bool by_name = true;  // the tensor's own name says so, else the operator that reads it
};

constexpr const char* without_peft = "export with --lora merged or separate";

/// From the tensor's own name, else from the module of the operator that reads it.
PeftPlace place_of(const std::string& name, const std::vector<ParameterReader>& readers) {
  const std::string path = importer::parameter_path(name);
  if (path != name) {
    const std::size_t colon = path.rfind(':');
    return {path.substr(0, colon), path.substr(colon + 1)};
  }
  std::set<std::pair<std::string, std::string>> places;
  for (const ParameterReader& reader : readers) {
    if (reader.module != reader.op && !reader.role.empty())
      places.emplace(reader.module, reader.role);
  }
  if (places.size() == 1) return {places.begin()->first, places.begin()->second, false};
  std::string got;
  for (const auto& [module, role] : places) got += (got.empty() ? "" : ", ") + module + ":" + role;
  for (const ParameterReader& reader : readers) {
    if (places.empty()) got += (got.empty() ? "read by " : ", ") + reader.op;
  }
  refuse_peft(name,
              places.empty() ? "neither the name of this tensor nor an operator that reads it says "
                               "its module, which PEFT needs"
                             : "several modules read this tensor, and PEFT needs one",
              "a name like fc1.weight, or one operator of a module that reads it",
              got.empty() ? name : got, without_peft);
}

/// Names of the base that PEFT adapts: without --strip, behind --add.
class PeftNames {
 public:
  explicit PeftNames(const ExportNames& names) : names_(names) {}

  /// "fc1.weight" as the base has it.
  PeftPlace renamed(PeftPlace place, const std::string& tensor) {
    std::string name = place.module + "." + place.role;
    if (!names_.strip.empty() && name.starts_with(names_.strip)) {
      stripped_ = true;
      name.erase(0, names_.strip.size());
    }
    name.insert(0, names_.add);
    const std::size_t dot = name.rfind('.');
    if (dot == std::string::npos || dot == 0)
      refuse_peft(tensor, "--strip leaves no module of this name", "a shorter --strip",
                  names_.strip, without_peft);
    place.module = name.substr(0, dot);
    place.role = name.substr(dot + 1);
    return place;
  }

  /// A prefix that nothing has would leave names that no module of the base has.
  void check_strip(const std::set<std::string>& modules) const {
    if (names_.strip.empty() || stripped_) return;
    refuse_peft("--strip", "no module of the adapters has this prefix",
                "the beginning of names such as " + *modules.begin(), names_.strip,
                "leave --strip out, or name their prefix");
  }

 private:
  const ExportNames& names_;
  bool stripped_ = false;
};

/// A weight that a product reads as [in, out], where a module has [out, in].
bool is_in_first(const Graph& graph, const State& state) {
  return state.start.shape().size() == 2 &&
         std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
           return node.op->name == "MatMul" && node.inputs[1] == state.initial;
         });
}

/// As the module has it, where the file has it under a made-up name: folded into another form.
HostTensor unfolded(const NamedTensor& tensor, const PeftPlace& place, const Graph& graph) {
  const State* state = graph.find_state(tensor.name);
  if (place.by_name || state == nullptr) return tensor.tensor;
  if (is_in_first(graph, *state)) return turned(tensor.tensor);
  if (place.role != "bias" || tensor.tensor.shape().size() < 2) return tensor.tensor;
  HostTensor line(TensorType{tensor.tensor.dtype(), {tensor.tensor.type().elements()}});
  std::memcpy(line.data(), tensor.tensor.data(), tensor.tensor.bytes());
  return line;
}

}  // namespace

PeftAdapter peft_adapter(const std::vector<AdaptedWeight>& adapted,
                         const std::vector<NamedTensor>& tensors, const Graph& graph,
                         const ExportNames& names, const std::string& base_model) {
  if (adapted.empty())
    refuse_peft("", "the run has no adapters", "a run with parameters.lora", "",
                "leave --format peft out");
  PeftAdapter result;
  PeftNames base_names(names);
  const ParameterNames read_by(graph);
  const AdapterRule& first = adapted[0].rule;
  std::set<std::string> targets, taken, saved, as_in_file;
  PeftJson ranks = PeftJson::object(), alphas = PeftJson::object();
  for (const AdaptedWeight& weight : adapted) {
    PeftPlace place = place_of(weight.name, weight.readers);
    as_in_file.insert(place.module);
    place = base_names.renamed(std::move(place), weight.name);
    const std::string& module = place.module;
    if (place.role != "weight")
      refuse_peft(weight.name, "PEFT adapts the weight of a module", "a name like fc1.weight",
                  module + "." + place.role, without_peft);
    if (weight.rule.dropout != first.dropout)
      refuse_peft(weight.path, "PEFT has one dropout for all adapters",
                  std::to_string(first.dropout), std::to_string(weight.rule.dropout), without_peft);
    if (!targets.insert(module).second)
      refuse_peft(weight.name, "two weights with adapters belong to one module",
                  "a weight for each module", module, without_peft);
    if (weight.rule.rank != first.rank) ranks[module] = weight.rule.rank;
    if (weight.rule.alpha != first.alpha) alphas[module] = weight.rule.alpha;
    const HostTensor &a = tensor_named(tensors, weight.a()), &b = tensor_named(tensors, weight.b());
    const std::string key = peft_prefix + module;
    // b of [r, out] and a of [in, r] are the transposes of PEFT's.
    result.tensors.push_back({key + ".lora_A.weight", weight.out_first ? a : turned(a)});
    result.tensors.push_back({key + ".lora_B.weight", weight.out_first ? b : turned(b)});
    taken.insert({weight.a(), weight.b()});
  }
  for (const NamedTensor& tensor : tensors) {
    if (taken.contains(tensor.name)) continue;
    const State* state = graph.find_state(tensor.name);
    const PeftPlace place =
        base_names.renamed(place_of(tensor.name, state == nullptr ? std::vector<ParameterReader>()
                                                                  : read_by.readers(*state)),
                           tensor.name);
    result.tensors.push_back(
        {peft_prefix + place.module + "." + place.role, unfolded(tensor, place, graph)});
    if (targets.contains(place.module))
      refuse_peft(tensor.name, "PEFT saves a module whole or its adapters, not both",
                  "adapters of \"" + place.module + "\" alone",
                  "parameters.train has " + tensor.name, without_peft);
    saved.insert(place.module);
  }
  base_names.check_strip(as_in_file);
  PeftJson config;
  config["peft_type"] = "LORA";
  config["task_type"] = nullptr;
  config["base_model_name_or_path"] = base_model;
  config["inference_mode"] = true;
  config["r"] = first.rank;
  config["lora_alpha"] = first.alpha;
  config["lora_dropout"] = first.dropout;
  config["target_modules"] = targets;
  config["modules_to_save"] = saved.empty() ? PeftJson() : PeftJson(saved);
  config["rank_pattern"] = std::move(ranks);
  config["alpha_pattern"] = std::move(alphas);
  config["bias"] = "none";
  config["fan_in_fan_out"] = false;
  config["init_lora_weights"] = true;
  config["use_rslora"] = false;
  config["use_dora"] = false;
  config["layers_to_transform"] = nullptr;
  config["layers_pattern"] = nullptr;
  config["revision"] = nullptr;
  result.config = config.dump(2, ' ', false, PeftJson::error_handler_t::replace) + "\n";
  return result;
}

}  // namespace tandem::api
