#include "engine/train/steps/step_runner.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "engine/data/loader.h"
#include "engine/graph/error.h"
#include "engine/train/divergence/reported_ids.h"
#include "engine/train/evaluation/evaluation.h"
#include "engine/train/graph/loss_scale.h"
#include "engine/train/graph/weight_sums.h"
#include "engine/train/group/gathered.h"

namespace tandem {
namespace {

// What kernels report of one micro-batch.
struct MicroBatchErrors {
  ErrorWord word;
  const Program* program = nullptr;
  std::uint64_t step = 0;
};

// A step, and the last micro-batch of it that was launched.
struct LaunchedStep {
  StepResult result;
  BoundProgram* bound = nullptr;
  MicroBatch micro_batch;
  std::uint64_t ticket = 0;
  MicroBatchWatch* watch = nullptr;
  float signals = 0;         // the signals of this rank
  bool is_released = false;  // whether its slots are released to the loader
};

/// Fills the slots of the programs with samples.
struct Feed {
  std::unique_ptr<Loader> loader;
  double waited_before = 0;  // seconds that loaders which are gone kept steps waiting
  /// The programs' ticket of the loader's ticket 0, and of the next micro-batch.
  std::uint64_t base_ticket = 0, next_ticket = 0;

  double waited() const { return waited_before + (loader ? loader->waited() : 0); }
  void close() {
    waited_before = waited();
    loader.reset();
  }
};

}  // namespace

struct StepRunner::Impl {
  const RunConfig& config;
  RunParts parts;
  StepData data;
  Schedules schedules;
  AverageRates averages;
  std::array<MicroBatchErrors, 4> errors;  // by ticket; programs report to them until they are gone
  StateStore& states;
  StepPrograms programs;
  Feed feed;
  std::uint64_t steps_done = 0;
  bool whole = true;        // states are those between steps
  bool has_buffers = true;  // running statistics, which every micro-batch of a step updates
  DataPosition position;    // after the last step that was launched
  std::array<LaunchedStep, 2> steps;
  int in_flight = 0;

  Impl(const RunConfig& c, const RunParts& p, const StepData& d, const RunLength& length,
       StateStore& s, std::shared_ptr<Arenas> arenas)
      : config(c),
        parts(p),
        data(d),
        schedules(c.optimizer, length),
        averages(c.optimizer, length),
        states(s),
        programs(c, p, d, length, s, std::move(arenas)) {}

  LaunchedStep& oldest() { return steps[(steps_done - in_flight + 1) % steps.size()]; }
  std::vector<bool> thawed_now() const { return programs.thawed_after(steps_done); }
  std::int64_t taken_steps() const {
    return tandem::taken_steps(states, static_cast<std::int64_t>(steps_done));
  }
  void build_where_due(std::vector<bool> thawed);
  void open_loader();
  /// The loader's next micro-batch, on all ranks or on none: where one of them cannot read its
  /// samples, all throw before any has launched the micro-batch.
  MicroBatch next_micro_batch();
  double denominator(const LossTerm& term, const MicroBatch& first) const;
  void feed_scalars(const LaunchedStep& step, const MicroBatch& first);
  void launch(LaunchedStep& step, const MicroBatch& first);
  void read(LaunchedStep& step);
  void refuse_reports(std::uint64_t ticket);
  void release_early();
  const LossTerm& term(const std::string& name) const;
};

StepRunner::StepRunner(const RunConfig& config, const RunParts& parts, StepData data,
                       const RunLength& length, StateStore& states, std::shared_ptr<Arenas> arenas)
    : impl_(new Impl(config, parts, data, length, states, std::move(arenas))) {
  impl_->programs.build_where_due(impl_->thawed_now(), 0);
}

StepRunner::~StepRunner() = default;
const BoundProgram& StepRunner::main_program() const { return impl_->programs.main(); }
std::vector<const BoundProgram*> StepRunner::step_programs() const {
  return impl_->programs.of_full_step();
}
std::vector<MemoryUse> StepRunner::check_later_phases(
    const std::vector<const BoundProgram*>& others) const {
  return impl_->programs.check_later_phases(others);
}
FrozenSoFar StepRunner::frozen_so_far() const {
  return impl_->programs.frozen_so_far(impl_->taken_steps());
}
void StepRunner::compare_ranks() const { impl_->programs.compare_ranks(); }
bool StepRunner::states_are_whole() const { return impl_->whole; }
Schedules& StepRunner::schedules() { return impl_->schedules; }
double StepRunner::waited_for_data() const { return impl_->feed.waited(); }

void StepRunner::prepare(std::uint64_t steps_done, const RunLength& length,
                         const FrozenSoFar& before) {
  Impl& my = *impl_;
  my.schedules.set_length(length);
  my.averages.set_length(length);
  my.programs.set_length(length);
  my.steps_done = steps_done;
  my.programs.restore(before, steps_done);
}

void StepRunner::start(std::uint64_t steps_done, const DataPosition& position) {
  Impl& my = *impl_;
  my.steps_done = steps_done;
  my.position = position;
  my.build_where_due(my.thawed_now());
  const std::vector<std::string> names = my.states.names();
  my.has_buffers = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return my.states.kind(name) == StateKind::buffer;
  });
  my.open_loader();
}

