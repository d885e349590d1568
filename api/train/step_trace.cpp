#include "api/train/step_trace.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "api/output_file.h"
#include "api/timing/trace_slices.h"
#include "engine/graph/error.h"

namespace tandem::api {
namespace {

using TraceJson = nlohmann::ordered_json;

constexpr std::string_view trace_mark = "\"traceEvents\"";

std::string trace_text(TraceJson events) {
  return TraceJson{{"traceEvents", std::move(events)}}.dump(-1, ' ', false,
                                                            TraceJson::error_handler_t::replace) +
         "\n";
}

double ended(const TraceJson& event) { return event["ts"].get<double>() + event.value("dur", 0.0); }

void set_time(TraceJson& event, double from, double earliest) {
  const auto rounded = [](double microseconds) { return std::round(microseconds * 1e3) / 1e3; };
  const double start = rounded(from - earliest);
  if (event.contains("dur")) event["dur"] = rounded(ended(event) - earliest) - start;
  event["ts"] = start;
}

TraceJson order_event(const char* name, const TraceJson& of, int place) {
  return {{"name", name},
          {"ph", "M"},
          {"pid", of["pid"]},
          {"tid", of["tid"]},
          {"args", {{"sort_index", place}}}};
}

}  // namespace

StepTrace::StepTrace(std::string path, std::uint64_t first, std::uint64_t last,
                     std::function<void(const std::string&)> warn)
    : path_(std::move(path)), first_(first), last_(last), warn_(std::move(warn)) {
  // Reports a path to a file that is no trace before the run starts.
  write_output(path_, trace_text(events_), "--trace", trace_mark);
}

bool StepTrace::wants(std::uint64_t step) {
  if (first_ == 0) {
    first_ = step + 2;
    last_ = step + 4;
  }
  return step >= first_ && step <= last_;
}

void StepTrace::add_step(std::uint64_t step, double start, double end, TraceJson events) {
  const double begin = start * trace_microseconds;
  if (!events_.empty()) moved_ = std::max(moved_, ended_ - begin);
  double predicted_end = begin;
  for (TraceJson& event : events) {
    if (event.contains("ts") && event["pid"] == predicted_process)
      predicted_end = std::max(predicted_end, ended(event));
    // Makes the numbers of arrows unique across steps.
    if (event.contains("id")) event["id"] = fmt::format("{}.{}", step, event["id"].dump());
  }
  const auto add_mark = [&](int process, const char* category, double to) {
    events.push_back(track_event(process, marks_track, "steps"));
    events.push_back({{"name", fmt::format("step {}", step)},
                      {"cat", category},
                      {"ph", "X"},
                      {"pid", process},
                      {"tid", marks_track},
                      {"ts", begin},
                      {"dur", to - begin}});
  };
  add_mark(measured_process, "step", end * trace_microseconds);
  if (predicted_end > begin) add_mark(predicted_process, "predicted step", predicted_end);
  for (TraceJson& event : events) {
    if (event.contains("ts")) {
      event["ts"] = event["ts"].get<double>() + moved_;
      ended_ = std::max(ended_, ended(event));
    }
    events_.push_back(std::move(event));
  }
  newest_ = step;
}

void StepTrace::write(bool at_end) {
  if (is_written_ || (!at_end && newest_ < last_) || events_.empty()) return;
  is_written_ = true;
  try {
    write_output(path_, trace_text(from_zero(std::exchange(events_, {}))), "--trace", trace_mark);
  } catch (const Error& error) {
    if (warn_) {
      warn_("warning    the trace was not written, the run is as it would be without: " +
            to_string(error.diagnostics().at(0)));
    }
  }
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
  std::set<int> processes;
  for (TraceJson& event : events) {
    if (event.contains("ts")) {
      set_time(event, event["ts"].get<double>(), earliest);
    } else {
      if (!named.insert(event.dump()).second) continue;
      const int process = event["pid"].get<int>();
      if (processes.insert(process).second) {
        TraceJson name = track_event(process, marks_track,
                                     process == predicted_process ? "predicted" : "measured");
        name["name"] = "process_name";
        moved.push_back(std::move(name));
        moved.push_back(order_event("process_sort_index", event, process));
      }
      moved.push_back(order_event("thread_sort_index", event, event["tid"].get<int>()));
    }
    moved.push_back(std::move(event));
  }
  return moved;
}

}  // namespace tandem::api
