// tandem::api::Trainer: a run from a train.toml, or from a configuration in memory.
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>

#include "api/init/guessed_run.h"
#include "api/model/model.h"
#include "api/path_value.h"
#include "api/policy/batch_size.h"
#include "api/policy/policy_case.h"
#include "api/run_files.h"
#include "api/train/config_settings.h"
#include "api/train/given_objects.h"
#include "api/train/long_samples.h"
#include "api/train/moved_from.h"
#include "api/train/on_ranks.h"
#include "api/train/operator_log.h"
#include "api/train/program_samples.h"
#include "api/train/resumed_run.h"
#include "api/train/run_fingerprint.h"
#include "api/train/run_observer.h"
#include "api/train/stoppable_model.h"
#include "api/trained/vocabularies.h"
#include "engine/formats/count_text.h"
#include "engine/formats/files.h"
#include "engine/formats/paths.h"
#include "engine/graph/parameter_names.h"
#include "engine/graph/text.h"
#include "engine/lower/reorder_note.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/checkpoints/run_directory.h"
#include "engine/train/divergence/absent_ids.h"
#include "engine/train/divergence/hidden_keys.h"
#include "engine/train/group/gathered.h"
#include "engine/train/group/start_checks.h"
#include "engine/train/loop/trainer.h"
#include "engine/train/programs/freeze_rules.h"
#include "engine/train/start/reader_notes.h"
#include "kernels/cpu/cpu_device.h"
#include "placement/report/cache_cost.h"
#include "placement/report/placement_report.h"
#include "placement/report/plan_record.h"
#include "placement/tables/table_caches.h"
#include "tandem/tandem.h"

namespace tandem::api {
namespace {

/// How the samples of the options, or else the configuration's files, are opened.
DataOpener data_opener(const TrainOptions& options) {
  return options.train ? open_samples(options.train, options.eval) : DataOpener(&open_data);
}

}  // namespace

struct Trainer::Impl {
  // Declared first, because other members' constructors use them.
  bool is_prepared = false;  // the constructor has ended
  bool has_run = false;

  std::shared_ptr<RankGroup> ranks;
  RunConfig config;
  TrainOptions options;
  std::string resume_from;  // a run directory, or ""
  StartRecord record;       // without the run directory
  PlacingArguments placing;
  RunPolicy policy;
  Engine engine;
  std::shared_ptr<ConfiguredModel> model;
  ModelData data;
  PlacedModel placed;
  std::unique_ptr<StepTrace> trace;           // null unless asked for
  std::unique_ptr<OperatorLog> operator_log;  // null unless asked for, or needed for a trace
  std::unique_ptr<Training> training;
  std::vector<SavedVocabulary> vocabularies;
  std::vector<std::string> data_warnings;
  void add_data_warnings(DataSets& data);
  FingerprintPtr fingerprint;
  std::vector<Diagnostic> mixed_samples;  // warnings about steps that are cut into parts

  /// Warnings about caches that cost more than they save, by the cost model.
  std::vector<Diagnostic> cache_warnings() const;
  bool stops() const { return options.stop.stop_requested(); }
  /// " (OMP_NUM_THREADS)" where that variable makes threads fewer than cores.
  std::string threads_note() const;
  /// Throws where the constructor was asked to stop; a run saves first.
  void check_stop() const;
  ConfiguredModelOptions model_options();

  Rendezvous& rendezvous() const { return *ranks->rendezvous(); }
  int rank() const { return ranks->rank(); }
  bool has_other_ranks() const { return ranks->ranks() > 1; }
  /// Throws where ranks were not started with the same settings.
  void compare_ranks() const;
  void build_training(DataSets data);
  /// What the constructors make.
  static std::unique_ptr<Impl> open(const ConfigSource& source, TrainOptions options);
  /// Runs the training; a trace is written even if it fails.
  TrainingResult run_traced(const std::vector<std::pair<std::string, std::string>>& files);

