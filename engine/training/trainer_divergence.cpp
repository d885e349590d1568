// How a training ends whose loss, states or evaluation are not finite: what is reported, what is
// saved.
#include <algorithm>
#include <cmath>
#include <exception>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "engine/training/data/number_text.h"
#include "engine/training/divergence/check_integers.h"
#include "engine/training/divergence/divergence_cause.h"
#include "engine/training/trainer_state.h"

namespace tandem {
namespace {

void append(std::vector<Diagnostic> more, std::vector<Diagnostic>& to) {
  for (Diagnostic& d : more) to.push_back(std::move(d));
}

constexpr const char* lower_rate = "lower optimizer.lr, or set optimizer.clip_norm";

}  // namespace

void Training::Impl::refuse_nan_at_start() const {
  if (first_step > 0) return;
  const auto refuse = [&] { refuse_own_nan_at_start(); };
  if (has_parts())
    on_all_ranks(parts.ranks.get(), "states before the first step", refuse);
  else
    refuse();
}

void Training::Impl::refuse_own_nan_at_start() const {
  if (nan_at_start.empty()) return;
  std::vector<Diagnostic> problems;
  for (const NotFiniteState& state : nan_at_start)
    problems.push_back(diagnostic_of(state, " before the first step"));
  problems[0].fix =
      "the model file has it so, or parameters.load; parameters.init gives new values";
  throw Error(ErrorKind::diverged, std::move(problems));
}

void Training::Impl::refuse_bad_loss(const StepResult& result) {
  if (std::isfinite(result.loss)) return;
  const std::string step = "step " + std::to_string(result.step);
  std::vector<Diagnostic> causes = bad_data(result.start, result.end);
  std::vector<std::int64_t> samples = epochs->of(result.start.epoch)->samples;
  samples.erase(samples.begin(), samples.begin() + result.start.sample);
  samples.resize(static_cast<std::size_t>(result.samples));
  append(weightless_means(config, *data.train, samples, "all labels of " + step), causes);
  append(weightless_means(label_means(forward()), *data.train, samples, "all labels of " + step),
         causes);
  bool is_known = true;  // whether it is known which step the states come after
  const auto count_skipped = [&](const StepResult& of) {
    if (of.loss_scale) scale_watch.note(of.skipped_steps);
    position.skipped_in_a_row = scale_watch.in_a_row();
  };
  count_skipped(result);
  try {
    if (const std::optional<StepResult> next = take_next()) {
      count_skipped(*next);
      if (next->step == logged_step) log_step(*next);
    }
  } catch (const Error&) {  // thrown by the step after it, which had bad labels
    is_known = false;
  }
  const auto is_whole = [&] {
    return !causes.empty() && is_known && watch.look_at_all(place()).empty();
  };
  const bool saves = has_parts() ? on_all("a step without a loss", is_whole())
                                 : from_rank_0(parts.ranks.get(), "a step without a loss", [&] {
                                     return std::string(is_whole() ? "saves" : "");
                                   }) == "saves";
  if (saves) {  // the loss scale left the step out
    save(false, true);
    say(fmt::format("step {} is saved: --resume goes on behind it", position.step));
  }
  std::vector<Diagnostic> problems(1);
  problems[0].message = "the loss is not finite at " + step;
  problems[0].expected = "a number";
  problems[0].got = number_text(result.loss);
  if (causes.empty()) {  // what made the states so may lie further back
    FiniteWatch::Place good = place();
    for (const NotFiniteState& state : watch.look_at_all(place())) {
      const FiniteWatch::Place since = watch.finite_at(state.name);
      if (since.step < good.step) good = since;
    }
    causes = bad_data(good.data, result.start);
  }
  if (causes.empty()) causes = origin_of(result.step, problems[0].fix);
  append(std::move(causes), problems);
  throw Error(ErrorKind::diverged, std::move(problems));
}

void Training::Impl::look_at_states(const StepResult& result, bool logged) {
  const bool norm_is_bad =
      result.gradient_norm && !std::isfinite(*result.gradient_norm) && !result.loss_scale;
  if (norm_is_bad) {
    std::optional<StepResult> next;
    std::exception_ptr behind;  // bad states of this step come first
    try {
      next = take_next();
    } catch (const Error&) {
      behind = std::current_exception();
    }
    refuse_bad_states();
    if (behind) std::rethrow_exception(behind);
    if (next) judge(*next);
  }
  if (!logged) return;
  const std::uint64_t copied = copied_bytes();
  const bool looks = rank() == 0 || has_parts();
  bool finite = !looks || watch.look(place());
  if (has_parts()) finite = on_all("what is finite", finite);
  other_bytes += copied_bytes() - copied;
  if (!finite) refuse_bad_states();
}

void Training::Impl::refuse_bad_states() {
  if (has_parts())
    on_all_ranks(parts.ranks.get(), "states", [&] { refuse_own_bad_states(); });
  else if (rank() == 0)
    refuse_own_bad_states();
}

void Training::Impl::refuse_own_bad_states() {
  const std::vector<NotFiniteState> bad = watch.look_at_all(place());
  if (bad.empty()) return;
  std::vector<Diagnostic> problems;
  FiniteWatch::Place good = place();
  for (const NotFiniteState& state : bad) {
    const FiniteWatch::Place since = watch.finite_at(state.name);
    if (since.step < good.step) good = since;
    problems.push_back(diagnostic_of(
        state, fmt::format(" at step {}; it was finite at step {}", position.step, since.step)));
  }
  std::vector<Diagnostic> causes = bad_data(good.data, position.data);
  if (causes.empty()) causes = origin_of(std::nullopt, problems[0].fix);
  append(std::move(causes), problems);
  throw Error(ErrorKind::diverged, std::move(problems));
}

void Training::Impl::refuse_bad_metrics() {
  std::vector<Diagnostic> problems;
  for (const auto& [name, value] : last_evaluation) {
    if (std::isfinite(value)) continue;
    Diagnostic d;
    d.path = "eval";
    d.message =
        "the evaluation's " + name + " is not finite at step " + std::to_string(position.step);
    d.expected = "a number";
    d.got = number_text(value);
    problems.push_back(std::move(d));
  }
  if (problems.empty()) return;
  refuse_bad_states();
  std::vector<std::int64_t> samples(static_cast<std::size_t>(data.eval->samples()));
  std::iota(samples.begin(), samples.end(), 0);
  std::vector<Diagnostic> causes =
      not_finite_samples(*data.eval, fed(*data.eval), samples, nullptr);
  append(weightless_means(config, *data.eval, samples, "all held-out labels"), causes);
  data_is_the_cause = !causes.empty();
  if (causes.empty()) problems[0].fix = with_float16_advice(lower_rate);
  append(std::move(causes), problems);
  throw Error(ErrorKind::diverged, std::move(problems));
}

std::vector<int> Training::Impl::fed(const DataSource& source) const {
  std::vector<int> fields;
  for (const int field : fed_fields(runner->main_program())) {
    const int own = source.find_field(data.train->fields()[static_cast<std::size_t>(field)].name);
    if (own >= 0) fields.push_back(own);
  }
  return fields;
}

std::vector<Diagnostic> Training::Impl::bad_data(const DataPosition& from,
                                                 const DataPosition& to) const {
  const std::int64_t samples = epochs->count();
  DataPosition at = from;  // at most an epoch before `to`
  const DataPosition earliest{to.epoch - 1, to.sample};
  if (at.epoch < earliest.epoch || (at.epoch == earliest.epoch && at.sample < earliest.sample))
    at = earliest;
  std::vector<Diagnostic> found;
  for (; at.epoch <= to.epoch && found.empty(); at = {at.epoch + 1, 0}) {
    if (at.epoch < 0) continue;
    const std::int64_t end = at.epoch == to.epoch ? to.sample : samples;
    if (at.sample >= end) continue;
    const std::shared_ptr<const EpochSamples> epoch = epochs->of(at.epoch);
    const auto first = static_cast<std::size_t>(at.sample);
    const auto count = static_cast<std::size_t>(end - at.sample);
    const Augmentation augmentation =
        Augmentation{config.seed, at.epoch, epoch->repeats}.part(first, count);
    found = not_finite_samples(*data.train, fed(*data.train),
                               std::span(epoch->samples).subspan(first, count), &augmentation);
  }
  return found;
}

std::string Training::Impl::with_float16_advice(const char* fix) const {
  const Graph& graph = runner->main_program().program->lowered().graph;
  const bool computes_in_float16 =
      std::any_of(graph.values.begin(), graph.values.end(),
                  [](const Value& value) { return value.type.dtype == DType::float16; });
  if (!computes_in_float16) return fix;
  return std::string(
             "float16 ends at 65504: name operators in precision.keep_float32, or set "
             "precision.compute = \"bfloat16\"; where float32 fails as well, ") +
         fix;
}

Error Training::Impl::with_newest_checkpoint(const Error& error) const {
  if (error.kind() != ErrorKind::diverged || !directory || error.diagnostics().empty())
    return error;
  std::vector<Diagnostic> problems = error.diagnostics();
  std::string& fix = problems[0].fix;
  const std::vector<std::string> kept = list_checkpoints(directory->checkpoints());
  fix += fix.empty() ? "" : "; ";
  fix += kept.empty() ? "no checkpoint was saved before: a shorter checkpoint.every, now " +
                            to_string(config.checkpoint.every) + ", keeps more of a run"
                      : "the newest good checkpoint is " + kept.back() +
                            ": --resume goes on from there, nothing newer was saved";
  return {error.kind(), std::move(problems)};
}

}  // namespace tandem
