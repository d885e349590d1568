#include "engine/train/updates/learning_rate_factors.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/metrics/metric.h"

namespace tandem {
namespace {

bool in_epochs(const std::optional<Duration>& duration) {
  return duration && duration->unit == Duration::Unit::epochs;
}

}  // namespace

Schedule::Schedule(const ScheduleConfig& config, double base_lr, const RunLength& length)
    : base_lr_(base_lr), length_(length) {
  if (config.parts.empty()) {
    add(config, length, 0);
    return;
  }
  parts_by_epochs_ =
      std::any_of(config.parts.begin(), config.parts.end(),
                  [](const SchedulePart& part) { return in_epochs(part.length); }) &&
      std::all_of(config.parts.begin(), config.parts.end(),
                  [](const SchedulePart& part) { return !part.length || in_epochs(part.length); });
  std::int64_t begin = 0;
  for (const SchedulePart& part : config.parts) {
    // What is left may be nothing, or no length at all.
    RunLength own{.steps_per_epoch = length.steps_per_epoch, .steps = RunLength::unlimited};
    if (part.length)
      own.steps = part.length->steps(length.steps_per_epoch);
    else if (length.is_limited())
      own.steps =
          std::max<std::int64_t>(1, length.since_start(length.steps, parts_by_epochs_) - begin);
    const ScheduleKind kind =
        std::visit([](const auto& of) { return ScheduleKind(of); }, part.kind);
    add({kind, part.warmup}, own, begin);
    begin += part.length ? own.steps : 0;
  }
}

void Schedule::add(const ScheduleShape& shape, const RunLength& length, std::int64_t begin) {
  Part& part = parts_.emplace_back(Part{shape, length, begin});
  if (shape.warmup) part.warmup = shape.warmup->steps(length.steps_per_epoch);
  const std::int64_t all = length.since_start(length.steps, length.ends_by_epochs);
  part.rest = std::max<std::int64_t>(1, all - part.warmup);
}

double Schedule::Part::factor(std::int64_t step, double base_lr) const {
  const std::int64_t warming = length.since_start(step, in_epochs(shape.warmup));
  if (warming <= warmup) return static_cast<double>(warming) / static_cast<double>(warmup);
  const auto since_warmup = [&](bool by_epochs) {
    return std::max<std::int64_t>(0, length.since_start(step, by_epochs) - warmup - 1);
  };
  const SchedulePlace place{.by_steps = since_warmup(false),
                            .by_epochs = since_warmup(true),
                            .length = rest,
                            .ends_by_epochs = length.ends_by_epochs,
                            .steps_per_epoch = length.steps_per_epoch,
                            .base_lr = base_lr};
  return std::visit([&](const auto& kind) { return kind.factor(place); }, shape.kind);
}

double Schedule::factor(std::int64_t step) const {
  if (parts_.size() == 1 && parts_[0].begin == 0) {
    const bool is_part = parts_by_epochs_;
    return parts_[0].factor(is_part ? length_.since_start(step, true) : step, base_lr_);
  }
  const std::int64_t t = length_.since_start(step, parts_by_epochs_);
  const Part* part = &parts_.front();
  for (const Part& next : parts_) {
    if (next.begin < t) part = &next;
  }
  return part->factor(std::max<std::int64_t>(1, t - part->begin), base_lr_);
}

Schedules::Schedules(const OptimizerConfig& config, const RunLength& length) {
  const auto add = [&](std::string name, const ScheduleConfig& schedule, double base_lr) {
    all_.push_back({std::move(name), schedule, base_lr, Schedule(schedule, base_lr, length), {}});
  };
  add("optimizer.schedule", config.schedule, config.base.lr);
  for (std::size_t i = 0; i < config.groups.size(); ++i) {
    const OptimizerGroup& group = config.groups[i];
    of_group_.push_back(group.schedule ? static_cast<int>(all_.size()) : 0);
    if (!group.schedule) continue;
    add("optimizer.groups." + std::to_string(i) + ".schedule", *group.schedule, group.options.lr);
  }
}

int Schedules::of_group(int group) const {
  return group < 0 ? 0 : of_group_[static_cast<std::size_t>(group)];
}

double Schedules::factor(int schedule, std::int64_t step) const {
  const One& one = all_[static_cast<std::size_t>(schedule)];
  return one.schedule.factor(step) * one.plateau.scale;
}

void Schedules::set_length(const RunLength& length) {
  for (One& one : all_) one.schedule = Schedule(one.config, one.base_lr, length);
}

std::vector<std::string> Schedules::take_in(
    const std::vector<MetricConfig>& metrics,
    const std::vector<std::pair<std::string, double>>& values) {
  std::vector<std::string> said;
  for (One& one : all_) {
    const PlateauSchedule* const plateau = one.config.plateau();
    if (plateau == nullptr) continue;
    const auto value = std::find_if(values.begin(), values.end(), [&](const auto& named) {
      return named.first == plateau->metric;
    });
    if (value == values.end()) continue;
    const bool larger = better_of(metrics, plateau->metric) == Better::larger;
    const PlateauState before =
        std::exchange(one.plateau, plateau->next(one.plateau, value->second, larger, one.base_lr));
    if (one.plateau.scale == before.scale) continue;
    said.push_back(fmt::format(
        "{} has not become better for {} evaluations: {} lowers the "
        "learning rate to {:.6g}",
        plateau->metric, plateau->patience + 1, one.name, one.base_lr * one.plateau.scale));
  }
  return said;
}

PlateauStates Schedules::plateaus() const {
  PlateauStates states;
  for (const One& one : all_) {
    if (one.config.plateau() != nullptr) states[one.name] = one.plateau;
  }
  return states;
}

void Schedules::restore(const PlateauStates& states) {
  for (One& one : all_) {
    const auto found = states.find(one.name);
    if (one.config.plateau() != nullptr && found != states.end()) one.plateau = found->second;
  }
}

}  // namespace tandem