void StepRunner::stop() { impl_->feed.close(); }

void StepRunner::Impl::build_where_due(std::vector<bool> thawed) {
  programs.set_samples_read(position.sample);
  if (!programs.build_where_due(std::move(thawed), taken_steps())) return;
  for (MicroBatchErrors& own : errors) own.program = nullptr;
  programs.compare_ranks();
}

void StepRunner::Impl::open_loader() {
  feed.close();
  LoaderOptions options;
  options.fields = programs.fields();
  options.batch_size = config.batch_size;
  options.micro_batch_size = config.micro_batch_size();
  options.drop_last = config.data && config.data->drop_last;
  if (config.data) options.threads = config.data->workers;
  options.order = data.epochs;
  options.buckets = programs.sources_by_length();
  options.place = place_of(parts);
  options.seed = config.seed;
  options.start = position;
  options.ahead = parts.options.input_slots;
  feed.base_ticket = feed.next_ticket;
  const std::uint64_t base = feed.base_ticket;
  feed.loader = std::make_unique<Loader>(
      data.source, options, [this, base](int field, const MicroBatch& micro_batch) -> void* {
        BoundProgram& bound = programs.at(shape_of(micro_batch));
        return bound.program->input_slot(
            bound.data_inputs[programs.fields()[static_cast<std::size_t>(field)]],
            base + micro_batch.ticket);
      });
}

const LossTerm& StepRunner::Impl::term(const std::string& name) const {
  for (const LossTerm& term : config.loss.terms) {
    if (term.name == name) return term;
  }
  assert(false);
  return config.loss.terms[0];
}

/// Sum of weights over all samples of the step that starts with `first`.
double StepRunner::Impl::denominator(const LossTerm& term, const MicroBatch& first) const {
  const std::shared_ptr<const EpochSamples> epoch = data.epochs->of(first.start.epoch);
  const std::span<const std::int64_t> samples(epoch->samples.data() + first.start.sample,
                                              static_cast<std::size_t>(first.step_count));
  return weight_sum(term, *programs.source_of(first.length), samples);
}

void StepRunner::Impl::feed_scalars(const LaunchedStep& step, const MicroBatch& first) {
  const BoundProgram& bound = *step.bound;
  Program& program = *bound.program;
  const std::uint64_t ticket = step.ticket;
  if (bound.signals_input >= 0)
    *static_cast<float*>(program.input_slot(bound.signals_input, ticket)) = step.signals;
  if (bound.step_input >= 0) {
    *static_cast<std::int64_t*>(program.input_slot(bound.step_input, ticket)) =
        static_cast<std::int64_t>(steps_done + 1);
  }
  const auto number = static_cast<std::int64_t>(steps_done + 1);
  for (const auto& [input, rate] : bound.learning_rates) {
    *static_cast<float*>(program.input_slot(input, ticket)) =
        static_cast<float>(rate.base * schedules.factor(rate.schedule, number));
  }
  for (const auto& [input, average] : bound.averages) {
    *static_cast<float*>(program.input_slot(input, ticket)) =
        static_cast<float>(averages.of(average, number));
  }
  for (const auto& [input, name] : bound.denominators) {
    *static_cast<float*>(program.input_slot(input, ticket)) =
        static_cast<float>(denominator(term(name), first));
  }
}

void StepRunner::Impl::launch(LaunchedStep& step, const MicroBatch& first) {
  BoundProgram& bound = *step.bound;
  feed_scalars(step, first);
  if (!bound.next_inputs.empty()) {
    const std::optional<MicroBatch> next = feed.loader->peek();
    const bool alike = next && shape_of(*next) == shape_of(step.micro_batch);
    feed_next(bound, step.ticket,
              alike ? std::optional(feed.base_ticket + next->ticket) : std::nullopt);
  }
  MicroBatchErrors& own = errors[step.ticket % errors.size()];
  own.program = bound.program.get();
  own.step = step.result.step;
  whole = false;
  StepContext context;
  context.seed = config.seed;
  context.step = step.result.step;
  context.micro_batch = static_cast<std::uint64_t>(step.micro_batch.index);
  context.first_sample = static_cast<std::uint64_t>(step.micro_batch.own.first);
  context.error = &own.word;
  if (step.watch != nullptr) step.watch->before(*bound.program);
  bound.program->launch(context, step.ticket);
  feed.next_ticket = step.ticket + 1;
}