  Impl(std::shared_ptr<RankGroup> group, RunConfig c, TrainOptions o, std::string resumed,
       StartRecord started)
      : ranks(std::move(group)),
        config(std::move(c)),
        options(std::move(o)),
        resume_from(std::move(resumed)),
        record(std::move(started)),
        placing{.place = options.place,
                .devices = options.devices,
                .text = text_of(options.policy),
                .ranks = ranks},
        policy(read_run_policy(config, placing)),
        engine(policy.threads),
        model(std::make_shared<ConfiguredModel>(engine, config, model_options())),
        data(model, data_opener(options)),
        placed(model, policy, placing, &data) {}
};

ConfiguredModelOptions Trainer::Impl::model_options() {
  check_stop();
  return {.run_dir = resume_from, .on_message = options.on_message, .stop_requested = [this] {
            return stops();
          }};
}

void Trainer::Impl::check_stop() const {
  if (is_prepared || !stops()) return;
  throw Error(
      ErrorKind::runtime,
      Diagnostic{.message = "interrupted before the first step",
                 .fix = resume_from.empty() ? "nothing was trained, no run directory was written"
                                            : "the run is as it was: " + resume_from});
}

namespace {

// The name in errors about one that was moved from.
constexpr const char* trainer_handle = "Trainer";

std::string data_text(const DataFingerprint& data) {
  std::string text;
  for (const auto* parts : {&data.train, &data.eval}) {
    for (const RecordedPart& part : *parts) text += part.id + ": " + joined(part.facts) + "\n";
  }
  for (const auto& [field, type] : data.fields) text += field + ": " + type + "\n";
  return text;
}

/// "32", or "32 to 33" where the number of ranks does not divide the samples.
std::string share_text(std::int64_t samples, int ranks) {
  const std::int64_t most = share_of(samples, {0, ranks}).count;
  const std::int64_t least = share_of(samples, {ranks - 1, ranks}).count;
  return least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most);
}

/// "\nshared     rows of 2 tables, columns of 1 table, 3 whole tables, blocks of 1 matrix,
/// optimizer states of 12 parameters", or "".
std::string shared_text(const Graph& graph, const ResolvedPolicy& resolved) {
  std::set<std::string> looked_up, parameters;
  for (const ParameterAttributes& parameter : resolved.parameters) {
    if (parameter.table) looked_up.insert(parameter.name);
  }
  std::size_t by_rows = 0, by_columns = 0, whole_tables = 0, matrices = 0;
  for (const State& state : graph.states) {
    if (!state.shard || !state.derived.is_saved()) continue;
    if (state.shard->kind == ShardKind::elements)
      parameters.insert(state.parameter);
    else if (state.kind == StateKind::parameter)
      ++(state.shard->kind == ShardKind::rows    ? by_rows
         : state.shard->kind == ShardKind::table ? whole_tables
         : looked_up.contains(state.name)        ? by_columns
                                                 : matrices);
  }
  std::vector<std::string> parts;
  const auto add = [&](const char* of, std::size_t count, const char* one, const char* several) {
    if (count > 0) parts.push_back(fmt::format("{}{} {}", of, count, count > 1 ? several : one));
  };
  add("rows of ", by_rows, "table", "tables");
  add("columns of ", by_columns, "table", "tables");
  add("", whole_tables, "whole table", "whole tables");
  add("blocks of ", matrices, "matrix", "matrices");
  add("optimizer states of ", parameters.size(), "parameter", "parameters");
  return parts.empty() ? "" : fmt::format("\nshared     {}", fmt::join(parts, ", "));
}

std::string vocabulary_text(const std::vector<SavedVocabulary>& vocabularies) {
  std::string text;
  for (const SavedVocabulary& v : vocabularies) text += v.file_name + " " + v.sha256 + "\n";
  return text;
}

/// Options for the plans that choose a batch size.
PolicyOptions planning_of(const std::string& config_path, const TrainOptions& options,
                          const std::shared_ptr<RankGroup>& group) {
  PolicyOptions planning;
  planning.config = config_path;
  planning.place = options.place;
  planning.devices = options.devices;
  planning.made = options.policy;
  planning.ranks = group->ranks();
  return planning;
}

std::string resolved_file(const std::string& run_dir) { return run_dir + "/train.resolved.toml"; }

/// A resumed run keeps its batch size, whatever would fit now.
std::int64_t batch_size_of_run(const std::string& run_dir) {
  return read_run_config(resolved_file(run_dir)).batch_size;
}

}  // namespace

