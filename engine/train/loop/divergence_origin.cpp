#include "engine/train/loop/divergence_origin.h"

#include <algorithm>

#include "engine/train/divergence/not_finite_origin.h"
#include "engine/train/loop/training_loop.h"
#include "engine/train/programs/freeze_rules.h"

namespace tandem {
namespace {

constexpr double most_seconds = 60;  // longer stretches are not repeated

/// Finds the step and the operator by repeating a run that has gone wrong.
class OriginFinder {
 public:
  OriginFinder(const Run& run, const std::set<std::string>& infinite)
      : run_(run), infinite_(infinite) {}

  /// `step` is set where it is not known. Nothing where that takes long, or is not possible.
  std::optional<NotFiniteOrigin> find(std::optional<std::uint64_t>& step) const;

 private:
  /// The run as it was at its newest checkpoint before a step, or at its start. Null where that is
  /// too many steps back.
  std::unique_ptr<TrainingLoop> repeated(std::uint64_t before) const;
  /// The first step that leaves states which are not finite; the last one where none does.
  std::optional<std::uint64_t> first_bad_step() const;
  std::optional<NotFiniteOrigin> in_step(std::uint64_t step) const;

  const Run& run_;
  const std::set<std::string>& infinite_;
};

// Equal seeds and samples give equal bits, so that a repeated step begins with the same states.
std::unique_ptr<TrainingLoop> OriginFinder::repeated(std::uint64_t before) const {
  auto again = std::make_unique<TrainingLoop>(run_.config, run_.parts, run_.data, nullptr);
  Run& its = again->run;
  std::vector<std::string> ignored;
  std::string path;
  std::optional<CheckpointContent> content;
  if (run_.directory) {
    content = newest_checkpoint(run_.directory->checkpoints(), ignored, &path,
                                may_be_infinite(run_.states, infinite_));
  }
  if (content && content->position.step < before) {
    again->start.take_over(*content, path, run_.directory->path(), ignored);
    its.position = content->position;
    its.runner->schedules().restore(its.position.plateaus);
  } else if (run_.first_step > 0) {
    return nullptr;
  }
  const std::uint64_t done = run_.position.step - run_.first_step;
  const double pace =
      seconds_since(run_.started) / static_cast<double>(std::max<std::uint64_t>(done, 1));
  const auto steps = static_cast<double>(run_.position.step -
                                         std::min(again->run.position.step, run_.position.step));
  return pace * steps > most_seconds ? nullptr : std::move(again);
}

std::optional<std::uint64_t> OriginFinder::first_bad_step() const {
  const std::unique_ptr<TrainingLoop> again = repeated(run_.position.step);
  if (!again) return std::nullopt;
  const std::uint64_t from = again->run.position.step;
  again->walk(static_cast<std::int64_t>(run_.position.step - from),
              [&](double, std::optional<double>) {
                return not_finite_states(again->run.states, infinite_).empty();
              });
  return again->run.position.step;
}

std::optional<NotFiniteOrigin> OriginFinder::in_step(std::uint64_t step) const {
  const std::unique_ptr<TrainingLoop> again = repeated(step);
  if (!again) return std::nullopt;
  again->walk(static_cast<std::int64_t>(step - 1 - again->run.position.step),
              [](double, std::optional<double>) { return true; });
  const Run& its = again->run;
  DataPosition start = its.position.data;
  if (start.sample >= run_.epochs->count()) start = {start.epoch + 1, 0};
  const std::shared_ptr<const EpochSamples> epoch = run_.epochs->of(start.epoch);
  const auto first = static_cast<std::size_t>(start.sample);
  const std::size_t count =
      std::min(static_cast<std::size_t>(run_.config.batch_size), epoch->samples.size() - first);
  const Augmentation augmentation =
      Augmentation{run_.config.seed, start.epoch, epoch->repeats}.part(first, count);
  const std::vector<bool> thawed = thawed_after(run_.config.parameters.freeze, its.length,
                                                static_cast<std::int64_t>(step) - 1, {});
  return not_finite_origin(run_.config, run_.parts, *its.data.train,
                           std::span(epoch->samples).subspan(first, count), augmentation,
                           its.states, {step, thawed});
}

std::optional<NotFiniteOrigin> OriginFinder::find(std::optional<std::uint64_t>& step) const {
  if (run_.ranks().ranks() > 1 || run_.parts.staged != nullptr || run_.data.buckets)
    return std::nullopt;
  try {
    if (!step) step = first_bad_step();
    if (!step) return std::nullopt;
    std::optional<NotFiniteOrigin> found = in_step(*step);
    const bool may_be_earlier =
        found && found->is_parameter() && !infinite_.contains(found->path) && *step > 1;
    if (!may_be_earlier) return found;
    const std::optional<std::uint64_t> earlier = first_bad_step();
    if (!earlier || *earlier >= *step) return found;
    if (auto before = in_step(*earlier)) {
      step = earlier;
      return before;
    }
    return found;
  } catch (const std::exception&) {  // the first error is the one reported
    return std::nullopt;
  }
}

}  // namespace

std::vector<Diagnostic> origin_of(const Run& run, const std::set<std::string>& infinite,
                                  std::optional<std::uint64_t> step, std::string& fix) {
  const std::optional<NotFiniteOrigin> origin = OriginFinder(run, infinite).find(step);
  fix = with_float16_advice(run, lower_rate);
  if (!origin) return {};
  // If no step has changed the weights, the learning rate is not the cause.
  if (origin->is_parameter() && infinite.contains(origin->path))
    fix = "it comes from the model file or from parameters.load; parameters.init gives new values";
  else if (step == 1)
    fix =
        with_float16_advice(run, "correct what that operator reads; no learning rate was used yet");
  return {origin->diagnostic()};
}

}  // namespace tandem
