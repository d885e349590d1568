#include "api/commands/page/trace_queues.h"

#include <map>

#include "api/timing/trace_slices.h"

namespace tandem::api {
namespace {

double number_in(const PageJson& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_number() ? found->get<double>() : 0;
}

std::string text_in(const PageJson& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_string() ? found->get<std::string>() : "";
}

PageJson arguments_of(const PageJson& event) {
  const auto found = event.find("args");
  return found != event.end() && found->is_object() ? *found : PageJson::object();
}

bool is_slice(const PageJson& event) {
  return event.is_object() && text_in(event, "ph") == "X" &&
         number_in(event, "pid") == measured_process;
}

/// The role and the device that a queue's name says: "gpu.in".
std::pair<std::string, std::string> role_of(const std::string& name) {
  for (const auto& [ending, role] :
       {std::pair(".in", "copy_in"), std::pair(".out", "copy_out"),
        std::pair(".ranks", "collective"), std::pair(".feed", ""), std::pair(".read", "")}) {
    if (name.ends_with(ending))
      return {role, name.substr(0, name.size() - std::string_view(ending).size())};
  }
  return {"compute", name};
}

}  // namespace

PageJson trace_queues(const PageJson& trace) {
  if (!trace.is_object() || !trace.contains("traceEvents")) return nullptr;
  const PageJson& events = trace["traceEvents"];
  double start = -1, duration = 0;
  std::map<int, std::string> names;
  for (const PageJson& event : events) {
    if (!event.is_object() || number_in(event, "pid") != measured_process) continue;
    const int track = static_cast<int>(number_in(event, "tid"));
    if (text_in(event, "name") == "thread_name")
      names[track] = text_in(arguments_of(event), "name");
    if (is_slice(event) && track == marks_track && number_in(event, "ts") > start) {
      start = number_in(event, "ts");
      duration = number_in(event, "dur");
    }
  }
  if (start < 0) return nullptr;
  std::map<int, PageJson> queues;  // by track, in their order
  for (const PageJson& event : events) {
    const int track = static_cast<int>(is_slice(event) ? number_in(event, "tid") : marks_track);
    const double at = track == marks_track ? -1 : number_in(event, "ts");
    const auto [role, device] = role_of(names[track]);
    if (at < start || at > start + duration || role.empty()) continue;
    PageJson& queue = queues[track];
    if (queue.is_null()) {
      queue = {{"name", names[track]},
               {"device", device},
               {"role", role},
               {"busy_ms", 0.0},
               {"waiting_ms", 0.0}};
      for (const char* column :
           {"start_ms", "end_ms", "exposed_ms", "bytes", "phase", "op", "path"})
        queue[column] = PageJson::array();
    }
    const PageJson arguments = arguments_of(event);
    const double length = number_in(event, "dur") / 1e3;
    queue["busy_ms"] = queue["busy_ms"].get<double>() + length;
    queue["start_ms"].push_back((at - start) / 1e3);
    queue["end_ms"].push_back((at - start) / 1e3 + length);
    queue["exposed_ms"].push_back(0);
    queue["bytes"].push_back(number_in(arguments, "bytes"));
    queue["phase"].push_back(text_in(arguments, "phase"));
    queue["op"].push_back(text_in(event, "cat") == "copy" ? "copy" : text_in(event, "name"));
    queue["path"].push_back(arguments.contains("path") ? text_in(arguments, "path")
                                                       : text_in(event, "name"));
  }
  PageJson list = PageJson::array();
  for (auto& [track, queue] : queues) list.push_back(std::move(queue));
  return {{"step_ms", duration / 1e3}, {"queues", list}};
}

}  // namespace tandem::api