Trainer::Trainer(const std::string& config_path, TrainOptions options)
    : impl_(Impl::open({config_path}, std::move(options))) {}

Trainer::Trainer(const Model& model, const TrainConfig& config, TrainOptions options)
    : Trainer(with_model(config, model, "TrainConfig"), std::move(options)) {}

Trainer::Trainer(const TrainConfig& config, TrainOptions options)
    : impl_(Impl::open(
          {normal_path(config.file.empty() ? "train.toml" : config.file), settings_of(config)},
          std::move(options))) {}

std::unique_ptr<Trainer::Impl> Trainer::Impl::open(const ConfigSource& source,
                                                   TrainOptions options) {
  const std::shared_ptr<RankGroup> group = join_ranks();
  Rendezvous& ranks = *group->rendezvous();
  const int count = group->ranks();
  options = quiet_but_on_rank_0(std::move(options), group);
  const auto say = [&](const std::string& text) {
    if (options.on_message) options.on_message(text);
  };
  std::string resume_from;
  if (options.resume)
    resume_from =
        from_rank_0(ranks, "run to resume", [&] { return run_to_resume(source, options); });
  std::optional<ResumedRun> resumed;
  StartRecord record;
  RunConfig config;
  std::string config_file;
  const auto take_options = [&] {
    if (!options.run_dir.empty()) config.run_dir = path_value(options.run_dir);
    if (options.policy) config.policy = options.policy->name();
  };
  on_all_ranks(ranks, "configuration", [&] {
    refuse_unused(options);
    if (!resume_from.empty()) {
      resumed.emplace(resume_from, source, options);
      options.place = resumed->place();
      options.devices = resumed->devices();
    }
    const TrainOptions given = options;  // a guess adds rules to them
    config_file = resumed ? resumed->config_file() : source.path;
    if (!source.settings && is_guessed(config_file))
      config = guessed_run_config(
          source.path, options, resumed ? resumed->all_keys(options.overrides) : options.overrides);
    else
      config = resumed ? resumed->config() : source.config(options.overrides);
    take_options();
    require_data(config, options);
    record = resumed ? resumed->record(count) : record_of_start(source, given, count);
  });
  if (config.batch_choice.is_open) {
    // A run that was killed at its start has not recorded its size.
    const bool is_recorded = !resume_from.empty() && path_exists(resolved_file(resume_from));
    const std::int64_t size = std::stoll(from_rank_0(ranks, "batch size", [&] {
      const std::int64_t found =
          is_recorded ? batch_size_of_run(resume_from)
                      : fitting_batch_size(config, planning_of(source.path, options, group),
                                           data_opener(options));
      return std::to_string(found);
    }));
    say(is_recorded ? fmt::format("batch_size {}, as the run was started with", size)
                    : batch_size_text(config, size));
    config = with_batch_size(std::move(config), size);
  }
  on_all_ranks(ranks, "configuration", [&] {
    if (!resumed) return;
    if (const std::string line = resumed->take_longer_length(config); !line.empty()) {
      take_options();
      record = resumed->record(count);
      say(line);
    }
    for (const std::string& line : resumed->compared(config, options.place, count)) say(line);
  });
  std::unique_ptr<Impl> made;
  const bool is_table = config.data->table();  // one rank prepares it, the others read it
  std::optional<DataSets> data;
  (is_table ? on_rank_0_first : on_all_ranks)(ranks, "model and data", [&] {
    made = std::make_unique<Impl>(group, std::move(config), std::move(options),
                                  std::move(resume_from), std::move(record));
    data = made->data.sets();
    if (made->options.train) require_held_out(made->config, *data);
    made->check_stop();
  });
  on_all_ranks(ranks, "programs", [&] { made->build_training(std::move(*data)); });
  made->compare_ranks();
  made->is_prepared = true;
  return made;
}

