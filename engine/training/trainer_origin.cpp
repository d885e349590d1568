// Where values stopped being finite: a short stretch of the run is made again up to the step in
// which they did.
#include <algorithm>

#include "engine/training/divergence/not_finite_origin.h"
#include "engine/training/programs/freeze_rules.h"
#include "engine/training/trainer_state.h"

namespace tandem {
namespace {

constexpr double most_seconds = 60;  // longer stretches are not repeated

}  // namespace

// Equal seeds and samples give equal bits, so that a repeated step begins with the same states.
std::unique_ptr<Training> Training::Impl::repeated(std::uint64_t before) const {
  auto again = std::make_unique<Training>(config, parts, data, TrainingHooks{});
  Impl& its = *again->impl_;
  std::vector<std::string> ignored;
  std::string path;
  std::optional<CheckpointContent> content;
  if (directory)
    content = newest_checkpoint(directory->checkpoints(), ignored, &path, what_a_save_allows());
  if (content && content->position.step < before) {
    its.take_over(*content, path, directory->path(), ignored);
    its.position = content->position;
    its.runner->schedules().restore(its.position.plateaus);
  } else if (first_step > 0) {
    return nullptr;
  }
  const std::uint64_t done = position.step - first_step;
  const double pace =
      seconds_since(started) / static_cast<double>(std::max<std::uint64_t>(done, 1));
  const auto steps =
      static_cast<double>(position.step - std::min(its.position.step, position.step));
  return pace * steps > most_seconds ? nullptr : std::move(again);
}

std::optional<std::uint64_t> Training::Impl::first_bad_step() const {
  const std::unique_ptr<Training> again = repeated(position.step);
  if (!again) return std::nullopt;
  const std::uint64_t from = again->impl_->position.step;
  again->walk(static_cast<std::int64_t>(position.step - from), [&](double, std::optional<double>) {
    return not_finite_states(again->states(), infinite).empty();
  });
  return again->impl_->position.step;
}

std::optional<NotFiniteOrigin> Training::Impl::origin_in_step(std::uint64_t step) const {
  const std::unique_ptr<Training> again = repeated(step);
  if (!again) return std::nullopt;
  const Impl& its = *again->impl_;
  again->walk(static_cast<std::int64_t>(step - 1 - its.position.step),
              [](double, std::optional<double>) { return true; });
  DataPosition start = its.position.data;
  if (start.sample >= epochs->count()) start = {start.epoch + 1, 0};
  const std::shared_ptr<const EpochSamples> epoch = epochs->of(start.epoch);
  const auto first = static_cast<std::size_t>(start.sample);
  const std::size_t count =
      std::min(static_cast<std::size_t>(config.batch_size), epoch->samples.size() - first);
  const Augmentation augmentation =
      Augmentation{config.seed, start.epoch, epoch->repeats}.part(first, count);
  const std::vector<bool> thawed =
      thawed_after(config.parameters.freeze, its.length, static_cast<std::int64_t>(step) - 1, {});
  return not_finite_origin(config, parts, *its.data.train,
                           std::span(epoch->samples).subspan(first, count), augmentation,
                           its.states, {step, thawed});
}

std::optional<NotFiniteOrigin> Training::Impl::find_origin(
    std::optional<std::uint64_t>& step) const {
  if (parts.ranks || parts.staged != nullptr || data.buckets) return std::nullopt;
  try {
    if (!step) step = first_bad_step();
    if (!step) return std::nullopt;
    std::optional<NotFiniteOrigin> found = origin_in_step(*step);
    const bool may_be_earlier =
        found && found->is_parameter() && !infinite.contains(found->path) && *step > 1;
    if (!may_be_earlier) return found;
    const std::optional<std::uint64_t> earlier = first_bad_step();
    if (!earlier || *earlier >= *step) return found;
    if (auto before = origin_in_step(*earlier)) {
      step = earlier;
      return before;
    }
    return found;
  } catch (const std::exception&) {  // the first error is the one reported
    return std::nullopt;
  }
}

std::vector<Diagnostic> Training::Impl::origin_of(std::optional<std::uint64_t> step,
                                                  std::string& fix) const {
  const std::optional<NotFiniteOrigin> origin = find_origin(step);
  fix = with_float16_advice("lower optimizer.lr, or set optimizer.clip_norm");
  if (!origin) return {};
  // If no step has changed the weights, the learning rate is not the cause.
  if (origin->is_parameter() && infinite.contains(origin->path))
    fix = "the model file has it so, or parameters.load; parameters.init gives new values";
  else if (step == 1)
    fix = with_float16_advice("mend what that operator reads; no learning rate was used yet");
  return {origin->diagnostic()};
}

}  // namespace tandem
