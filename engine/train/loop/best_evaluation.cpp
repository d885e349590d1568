#include "engine/train/loop/best_evaluation.h"

#include <fmt/format.h>

#include "engine/metrics/metric.h"
#include "engine/train/checkpoints/best_measures.h"

namespace tandem {

bool BestEvaluation::larger_is_better() const {
  const EvalConfig& eval = run_.config.eval;
  return better_of(eval.metrics, eval.best) == Better::larger;
}

bool BestEvaluation::is_of_this_metric() const {
  const TrainingPosition& position = run_.position;
  return position.best_metric == run_.config.eval.best &&
         position.larger_is_better == larger_is_better() &&
         position.best_measures == best_measures(run_.config);
}

bool BestEvaluation::resume(std::optional<std::uint64_t> evaluated) {
  TrainingPosition& position = run_.position;
  const std::string& metric = run_.config.eval.best;
  bool is_measured_anew = false;  // metrics.jsonl has other values under the same name
  if (position.best && !is_of_this_metric()) {
    const std::string before = position.best_metric;
    const std::string now = metric.empty() ? "none" : metric;
    is_measured_anew = before == now;
    log_.say((is_measured_anew ? "what eval.best (" + now + ") measures changed"
                               : "eval.best changed from " + before + " to " + now) +
             ": best and eval.patience start again");
    position.best.reset();
    position.best_step = 0;
    position.evaluations_without_better = 0;
  }
  bool is_behind = false;
  if (evaluated == position.step && position.evaluated < position.step) {
    // The evaluation came after the save: it was interrupted, made up for, and then the run was
    // killed.
    position.evaluated = position.step;
    is_behind = true;
    record_logged(is_measured_anew);
  }
  if (position.best)
    write();
  else if (run_.rank() == 0)
    remove_all(run_.directory->checkpoints() + "/best");
  return is_behind;
}

void BestEvaluation::record_logged(bool is_measured_anew) {
  const auto logged = [&](const std::string& name) {
    return run_.directory->evaluated(run_.position.step, name);
  };
  const std::string& metric = run_.config.eval.best;
  if (!metric.empty() && !is_measured_anew) {
    if (const std::optional<double> value = logged(metric)) record(*value);
  }
  std::vector<std::string> names{"loss"};
  for (const MetricConfig& one : run_.config.eval.metrics) names.push_back(one.name);
  Values values;
  for (const std::string& name : names) {
    if (const std::optional<double> value = logged(name)) values.emplace_back(name, *value);
  }
  update_schedules(values);
}

void BestEvaluation::update_schedules(const Values& values) {
  for (const std::string& message :
       run_.runner->schedules().take_in(run_.config.eval.metrics, values))
    log_.say(message);
}

void BestEvaluation::record(double value) {
  TrainingPosition& position = run_.position;
  const bool is_better =
      !position.best || (larger_is_better() ? value > *position.best : value < *position.best);
  if (!is_better) {
    ++position.evaluations_without_better;
    return;
  }
  position.best = value;
  position.best_step = position.step;
  position.best_metric = run_.config.eval.best;
  position.larger_is_better = larger_is_better();
  position.best_measures = best_measures(run_.config);
  position.evaluations_without_better = 0;
}

void BestEvaluation::write() const {
  run_.directory->write_file("checkpoints/best", checkpoint_name(run_.position.best_step) + "\n");
}

bool BestEvaluation::patience_has_run_out() const {
  const std::int64_t patience = run_.config.eval.patience;
  return run_.evaluation && patience > 0 && run_.position.evaluations_without_better >= patience;
}

std::string BestEvaluation::not_improved() const {
  return fmt::format("{} has not improved for {} evaluations, at step {}", run_.config.eval.best,
                     run_.position.evaluations_without_better, run_.position.step);
}

}  // namespace tandem