/// Warns of ids that have no row and of masks that hide all keys. A rank that prints nothing skips
/// it.
void Trainer::Impl::add_data_warnings(DataSets& data) {
  if (rank() != 0 || has_training_info(model->file())) return;
  const Graph& forward = placed.forward(config.micro_batch_size(), true);
  const auto add = [&](const tandem::DataSource* source, const char* what) {
    if (source == nullptr) return;
    AbsentIds absent(config, forward);
    HiddenKeys hidden(forward, engine.evaluate);
    absent.add(*source);
    hidden.add(*source);
    for (const std::vector<std::string>& found : {absent.warnings(), hidden.warnings()}) {
      for (const std::string& warning : found) {
        data.warnings.push_back(what + warning);
        if (options.on_message) options.on_message("warning    " + data.warnings.back());
      }
    }
  };
  add(data.train.get(), "training data: ");
  add(data.eval.get(), "held-out data: ");
}

void Trainer::Impl::build_training(DataSets data) {
  vocabularies = data.vocabularies;
  add_data_warnings(data);
  data_warnings = data.warnings;
  if (!resume_from.empty()) refuse_other_vocabularies(resume_from, vocabularies);
  if (!options.trace_path.empty() && !options.dry_run && rank() == 0)
    trace = std::make_unique<StepTrace>(options.trace_path, options.trace_first, options.trace_last,
                                        options.on_message);
  if (options.log_operators || trace) {
    operator_log =
        std::make_unique<OperatorLog>(engine, placed, options.log_operators, trace.get());
  }
  RunParts parts = placed.run_parts();
  parts.ranks = ranks->rendezvous();
  if (has_other_ranks()) parts.shards = shardings_of(placed.resolved());
  if (!options.dry_run || !resume_from.empty() || has_other_ranks())
    parts.fingerprint = fingerprint = run_fingerprint(config, model->file(), data);
  parts.accept_changes = options.accept_changes;
  parts.words = field_words(config, data.vocabularies);
  parts.model = std::make_shared<StoppableModel>(std::move(parts.model), [this] { check_stop(); });
  training = std::make_unique<Training>(
      config, std::move(parts), std::move(data),
      std::make_shared<RunObserver>(options, record, operator_log.get()));
  check_stop();
  const bool in_micro_batches = config.micro_batch_size() < config.batch_size;
  if (has_other_ranks() || in_micro_batches)
    mixed_samples = model->warn_of_mixed_samples(in_micro_batches ? "micro_batch" : "ranks");
  if (!operator_log) return;
  std::vector<Program*> micro_batches;
  for (const BoundProgram* bound : training->step_programs())
    micro_batches.push_back(bound->program.get());
  operator_log->reserve(micro_batches);
}

TrainingResult Trainer::Impl::run_traced(
    const std::vector<std::pair<std::string, std::string>>& files) {
  const auto write_trace = [&] {
    if (trace) trace->write(/*at_end=*/true);
  };
  try {
    const TrainingResult done = training->run(resume_from, files);
    write_trace();
    return done;
  } catch (...) {
    write_trace();
    throw;
  }
}

void Trainer::Impl::compare_ranks() const {
  if (!has_other_ranks()) return;
  std::vector<RankFact> facts{
      {"the version of tandem", version(), "start the same program on all ranks"},
      {"the configuration", to_toml(config), "give all ranks the same file and the same keys"},
      {"the policy", placed.policy().text, "give all ranks the same policy"},
      {"the model file", fingerprint->model.sha256, "give all ranks the same model file"},
      {"the data", data_text(fingerprint->data), "give all ranks the same files"},
      {"the vocabularies", vocabulary_text(vocabularies), "prepare the tables once, for all ranks"},
  };
  refuse_differences(rendezvous(), facts);
}

Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;

