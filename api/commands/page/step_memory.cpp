#include "api/commands/page/step_memory.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "placement/report/plan_record.h"

namespace tandem::api {
namespace {

constexpr std::size_t most_points = 400;

struct Life {
  std::size_t buffer = 0;
  double begin = 0, end = 0;  // seconds since the first kernel; `end` may be in the next step
  bool is_always = false;
};

struct Point {
  double at = 0;  // seconds since the first kernel
  LiveBytes live;
};

bool overlap(const Buffer& a, const Buffer& b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

/// The buffers of all arenas with the times of their uses.
std::vector<Life> lives_of(const tandem::Plan& plan, const Simulation& simulation) {
  constexpr double never = std::numeric_limits<double>::infinity();
  std::vector<double> first(plan.buffers.size(), never), last(plan.buffers.size(), -never);
  double origin = never;
  for (const SimulatedSpan& span : simulation.spans) {
    const Queue& queue = plan.queues[static_cast<std::size_t>(span.queue)];
    const Instruction& instruction = queue.instructions[static_cast<std::size_t>(span.index)];
    if (queue.role == Queue::Role::compute && instruction.node)
      origin = std::min(origin, span.start);
    for (const Access& access : instruction.accesses) {
      const auto b = static_cast<std::size_t>(access.buffer);
      first[b] = std::min(first[b], span.start);
      last[b] = std::max(last[b], span.end);
    }
  }
  if (origin == never) origin = 0;
  std::vector<Life> lives;
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const Buffer& buffer = plan.buffers[b];
    if (!buffer.in_arena() || first[b] > last[b]) continue;
    Life& life = lives.emplace_back();
    life.buffer = b;
    const double step = simulation.seconds;
    // The second place of two is filled while the step before runs.
    life.is_always = buffer.copies > 1 || step <= 0 || last[b] - first[b] >= step;
    if (life.is_always) continue;
    life.begin = first[b] - origin - step * std::floor((first[b] - origin) / step);
    life.end = life.begin + (last[b] - first[b]);
  }
  return lives;
}

/// Goes through the changes of one device in the order of time.
class Curve {
 public:
  Curve(const tandem::Plan& plan, const std::vector<Life>& lives, int device, double step)
      : plan_(plan) {
    std::vector<const Life*> own;
    for (const Life& life : lives)
      if (plan.buffers[life.buffer].device == device) own.push_back(&life);
    std::stable_sort(own.begin(), own.end(),
                     [](const Life* a, const Life* b) { return a->begin < b->begin; });
    for (const Life* life : own) {
      const Buffer& buffer = plan.buffers[life->buffer];
      if (life->is_always) {
        live_.of(buffer.kind) +=
            static_cast<std::size_t>(buffer.copies - 1) * buffer.stride + buffer.bytes;
        continue;
      }
      if (life->end > step) begin(life->buffer);
      changes_.push_back({life->begin, true, life->buffer});
      changes_.push_back({life->end > step ? life->end - step : life->end, false, life->buffer});
    }
    std::stable_sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) {
      return a.at != b.at ? a.at < b.at : a.begins < b.begins;
    });
    walk();
  }

  std::vector<Point> points;

 private:
  struct Change {
    double at = 0;
    bool begins = false;
    std::size_t buffer = 0;
  };

  void walk() {
    points.push_back({0, live_});
    for (const Change& change : changes_) {
      if (change.begins)
        begin(change.buffer);
      else
        end_where([&](std::size_t b) { return b == change.buffer; });
      if (change.at > points.back().at) points.push_back({change.at, live_});
      points.back().live = live_;
    }
  }

  /// A buffer in the same place has been used for the last time.
  void begin(std::size_t buffer) {
    end_where([&](std::size_t b) { return overlap(plan_.buffers[b], plan_.buffers[buffer]); });
    in_use_.push_back(buffer);
    live_.of(plan_.buffers[buffer].kind) += plan_.buffers[buffer].bytes;
  }

  template <class IsOver>
  void end_where(const IsOver& is_over) {
    std::erase_if(in_use_, [&](std::size_t b) {
      if (!is_over(b)) return false;
      live_.of(plan_.buffers[b].kind) -= plan_.buffers[b].bytes;
      return true;
    });
  }

  const tandem::Plan& plan_;
  std::vector<Change> changes_;
  std::vector<std::size_t> in_use_;
  LiveBytes live_;
};

/// The highest point of each stretch, from where the stretch begins.
std::vector<Point> at_most(std::vector<Point> points, std::size_t most) {
  if (points.size() <= most) return points;
  std::vector<Point> kept;
  for (std::size_t i = 0; i < most; ++i) {
    const auto begin = points.begin() + static_cast<std::ptrdiff_t>(i * points.size() / most);
    const auto end = points.begin() + static_cast<std::ptrdiff_t>((i + 1) * points.size() / most);
    kept.push_back(*std::max_element(
        begin, end, [](const Point& a, const Point& b) { return a.live.all() < b.live.all(); }));
    kept.back().at = begin->at;
  }
  return kept;
}

}  // namespace

PageJson memory_over_step(const PlannedStep& step, const ResolvedPolicy& resolved) {
  const PlannedMicroBatch& last = step.micro_batches.back();
  const tandem::Plan& plan = last.program.plan;
  const std::vector<Life> lives = lives_of(plan, last.simulation);
  PageJson devices = PageJson::array();
  for (std::size_t d = 0; d < plan.memory.size(); ++d) {
    const MemoryUse& use = step.memory[d];
    const std::vector<Point> points = at_most(
        Curve(plan, lives, static_cast<int>(d), last.simulation.seconds).points, most_points);
    std::size_t most = 0;
    for (const Point& point : points) most = std::max(most, point.live.all());
    // `slots`: inputs, outputs and constants of all programs. The reserve is what the arena has
    // beyond the most that is in use: gaps, and room for queues that are faster or slower than the
    // cost model says.
    const std::size_t rest = use.peak - std::min(use.peak, use.parameters + use.state + most);
    const std::size_t slots = std::min(rest, use.peak - use.arena - use.parameters - use.state);
    PageJson json{{"device", resolved.devices[d].name},
                  {"persistent",
                   {{"parameters", use.parameters},
                    {"state", use.state},
                    {"others", slots},
                    {"reserve", rest - slots}}},
                  {"peak", use.peak},
                  {"limit", step.limited[d] ? PageJson(step.limits[d]) : PageJson()}};
    for (const char* column : {"at_ms", "gradients", "activations", "workspace"})
      json[column] = PageJson::array();
    for (const Point& point : points) {
      json["at_ms"].push_back(point.at * 1e3);
      json["gradients"].push_back(point.live.gradients);
      json["activations"].push_back(point.live.activations);
      json["workspace"].push_back(point.live.workspace);
    }
    devices.push_back(std::move(json));
  }
  return devices;
}

}  // namespace tandem::api
