#include "engine/train/loop/step_check.h"

#include <cmath>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "engine/data/number_text.h"
#include "engine/graph/error.h"
#include "engine/train/divergence/check_integers.h"
#include "engine/train/divergence/divergence_cause.h"
#include "engine/train/group/gathered.h"

namespace tandem {

void StepCheck::check(const TakenStep& step) {
  const StepResult& result = step.result;
  const bool is_finite = std::isfinite(result.loss);
  if (step.use.logged || !is_finite) log(step);
  if (!is_finite) refuse_bad_loss(result);
  if (result.loss_scale) {
    scale_watch_.check(run_.config, result.step, *result.loss_scale, result.skipped_steps);
  }
  run_.position.skipped_in_a_row = scale_watch_.in_a_row();
  if (step.use.watch != nullptr) {
    const std::string report = step.use.watch->report(result.step);
    if (!report.empty()) log_.say(report);
    const std::string record = step.use.watch->record();
    if (!record.empty() && run_.rank() == 0) run_.directory->write_file("operators.json", record);
  }
  check_states(step);  // reads through the devices, whose record is reported first
}

void StepCheck::log(const TakenStep& step) { log_.log_step(step.result, steps_.slowest_rank()); }

void StepCheck::note_skipped(const StepResult& result) {
  if (result.loss_scale) scale_watch_.note(result.skipped_steps);
  run_.position.skipped_in_a_row = scale_watch_.in_a_row();
}

bool StepCheck::are_states_whole(bool is_possible) {
  constexpr const char* name = "a step without a loss";
  const auto is_whole = [&] { return is_possible && guard_.are_all_finite(); };
  if (run_.shards_states()) return is_on_all_ranks(run_, name, is_whole());
  return from_rank_0(run_.ranks(), name, [&] { return std::string(is_whole() ? "whole" : ""); }) ==
         "whole";
}

void StepCheck::refuse_bad_loss(const StepResult& result) {
  const std::string name = "step " + std::to_string(result.step);
  std::vector<Diagnostic> causes = guard_.bad_data(result.start, result.end);
  std::vector<std::int64_t> samples = run_.epochs->of(result.start.epoch)->samples;
  samples.erase(samples.begin(), samples.begin() + result.start.sample);
  samples.resize(static_cast<std::size_t>(result.samples));
  const DataSource& source = *run_.data.train;
  const std::string labels = "all labels of " + name;
  append(causes, weightless_means(run_.config, source, samples, labels));
  append(causes, weightless_means(label_means(run_.forward()), source, samples, labels));
  bool is_known = true;  // whether it is known which step the states come after
  note_skipped(result);
  try {
    if (const std::optional<TakenStep> next = steps_.take_next()) {
      note_skipped(next->result);
      if (next->use.logged) log(*next);
    }
  } catch (const Error&) {  // thrown by the step after it, which had bad labels
    is_known = false;
  }
  if (are_states_whole(!causes.empty() && is_known)) {  // the loss scale left the step out
    saver_.save(false, true);
    log_.say(fmt::format("step {} is saved: --resume continues after it", run_.position.step));
  }
  std::vector<Diagnostic> problems(1);
  problems[0].message = "the loss is not finite at " + name;
  problems[0].expected = "a number";
  problems[0].got = number_text(result.loss);
  if (causes.empty()) causes = guard_.causes_before(result, problems[0].fix);
  append(problems, std::move(causes));
  throw Error(ErrorKind::diverged, std::move(problems));
}

void StepCheck::check_states(const TakenStep& step) {
  const StepResult& result = step.result;
  const bool norm_is_bad =
      result.gradient_norm && !std::isfinite(*result.gradient_norm) && !result.loss_scale;
  if (norm_is_bad) {
    std::optional<TakenStep> next;
    std::exception_ptr later;  // bad states of this step come first
    try {
      next = steps_.take_next();
    } catch (const Error&) {
      later = std::current_exception();
    }
    guard_.refuse_bad_states();
    if (later) std::rethrow_exception(later);
    if (next) check(*next);
  }
  if (step.use.logged && !guard_.look_on_all_ranks()) guard_.refuse_bad_states();
}

}  // namespace tandem
