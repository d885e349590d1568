// log.also = ["tensorboard"]: event files in the folder tensorboard/ of a run. Each start of the
// run begins a file of its own; what earlier ones have of steps that are made again is cut off.
#include <chrono>

#include <fmt/format.h>

#include "engine/formats/events/event.h"
#include "engine/formats/events/record.h"
#include "engine/formats/files.h"
#include "engine/logs/graph_def.h"
#include "engine/logs/metrics_log.h"

namespace tandem {
namespace {

// Beginning of the files' names, which TensorBoard requires.
constexpr std::string_view events_start = "events.out.tfevents.";

double seconds_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

/// "train/loss", "eval/accuracy"; norms of parameters form a group: "norm.gradient/fc1:weight".
std::string tag_of(const std::string& phase, const std::string& name) {
  for (const std::string_view kind : {"norm.gradient.", "norm.update."}) {
    if (name.starts_with(kind))
      return std::string(kind.substr(0, kind.size() - 1)) + "/" + name.substr(kind.size());
  }
  return (phase.empty() ? "train/" : phase + "/") + name;
}

/// Bytes of a file before its first event that does not count any more, and whether a graph is in
/// them.
struct KeptEvents {
  std::size_t bytes = 0;
  bool has_graph = false;
};
KeptEvents events_to_keep(std::string_view text, const LogPlace& place) {
  KeptEvents kept;
  TfRecords records(text);
  for (;;) {
    kept.bytes = records.offset();
    const auto record = records.next();
    if (!record) return kept;
    const EventFacts facts = facts_of_event(*record);
    if (facts.is_start) continue;  // names the first step that counts, but has no values
    const auto step = static_cast<std::uint64_t>(facts.step);
    const bool is_evaluation = facts.tag.starts_with("eval/");
    if (step > place.step || (is_evaluation && step > place.evaluated.value_or(0))) return kept;
    kept.has_graph = kept.has_graph || facts.is_graph;
  }
}

class TensorBoardLog final : public MetricsLog {
 public:
  explicit TensorBoardLog(const LogPlace& place) {
    const std::string folder = place.run_dir + "/tensorboard";
    make_directories(folder);
    wants_graph_ = true;
    for (const std::string& name : list_directory(folder)) {
      if (!name.starts_with(events_start)) continue;
      const std::string path = folder + "/" + name;
      const KeptEvents kept = events_to_keep(read_file(path), place);
      if (kept.bytes < file_size(path)) truncate_file(path, kept.bytes);
      if (kept.has_graph) wants_graph_ = false;
    }
    // Readers take files in the order of their names.
    std::string path;
    for (int number = 1; path.empty() || path_exists(path); ++number)
      path = fmt::format("{}/{}{:04}.tandem", folder, events_start, number);
    file_ = std::make_unique<OutputFile>(path);
    write(version_event(seconds_since_1970()));
    write(start_event(at(place.step + 1)));
  }

  void add(const LoggedLine& line) override {
    std::vector<std::pair<std::string, double>> scalars;
    for (const auto& [name, number] : line.values)
      scalars.emplace_back(tag_of(line.phase, name), number);
    for (const MetricTable& table : line.tables) {
      for (std::size_t i = 0; !table.is_matrix && i < table.names.size(); ++i)
        scalars.emplace_back(tag_of(line.phase, table.metric + "." + table.names[i]),
                             table.numbers[i]);
    }
    write(scalars_event(at(line.step), scalars));
  }
  bool wants_graph() const override { return wants_graph_; }
  void add_graph(const Graph& graph) override {
    write(graph_event(seconds_since_1970(), graph_def(graph)));
  }
  void add_histogram(std::uint64_t step, const std::string& path,
                     const Histogram& values) override {
    write(histogram_event(at(step), "weights/" + path, values));
  }

 private:
  static EventTime at(std::uint64_t step) {
    return {seconds_since_1970(), static_cast<std::int64_t>(step)};
  }
  void write(const std::string& event) { file_->write(tf_record(event)); }

  bool wants_graph_ = false;  // no earlier file has it
  std::unique_ptr<OutputFile> file_;
};

}  // namespace

std::unique_ptr<MetricsLog> open_tensorboard_log(const LogPlace& place) {
  return std::make_unique<TensorBoardLog>(place);
}

}  // namespace tandem
