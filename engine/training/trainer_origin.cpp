// Where values stopped being finite: a short run is made again up to the step in which they did.
#include <algorithm>

#include "engine/training/divergence/not_finite_origin.h"
#include "engine/training/trainer_state.h"

namespace tandem {
namespace {

constexpr double most_seconds = 60;  // longer runs are not repeated

}  // namespace

// The same seed and samples give the same bits, so that the step begins with the states that it
// had.
std::optional<NotFiniteOrigin> Training::Impl::find_origin(
    std::optional<std::uint64_t>& step) const {
  if (first_step > 0 || parts.ranks || parts.staged != nullptr || data.buckets) return std::nullopt;
  if (seconds_since(started) > most_seconds) return std::nullopt;
  try {
    if (!step) {  // the first one that leaves states which are not finite
      Training again(config, parts, data, {});
      again.walk(static_cast<std::int64_t>(position.step), [&](double, std::optional<double>) {
        return not_finite_states(again.states(), infinite).empty();
      });
      step = again.impl_->position.step;
    }
    Training again(config, parts, data, {});
    const Impl& its = *again.impl_;
    again.walk(static_cast<std::int64_t>(*step) - 1,
               [](double, std::optional<double>) { return true; });
    DataPosition start = its.position.data;
    if (start.sample >= epochs->count()) start = {start.epoch + 1, 0};
    const std::shared_ptr<const EpochSamples> epoch = epochs->of(start.epoch);
    const auto first = static_cast<std::size_t>(start.sample);
    const std::size_t count =
        std::min(static_cast<std::size_t>(config.batch_size), epoch->samples.size() - first);
    const Augmentation augmentation =
        Augmentation{config.seed, start.epoch, epoch->repeats}.part(first, count);
    return not_finite_origin(config, parts, *its.data.train,
                             std::span(epoch->samples).subspan(first, count), augmentation,
                             its.states, *step);
  } catch (const std::exception&) {  // the first error is told
    return std::nullopt;
  }
}

std::vector<Diagnostic> Training::Impl::origin_of(std::optional<std::uint64_t> step,
                                                  std::string& fix) const {
  const std::optional<NotFiniteOrigin> origin = find_origin(step);
  fix = with_float16_advice("lower optimizer.lr, or set optimizer.clip_norm");
  if (!origin) return {};
  // Weights that no step has changed owe nothing to the learning rate.
  if (step == 1)
    fix = with_float16_advice("mend what that operator reads; no learning rate was used yet");
  return {origin->diagnostic()};
}

}  // namespace tandem
