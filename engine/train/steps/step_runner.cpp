// The programs of a run's steps: which there are, and when they are rebuilt.
#include <algorithm>

#include "engine/data/buckets/buckets.h"
#include "engine/data/buckets/cut_source.h"
#include "engine/graph/error.h"
#include "engine/plan/collectives.h"
#include "engine/train/averages/weights_in_use.h"
#include "engine/train/divergence/training_mode.h"
#include "engine/train/evaluation/evaluation.h"
#include "engine/train/graph/loss_scale.h"
#include "engine/train/group/start_checks.h"
#include "engine/train/programs/compiled_ahead.h"
#include "engine/train/programs/run_programs.h"
#include "engine/train/sharding/random_samples.h"
#include "engine/train/steps/step_runner_impl.h"

namespace tandem {

StepRunner::StepRunner(const RunConfig& config, const RunParts& parts, StepData data,
                       const RunLength& length, StateStore& states, std::shared_ptr<Arenas> arenas)
    : impl_(new Impl{config, parts, std::move(data), length, Schedules(config.optimizer, length),
                     AverageRates(config.optimizer, length), place_of(parts), states,
                     std::move(arenas)}) {
  const StepData& read = impl_->data;
  for (const DataField& field : read.source->fields()) impl_->field_names.push_back(field.name);
  for (const std::int64_t bucket : read.buckets ? read.buckets->lengths : Shape{})
    impl_->cut[bucket] = cut_source(read.source, read.buckets->fields, bucket);
  impl_->build_where_due(impl_->thawed_now(), 0);
}

StepRunner::~StepRunner() = default;
const BoundProgram& StepRunner::main_program() const { return *impl_->main; }
std::vector<const BoundProgram*> StepRunner::step_programs() const {
  const std::int64_t count = std::min(impl_->config.batch_size, impl_->data.epochs->count());
  std::vector<const BoundProgram*> programs;
  for (MicroBatch& micro_batch :
       micro_batches_of_step(count, impl_->config.micro_batch_size(), impl_->place)) {
    if (impl_->data.buckets) micro_batch.length = impl_->data.buckets->longest();
    programs.push_back(&impl_->programs.at(shape_of(micro_batch)));
  }
  return programs;
}
bool StepRunner::states_are_whole() const { return impl_->whole; }
Schedules& StepRunner::schedules() { return impl_->schedules; }
double StepRunner::waited_for_data() const {
  return impl_->waited_before + (impl_->loader ? impl_->loader->waited() : 0);
}

std::vector<bool> StepRunner::Impl::thawed_now() const {
  return thawed_after(config.parameters.freeze, length, static_cast<std::int64_t>(steps_done),
                      thawed);
}

RunParts StepRunner::Impl::parts_for(const StepProgram& program) const {
  RunParts own = parts;
  own.options.lower.rows_ahead = program.takes_rows_ahead;
  return own;
}

std::vector<StepProgram> StepRunner::Impl::needed() const {
  RunCounts counts;
  counts.samples = data.epochs->count();
  counts.samples_read = position.sample;
  if (data.buckets) counts.lengths = data.buckets->lengths;
  counts.place = place;
  return tandem::step_programs(config, counts);
}

std::shared_ptr<const DataSource> StepRunner::Impl::source_of(std::int64_t length) const {
  return length == 0 ? data.source : cut.at(length);
}

Graph StepRunner::Impl::forward(const MicroBatchShape& shape,
                                std::vector<std::string>& notes) const {
  const std::int64_t samples = shape.micro_batch;
  const Graph graph = parts.model->forward({samples, true, shape.length});
  if (place.ranks == 1 || !draws_random_numbers(graph)) return graph;
  const Graph other = parts.model->forward({samples + 1, true, shape.length});
  return with_random_samples({graph, samples}, {other, samples + 1}, shape.all, notes);
}

TrainingGraph StepRunner::Impl::training_graph(const MicroBatchShape& shape,
                                               const std::vector<bool>& rules,
                                               const MissedStepCounts& missed,
                                               std::vector<std::string>& warnings) const {
  TrainingRequest request;
  request.config = &config;
  request.fields = field_types(*source_of(shape.length), shape.micro_batch);
  request.kind = shape.kind;
  request.samples = {shape.micro_batch, shape.step};
  request.ranks = {place.ranks, shape.micro_batch, share_of(shape.all, {0, place.ranks}).count,
                   place.rank};
  request.shards = parts.shards;
  request.evaluate = parts.evaluate;
  request.thawed = rules;
  request.algorithm = parts.model->algorithm({shape.micro_batch, true});
  request.missed_steps = missed;
  std::vector<std::string> notes;
  const Graph graph = forward(shape, notes);
  TrainingModeReport report = check_training_mode(
      graph,
      {shape.micro_batch, shape.all, config.model.sync_batch_norm, shape.step < config.batch_size});
  if (!report.problems.empty()) throw Error(ErrorKind::usage, std::move(report.problems));
  for (std::string& warning : report.warnings) {
    if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end())
      warnings.push_back(std::move(warning));
  }
  TrainingGraph training = build_training_graph(*parts.operators, graph, request);
  training.notes.insert(training.notes.end(), notes.begin(), notes.end());
  check_fed_inputs(training, config, request.fields);
  return training;
}

