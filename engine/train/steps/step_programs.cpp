#include "engine/train/steps/step_programs.h"

#include <algorithm>

#include "engine/data/buckets/buckets.h"
#include "engine/data/buckets/cut_source.h"
#include "engine/graph/error.h"
#include "engine/plan/collectives.h"
#include "engine/train/averages/weights_in_use.h"
#include "engine/train/divergence/training_mode.h"
#include "engine/train/evaluation/evaluation.h"
#include "engine/train/group/start_checks.h"
#include "engine/train/programs/compiled_ahead.h"
#include "engine/train/sharding/random_samples.h"

namespace tandem {

StepPrograms::StepPrograms(const RunConfig& config, const RunParts& parts, StepData data,
                           const RunLength& length, StateStore& states,
                           std::shared_ptr<Arenas> arenas)
    : config_(config),
      parts_(parts),
      data_(std::move(data)),
      length_(length),
      states_(states),
      arenas_(std::move(arenas)) {
  for (const std::int64_t bucket : data_.buckets ? data_.buckets->lengths : Shape{})
    cut_[bucket] = cut_source(data_.source, data_.buckets->fields, bucket);
}

std::vector<const BoundProgram*> StepPrograms::of_full_step() const {
  const std::int64_t count = std::min(config_.batch_size, data_.epochs->count());
  std::vector<const BoundProgram*> programs;
  for (MicroBatch& micro_batch :
       micro_batches_of_step(count, config_.micro_batch_size(), place_of(parts_))) {
    if (data_.buckets) micro_batch.length = data_.buckets->longest();
    programs.push_back(&programs_.at(shape_of(micro_batch)));
  }
  return programs;
}

bool StepPrograms::may_overlap() const {
  return std::all_of(programs_.begin(), programs_.end(), [](const auto& program) {
    return program.second.program->steps_in_flight() > 1;
  });
}

std::vector<bool> StepPrograms::thawed_after(std::uint64_t steps_done) const {
  return tandem::thawed_after(config_.parameters.freeze, length_,
                              static_cast<std::int64_t>(steps_done), thawed_);
}

void StepPrograms::restore(const FrozenSoFar& before, std::uint64_t steps_done) {
  std::vector<bool> then = thawed_after(steps_done);
  for (std::size_t i = 0; i < then.size(); ++i) {
    const auto known = before.thawed.find(to_string(config_.parameters.freeze[i]));
    if (known != before.thawed.end()) then[i] = known->second;
  }
  missed_.restore(before.missed_steps);
  build_where_due(std::move(then), before.taken_steps);
}

FrozenSoFar StepPrograms::frozen_so_far(std::int64_t taken) const {
  FrozenSoFar frozen;
  for (std::size_t i = 0; i < thawed_.size(); ++i) {
    const FreezeRule& rule = config_.parameters.freeze[i];
    if (rule.until) frozen.thawed[to_string(rule)] = thawed_[i];
  }
  frozen.taken_steps = taken;
  frozen.missed_steps = missed_.after(taken);
  return frozen;
}

RunParts StepPrograms::parts_for(const StepProgram& program) const {
  RunParts own = parts_;
  own.options.lower.rows_ahead = program.takes_rows_ahead;
  return own;
}

std::vector<StepProgram> StepPrograms::needed() const {
  RunCounts counts;
  counts.samples = data_.epochs->count();
  counts.samples_read = samples_read_;
  if (data_.buckets) counts.lengths = data_.buckets->lengths;
  counts.place = place_of(parts_);
  return tandem::step_programs(config_, counts);
}

std::shared_ptr<const DataSource> StepPrograms::source_of(std::int64_t length) const {
  return length == 0 ? data_.source : cut_.at(length);
}

Graph StepPrograms::forward(const MicroBatchShape& shape, std::vector<std::string>& notes) const {
  const std::int64_t samples = shape.micro_batch;
  const Graph graph = parts_.model->forward({samples, true, shape.length});
  if (parts_.ranks->ranks() == 1 || !draws_random_numbers(graph)) return graph;
  const Graph other = parts_.model->forward({samples + 1, true, shape.length});
  return with_random_samples({graph, samples}, {other, samples + 1}, shape.all, notes);
}

TrainingGraph StepPrograms::training_graph(const MicroBatchShape& shape,
                                           const std::vector<bool>& thawed,
                                           const MissedStepCounts& missed,
                                           std::vector<std::string>& warnings) const {
  TrainingRequest request;
  request.config = &config_;
  request.fields = field_types(*source_of(shape.length), shape.micro_batch);
  request.kind = shape.kind;
  request.samples = {shape.micro_batch, shape.step};
  const RankPlace place = place_of(parts_);
  request.ranks = {place.ranks, shape.micro_batch, share_of(shape.all, {0, place.ranks}).count,
                   place.rank};
  request.shards = parts_.shards;
  request.evaluate = parts_.evaluate;
  request.thawed = thawed;
  request.algorithm = parts_.model->algorithm({shape.micro_batch, true});
  request.missed_steps = missed;
  std::vector<std::string> notes;
  const Graph graph = forward(shape, notes);
  TrainingModeReport report =
      check_training_mode(graph, {shape.micro_batch, shape.all, config_.model.sync_batch_norm,
                                  shape.step < config_.batch_size});
  if (!report.problems.empty()) throw Error(ErrorKind::usage, std::move(report.problems));
  for (std::string& warning : report.warnings) {
    if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end())
      warnings.push_back(std::move(warning));
  }
  TrainingGraph training = build_training_graph(*parts_.operators, graph, request);
  training.notes.insert(training.notes.end(), notes.begin(), notes.end());
  check_fed_inputs(training, config_, request.fields);
  return training;
}

