// Chrome trace of steps on several devices: tracks, slices, and arrows along the values that cross.
#include <algorithm>
#include <map>

#include "api/timing/mixed_profile.h"
#include "engine/operators/operator.h"
#include "placement/report/placement_report.h"

namespace tandem::api {
namespace {

using Json = nlohmann::ordered_json;

/// A value goes from one instruction to another; numbers are those of `spanned_launches`.
struct Arrow {
  std::size_t from = 0, to = 0;
  bool previous_step = false;  // made in the run before
  auto operator<=>(const Arrow&) const = default;
};

/// Who wrote which bytes of a buffer last.
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

/// All ways of values that begin or end with a copy, in the steady state.
std::vector<Arrow> arrows_of(const Program& program) {
  const Plan& plan = program.plan();
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
        const bool is_value = is_first || !copies(i);  // else what a copy overwrites
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

const char* category_of(const Instruction& instruction) {
  switch (instruction.kind) {
    case Instruction::Kind::copy:
      return "copy";
    case Instruction::Kind::collective:
      return "ranks";
    case Instruction::Kind::feed:
      return "feed";
    case Instruction::Kind::read:
      return "read";
    default:
      return "kernel";
  }
}

/// Adds what the plan knows of a span to its slice.
void describe(const Lowered& lowered, const Instruction& instruction, Json& event) {
  event["cat"] = category_of(instruction);
  if (!instruction.node) return;
  const Node& node = lowered.graph.node(instruction.node);
  if (instruction.kind == Instruction::Kind::run) {
    event["name"] = node.path + " " + node.op->name;
    event["args"]["op"] = node.op->name;
    event["args"]["kernel"] = lowered.nodes[instruction.node.index].kernel->name;
  }
  event["args"]["path"] = node.path;
  event["args"]["phase"] = phase_name(node.phase);
  if (instruction.parts > 1) event["args"]["part"] = instruction.part;
}

constexpr double microseconds = 1e6;

}  // namespace

Json track_event(int track, const std::string& name) {
  return {
      {"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", track}, {"args", {{"name", name}}}};
}

Json trace_events(const TracedSteps& traced, const OrderChecker& monitor,
                  const std::vector<TraceSpan>& trace) {
  Json events = Json::array();
  std::map<std::string, int> tracks;  // programs that take turns share those of their queues
  for (const TraceSpan& span : trace) {
    const std::string name = monitor.lane_name(span.lane);
    if (tracks.try_emplace(name, span.lane).second) events.push_back(track_event(span.lane, name));
  }
  const auto track = [&](const TraceSpan& span) { return tracks.at(monitor.lane_name(span.lane)); };
  const auto slice = [&](const TraceSpan& span) -> Json {
    return {{"name", span.name},
            {"ph", "X"},
            {"pid", 1},
            {"tid", track(span)},
            {"ts", span.real_start * microseconds},
            {"dur", (span.real_end - span.real_start) * microseconds}};
  };
  const auto add = [&](const TraceSpan& span, Json event) {
    if (span.bytes > 0) event["args"]["bytes"] = span.bytes;
    events.push_back(std::move(event));
  };
  if (trace.size() != traced.spans()) {
    for (const TraceSpan& span : trace) add(span, slice(span));
    return events;
  }
  for (const TracedRun& run : traced.runs()) {
    const TracedProgram& program = traced.programs()[run.program];
    for (std::size_t i = 0; i < program.launches.size(); ++i) {
      const Launch& launch = program.launches[i];
      const Queue& queue = program.program->plan().queues[launch.queue];
      Json event = slice(trace[run.begin + i]);
      describe(program.program->lowered(), queue.instructions[launch.index], event);
      add(trace[run.begin + i], std::move(event));
    }
  }

  const auto end_of_arrow = [&](const char* phase, std::size_t id, const TraceSpan& span,
                                double at) {
    Json event{
        {"name", "value"},    {"cat", "flow"},          {"ph", phase}, {"id", id}, {"pid", 1},
        {"tid", track(span)}, {"ts", at * microseconds}};
    if (*phase == 'f') event["bp"] = "e";  // belongs to the slice around it
    events.push_back(std::move(event));
  };
  std::size_t id = 0;
  std::vector<std::vector<Arrow>> arrows;  // per program
  for (const TracedProgram& program : traced.programs())
    arrows.push_back(arrows_of(*program.program));
  for (const TracedRun& run : traced.runs()) {
    const std::size_t length = traced.programs()[run.program].launches.size();
    for (const Arrow& arrow : arrows[run.program]) {
      // Another micro-batch made it, or one that is not in the trace.
      if (arrow.previous_step && !run.follows) continue;
      const TraceSpan& from = trace[run.begin - (arrow.previous_step ? length : 0) + arrow.from];
      const TraceSpan& to = trace[run.begin + arrow.to];
      ++id;
      end_of_arrow("s", id, from, from.real_start + 0.99 * (from.real_end - from.real_start));
      end_of_arrow("f", id, to, to.real_start);
    }
  }
  return events;
}

}  // namespace tandem::api
