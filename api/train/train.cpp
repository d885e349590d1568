// tandem::api::Trainer: a run from a train.toml.
#include <filesystem>

#include <fmt/format.h>

#include "api/model/model.h"
#include "api/path_value.h"
#include "api/run_files.h"
#include "api/train/moved_from.h"
#include "api/train/operator_log.h"
#include "api/train/run_fingerprint.h"
#include "api/use/vocabularies.h"
#include "engine/formats/files.h"
#include "engine/formats/paths.h"
#include "engine/training/checkpoints/checkpoint.h"
#include "engine/training/checkpoints/run_directory.h"
#include "engine/training/trainer.h"
#include "placement/report/placement_report.h"
#include "tandem/tandem.h"

namespace tandem::api {
struct Trainer::Impl {
  RunConfig config;
  TrainOptions options;
  std::string resume_from;  // a run directory, or ""
  PlacingArguments placing;
  RunPolicy policy;
  Engine engine;
  std::shared_ptr<Model> model;
  ModelData data;
  PlacedModel placed;
  std::unique_ptr<OperatorLog> operator_log;  // where it is asked for
  std::unique_ptr<Training> training;
  std::vector<SavedVocabulary> vocabularies;
  bool is_prepared = false;  // the constructor has ended
  bool has_run = false;

  bool stops() const { return options.stop.stop_requested(); }
  /// Throws where the constructor is to stop; a run saves first.
  void check_stop() const;
  ModelOptions model_options();

