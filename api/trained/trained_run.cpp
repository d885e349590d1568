#include "api/trained/trained_run.h"

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "api/export/frozen_weights.h"
#include "api/init/guessed_run.h"
#include "api/run_files.h"
#include "api/table_rows.h"
#include "api/trained/recorded_fields.h"
#include "engine/config/keys/config_keys.h"
#include "engine/config/keys/config_names.h"
#include "engine/config/keys/config_value.h"
#include "engine/config/resume/moved_paths.h"
#include "engine/formats/files.h"
#include "engine/formats/paths.h"
#include "engine/graph/error.h"
#include "engine/train/averages/weights_in_use.h"
#include "engine/train/divergence/finite_check.h"
#include "importer/file/onnx_file.h"

namespace tandem::api {

DEFINE_COPIES(TrainedRun);

namespace {

bool sets(const std::vector<std::string>& overrides, const std::string& key) {
  return std::any_of(overrides.begin(), overrides.end(), [&](const std::string& text) {
    return text.starts_with(key + "=") || text.starts_with(key + " ");
  });
}

[[noreturn]] void refuse_given(const std::string& file, std::string message, std::string fix) {
  throw Error(ErrorKind::usage,
              Diagnostic{.message = std::move(message), .file = file, .fix = std::move(fix)});
}

/// If other metrics are asked for, drops the keys that refer to the one by which a checkpoint was
/// chosen. Samples of a program are replaced by files that hold arrays of the same names.
RunConfig read_config(const std::string& file, std::vector<std::string> overrides) {
  const bool other_metrics = sets(overrides, "eval.metrics");
  for (const char* key : {"eval.best", "eval.patience"}) {
    const bool is_text = std::string_view(key) == "eval.best";
    if (other_metrics && !sets(overrides, key))
      overrides.push_back(std::string(key) + (is_text ? "=\"\"" : "=0"));
  }
  RunConfig config = read_run_config(file, overrides);
  if (config.data && config.data->is_of_program()) {  // used with files of arrays instead
    config.data->kind = NpzFiles{};
    config.data->eval_fraction = 0;
  }
  return config;
}

/// The policy that the run was trained under, as recorded.
PlacingArguments placing_of(const std::string& run_dir, const TrainedOptions& options) {
  PlacingArguments placing;
  const std::string policy = run_dir + "/policy.toml";
  const bool replaced = sets(options.overrides, "policy");
  RecordedPlacing recorded = recorded_placing(run_dir);
  if (!replaced) placing.place = std::move(recorded.place);
  placing.devices = std::move(recorded.devices);
  if (!replaced && path_exists(policy)) placing.text = read_file(policy, std::size_t{16} << 20);
  placing.place.insert(placing.place.end(), options.place.begin(), options.place.end());
  placing.devices.insert(placing.devices.end(), options.devices.begin(), options.devices.end());
  return placing;
}

/// The prefix of the names of the files next to an exported model.
std::string vocabulary_stem(const std::string& model) {
  return std::filesystem::path(normal_path(model)).replace_extension("").string() + ".";
}

/// The configuration that `init` would write for the model and the data, except for inputs whose
/// fields the model records. Uses all of the data, or the part that file names hold out.
RunConfig guessed_config(const std::string& model, const TrainedOptions& options, TrainedUse use) {
  if (options.data.empty()) {
    refuse_given(model, "an ONNX file says nothing about its data",
                 "add --data PATH, from which the rest is guessed, or --config train.toml; or name "
                 "the run directory instead");
  }
  if (options.data.size() > 1 || options.data[0] == "-" || !path_exists(options.data[0])) {
    refuse_given(model, "without --config the data is one file or folder",
                 "add --config train.toml, whose [data] says what files are");
  }
  TrainOptions listens;
  listens.on_message = options.on_message;
  const RecordedKeys recorded = recorded_keys(OnnxFile::open(model).metadata(), options.data[0],
                                              vocabulary_stem(model), options.overrides);
  std::vector<std::string> overrides = recorded.keys;
  overrides.insert(overrides.end(), options.overrides.begin(), options.overrides.end());
  overrides.push_back("data=" + options.data[0]);
  RunConfig config;
  try {
    config = guessed_run_config(
        model, listens, std::move(overrides),
        use == TrainedUse::predict ? GuessedUse::prediction : GuessedUse::evaluation,
        recorded.has_loss);
  } catch (const Error& error) {
    // Either a broken file, which no configuration can repair, or an open question.
    if (error.kind() == ErrorKind::data) throw;
    std::vector<Diagnostic> all = error.diagnostics();
    std::string& fix = all.back().fix;
    fix += std::string(fix.empty() ? "" : ", and then ") + "add --config train.toml, which says it";
    throw Error(ErrorKind::usage, std::move(all));
  }
  if (!config.data) refuse_given(model, "no data was found", "add --config train.toml");
  if (config.data->eval.files.empty()) config.data->eval = config.data->train;
  config.data->eval_fraction = 0;
  return config;
}

/// What the model records of the conversations that it was trained on; nothing where it records
/// none.
RunConfig recorded_config(const std::string& model, const TrainedOptions& options) {
  std::vector<std::string> keys = recorded_chat_keys(OnnxFile::open(model).metadata(),
                                                     vocabulary_stem(model), options.overrides);
  std::erase_if(keys, [](const std::string& key) { return key.starts_with("eval."); });
  if (!keys.empty()) keys.emplace_back("data.train={ files = \"-\" }");  // a required key
  keys.insert(keys.end(), options.overrides.begin(), options.overrides.end());
  const std::string text = "model = " + toml_string(normal_path(model)) + "\nsteps = 1\n";
  RunConfig config = parse_run_config(text, normal_path(model + " (its record)"), keys);
  config.name.clear();  // without one it is of no training, which would need an optimizer
  return config;
}

TrainedRun open_exported(const std::string& model, const TrainedOptions& options, TrainedUse use) {
  if (!options.checkpoint.empty())
    refuse_given(model, "an exported model has no checkpoints", "leave --checkpoint out");
  if (!options.weights.empty())
    refuse_given(model, "an exported model has one set of weights", "leave --weights out");
  TrainedRun run;
  run.path = normal_path(model);
  run.guessed = options.config.empty();
  const bool is_recorded = run.guessed && use == TrainedUse::generate;
  run.config = is_recorded   ? recorded_config(model, options)
               : run.guessed ? guessed_config(model, options, use)
                             : read_config(options.config, options.overrides);
  run.config.model.file = run.path;
  run.shape = std::move(run.config.parameters.shape);
  run.config.parameters = {};  // the file already contains its rows and values
  run.placing.place = options.place;
  run.placing.devices = options.devices;
  run.vocabulary_stem = vocabulary_stem(run.path);
  return run;
}

}  // namespace

std::string which_checkpoint(const std::string& run, const std::string& asked_for) {
  if (path_exists(run + "/manifest.json")) return "as named";
  if (!asked_for.empty()) return asked_for;
  return path_exists(run + "/checkpoints/best") ? "best" : "latest";
}

Weights chosen_weights(const std::string& name, const RunConfig& config) {
  if (name.empty()) return config.eval.weights;
  for (const auto& choice : choices_of<Weights>) {
    if (choice.name == name) return choice.value;
  }
  throw Error(ErrorKind::usage, Diagnostic{.message = "there are no such weights",
                                           .path = "--weights",
                                           .expected = listed(names_of<Weights>),
                                           .got = name});
}

std::string weights_text(Weights weights) {
  return weights == Weights::trained ? "" : ", " + std::string(choice_name(weights)) + " weights";
}

std::string TrainedRun::text() const {
  return exported() ? "model       " + path
                    : "checkpoint  " + path + " (" + which + weights_text(weights) + ")";
}

UsedCheckpoint TrainedRun::used() const { return {content.position, path, accept_changes}; }

void TrainedRun::describe(nlohmann::ordered_json& json) const {
  if (exported()) {
    json["model"] = path;
    return;
  }
  json["checkpoint"] = path;
  json["which"] = which;
  json["step"] = step;
  if (weights != Weights::trained) json["weights"] = choice_name(weights);
}

TrainedRun open_trained(const std::string& run, const TrainedOptions& options, TrainedUse use) {
  if (run.ends_with(".onnx")) return open_exported(run, options, use);
  if (!options.config.empty())
    refuse_given(options.config, "a run directory has its configuration", "leave --config out");
  TrainedRun trained;
  trained.which = which_checkpoint(run, options.checkpoint);
  FoundCheckpoint found = find_checkpoint(run, trained.which);
  trained.path = found.path;
  trained.step = found.content.position.step;
  trained.warnings = std::move(found.warnings);
  trained.content = std::move(found.content);
  trained.accept_changes = options.accept_changes;
  const std::string resolved = found.run_dir + "/train.resolved.toml";
  trained.config = read_config(resolved, options.overrides);
  if (std::string moved = moved_paths_of(resolved).text(); !moved.empty())
    trained.warnings.push_back(std::move(moved));
  trained.weights = chosen_weights(options.weights, trained.config);
  use_weights(trained.content, trained.weights, trained.path);
  trained.shape = trained.config.parameters.shape;
  trained.placing = placing_of(found.run_dir, options);
  trained.vocabulary_stem = found.run_dir + "/";
  return trained;
}

void check_stop(const TrainedOptions& options) {
  if (!options.stop.stop_requested()) return;
  throw Error(ErrorKind::runtime, Diagnostic{.message = "interrupted"});
}

TrainedModel::TrainedModel(TrainedRun run, const std::vector<std::string>& values)
    : run_(std::move(run)),
      policy_(read_run_policy(run_.config, run_.placing)),
      engine_(policy_.threads),
      model_(open_model()),
      placed_(model_, policy_in_use(), run_.placing, nullptr, values),
      parts_(placed_.run_parts()) {
  for (const ModelNotice& notice : model_->notices()) {
    if (notice.kind == "random_on") run_.warnings.push_back(in_one_line(notice));
  }
  if (!model_->requests().empty()) {
    staged_ = std::make_unique<StagedModel>(*model_, placed_, parts_, states_, arenas_,
                                            [this](Graph& graph) { start_states(graph); });
    parts_.staged = staged_.get();
    return;
  }
  parts_.ranks = run_.placing.ranks->rendezvous();
  if (run_.placing.ranks->ranks() > 1) parts_.shards = shardings_of(placed_.resolved());
}

std::shared_ptr<ConfiguredModel> TrainedModel::open_model() {
  OnnxFile file =
      run_.exported() ? OnnxFile::open(run_.config.model.file) : open_model_file(run_.config);
  if (!run_.exported()) {
    for (std::string& line : compare_model(run_.used(), run_.config, file))
      run_.warnings.push_back(std::move(line));
  }
  const VocabularyRows rows = [this](const ShapeRule& rule) {
    const std::vector<ShapeRule>& rules = run_.config.parameters.shape;
    const auto same = std::find(rules.rbegin(), rules.rend(), rule);
    return trained_vocabulary_rows(run_.config, run_.vocabulary_stem, run_.content.model, *same);
  };
  return std::make_shared<ConfiguredModel>(engine_, run_.config, std::move(file),
                                           ConfiguredModelOptions{.rows = rows, .in_stages = true});
}

RunPolicy TrainedModel::policy_in_use() {
  if (model_->requests().empty()) return policy_;
  if (run_.placing.ranks->ranks() > 1) {
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "data decides extents of this model, and several processes "
                                      "cannot run it",
                           .file = run_.path,
                           .path = model_->requests()[0].path,
                           .fix = "use one process"});
  }
  RunConfig config = run_.config;
  const bool is_placed = !config.policy.empty() || wants_accelerator(config) || run_.placing.text ||
                         !run_.placing.place.empty() || !run_.placing.devices.empty();
  if (!is_placed) return policy_;
  run_.warnings.push_back("the model runs in stages, which are on the cpu: the policy is not used");
  config.policy.clear();
  config.device = "cpu";
  run_.placing = {};
  return read_run_policy(config, run_.placing);
}

