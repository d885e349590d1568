#include "api/timing/memory_counters.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "api/timing/trace_slices.h"
#include "placement/report/plan_record.h"

namespace tandem::api {
namespace {

using Json = nlohmann::ordered_json;

/// The time in which one micro-batch uses a buffer.
struct BufferUse {
  double start = std::numeric_limits<double>::infinity(), end = -start;
};

/// The start or end of a buffer's use.
struct UseChange {
  double at = 0;
  bool begins = false;
  std::size_t buffer = 0;
  /// Ends come first, because other buffers may take the place from then on.
  bool operator<(const UseChange& other) const {
    return std::tie(at, begins, buffer) < std::tie(other.at, other.begins, other.buffer);
  }
};

/// Consecutive micro-batches of one program, of which one may begin before the previous one has
/// ended.
class FollowingRuns {
 public:
  explicit FollowingRuns(const TracedProgram& program) : program_(program) {}

  void add(const std::optional<LaunchTime>* times) {
    const tandem::Plan& plan = program_.program->plan();
    std::vector<BufferUse> uses(plan.buffers.size());
    for (std::size_t i = 0; i < program_.launches.size(); ++i) {
      if (!times[i]) continue;
      start_ = std::min(start_, times[i]->start);
      const Launch& launch = program_.launches[i];
      for (const Access& access : plan.queues[launch.queue].instructions[launch.index].accesses) {
        BufferUse& use = uses[access.buffer];
        use.start = std::min(use.start, times[i]->start);
        use.end = std::max(use.end, times[i]->end);
      }
    }
    for (std::size_t b = 0; b < uses.size(); ++b) {
      const bool has_one_place = plan.buffers[b].in_arena() && plan.buffers[b].copies == 1;
      if (!has_one_place || uses[b].start >= uses[b].end) continue;
      changes_.push_back({uses[b].start, true, b});
      changes_.push_back({uses[b].end, false, b});
    }
  }

  void write(Json& events) {
    if (start_ == std::numeric_limits<double>::infinity()) return;
    std::sort(changes_.begin(), changes_.end());
    const tandem::Plan& plan = program_.program->plan();
    for (std::size_t d = 0; d < plan.memory.size(); ++d) {
      if (plan.memory[d].peak > 0) write(d, events);
    }
  }

 private:
  struct Point {
    double at = 0;
    LiveBytes live;
  };

  std::vector<Point> points_of(std::size_t device) const {
    const tandem::Plan& plan = program_.program->plan();
    std::vector<Point> points(1);
    points[0].at = start_;
    for (const Buffer& buffer : plan.buffers) {  // filled ahead, so always in use
      if (static_cast<std::size_t>(buffer.device) == device && buffer.in_arena() &&
          buffer.copies > 1)
        points[0].live.of(buffer.kind) +=
            static_cast<std::size_t>(buffer.copies - 1) * buffer.stride + buffer.bytes;
    }
    std::vector<int> users(plan.buffers.size(), 0);
    for (const UseChange& change : changes_) {
      const Buffer& buffer = plan.buffers[change.buffer];
      if (static_cast<std::size_t>(buffer.device) != device) continue;
      int& own = users[change.buffer];
      const bool counts = change.begins ? own++ == 0 : --own == 0;
      if (!counts) continue;
      if (change.at > points.back().at) points.push_back({change.at, points.back().live});
      std::size_t& bytes = points.back().live.of(buffer.kind);
      bytes = change.begins ? bytes + buffer.bytes : bytes - buffer.bytes;
    }
    return points;
  }

  void write(std::size_t device, Json& events) const {
    const MemoryUse& use = program_.program->plan().memory[device];
    const std::vector<Point> points = points_of(device);
    std::size_t known = 0;
    for (const Point& point : points) known = std::max(known, point.live.all());
    known += use.parameters + use.state;
    const std::size_t others = use.peak - std::min(use.peak, known);
    const std::string name = "memory of " + program_.program->lowered().devices[device]->name();
    for (const Point& point : points) {
      events.push_back({{"name", name},
                        {"cat", "memory"},
                        {"ph", "C"},
                        {"pid", measured_process},
                        {"ts", point.at * trace_microseconds},
                        {"args",
                         {{"parameters", use.parameters},
                          {"state", use.state},
                          {"gradients", point.live.gradients},
                          {"activations", point.live.activations},
                          {"workspace", point.live.workspace},
                          {"others", others}}}});
    }
  }

  const TracedProgram& program_;
  double start_ = std::numeric_limits<double>::infinity();
  std::vector<UseChange> changes_;
};

}  // namespace

Json memory_counters(const TracedSteps& traced, const LaunchTimes& times) {
  Json events = Json::array();
  for (std::size_t run = 0; run < traced.runs().size();) {
    FollowingRuns runs(traced.programs()[traced.runs()[run].program]);
    do {
      runs.add(times.data() + traced.runs()[run].begin);
      ++run;
    } while (run < traced.runs().size() && traced.runs()[run].follows);
    runs.write(events);
  }
  return events;
}

}  // namespace tandem::api
