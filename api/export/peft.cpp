#include "api/export/peft.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "api/export/frozen_weights.h"
#include "api/export/peft_modules.h"
#include "api/export/peft_places.h"
#include "engine/graph/error.h"
#include "engine/operators/packed/packing.h"

namespace tandem::api {
namespace {

constexpr const char* peft_prefix = "base_model.model.";

/// "fc1.weight" of the path "fc1:weight" of a packed weight, whose bytes have another name; the
/// state's name else.
std::string float_name(const std::string& name, const std::string& path, bool is_packed) {
  std::string own = path;
  const std::size_t colon = own.rfind(':');
  if (!is_packed || path == name || colon == std::string::npos) return name;
  own[colon] = '.';
  return own;
}

class PeftExport {
 public:
  PeftExport(CheckpointContent content, ConfiguredModel& model, const std::string& path,
             const ExportNames& names)
      : content_(std::move(content)),
        model_(model),
        path_(path),
        graph_(model.micro_batch().graph),
        read_by_(graph_),
        names_(names) {}

  PeftAdapter run() {
    if (model_.adapted().empty())
      refuse_peft("", "the run has no adapters", "a run with parameters.lora", "",
                  "leave --format peft out");
    find_modules();
    for (const AdaptedWeight& weight : model_.adapted()) add_adapters(weight);
    find_saved();
    add_saved();
    names_.check_strip(as_in_file_);
    PeftAdapter adapter{config(), std::move(tensors_)};
    if (std::string warning = names_.strip_warning(of_weights_); !warning.empty())
      adapter.warnings.push_back(std::move(warning));
    return adapter;
  }

 private:
  const std::vector<ParameterReader>& readers(const std::string& name) const {
    static const std::vector<ParameterReader> none;
    const State* state = graph_.find_state(name);
    return state == nullptr ? none : read_by_.readers(*state);
  }

  const HostTensor& adapter(const std::string& name) const {
    if (const NamedTensor* tensor = find_tensor(name)) return tensor->tensor;
    refuse_peft(name, "the checkpoint does not have this adapter", "", "",
                "parameters.lora may not change after the training");
  }

  // Collects all modules that occur in the file.
  void find_modules() {
    const auto add = [&](const std::string& module) {
      for (std::size_t end = module.find('.');; end = module.find('.', end + 1)) {
        known_.insert(names_.renamed_module(module.substr(0, end)));
        if (end == std::string::npos) return;
      }
    };
    for (const State& state : graph_.states) {
      for (const PeftPlace& place :
           possible_places(float_name(state.name, state.path, is_packed(state)), state.start.type(),
                           readers(state.name))) {
        if (place.by_name) scopes_.insert(place.module);
        of_weights_.insert(place.module);
        add(place.module);
      }
    }
    for (const Node& node : graph_.nodes) {
      if (const std::string module = module_of_path(node.path); module != node.path) add(module);
    }
  }

  void add_adapters(const AdaptedWeight& weight) {
    const std::vector<ParameterReader>& readers = this->readers(weight.name);
    PeftPlace place =
        peft_place(float_name(weight.name, weight.path, weight.is_packed), weight.type, readers);
    expect_called(place, weight.name, readers, scopes_);
    as_in_file_.insert(place.module);
    place = names_.renamed(std::move(place), weight.name);
    const std::string& module = place.module;
    if (place.role != "weight")
      refuse_peft(weight.name, "PEFT adapts the weight of a module", "a name like fc1.weight",
                  module + "." + place.role, without_peft);
    const double dropout = model_.adapted()[0].rule.dropout;
    if (weight.rule.dropout != dropout)
      refuse_peft(weight.path, "PEFT has one dropout for all adapters", std::to_string(dropout),
                  std::to_string(weight.rule.dropout), without_peft);
    for (const AdapterKind& kind : all_adapters()) {
      const bool first = model_.adapted()[0].rule.*kind.flag;
      if (kind.scale != nullptr || weight.rule.*kind.flag == first) continue;
      refuse_peft(weight.path, "PEFT has one " + std::string(kind.peft_flag) + " for all adapters",
                  std::string(kind.name) + (first ? " = true" : " = false"),
                  first ? "false" : "true", without_peft);
    }
    if (!targets_.insert(module).second)
      refuse_peft(weight.name, "two weights with adapters belong to one module",
                  "a weight for each module", module, without_peft);
    ranks_[module] = weight.rule.rank;
    alphas_[module] = alpha_of(weight.rule);
    for (const AdapterPart& part : weight.rule.kind().parts) {
      const std::string state = weight.state_of(part.name);
      add_tensor(module, std::string(part.peft_name), part.peft(weight, adapter(state)));
      taken_.insert(state);
    }
  }

  bool all_are(const AdapterKind& kind) const {
    const std::vector<AdaptedWeight>& adapted = model_.adapted();
    return std::all_of(adapted.begin(), adapted.end(),
                       [&](const AdaptedWeight& weight) { return weight.rule.*kind.flag; });
  }
  // PEFT has one scale for all adapters; where rules differ in it, alpha makes up for it.
  double alpha_of(const AdapterRule& rule) const {
    const std::vector<AdapterKind>& kinds = all_adapters();
    const bool is_as_written =
        std::all_of(kinds.begin(), kinds.end(), [&](const AdapterKind& kind) {
          return kind.scale == nullptr || rule.*kind.flag == all_are(kind);
        });
    return is_as_written ? rule.alpha : rule.scale() * static_cast<double>(rule.rank);
  }