// A kernel may report after the results of its micro-batch have arrived; its report still belongs
// to that micro-batch.
void StepRunner::Impl::refuse_reports(std::uint64_t ticket) {
  for (std::uint64_t at = ticket - std::min<std::uint64_t>(ticket, 2); at <= ticket; ++at) {
    MicroBatchErrors& own = errors[at % errors.size()];
    if (own.program == nullptr || own.word.packed.load() == 0) continue;
    whole = false;
    refuse_reported(*own.program, own.word, " at step " + std::to_string(own.step));
  }
}

void StepRunner::Impl::read(LaunchedStep& step) {
  const BoundProgram& bound = *step.bound;
  StepResult& result = step.result;
  bound.program->finish(step.ticket);
  if (step.watch != nullptr) step.watch->after(*bound.program, step.ticket);
  auto scalar = [&](int output) {
    return *static_cast<const float*>(bound.program->output(output, step.ticket));
  };
  result.loss += scalar(bound.loss_output);
  for (std::size_t i = 0; i < bound.term_outputs.size(); ++i) {
    if (step.micro_batch.index == 0) result.terms.emplace_back(bound.term_outputs[i].second, 0);
    result.terms[i].second += scalar(bound.term_outputs[i].first);
  }
  if (bound.signals_output >= 0) result.signals = scalar(bound.signals_output);
  if (bound.norm_output >= 0) result.gradient_norm = scalar(bound.norm_output);
  for (const auto& [output, name] : bound.norms) result.norms.emplace_back(name, scalar(output));
  if (bound.scale_output >= 0) {
    result.loss_scale = scalar(bound.scale_output);
    result.skipped_steps =
        *static_cast<const std::int64_t*>(bound.program->output(bound.skipped_output, step.ticket));
  }
  if (!step.is_released) feed.loader->release(step.micro_batch.ticket);
  step.is_released = true;
  refuse_reports(step.ticket);
}

// With a step under way ahead, the loader would have one place less to fill.
void StepRunner::Impl::release_early() {
  if (in_flight == 0) return;
  LaunchedStep& step = oldest();
  if (step.is_released || step.watch != nullptr) return;
  if (!step.bound->program->has_read_inputs(step.ticket)) return;
  feed.loader->release(step.micro_batch.ticket);
  step.is_released = true;
}

// Ranks that have launched a step wait in it for the others. Samples that are in memory and are
// valid need no agreement.
MicroBatch StepRunner::Impl::next_micro_batch() {
  std::optional<MicroBatch> next;
  const auto load = [&] { next = feed.loader->next(); };
  if (data.source->may_refuse())
    on_all_ranks(*parts.ranks, "samples", load);
  else
    load();
  assert(next && "the loader of a training run never ends");
  return *next;
}

int StepRunner::in_flight() const { return impl_->in_flight; }

bool StepRunner::may_launch_ahead() const {
  const Impl& my = *impl_;
  if (my.in_flight > 1 || my.config.micro_batch_size() < my.config.batch_size) return false;
  if (my.parts.options.input_slots < 3 || !my.programs.are_of(my.thawed_now())) return false;
  return my.programs.may_overlap();
}

void StepRunner::launch(MicroBatchWatch* watch, float signals) {
  Impl& my = *impl_;
  if (std::vector<bool> now = my.thawed_now(); !my.programs.are_of(now)) {
    assert(my.in_flight == 0);
    my.feed.close();
    my.build_where_due(std::move(now));
    my.open_loader();
  }
  const std::uint64_t number = my.steps_done + 1;
  LaunchedStep& step = my.steps[number % my.steps.size()];
  step = {};
  step.watch = watch;
  step.signals = signals;
  step.result.step = number;
  step.result.start = my.position;
  if (my.programs.have_rates())
    step.result.lr =
        my.config.optimizer.base.lr * my.schedules.factor(0, static_cast<std::int64_t>(number));
  MicroBatch first;
  for (;;) {
    const MicroBatch micro_batch = my.next_micro_batch();
    if (micro_batch.index == 0) first = micro_batch;
    step.micro_batch = micro_batch;
    step.bound = &my.programs.at(shape_of(micro_batch));
    step.ticket = my.feed.base_ticket + micro_batch.ticket;
    step.is_released = false;
    my.launch(step, first);
    my.release_early();
    my.whole = micro_batch.end_of_step || !my.has_buffers;
    if (micro_batch.end_of_step) break;
    my.read(step);
  }
  my.steps_done = number;
  my.position = step.result.end = step.micro_batch.end;
  step.result.samples = step.micro_batch.step_count;
  ++my.in_flight;
}

StepResult StepRunner::finish() {
  Impl& my = *impl_;
  assert(my.in_flight > 0);
  LaunchedStep& step = my.oldest();
  my.read(step);
  --my.in_flight;
  return std::move(step.result);
}

}  // namespace tandem