TrainResult Trainer::run() {
  Impl& my = held(impl_, trainer_handle);
  TrainResult result;
  result.rank = my.rank();
  result.warnings = my.data_warnings;
  if (my.has_run) {
    throw Error(
        ErrorKind::usage,
        Diagnostic{
            .message = "this Trainer has run already",
            .fix =
                "make another one; with TrainOptions::resume it continues where this one ended"});
  }
  if (my.options.dry_run) {
    on_all_ranks(my.rendezvous(), "dry run", [&] {
      if (my.rank() == 0) my.training->try_start(my.resume_from);
    });
    return result;
  }
  my.has_run = true;
  const Lowered& lowered = my.training->main_program().program->lowered();
  RunConfig config = my.config;
  if (my.options.policy)
    config.policy = "policy.toml";  // the run's own, which is written next to it
  std::vector<std::pair<std::string, std::string>> files{
      {"train.resolved.toml", to_toml(config)},
      {"policy.toml", my.placed.policy().text},
      {"placement.json", placement_json(lowered, my.placed.policy(), my.placed.resolved())},
      {"plan.json", plan_record_json(lowered, my.training->main_program().program->plan(),
                                     my.placed.resolved())}};
  for (const SavedVocabulary& v : my.vocabularies)
    files.emplace_back(v.file_name, v.path.empty() ? v.text : read_file(v.path));
  const TrainingResult done = my.run_traced(files);
  check_order(my.engine);
  if (my.options.on_message && !my.config.parameters.lora.empty() && !done.interrupted)
    my.options.on_message(
        "adapters   `tandem export` merges them into the weights of an .onnx, or writes only them "
        "for PEFT with --format peft");
  if (my.options.on_message) {
    for (const BoundProgram* bound : my.training->step_programs()) {
      for (const std::string& problem : bound->program->graph_problems())
        my.options.on_message("note: " + problem);
    }
  }
  result.run_dir = done.run_dir;
  result.steps = done.steps;
  result.loss = done.loss;
  for (const auto& [name, value] : done.evaluation) result.evaluation[name] = value;
  for (const tandem::MetricTable& table : done.tables)
    result.tables.push_back({table.metric, table.names, table.numbers, table.is_matrix});
  result.best_metric = done.best_metric;
  result.best_value = done.best_value;
  result.best_step = done.best_step;
  result.interrupted = done.interrupted;
  return result;
}

std::string v1::to_text(const MetricTable& table) {
  return table_text({table.metric, table.names, table.numbers, table.is_matrix});
}

std::vector<Diagnostic> Trainer::Impl::cache_warnings() const {
  const ResolvedPolicy& resolved = placed.resolved();
  if (cached_tables(resolved).empty()) return {};
  const Program& program = *training->main_program().program;
  std::vector<DeviceProfile> profiles;
  for (std::size_t d = 0; d < resolved.devices.size(); ++d)
    profiles.push_back(cache_profile_of(*placed.devices()[d], resolved.devices[d]));
  std::vector<CacheCost> costs;
  add_cache_costs(resolved, program.lowered(), program.plan(), profiles,
                  config.batch_size / config.micro_batch_size(), costs);
  return tandem::cache_warnings(placed.policy().policy, costs);
}

std::string Trainer::Impl::threads_note() const {
  const bool is_asked = config.threads == 0 && asked_threads() &&
                        engine.cpu->facts().threads == *asked_threads() &&
                        *asked_threads() < usable_cores();
  return is_asked ? " (OMP_NUM_THREADS)" : "";
}

/// ", 12288 of them train"; "" where all of them train.
static std::string trained_part(const RunConfig& config, const Graph& imported, std::size_t all) {
  const ParameterNames names(imported);
  const FreezeRules rules(config.parameters, names);
  std::size_t trained = 0;
  for (const State& state : imported.states) {
    const bool trains = state.kind == StateKind::parameter && state.trainable &&
                        state.held_by == HeldBy::checkpoint && !rules.always_freezes(state);
    if (trains) trained += static_cast<std::size_t>(state.start.type().elements());
  }
  return trained < all ? fmt::format(", {} of them train", trained) : "";
}

