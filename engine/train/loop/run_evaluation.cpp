#include "engine/train/loop/run_evaluation.h"

#include "engine/train/averages/weights_in_use.h"
#include "engine/train/group/row_exchange.h"

namespace tandem {

bool RunEvaluation::evaluate() {
  if (!run_.evaluation) return true;
  if (run_.rank() == 0 && !guard_.look()) guard_.refuse_bad_states();
  try {
    return measure();
  } catch (const Error& error) {  // what was trained stays; what has diverged only if it is the end
    const bool stays = run_.is_at_end() || error.kind() != ErrorKind::diverged;
    if (stays || guard_.is_data_the_cause()) saver_.save(false, true);
    throw;
  }
}

HostTensor RunEvaluation::read_whole(const std::string& state) const {
  HostTensor whole(run_.states.shard(state)->whole);
  const std::int64_t rows = row_count(whole.type());
  RowExchange exchange(run_.states, *run_.parts.devices[0]);
  exchange.begin(state, std::vector<RowRange>(static_cast<std::size_t>(run_.ranks().ranks()),
                                              RowRange{0, rows}));
  exchange.read(rows, whole.data());
  exchange.end();
  return whole;
}

bool RunEvaluation::measure() {
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t copied = run_.copied_bytes();
  const auto values = [&] {
    const WeightsInUse in_use(run_.states, run_.config.eval.weights,
                              [&](const std::string& name) { return read_whole(name); });
    return run_.evaluation->run([&](std::int64_t samples) {
      return samples < run_.evaluation->own_samples() && signals_.is_asked_to_stop();
    });
  }();
  if (!values) {
    signals_.interrupt();
    log_.say("interrupted during the evaluation of step " + std::to_string(run_.position.step));
    return true;
  }
  last_.values = *values;
  last_.tables = run_.evaluation->tables();
  run_.other_bytes += run_.copied_bytes() - copied;
  const bool is_new = !is_logged();
  log_.log_evaluation(last_.values, last_.tables, seconds_since(start), is_new);
  last_.step = run_.position.step;
  guard_.refuse_bad_metrics(last_.values);
  return record();
}

bool RunEvaluation::record() {
  BestEvaluation& best = saver_.best();
  TrainingPosition& position = run_.position;
  // A resumed run that was at its end has this evaluation already; a new eval.best has none yet.
  const bool is_known = std::exchange(position.evaluated, position.step) == position.step;
  if (!is_known) {
    best.update_schedules(last_.values);
    saver_.note_evaluation();
  }
  if (is_known && position.best) return true;
  for (const auto& [name, value] : last_.values) {
    if (name != run_.config.eval.best) continue;
    best.record(value);
    if (!best.is_now()) continue;
    if (saver_.is_saved() && !saver_.is_behind())
      best.write();
    else
      saver_.save(run_.is_at_end());
  }
  return !best.patience_has_run_out();
}

}  // namespace tandem