std::string TrainedModel::stages_text() const {
  if (!in_stages()) return "";
  std::string nodes;
  const std::vector<StageRequest>& requests = model_->requests();
  for (std::size_t i = 0; i < requests.size() && i < 3; ++i)
    nodes += (i == 0 ? "" : ", ") + requests[i].op + " at " + requests[i].path;
  if (requests.size() > 3) nodes += " and " + std::to_string(requests.size() - 3) + " more";
  return "stages      data decides extents: " + nodes +
         "; each batch runs in stages, and is planned again when extents change, which is slower";
}

void TrainedModel::start_states(Graph& graph) const {
  std::map<std::string, const HostTensor*> trained;
  for (const NamedTensor& tensor : run_.content.model) trained.emplace(tensor.name, &tensor.tensor);
  for (State& state : graph.states) {
    const auto found = trained.find(state.name);
    if (found == trained.end()) continue;
    if (found->second->type() != state.start.type()) {
      throw Error(ErrorKind::usage, Diagnostic{.message = "the checkpoint has another shape of it",
                                               .file = run_.path,
                                               .path = state.name,
                                               .expected = to_string(state.start.type()),
                                               .got = to_string(found->second->type())});
    }
    state.start = *found->second;
    state.starts_at_zero = false;
  }
}

void TrainedModel::load() {
  // States whose infinities are not from this training: the file has them, or no training changes
  // them.
  const bool exported = run_.exported();
  if (!exported) {
    for (const NotFiniteState& state : not_finite_states(states_, {})) infinite_.insert(state.name);
  }
  for (const State& state : imported().states) {
    const bool is_constant = state.kind == StateKind::parameter && !state.trainable;
    if (is_constant || !run_.config.parameters.load.empty()) infinite_.insert(state.name);
  }
  if (exported || in_stages()) return;  // graphs of stages start with the trained values
  restore_frozen_states(states_, run_.content, run_.config, imported(),
                        parts_.model->loading_parts(), run_.path);
  restore_states(states_, run_.content);
  run_.content.model.clear();
  run_.content.optimizer.clear();
}

std::vector<Diagnostic> TrainedModel::not_finite() const {
  std::vector<Diagnostic> problems;
  for (const NotFiniteState& state : not_finite_states(states_, infinite_)) {
    Diagnostic d = diagnostic_of(state, "");
    d.file = run_.path;
    if (problems.empty()) {
      d.fix = run_.exported() ? "export an earlier checkpoint of the run"
                              : "take an earlier checkpoint: --checkpoint STEP";
    }
    problems.push_back(std::move(d));
  }
  return problems;
}

}  // namespace tandem::api
