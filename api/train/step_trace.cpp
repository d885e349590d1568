#include "api/train/step_trace.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "api/output_file.h"
#include "api/timing/mixed_profile.h"

namespace tandem::api {
namespace {

using TraceJson = nlohmann::ordered_json;

constexpr int marks_track = 0;  // lanes of devices and the probe begin at 1
constexpr std::string_view trace_mark = "\"traceEvents\"";
constexpr double trace_microseconds = 1e6;

}  // namespace

StepTrace::StepTrace(std::string path, std::uint64_t first, std::uint64_t last)
    : path_(std::move(path)), first_(first), last_(last) {
  // Whoever names a file that is no trace hears of it before the run.
  write_output(path_, TraceJson{{"traceEvents", events_}}.dump() + "\n", "--trace", trace_mark);
}

bool StepTrace::wants(std::uint64_t step) {
  if (first_ == 0) {
    first_ = step + 2;
    last_ = step + 4;
  }
  return step >= first_ && step <= last_;
}

void StepTrace::add_step(std::uint64_t step, double start, double end, TraceJson events) {
  if (events_.empty()) events_.push_back(track_event(marks_track, "steps"));
  events_.push_back({{"name", fmt::format("step {}", step)},
                     {"cat", "step"},
                     {"ph", "X"},
                     {"pid", 1},
                     {"tid", marks_track},
                     {"ts", start * trace_microseconds},
                     {"dur", (end - start) * trace_microseconds}});
  for (TraceJson& event : events) {
    // Arrows of a step have numbers of their own.
    if (event.contains("id")) event["id"] = fmt::format("{}.{}", step, event["id"].dump());
    events_.push_back(std::move(event));
  }
  newest_ = step;
}

void StepTrace::write(bool at_end) {
  if (is_written_ || (!at_end && newest_ < last_) || events_.empty()) return;
  is_written_ = true;
  write_output(path_,
               TraceJson{{"traceEvents", from_zero(std::exchange(events_, {}))}}.dump() + "\n",
               "--trace", trace_mark);
}

double StepTrace::seconds(ProbeTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

TraceJson from_zero(TraceJson events) {
  double earliest = std::numeric_limits<double>::infinity();
  for (const TraceJson& event : events) {
    if (event.contains("ts")) earliest = std::min(earliest, event["ts"].get<double>());
  }
  TraceJson moved = TraceJson::array();
  std::set<std::string> named;
  for (TraceJson& event : events) {
    if (event.contains("ts"))
      event["ts"] = event["ts"].get<double>() - earliest;
    else if (!named.insert(event.dump()).second)
      continue;
    moved.push_back(std::move(event));
  }
  return moved;
}

}  // namespace tandem::api
