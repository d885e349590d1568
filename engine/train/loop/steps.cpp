#include "engine/train/loop/steps.h"

#include <utility>

namespace tandem {

void Steps::launch(const StepUse& use) {
  const int before = in_flight();
  if (has_other_ranks() && before == 0) rank_times_.begin(run_.parts.devices);
  run_.runner->launch(use.watch, signals_.own().number());
  uses_[static_cast<std::size_t>(before)] = use;
}

TakenStep Steps::take() {
  TakenStep taken{.use = std::exchange(uses_[0], uses_[1])};
  taken.result = run_.runner->finish();
  if (has_other_ranks()) rank_times_.end(run_.parts.devices);
  run_.position.step = taken.result.step;
  run_.position.data = taken.result.end;
  run_.position.samples += static_cast<std::uint64_t>(taken.result.samples);
  last_loss_ = taken.result.loss;
  signals_.take(taken.result.signals);
  return taken;
}

std::optional<TakenStep> Steps::take_next() {
  if (in_flight() == 0) return std::nullopt;
  return take();
}

std::optional<SlowestRank> Steps::slowest_rank() {
  if (!has_other_ranks()) return std::nullopt;
  return rank_times_.take(run_.ranks());
}

}  // namespace tandem