MissedStepCounts StepPrograms::missed_before(MissedSteps& missed, const StepProgram& first,
                                             const std::vector<bool>& thawed,
                                             std::int64_t taken) const {
  const MicroBatchShape& shape = first.shape;
  TrainingRequest request;
  request.config = &config_;
  request.thawed = thawed;
  return missed.change(parts_.model->forward({shape.micro_batch, true, shape.length}), request,
                       taken);
}

bool StepPrograms::build_where_due(std::vector<bool> thawed, std::int64_t taken) {
  const std::vector<StepProgram> all = needed();
  bool is_due = thawed_ != thawed || programs_.size() != all.size();
  thawed_ = std::move(thawed);
  if (!all.empty() && !parts_.model->algorithm({all[0].shape.micro_batch, true})) {
    MissedStepCounts now = missed_before(missed_, all[0], thawed_, taken);
    is_due = is_due || now != missed_steps_;
    missed_steps_ = std::move(now);
  }
  if (!is_due) return false;
  const std::vector<std::string> names = states_.names();
  build();
  // Averages that appear first in these programs start with their parameters' values.
  initialise_averages(states_, {names.begin(), names.end()});
  return true;
}

void StepPrograms::build() {
  programs_.clear();
  const std::vector<StepProgram> all = needed();
  std::vector<MicroBatchShape> shapes;
  for (const StepProgram& program : all) shapes.push_back(program.shape);
  refuse_small_shares(shapes, config_, parts_.ranks->ranks());
  std::vector<std::string> field_names;
  for (const DataField& field : data_.source->fields()) field_names.push_back(field.name);
  std::vector<std::string> warnings;  // collected from all programs, without repeats
  for (const StepProgram& program : all) {
    const TrainingGraph training = training_graph(program.shape, thawed_, missed_steps_, warnings);
    const auto made = programs_.emplace(
        program.shape, bind_program(training, parts_for(program), states_, arenas_, field_names));
    if (programs_.size() == 1) main_ = &made.first->second;
  }
  // Callers that inspect one program want the one with the update.
  for (const auto& [shape, bound] : programs_) {
    if (shape.kind == MicroBatchKind::whole && shape.step == config_.batch_size) main_ = &bound;
  }
  for (auto& [shape, bound] : programs_) {
    if (&bound == main_) bound.notes.insert(bound.notes.end(), warnings.begin(), warnings.end());
  }
  have_rates_ = std::any_of(programs_.begin(), programs_.end(), [](const auto& program) {
    return !program.second.learning_rates.empty();  // only the program with the update has them
  });
  fields_ = fed_fields(*main_);
}

void StepPrograms::compare_ranks() const {
  if (parts_.ranks->ranks() == 1) return;
  std::vector<RankFact> facts;
  for (const StepProgram& needed : this->needed()) {
    const MicroBatchShape& shape = needed.shape;
    const Program& program = *programs_.at(shape).program;
    const std::string length = shape.length > 0 ? " of length " + std::to_string(shape.length) : "";
    facts.push_back(
        {"what ranks exchange in a step of " + std::to_string(shape.step) + " samples" + length,
         collective_order(program.lowered(), program.plan()),
         "choose a batch_size and a micro_batch that the ranks divide, and "
         "data.drop_last = true"});
  }
  refuse_differences(*parts_.ranks, facts);
}

std::vector<MemoryUse> StepPrograms::check_later_phases(
    const std::vector<const BoundProgram*>& others) const {
  const std::vector<FreezeRule>& rules = config_.parameters.freeze;
  const std::vector<FreezePhase> phases = freeze_phases(rules, length_);
  CompiledAhead ahead(parts_, states_);
  const std::vector<StepProgram> needed = this->needed();
  for (const StepProgram& program : needed) ahead.has_of_phase(programs_.at(program.shape));
  for (const BoundProgram* bound : others) ahead.has(*bound);
  MissedSteps missed = missed_;
  std::vector<std::string> warnings;  // those of the first phase
  for (std::size_t i = 1; i < phases.size(); ++i) {
    ahead.begin_phase();
    try {
      const MissedStepCounts counts =
          missed_before(missed, needed.front(), phases[i].thawed, phases[i].first_step - 1);
      for (const StepProgram& program : needed) {
        const TrainingGraph training =
            training_graph(program.shape, phases[i].thawed, counts, warnings);
        ahead.add(training.graph, parts_for(program));
      }
      ahead.check_fit();
    } catch (const Error& error) {
      throw error_in_phase(error, rules, phases[i - 1], phases[i]);
    }
  }
  return ahead.memory();
}

}  // namespace tandem