  Impl(RunConfig c, TrainOptions o, std::string resumed)
      : config(std::move(c)),
        options(std::move(o)),
        resume_from(std::move(resumed)),
        placing{options.place, options.devices},
        policy(read_run_policy(config, placing)),
        engine(policy.threads),
        model(std::make_shared<Model>(engine, config, model_options())),
        data(model),
        placed(model, policy, placing, &data) {}
};

ModelOptions Trainer::Impl::model_options() {
  check_stop();
  return {.run_dir = resume_from, .on_message = options.on_message, .stop_requested = [this] {
            return stops();
          }};
}

void Trainer::Impl::check_stop() const {
  if (is_prepared || !stops()) return;
  throw Error(ErrorKind::runtime,
              Diagnostic{.message = "interrupted before the first step",
                         .fix = "nothing was trained, no run directory was written"});
}

namespace {

constexpr const char* handle = "Trainer";  // in what is said of one that was moved from

void require_data(const RunConfig& config) {
  if (config.data) return;
  Diagnostic d;
  d.file = config.file;
  d.message = "there is no [data] table";
  d.fix = "add [data] with kind, train.files and fields";
  throw Error(ErrorKind::usage, std::move(d));
}

std::string find_run(const RunConfig& config) {
  if (!config.run_dir.empty())
    return is_directory(config.run_dir + "/checkpoints") ? config.run_dir : "";
  const std::filesystem::path file(config.file);
  return RunDirectory::newest_unfinished((file.parent_path() / "runs").string(),
                                         config.name.empty() ? file.stem().string() : config.name);
}

}  // namespace

Trainer::Trainer(const std::string& config_path, TrainOptions options) {
  std::vector<std::string> overrides = options.overrides;
  if (!options.run_dir.empty()) {
    overrides.push_back("run_dir=" + path_value(options.run_dir));
  }
  RunConfig config = read_run_config(config_path, overrides);
  require_data(config);
  std::string resume_from;
  if (options.resume) {
    resume_from = find_run(config);
    if (resume_from.empty()) {
      Diagnostic d;
      d.file = config.file;
      d.message = "there is no unfinished run to resume";
      d.fix = "leave --resume away, or name the run with --run-dir";
      throw Error(ErrorKind::usage, std::move(d));
    }
  }
  impl_ = std::make_unique<Impl>(std::move(config), std::move(options), std::move(resume_from));
  Impl& my = *impl_;
  DataSets data = my.data.sets();
  my.check_stop();
  my.vocabularies = data.vocabularies;
  if (!my.resume_from.empty()) refuse_other_vocabularies(my.resume_from, my.vocabularies);
  TrainingHooks hooks;
  if (my.options.log_operators) {
    my.operator_log = std::make_unique<OperatorLog>(my.engine, my.placed);
    hooks.watch = my.operator_log.get();
  }
  hooks.on_message = my.options.on_message;
  hooks.stop_requested = [&my] { return my.stops(); };
  if (my.options.on_progress) {
    hooks.on_progress = [report = my.options.on_progress](const TrainingProgress& p) {
      Progress progress;
      progress.step = p.step;
      progress.steps = p.steps;
      progress.epoch = p.epoch;
      progress.epochs = p.epochs;
      progress.evaluation = p.evaluation;
      progress.values = p.values;
      progress.samples_per_second = p.samples_per_second;
      progress.seconds = p.seconds;
      report(progress);
    };
  }
  RunParts parts = my.placed.run_parts();
  if (!my.options.dry_run || !my.resume_from.empty())
    parts.fingerprint = run_fingerprint(my.config, my.model->file(), data);
  parts.accept_changes = my.options.accept_changes;
  parts.forward = [&my, forward = std::move(parts.forward)](std::int64_t batch, bool training) {
    my.check_stop();  // before each program that is built
    return forward(batch, training);
  };
  my.training = std::make_unique<Training>(my.config, std::move(parts), std::move(data), hooks);
  my.check_stop();
  if (my.operator_log) {
    std::vector<Program*> micro_batches;
    for (const BoundProgram* bound : my.training->step_programs())
      micro_batches.push_back(bound->program.get());
    my.operator_log->reserve(micro_batches);
  }
  my.is_prepared = true;
}

Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;

TrainResult Trainer::run() {
  Impl& my = held(impl_, handle);
  TrainResult result;
  if (my.has_run) {
    Diagnostic d;
    d.message = "this Trainer has run already";
    d.fix = "make another one; with TrainOptions::resume it goes on where this one ended";
    throw Error(ErrorKind::usage, std::move(d));
  }
  if (my.options.dry_run) {
    my.training->try_start(my.resume_from);
    return result;
  }
  my.has_run = true;
  const Lowered& lowered = my.training->main_program().program->lowered();
  std::vector<std::pair<std::string, std::string>> files{
      {"train.resolved.toml", to_toml(my.config)},
      {"policy.toml", my.placed.policy().text},
      {"placement.json", placement_json(lowered, my.placed.policy(), my.placed.resolved())}};
  for (const SavedVocabulary& v : my.vocabularies)
    files.emplace_back(v.file_name, read_file(v.path));
  const TrainingResult done = my.training->run(my.resume_from, files);
  check_order(my.engine);
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
  result.interrupted = done.interrupted;
  return result;
}

std::string Trainer::summary() const {
  const Impl& my = held(impl_, handle);
  const Program& program = *my.training->main_program().program;
  const Graph& graph = program.lowered().graph;
  const ResolvedPolicy& resolved = my.placed.resolved();
  std::size_t parameters = 0, elements = 0;
  for (const State& state : graph.states) {
    if (state.kind != StateKind::parameter || !state.derived.is_saved()) continue;
    ++parameters;
    elements += static_cast<std::size_t>(state.start.type().elements());
  }
  std::size_t instructions = 0;
  for (const Queue& queue : program.plan().queues) instructions += queue.instructions.size();
  const std::int64_t total = my.training->total_steps();
  // Where a resumed run ends is known once its checkpoint is read.
  const std::string steps =
      my.resume_from.empty() && total > 0 ? fmt::format("{} steps, ", total) : "";
  std::string text = fmt::format(
      "model      {}  ({} parameters in {} tensors)\n{}\n"
      "plan       {} instructions, {} threads\n{}"
      "training   {}{} steps per epoch, batch {}",
      my.config.model.file, elements, parameters,
      placement_line(program.lowered(), program.plan(), my.placed.policy().policy, resolved,
                     my.config.batch_size / my.config.micro_batch_size()),
      instructions, my.engine.cpu->facts().threads, memory_text(program.plan(), resolved), steps,
      my.training->steps_per_epoch(), my.config.batch_size);
  for (const std::string& line : table_lines(resolved)) text += "\n" + line;
  for (const Diagnostic& d : my.model->export_warnings()) text += "\nwarning    " + to_string(d);
  for (const Diagnostic& d : resolved.warnings) {
    text += "\nwarning    " + to_string(d);
  }
  for (const Diagnostic& d : resolved.notes) {
    text += "\nnote       " + to_string(d);
  }
  for (const std::string& note : program.lowered().notes) text += "\nnote       " + note;
  return text;
}

}  // namespace tandem::api