std::int64_t StepRunner::Impl::taken_steps() const {
  return tandem::taken_steps(states, static_cast<std::int64_t>(steps_done));
}

bool StepRunner::Impl::build_where_due(std::vector<bool> rules, std::int64_t taken) {
  const std::vector<StepProgram> all = needed();
  bool is_due = thawed != rules || programs.size() != all.size();
  thawed = std::move(rules);
  if (!all.empty() && !parts.model->algorithm({all[0].shape.micro_batch, true})) {
    const MicroBatchShape& shape = all[0].shape;
    TrainingRequest request;
    request.config = &config;
    request.thawed = thawed;
    MissedStepCounts now = missed.change(
        parts.model->forward({shape.micro_batch, true, shape.length}), request, taken);
    is_due = is_due || now != missed_steps;
    missed_steps = std::move(now);
  }
  if (!is_due) return false;
  const std::vector<std::string> names = states.names();
  build();
  // Averages that appear first in these programs start with their parameters' values.
  initialise_averages(states, {names.begin(), names.end()});
  return true;
}

void StepRunner::Impl::build() {
  for (MicroBatchErrors& own : errors) own.program = nullptr;
  programs.clear();
  std::vector<MicroBatchShape> shapes;
  for (const StepProgram& program : needed()) shapes.push_back(program.shape);
  refuse_small_shares(shapes, config, place.ranks);
  std::vector<std::string> warnings;  // collected from all programs, without repeats
  for (const StepProgram& program : needed()) {
    const TrainingGraph training = training_graph(program.shape, thawed, missed_steps, warnings);
    const auto made = programs.emplace(
        program.shape, bind_program(training, parts_for(program), states, arenas, field_names));
    if (programs.size() == 1) main = &made.first->second;
  }
  // Callers that inspect one program want the one with the update.
  for (const auto& [shape, bound] : programs) {
    if (shape.kind == MicroBatchKind::whole && shape.step == config.batch_size) main = &bound;
  }
  for (auto& [shape, bound] : programs) {
    if (&bound == main) bound.notes.insert(bound.notes.end(), warnings.begin(), warnings.end());
  }
  has_rates = std::any_of(programs.begin(), programs.end(), [](const auto& program) {
    return !program.second.learning_rates.empty();  // only the program with the update has them
  });
  fields = fed_fields(*main);
}

void StepRunner::prepare(std::uint64_t steps_done, const RunLength& length,
                         const FrozenSoFar& before) {
  Impl& my = *impl_;
  my.length = length;
  my.schedules.set_length(length);
  my.averages.set_length(length);
  my.steps_done = steps_done;
  std::vector<bool> then = my.thawed_now();
  for (std::size_t i = 0; i < then.size(); ++i) {
    const auto known = before.thawed.find(to_string(my.config.parameters.freeze[i]));
    if (known != before.thawed.end()) then[i] = known->second;
  }
  my.missed.restore(before.missed_steps);
  my.build_where_due(std::move(then), before.taken_steps);
}

