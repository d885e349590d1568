// Chrome trace of steps on several devices: slices, and arrows for values that cross between
// devices.
#include <algorithm>
#include <map>
#include <set>

#include "api/timing/mixed_profile.h"
#include "api/timing/trace_slices.h"

namespace tandem::api {
namespace {

using Json = nlohmann::ordered_json;

/// A value passes from one instruction to another; both are indices into `spanned_launches`.
struct Arrow {
  std::size_t from = 0, to = 0;
  bool previous_step = false;  // written in the previous run
  auto operator<=>(const Arrow&) const = default;
};

/// The last writer of each byte range of a buffer.
class LastWriters {
 public:
  struct Piece {
    std::size_t begin = 0, end = 0, writer = 0;
    bool previous_step = false;
  };
  void write(std::size_t begin, std::size_t end, std::size_t writer) {
    std::vector<Piece> left;
    for (const Piece& piece : pieces_) {
      if (piece.begin < std::min(piece.end, begin))
        left.push_back(
            {piece.begin, std::min(piece.end, begin), piece.writer, piece.previous_step});
      if (std::max(piece.begin, end) < piece.end)
        left.push_back({std::max(piece.begin, end), piece.end, piece.writer, piece.previous_step});
    }
    left.push_back({begin, end, writer, false});
    pieces_ = std::move(left);
  }
  void end_step() {
    for (Piece& piece : pieces_) piece.previous_step = true;
  }
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  std::vector<Piece> pieces_;
};

/// Slices for the spans of all lanes, for a trace whose spans cannot be matched to instructions.
Json lane_events(const TracedSteps& traced, const OrderChecker& monitor,
                 const std::vector<TraceSpan>& trace) {
  std::map<std::string, int> tracks;
  for (const TracedProgram& program : traced.programs()) {
    for (const Queue& queue : program.program->plan().queues)
      tracks.emplace(queue.name, track_of(queue));
  }
  Json events = Json::array();
  std::set<int> named;
  for (const TraceSpan& span : trace) {
    constexpr int other_lanes = 1000;  // tracks after those of queues
    const std::string name = monitor.lane_name(span.lane);
    const int track = tracks.try_emplace(name, other_lanes + span.lane).first->second;
    if (named.insert(track).second) events.push_back(track_event(measured_process, track, name));
    Json event{{"name", span.name},
               {"ph", "X"},
               {"pid", measured_process},
               {"tid", track},
               {"ts", span.real_start * trace_microseconds},
               {"dur", (span.real_end - span.real_start) * trace_microseconds}};
    if (span.bytes > 0) event["args"]["bytes"] = span.bytes;
    events.push_back(std::move(event));
  }
  return events;
}

/// Paths of values that begin or end at a copy, in the steady state.
std::vector<Arrow> arrows_of(const Program& program) {
  const tandem::Plan& plan = program.plan();
  const std::vector<Launch> launches = spanned_launches(program);
  const auto at = [&](std::size_t i) -> const Instruction& {
    return plan.queues[launches[i].queue].instructions[launches[i].index];
  };
  const auto copies = [&](std::size_t i) { return at(i).kind == Instruction::Kind::copy; };
  std::vector<LastWriters> buffers(plan.buffers.size());
  std::vector<Arrow> arrows;
  for (int step = 0; step < 2; ++step) {
    for (std::size_t i = 0; i < launches.size(); ++i) {
      bool is_first = true;
      for (const Access& access : at(i).accesses) {
        if (access.write || step == 0) continue;
        // Else it is the buffer that a copy overwrites.
        const bool is_value = is_first || !copies(i);
        is_first = false;
        if (!is_value) continue;
        for (const LastWriters::Piece& piece : buffers[access.buffer].pieces()) {
          const bool same = piece.begin < access.end && access.begin < piece.end;
          if (same && (copies(i) || copies(piece.writer)))
            arrows.push_back({piece.writer, i, piece.previous_step});
        }
      }
      for (const Access& access : at(i).accesses) {
        if (access.write) buffers[access.buffer].write(access.begin, access.end, i);
      }
    }
    for (LastWriters& buffer : buffers) buffer.end_step();
  }
  std::sort(arrows.begin(), arrows.end());
  arrows.erase(std::unique(arrows.begin(), arrows.end()), arrows.end());
  return arrows;
}

}  // namespace

Json trace_events(const TracedSteps& traced, const OrderChecker& monitor,
                  const std::vector<TraceSpan>& trace) {
  if (trace.size() != traced.spans()) return lane_events(traced, monitor, trace);
  Json events = trace_slices(traced, traced_times(traced, trace), measured_process);
  const auto end_of_arrow = [&](const char* phase, std::size_t id, const TracedRun& run,
                                std::size_t launch, double at) {
    const TracedProgram& program = traced.programs()[run.program];
    Json event{{"name", "value"},
               {"cat", "flow"},
               {"ph", phase},
               {"id", id},
               {"pid", measured_process},
               {"tid", track_of(program.program->plan().queues[program.launches[launch].queue])},
               {"ts", at * trace_microseconds}};
    if (*phase == 'f') event["bp"] = "e";  // binds to the enclosing slice
    events.push_back(std::move(event));
  };
  std::size_t id = 0;
  std::vector<std::vector<Arrow>> arrows;  // per program
  for (const TracedProgram& program : traced.programs())
    arrows.push_back(arrows_of(*program.program));
  for (const TracedRun& run : traced.runs()) {
    const std::size_t length = traced.programs()[run.program].launches.size();
    for (const Arrow& arrow : arrows[run.program]) {
      // Skips values that another micro-batch produced, or one that is not in the trace.
      if (arrow.previous_step && !run.follows) continue;
      const TraceSpan& from = trace[run.begin - (arrow.previous_step ? length : 0) + arrow.from];
      const TraceSpan& to = trace[run.begin + arrow.to];
      ++id;
      end_of_arrow("s", id, run, arrow.from,
                   from.real_start + 0.99 * (from.real_end - from.real_start));
      end_of_arrow("f", id, run, arrow.to, to.real_start);
    }
  }
  return events;
}

}  // namespace tandem::api