  // Finds the modules of weights that trained next to the adapters.
  void find_saved() {
    std::map<std::string, std::string> saved;  // one tensor of each module
    for (const NamedTensor& tensor : content_.model) {
      if (taken_.contains(tensor.name)) continue;
      PeftPlace place = names_.renamed(
          peft_place(tensor.name, tensor.tensor.type(), readers(tensor.name)), tensor.name);
      saved.emplace(place.module, tensor.name);
      places_[tensor.name] = std::move(place);
    }
    for (const auto& [module, tensor] : saved) saved_.insert(module);
    saved_ = least_entries(saved_);
    for (const std::string& target : targets_) {
      for (const std::string& entry : saved_) {
        if (!is_saved_by(target, entry)) continue;
        refuse_peft(saved.at(entry),
                    "PEFT saves a module whole or its adapters, not both, and finds modules to "
                    "save by the end of their path",
                    "no adapters in modules whose path ends in \"" + entry + "\"",
                    "adapters of \"" + target + "\", and parameters.train has " + saved.at(entry),
                    without_peft);
      }
    }
  }

  // PEFT needs all tensors of the modules that it saves, including those that did not train.
  void add_saved() {
    if (saved_.empty()) return;
    add_frozen_weights(content_, model_, path_);
    for (const bool by_name : {true, false}) {  // first those whose places are certain
      for (const NamedTensor& tensor : content_.model) {
        if (!taken_.contains(tensor.name)) add_saved(tensor, by_name);
      }
    }
    for (const auto& [other, name] : content_.aliases) {
      const NamedTensor* tensor = find_tensor(name);
      if (tensor != nullptr) add_saved({other, tensor->tensor}, true);
    }
    add_batch_counts();
  }

  void add_saved(const NamedTensor& tensor, bool by_name) {
    const auto trained = places_.find(tensor.name);
    const bool has_trained = trained != places_.end();
    PeftPlace place;
    if (has_trained) {
      place = trained->second;
    } else {
      const std::vector<PeftPlace> places =
          possible_places(tensor.name, tensor.tensor.type(), readers(tensor.name));
      if (places.size() != 1) return;
      // A single number, such as epsilon or a factor, belongs to no module.
      if (!places[0].by_name && tensor.tensor.type().elements() <= 1) return;
      place = names_.renamed(places[0], tensor.name);
    }
    if (place.by_name != by_name || !is_saved_by(place.module, saved_)) return;
    if (!add_tensor(place.module, place.role, as_module_has_it(tensor, place, graph_)) &&
        has_trained)
      refuse_peft(tensor.name, "two tensors would get this name in PEFT", "a name for each",
                  place.module + "." + place.role, without_peft);
  }

  const NamedTensor* find_tensor(const std::string& name) const {
    for (const NamedTensor& tensor : content_.model) {
      if (tensor.name == name) return &tensor;
    }
    return nullptr;
  }

  // Adds BatchNorm's count of batches, which no file has and which is only read where momentum is
  // None.
  void add_batch_counts() {
    std::set<std::string> modules;
    for (const std::string& name : written_) {
      constexpr std::string_view end = ".running_var";
      if (name.ends_with(end)) modules.insert(name.substr(0, name.size() - end.size()));
    }
    for (const std::string& module : modules)
      add_tensor(module, "num_batches_tracked", HostTensor(TensorType{DType::int64, {}}));
  }

  bool add_tensor(const std::string& module, const std::string& role, HostTensor tensor) {
    const std::string name = module + "." + role;
    if (!written_.insert(name).second) return false;
    tensors_.push_back({peft_prefix + name, std::move(tensor)});
    return true;
  }

  std::string config() const {
    const AdapterRule& first = model_.adapted()[0].rule;
    const PeftKeys keys = first.kind().peft;
    PeftJson config;
    config["peft_type"] = keys.type;
    config["task_type"] = nullptr;
    config["base_model_name_or_path"] =
        std::filesystem::path(model_.config().model.file).filename().string();
    config["inference_mode"] = true;
    config["r"] = first.rank;
    config[std::string(keys.alpha)] = alpha_of(first);
    config[std::string(keys.dropout)] = first.dropout;
    config["target_modules"] = target_entries(targets_, known_);
    config["modules_to_save"] = saved_.empty() ? PeftJson() : PeftJson(saved_);
    config["rank_pattern"] = pattern_entries(ranks_, first.rank);
    config["alpha_pattern"] = pattern_entries(alphas_, alpha_of(first));
    config.update(PeftJson::parse(keys.constants));
    for (const AdapterKind& kind : all_adapters()) {
      if (!kind.peft_flag.empty()) config[std::string(kind.peft_flag)] = all_are(kind);
    }
    config["layers_to_transform"] = nullptr;
    config["layers_pattern"] = nullptr;
    config["revision"] = nullptr;
    return config.dump(2, ' ', false, PeftJson::error_handler_t::replace) + "\n";
  }

  CheckpointContent content_;
  ConfiguredModel& model_;
  const std::string& path_;
  const Graph& graph_;
  const ParameterNames read_by_;
  PeftNames names_;
  std::set<std::string> scopes_, known_;  // scopes of tensors that have names; all modules, renamed
  std::set<std::string> of_weights_;  // modules that may have a tensor, by their names in the file
  std::set<std::string> targets_, saved_, as_in_file_;
  std::map<std::string, std::int64_t> ranks_;  // by module
  std::map<std::string, double> alphas_;
  std::map<std::string, PeftPlace> places_;  // places of tensors that trained next to the adapters
  std::set<std::string> taken_, written_;
  std::vector<NamedTensor> tensors_;
};

}  // namespace

PeftAdapter peft_adapter(CheckpointContent content, ConfiguredModel& model, const std::string& path,
                         const ExportNames& names) {
  return PeftExport(std::move(content), model, path, names).run();
}

}  // namespace tandem::api
