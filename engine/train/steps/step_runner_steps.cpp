// A step: its micro-batches are fed and launched, and later waited for and read.
#include <algorithm>
#include <cassert>
#include <utility>

#include "engine/graph/error.h"
#include "engine/train/divergence/reported_ids.h"
#include "engine/train/evaluation/evaluation.h"
#include "engine/train/graph/weight_sums.h"
#include "engine/train/group/gathered.h"
#include "engine/train/steps/step_runner_impl.h"

namespace tandem {

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
  return weight_sum(term, *source_of(first.length), samples);
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
    const std::optional<MicroBatch> next = loader->peek();
    const bool alike = next && shape_of(*next) == shape_of(step.micro_batch);
    feed_next(bound, step.ticket, alike ? std::optional(base_ticket + next->ticket) : std::nullopt);
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
  next_ticket = step.ticket + 1;
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
  if (!step.is_released) loader->release(step.micro_batch.ticket);
  step.is_released = true;
  refuse_reports(step.ticket);
}

// With a step under way ahead, the loader would have one place less to fill.
void StepRunner::Impl::release_early() {
  if (in_flight == 0) return;
  LaunchedStep& step = oldest();
  if (step.is_released || step.watch != nullptr) return;
  if (!step.bound->program->has_read_inputs(step.ticket)) return;
  loader->release(step.micro_batch.ticket);
  step.is_released = true;
}

// Ranks that have launched a step wait in it for the others. Samples that are in memory and are
// valid need no agreement.
MicroBatch StepRunner::Impl::next_micro_batch() {
  std::optional<MicroBatch> next;
  const auto load = [&] { next = loader->next(); };
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
  if (my.parts.options.input_slots < 3 || my.thawed_now() != my.thawed) return false;
  return std::all_of(my.programs.begin(), my.programs.end(), [](const auto& program) {
    return program.second.program->steps_in_flight() > 1;
  });
}

void StepRunner::launch(MicroBatchWatch* watch, float signals) {
  Impl& my = *impl_;
  if (std::vector<bool> now = my.thawed_now(); my.thawed != now) {
    assert(my.in_flight == 0);
    my.close_loader();
    if (my.build_where_due(std::move(now), my.taken_steps())) compare_ranks();
    my.open_loader();
  }
  const std::uint64_t number = my.steps_done + 1;
  LaunchedStep& step = my.steps[number % my.steps.size()];
  step = {};
  step.watch = watch;
  step.signals = signals;
  step.result.step = number;
  step.result.start = my.position;
  if (my.has_rates)
    step.result.lr =
        my.config.optimizer.base.lr * my.schedules.factor(0, static_cast<std::int64_t>(number));
  MicroBatch first;
  for (;;) {
    const MicroBatch micro_batch = my.next_micro_batch();
    if (micro_batch.index == 0) first = micro_batch;
    step.micro_batch = micro_batch;
    step.bound = &my.programs.at(shape_of(micro_batch));
    step.ticket = my.base_ticket + micro_batch.ticket;
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
