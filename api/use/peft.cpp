#include "api/use/peft.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "engine/graph/error.h"

namespace tandem::api {
namespace {

using PeftJson = nlohmann::ordered_json;

constexpr std::string_view weight_end = ".weight";
constexpr const char* peft_prefix = "base_model.model.";

/// "blocks.0.fc1" of "blocks.0.fc1.weight", or of the path "blocks.0.fc1:weight".
std::optional<std::string> module_of(const AdaptedWeight& weight) {
  if (weight.name.ends_with(weight_end))
    return weight.name.substr(0, weight.name.size() - weight_end.size());
  const std::size_t colon = weight.path.rfind(':');
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  return weight.path.substr(0, colon);
}

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

}  // namespace

PeftAdapter peft_adapter(const std::vector<AdaptedWeight>& adapted,
                         const std::vector<NamedTensor>& tensors, const std::string& base_model) {
  if (adapted.empty())
    refuse_peft("", "the run has no adapters", "a run with parameters.lora", "",
                "leave --format peft out");
  PeftAdapter result;
  const AdapterRule& first = adapted[0].rule;
  std::set<std::string> targets, taken, saved;
  PeftJson ranks = PeftJson::object(), alphas = PeftJson::object();
  for (const AdaptedWeight& weight : adapted) {
    const std::optional<std::string> module = module_of(weight);
    if (!module)
      refuse_peft(weight.name, "the name of this weight says no module", "a name like fc1.weight",
                  weight.name, "export with --lora merged or separate");
    if (weight.rule.dropout != first.dropout)
      refuse_peft(weight.path, "PEFT has one dropout for all adapters",
                  std::to_string(first.dropout), std::to_string(weight.rule.dropout),
                  "export with --lora merged or separate");
    targets.insert(*module);
    if (weight.rule.rank != first.rank) ranks[*module] = weight.rule.rank;
    if (weight.rule.alpha != first.alpha) alphas[*module] = weight.rule.alpha;
    const HostTensor &a = tensor_named(tensors, weight.a()), &b = tensor_named(tensors, weight.b());
    const std::string key = peft_prefix + *module;
    // b of [r, out] and a of [in, r] are the transposes of PEFT's.
    result.tensors.push_back({key + ".lora_A.weight", weight.out_first ? a : turned(a)});
    result.tensors.push_back({key + ".lora_B.weight", weight.out_first ? b : turned(b)});
    taken.insert({weight.a(), weight.b()});
  }
  for (const NamedTensor& tensor : tensors) {
    if (taken.contains(tensor.name)) continue;
    result.tensors.push_back({peft_prefix + tensor.name, tensor.tensor});
    const std::string module = tensor.name.substr(0, tensor.name.rfind('.'));
    if (targets.contains(module))
      refuse_peft(tensor.name, "PEFT saves a module whole or its adapters, not both",
                  "adapters of \"" + module + "\" alone", "parameters.train has " + tensor.name,
                  "export with --lora merged or separate");
    saved.insert(module);
  }
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