/// The values that cross between devices in a full step.
static std::vector<Crossing> crossings_of_step(const Training& training) {
  std::map<const Program*, std::int64_t> times;
  for (const BoundProgram* micro_batch : training.step_programs())
    ++times[micro_batch->program.get()];
  std::vector<Crossing> all;
  for (const auto& [program, count] : times) {
    for (Crossing& crossing : crossings_of(program->lowered(), program->plan())) {
      crossing.times = count;
      all.push_back(std::move(crossing));
    }
  }
  return all;
}

std::string Trainer::summary() const {
  const Impl& my = held(impl_, trainer_handle);
  if (my.rank() > 0) return "";
  const Program& program = *my.training->main_program().program;
  const Graph& graph = program.lowered().graph;
  const ResolvedPolicy& resolved = my.placed.resolved();
  const std::map<std::string, PackedTensor>& stored = my.model->stored().packed();
  const std::set<std::string> scales = scales_names(stored);
  std::size_t parameters = 0, elements = 0;
  for (const State& state : graph.states) {
    if (state.kind != StateKind::parameter || !state.derived.is_saved()) continue;
    if (scales.contains(state.name)) continue;
    ++parameters;
    const auto packed = stored.find(state.name);
    const TensorType& whole = packed != stored.end() ? packed->second.from
                              : state.shard          ? state.shard->whole
                                                     : state.start.type();
    elements += static_cast<std::size_t>(whole.elements());
  }
  std::size_t instructions = 0;
  for (const Queue& queue : program.plan().queues) instructions += queue.instructions.size();
  const Graph& imported = my.model->micro_batch().graph;
  const std::int64_t total = my.training->total_steps();
  // The end of a resumed run is only known after its checkpoint was read.
  const std::string steps =
      my.resume_from.empty() && total > 0 ? count_text(total, "step") + ", " : "";
  std::string text = fmt::format(
      "model      {}  ({} parameters in {} tensors{})\n{}\n"
      "plan       {} instructions, {}{}\n{}"
      "training   {}{} per epoch, batch {}",
      my.config.model.file, elements, parameters,
      has_training_info(my.model->file()) ? "" : trained_part(my.config, imported, elements),
      placement_line(my.training->memory(), crossings_of_step(*my.training),
                     my.placed.policy().policy, resolved),
      instructions, count_text(my.engine.cpu->facts().threads, "thread"), my.threads_note(),
      memory_text(my.training->memory(), resolved), steps,
      count_text(my.training->steps_per_epoch(), "step"), my.config.batch_size);
  if (my.has_other_ranks())
    text += fmt::format("\nranks      {}, {} on this machine: each computes {} samples of a step",
                        my.ranks->ranks(), my.ranks->local_ranks(),
                        share_text(my.config.batch_size, my.ranks->ranks())) +
            shared_text(graph, resolved);
  for (const std::string& line : table_lines(resolved)) text += "\n" + line;
  for (const ModelNotice& notice : my.model->notices()) {
    text += notice.is_warning ? "\nwarning    " : "\nnote       ";
    text += in_one_line(notice);
  }
  if (my.options.verbose) {
    for (const std::string& line : my.model->stored().errors()) text += "\nnote       " + line;
  }
  if (const std::string told = long_samples(my.config.model.file, imported); !told.empty())
    text += "\nwarning    " + told;
  for (const Diagnostic& d : my.model->export_warnings()) text += "\nwarning    " + to_string(d);
  for (const Diagnostic& d : my.mixed_samples) text += "\nwarning    " + to_string(d);
  for (const Diagnostic& d : resolved.warnings) {
    text += "\nwarning    " + to_string(d);
  }
  for (const Diagnostic& d : my.cache_warnings()) text += "\nwarning    " + to_string(d);
  for (const Diagnostic& d : my.config.notes) text += "\nnote       " + to_string(d);
  for (const Diagnostic& d : resolved.notes) {
    text += "\nnote       " + to_string(d);
  }
  for (const std::string& note : reader_notes(my.config, imported)) text += "\nnote       " + note;
  for (const std::string& note : program.lowered().notes) {
    if (my.options.verbose || !is_reorder_note(note)) text += "\nnote       " + note;
  }
  return text;
}

}  // namespace tandem::api