void StepRunner::compare_ranks() const {
  const Impl& my = *impl_;
  if (my.place.ranks == 1) return;
  std::vector<RankFact> facts;
  for (const StepProgram& needed : my.needed()) {
    const MicroBatchShape& shape = needed.shape;
    const Program& program = *my.programs.at(shape).program;
    const std::string length = shape.length > 0 ? " of length " + std::to_string(shape.length) : "";
    facts.push_back(
        {"what ranks exchange in a step of " + std::to_string(shape.step) + " samples" + length,
         collective_order(program.lowered(), program.plan()),
         "choose a batch_size and a micro_batch that the ranks divide, and "
         "data.drop_last = true"});
  }
  refuse_differences(*my.parts.ranks, facts);
}

std::vector<MemoryUse> StepRunner::check_later_phases(
    const std::vector<const BoundProgram*>& beside) const {
  const Impl& my = *impl_;
  const std::vector<FreezeRule>& rules = my.config.parameters.freeze;
  const std::vector<FreezePhase> phases = freeze_phases(rules, my.length);
  CompiledAhead ahead(my.parts, my.states);
  const std::vector<StepProgram> needed = my.needed();
  for (const StepProgram& program : needed) ahead.has_of_phase(my.programs.at(program.shape));
  for (const BoundProgram* bound : beside) ahead.has(*bound);
  MissedSteps missed = my.missed;
  std::vector<std::string> warnings;  // those of the first phase
  for (std::size_t i = 1; i < phases.size(); ++i) {
    ahead.begin_phase();
    try {
      const MicroBatchShape& first = needed.front().shape;
      TrainingRequest request;
      request.config = &my.config;
      request.thawed = phases[i].thawed;
      const MissedStepCounts counts =
          missed.change(my.parts.model->forward({first.micro_batch, true, first.length}), request,
                        phases[i].first_step - 1);
      for (const StepProgram& program : needed) {
        const TrainingGraph training =
            my.training_graph(program.shape, phases[i].thawed, counts, warnings);
        ahead.add(training.graph, my.parts_for(program));
      }
      ahead.check_fit();
    } catch (const Error& error) {
      throw error_in_phase(error, rules, phases[i - 1], phases[i]);
    }
  }
  return ahead.memory();
}

FrozenSoFar StepRunner::frozen_so_far() const {
  FrozenSoFar frozen;
  for (std::size_t i = 0; i < impl_->thawed.size(); ++i) {
    const FreezeRule& rule = impl_->config.parameters.freeze[i];
    if (rule.until) frozen.thawed[to_string(rule)] = impl_->thawed[i];
  }
  frozen.taken_steps = impl_->taken_steps();
  frozen.missed_steps = impl_->missed.after(frozen.taken_steps);
  return frozen;
}

void StepRunner::Impl::open_loader() {
  close_loader();
  LoaderOptions options;
  options.fields = fields;
  options.batch_size = config.batch_size;
  options.micro_batch_size = config.micro_batch_size();
  options.drop_last = config.data && config.data->drop_last;
  if (config.data) options.threads = config.data->workers;
  options.order = data.epochs;
  options.buckets = cut;
  options.place = place;
  options.seed = config.seed;
  options.start = position;
  options.ahead = parts.options.input_slots;
  base_ticket = next_ticket;
  const std::uint64_t base = base_ticket;
  loader = std::make_unique<Loader>(
      data.source, options, [this, base](int field, const MicroBatch& micro_batch) -> void* {
        BoundProgram& bound = programs.at(shape_of(micro_batch));
        return bound.program->input_slot(bound.data_inputs[fields[field]],
                                         base + micro_batch.ticket);
      });
}

void StepRunner::start(std::uint64_t steps_done, const DataPosition& position) {
  impl_->steps_done = steps_done;
  impl_->position = position;
  if (impl_->build_where_due(impl_->thawed_now(), impl_->taken_steps())) compare_ranks();
  const std::vector<std::string> names = impl_->states.names();
  impl_->has_buffers = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return impl_->states.kind(name) == StateKind::buffer;
  });
  impl_->open_loader();
}

void StepRunner::Impl::close_loader() {
  if (loader) waited_before += loader->waited();
  loader.reset();
}

void StepRunner::stop() { impl_->close_loader(); }

}  // namespace tandem
