// The directory of a run: metrics.jsonl, train.log, checkpoints/, summary.json; numbered, never
// overwritten.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/formats/files.h"
#include "engine/logs/metrics_log.h"
#include "engine/metrics/metric_table.h"

namespace tandem {

class RunDirectory {
 public:
  /// Creates `path`, or parent/NAME-0001 with the next free number where `path` is empty.
  static RunDirectory create(const std::string& path, const std::string& parent,
                             const std::string& name);
  /// Throws what `create` would throw, and leaves nothing.
  static void try_create(const std::string& path, const std::string& parent,
                         const std::string& name);
  /// Throws where nothing can be written into the run that is there, and leaves nothing.
  static void try_resume(const std::string& path);
  /// Whether the run of a directory has ended, and was not interrupted (it has a summary.json).
  static bool has_ended(const std::string& path);
  /// The newest run NAME-* in `parent` that has not ended, or "".
  static std::string newest_unfinished(const std::string& parent, const std::string& name);
  /// Opens an existing run and cuts metrics.jsonl back to lines up to `step`, torn lines and an
  /// evaluation of that step that was not finite removed.
  static RunDirectory resume(const std::string& path, std::uint64_t step);
  /// From here on a resumed run counts as unfinished again: everything that the next resume needs
  /// is recorded.
  void begin();

  /// The directory in which another process trains: nothing is written into it. It has what
  /// `resume` reads from the lines up to `step`.
  static RunDirectory follow(const std::string& path, std::uint64_t step = 0);

  /// Keeps other processes from training in this directory while the result lives. Throws
  /// Error{usage} where one does already.
  static std::shared_ptr<const void> lock(const std::string& path);

  const std::string& path() const { return path_; }
  /// Step of the last evaluation that `resume` has kept.
  std::optional<std::uint64_t> evaluated_step() const { return evaluated_step_; }
  /// Loss of the step that `resume` was given, where it was logged.
  std::optional<double> resumed_loss() const { return resumed_loss_; }
  /// What metrics.jsonl says about an evaluation; nothing where it says nothing.
  std::optional<double> evaluated(std::uint64_t step, const std::string& metric) const;
  /// All of them that metrics.jsonl of a run has, by step, in its order; none where it is not
  /// there.
  static std::vector<std::pair<std::uint64_t, double>> evaluations(const std::string& path,
                                                                   const std::string& metric);
  std::string checkpoints() const { return path_ + "/checkpoints"; }

  /// From here on these formats get each line, too (log.also); `step`: the one that the run resumes
  /// from. Does nothing where another process writes.
  void log_also(const std::vector<std::string>& formats, std::uint64_t step);
  /// Those that are open.
  const std::vector<std::unique_ptr<MetricsLog>>& logs() const { return logs_; }

  using Values = std::vector<std::pair<std::string, double>>;
  /// One JSON object a line; `phase` "" = a training step. Non-finite numbers are written as
  /// strings.
  void log_metrics(std::uint64_t step, const std::string& phase, const Values& values,
                   const std::vector<MetricTable>& tables = {});
  void log_text(const std::string& line);
  void write_file(const std::string& name, const std::string& content);

 private:
  explicit RunDirectory(std::string path);
  /// Reads the lines of metrics.jsonl up to `step`, as `resume` says; returns their size in bytes.
  std::size_t read_metrics(const std::string& text, std::uint64_t step);
  void open_files();

  std::string path_;
  std::optional<std::uint64_t> evaluated_step_;
  std::optional<double> resumed_loss_;
  std::vector<std::unique_ptr<MetricsLog>> logs_;
  std::unique_ptr<OutputFile> metrics_, log_;  // null: another process writes it
};

}  // namespace tandem
