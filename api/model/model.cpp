#include "api/model/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/model/mixed_samples.h"
#include "api/model/sample_loss.h"
#include "api/trained/loaded_weights.h"
#include "engine/config/keys/config_value.h"
#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "engine/graph/parameter_names.h"
#include "engine/graph/text.h"
#include "engine/losses/loss.h"
#include "engine/train/algorithm/algorithm_settings.h"
#include "engine/train/divergence/check_integers.h"
#include "engine/train/programs/freeze_rules.h"
#include "engine/train/tables/row_counts.h"
#include "engine/train/tables/table_storage.h"
#include "engine/train/updates/parameter_choice.h"
#include "importer/export_notes.h"
#include "placement/derive.h"
#include "placement/kernel_refusals.h"
#include "placement/report/fit.h"

namespace tandem::api {
namespace {

// Passes each text on only once: a table is opened both for its vocabularies and for its rows, and
// reports the same twice.
std::function<void(const std::string&)> told_once(std::function<void(const std::string&)> tell) {
  if (!tell) return tell;
  return [tell = std::move(tell),
          said = std::make_shared<std::set<std::string>>()](const std::string& text) {
    if (said->insert(text).second) tell(text);
  };
}

}  // namespace

OnnxFile open_model_file(const RunConfig& config) {
  try {
    return OnnxFile::open(config.model.file);
  } catch (const Error& error) {
    if (path_exists(config.model.file) || config.file.empty()) throw;
    Diagnostic d = error.diagnostics().front();
    d.fix = "`model` of " + where_text(config.model.where) +
            " names it: put the file there, or set model.file to where it is (model.file=PATH on "
            "the command line)";
    throw Error(error.kind(), std::move(d));
  }
}

ConfiguredModel::ConfiguredModel(const Engine& engine, const RunConfig& config, OnnxFile file,
                                 ConfiguredModelOptions options)
    : engine_(engine),
      config_(config),
      file_(std::move(file)),
      options_(std::move(options)),
      tuning_(engine_, config_) {
  options_.on_message = told_once(std::move(options_.on_message));
  if (!has_training_info(file_)) require_optimizer(config_);
  refuse_buckets_that_do_not_fit();
  if (options_.rows) return;
  options_.rows = [this](const ShapeRule& rule) {
    const auto saved = saved_vocabulary_rows(config_, options_.run_dir, rule);
    if (saved) return *saved;
    OpenOptions open;
    open.on_message = options_.on_message;
    open.stop_requested = options_.stop_requested;
    return prepared_vocabulary_rows(config_, rule, std::move(open));
  };
}

void ConfiguredModel::refuse_buckets_that_do_not_fit() const {
  if (!config_.data || config_.data->buckets.lengths.empty() || !has_training_info(file_)) return;
  throw Error(ErrorKind::usage, at(config_.data->buckets.where, "data.buckets",
                                   "a model with training_info has one length of sequences", "", "",
                                   "leave data.buckets out, or the model's training_info"));
}

const ImportResult& ConfiguredModel::imported(std::int64_t batch, bool training,
                                              std::int64_t length) {
  return import(batch, training, length).model;
}

std::shared_ptr<const TrainingAlgorithm> ConfiguredModel::algorithm(std::int64_t batch,
                                                                    bool training) {
  return import(batch, training).algorithm;
}

const TrainingImport& ConfiguredModel::import(std::int64_t batch, bool training,
                                              std::int64_t length) {
  const auto found = imported_.find({batch, training, length});
  if (found != imported_.end()) return found->second;
  ImportOptions options = import_options(batch, training, length);
  const bool has_own_training = has_training_info(file_);  // whose settings exclude all of these
  if (!has_own_training) tuning_.resize(file_, options);
  const auto imported = [&] { return import_training(file_, engine_.operators, options); };
  const StageValues nothing;
  if (needs_stages_) options.stage = &nothing;
  TrainingImport result;
  try {
    result = imported();
  } catch (const Error&) {
    if (!options_.in_stages || has_own_training || needs_stages_) throw;
    needs_stages_ = true;
    options.stage = &nothing;
    result = imported();
  }
  options.stage = nullptr;
  refuse_rules_without_operators(result.model);
  if (!has_own_training) tuning_.apply(options, result.model);
  return imported_.emplace(std::tuple{batch, training, length}, std::move(result)).first->second;
}

ImportResult ConfiguredModel::import_stage(std::int64_t batch, const StageValues& values) {
  ImportOptions options = import_options(batch, false);
  options.stage = &values;
  tuning_.resize(file_, options);
  ImportResult result = import_graph(file_, engine_.operators, options);
  options.stage = nullptr;
  tuning_.apply(options, result);
  return result;
}

std::map<std::string, Shape> ConfiguredModel::resized() {
  ImportOptions options = import_options(config_.micro_batch_size(), true);
  tuning_.resize(file_, options);
  return options.resized;
}

LoadingParts ConfiguredModel::loading_parts() {
  LoadingParts parts = api::loading_parts(micro_batch());
  parts.added = tuning_.added();
  parts.adapted = tuning_.adapted();
  return parts;
}

std::vector<std::pair<std::string, std::int64_t>> bound_dimensions(const RunConfig& config,
                                                                   std::int64_t length) {
  std::vector<std::pair<std::string, std::int64_t>> bound(config.model.bind.begin(),
                                                          config.model.bind.end());
  if (config.data && !config.data->buckets.lengths.empty()) {
    const BucketConfig& buckets = config.data->buckets;
    bound.emplace_back(buckets.dimension, length > 0 ? length : buckets.lengths.back());
  }
  return bound;
}

ImportOptions ConfiguredModel::import_options(std::int64_t batch, bool training,
                                              std::int64_t length) {
  if (!rows_) rows_ = rows_rules(config_, options_.rows);
  ImportOptions options;
  options.bind = bound_dimensions(config_, length);
  options.batch = batch;
  add_model_rules(config_, options);
  options.training = training;
  options.evaluate = engine_.evaluate;
  options.rows = *rows_;
  return options;
}

std::vector<Diagnostic> ConfiguredModel::export_warnings() {
  const ParameterNames names(micro_batch().graph);
  const auto covers = [&](const std::string& at, const State& state) {
    return names.covers(Selector(at), state);
  };
  // Rows of parameters that do not train, because they are frozen or have adapters, need no rule.
  const auto is_fixed = [&](const ExportNote& note) {
    const State* state = micro_batch().graph.find_state(note.parameter);
    if (note.row < 0 || state == nullptr) return false;
    const ParametersConfig& parameters = config_.parameters;
    return !state->trainable || FreezeRules(parameters, names).always_freezes(*state) ||
           std::any_of(parameters.fixed_rows.begin(), parameters.fixed_rows.end(),
                       [&](const FixedRowsRule& rule) {
                         return covers(rule.at, *state) &&
                                std::count(rule.rows.begin(), rule.rows.end(), note.row) > 0;
                       });
  };
  std::vector<Diagnostic> warnings;
  for (const ExportNote& note : export_notes(file_, micro_batch())) {
    if (is_fixed(note)) continue;
    Diagnostic& d = warnings.emplace_back();
    d.message = note.text;
    d.fix = "fixed by " + note.fix;
  }
  return warnings;
}

std::vector<Diagnostic> ConfiguredModel::warn_of_mixed_samples(const std::string& by) {
  const Graph& graph = micro_batch().graph;
  const Graph* other = nullptr;
  try {
    other = &imported(2 * config_.micro_batch_size(), true).graph;
  } catch (const Error&) {  // the file has a fixed batch size, so nothing can be compared
    return {};
  }
  std::vector<ValueId> wanted;
  for (const LossTerm& term : config_.loss.terms) {
    for (const std::string& name : term.values) {
      const NamedValue* output = graph.find_output(name);
      const ValueId value = output != nullptr ? output->value : graph.find_value(name);
      if (value) wanted.push_back(value);
    }
  }
  if (config_.loss.terms.empty()) {
    for (const NamedValue& output : graph.outputs) {
      const TensorType& type = graph.type(output.value);
      const NodeId reducer = graph.value(output.value).producer;
      if (type.elements() != 1 || !is_float(type.dtype) || !reducer) continue;
      if (!config_.loss.output.empty() && config_.loss.output != output.name) continue;
      const std::vector<ValueId>& reduced = graph.node(reducer).inputs;
      if (!reduced.empty() && reduced[0]) wanted.push_back(reduced[0]);
    }
  }
  const Node* node = find_mixed_samples(graph, *other, wanted);
  if (node == nullptr) return {};
  Diagnostic d;
  d.path = node->path;
  d.message = fmt::format("{}: samples of a batch are combined in {}", by, node->op->name);
  const bool adds_up =
      !config_.loss.terms.empty() || std::all_of(wanted.begin(), wanted.end(), [&](ValueId value) {
        return has_sample_axis(graph, *other, value);
      });
  if (adds_up) {
    d.message +=
        ", and each part of the batch has its own: the step is not that of the whole batch";
    return {d};
  }
  d.message += ", before the model's own loss is summed: the losses of parts do not add up";
  d.expected = "a loss that ends in a sum or mean over the samples";
  d.fix = by == "ranks" ? "train in one process, or export the model up to its logits and give the "
                          "loss in [loss] terms"
                        : "leave micro_batch out, or export the model up to its logits and give "
                          "the loss in [loss] terms";
  throw Error(ErrorKind::usage, std::move(d));
}

OpenOptions ConfiguredModel::open_options() {
  OpenOptions options = api::open_options(config_, micro_batch().graph);
  options.on_message = options_.on_message;
  options.stop_requested = options_.stop_requested;
  return options;
}

const DataSets& ModelData::sets() {
  if (error_) std::rethrow_exception(error_);
  if (sets_) return *sets_;
  const OpenOptions options = model_->open_options();
  try {
    sets_ = open_(*model_->config().data, options);
  } catch (const Error&) {
    error_ = std::current_exception();
    throw;
  }
  return *sets_;
}

std::shared_ptr<const tandem::DataSource> ModelData::counted() {
  const RunConfig& config = model_->config();
  if (!config.data) return nullptr;
  return zero_out_of_range(config, model_->micro_batch().graph, sets().train);
}

void ModelData::answer(const OpenQuestions& questions, PlacementFacts& facts) {
  const Graph& micro_batch = model_->micro_batch().graph;
  const Evaluator& evaluate = model_->engine().evaluate;
  if (questions.unique_rows) {
    if (!unique_rows_) {
      unique_rows_.emplace();
      try {
        if (const auto data = counted())
          unique_rows_ = count_unique_rows(micro_batch, *data, evaluate);
      } catch (const std::exception&) {  // the run itself reports it when it reads the data
      }
    }
    facts.unique_rows = unique_rows_;
  }
  if (questions.constraints.empty()) return;
  facts.constraints = questions.constraints;
  facts.caches = caches_.choose(
      micro_batch, model_->config(), evaluate, [&] { return counted(); }, facts.constraints);
}

PlacedModel::PlacedModel(std::shared_ptr<ConfiguredModel> model, RunPolicy policy,
                         const PlacingArguments& arguments, ModelData* data,
                         std::vector<std::string> keep)
    : model_(std::move(model)), policy_(std::move(policy)), keep_(std::move(keep)) {
  const Engine& engine = model_->engine();
  const RunConfig& config = model_->config();
  const ImportResult& micro_batch = model_->micro_batch();
  PlacementFacts facts;
  facts.raw_names = micro_batch.raw_names;
  std::shared_ptr<PassedGraph> step;
  for (bool is_settled = false; !is_settled;) {
    resolved_ = resolve(policy_.policy, micro_batch.graph, policy_.options, facts);
    if (data != nullptr && resolved_.questions.any()) {
      data->answer(resolved_.questions, facts);
      continue;
    }
    if (devices_.all.empty())
      devices_ =
          open_devices(resolved_, arguments, config.precision.tf32, *engine.cpu, engine.monitor);
    step = after_passes(config.micro_batch_size(), true, 0);
    const std::size_t known = facts.refusals.size();
    add_refusals(*step, facts);
    is_settled = facts.refusals.size() == known;
  }
  forward_.emplace(std::tuple{config.micro_batch_size(), true, std::int64_t{0}}, with_caches(step));
}

std::shared_ptr<PassedGraph> PlacedModel::after_passes(std::int64_t batch, bool training,
                                                       std::int64_t length) const {
  return model_->passed().find(
      {batch, training, length, keep_},
      [this](const std::vector<std::string>& paths) { return resolved_.may_merge(paths); },
      [&](const PassedGraphs::MayMerge& may_merge) {
        return with_passes(model_->imported(batch, training, length).graph, may_merge);
      });
}

Graph PlacedModel::with_passes(Graph imported) const {
  return with_passes(std::move(imported), [this](const std::vector<std::string>& paths) {
    return resolved_.may_merge(paths);
  });
}

Graph PlacedModel::with_passes(Graph imported, const PassedGraphs::MayMerge& may_merge) const {
  const Engine& engine = model_->engine();
  PassContext context{engine.operators, engine.evaluate, may_merge, {}};
  Graph graph = keep_named_values(std::move(imported), model_->config());
  for (const std::string& name : keep_) {
    const ValueId value = graph.find_value(name);
    if (value && graph.find_output(name) == nullptr) graph.outputs.push_back({name, value});
  }
  return run_passes(std::move(graph), context);
}

void PlacedModel::add_refusals(PassedGraph& step, PlacementFacts& facts) const {
  std::optional<Graph> training;
  for (std::size_t d = 1; d < devices_.all.size(); ++d) {
    const Device& device = *devices_.all[d];
    std::string key = device.facts().kind + " " + std::to_string(device.facts().threads);
    for (const std::string& feature : device.facts().features) key += " " + feature;
    for (const Kernel& kernel : device.kernels()) key += " " + kernel.name;
    if (!step.refusals.contains(key)) {
      if (!training) training = with_training(step.graph);
      std::map<std::string, std::string> refused;
      for (auto& [part, because] : kernel_refusals(*training, {devices_.all[0], devices_.all[d]}))
        refused.emplace(part.second, std::move(because));
      step.refusals.emplace(key, std::move(refused));
    }
    for (const auto& [path, because] : step.refusals.at(key))
      facts.refusals.try_emplace({static_cast<int>(d), path}, because);
  }
}

// A training step of a forward graph, used to ask devices for kernels.
Graph PlacedModel::with_training(const Graph& forward) const {
  try {
    return sample_training_graph(model_->engine(), model_->config(), forward,
                                 model_->algorithm(model_->config().micro_batch_size(), true));
  } catch (const Error& error) {  // the run's own graph reports mistakes of the configuration
    if (error.kind() != ErrorKind::usage) throw;
    return forward;
  }
}

std::shared_ptr<const Graph> PlacedModel::with_caches(
    const std::shared_ptr<PassedGraph>& passed) const {
  const std::vector<CachedTable> tables = cached_tables(resolved_);
  if (tables.empty()) return {passed, &passed->graph};
  return std::make_shared<const Graph>(
      split_cached_tables(passed->graph, model_->engine().operators, tables));
}

const std::shared_ptr<const Graph>& PlacedModel::shared_forward(std::int64_t batch, bool training,
                                                                std::int64_t length) {
  const auto& data = model_->config().data;
  if (length > 0 && data && length == data->buckets.lengths.back()) length = 0;
  std::shared_ptr<const Graph>& forward = forward_[{batch, training, length}];
  if (!forward) forward = with_caches(after_passes(batch, training, length));
  return forward;
}

OpenOptions open_options(const RunConfig& config, const Graph& graph) {
  OpenOptions options;
  options.seed = config.seed;
  options.threads = config.threads;
  // Numbers and ids of text have no type of their own, so they take the model's.
  for (const NamedValue& input : graph.inputs) {
    const DType taken = graph.type(input.value).dtype;
    const bool whole = taken == DType::int32 || taken == DType::int64;
    if (config.data && config.data->table() && whole) {
      options.integer_types[input.name] = taken;
    }
  }
  for (const LossTerm& term : config.loss.terms) {
    if (!are_class_numbers(term.kind->labels.form)) continue;
    const NamedValue* input = graph.find_input(term.labels);
    const DType taken = input ? graph.type(input->value).dtype : DType::int64;
    options.integer_types[term.labels] = taken == DType::int32 ? DType::int32 : DType::int64;
    if (!input) options.keep_int32.insert(term.labels);
  }
  return options;
}

LowerOptions PlacedModel::lower_options() {
  const RunConfig& config = model_->config();
  LowerOptions options;
  options.compute = config.precision.compute;
  const Graph& graph = model_->micro_batch().graph;
  std::vector<std::string> paths{"loss.loss"};
  for (const LossTerm& term : config.loss.terms) paths.push_back("loss." + term.name);
  for (const Node& node : graph.nodes) paths.push_back(node.path);
  std::vector<Diagnostic> errors;
  for (const PrecisionConfig::Kept& kept : config.precision.keep_float32) {
    Selector selector(kept.at);
    const bool any = std::any_of(paths.begin(), paths.end(),
                                 [&](const std::string& path) { return selector.matches(path); });
    if (any) {
      options.keep_float32.push_back(std::move(selector));
      continue;
    }
    errors.push_back(
        at(kept.where, "precision.keep_float32", "\"" + kept.at + "\" matches no operator", "", "",
           did_you_mean(nearest_name(kept.at, paths), "`tandem policy names` lists them")));
  }
  if (!errors.empty()) throw Error(ErrorKind::usage, std::move(errors));
  for (const SplitTable& table : split_tables(config.parameters, graph))
    options.split_tables.push_back(table.name);
  const bool has_optimizer = !has_training_info(model_->file());
  if (options.compute != DType::float32 && has_optimizer)
    options.without_weights = updated_by_rows(config, forward(config.micro_batch_size(), true));
  return options;
}

namespace {

/// What a run needs of a placed model, which has to outlive it.
class ModelOfRun final : public RunModel {
 public:
  explicit ModelOfRun(PlacedModel& placed) : placed_(placed) {}

  Graph forward(const ForwardKey& key) override {
    return placed_.forward(key.samples, key.training, key.length);
  }
  Placement place(const Graph& graph) override { return placed_.place(graph); }
  std::shared_ptr<const TrainingAlgorithm> algorithm(const ForwardKey& key) override {
    return placed_.model().algorithm(key.samples, key.training);
  }
  LoadingParts loading_parts() override { return placed_.model().loading_parts(); }

 private:
  PlacedModel& placed_;
};

}  // namespace

RunParts PlacedModel::run_parts() {
  RunParts parts;
  parts.operators = &model_->engine().operators;
  parts.devices = devices();
  parts.model = std::make_shared<ModelOfRun>(*this);
  parts.evaluate = model_->engine().evaluate;
  parts.options.lower = lower_options();
  parts.options.accept = [this](const tandem::Plan& plan) {
    check_fit(plan, resolved_, devices());
  };
  return parts;
}

}  // namespace tandem::api
