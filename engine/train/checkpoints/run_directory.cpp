#include "engine/train/checkpoints/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <algorithm>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <thread>

#include "engine/formats/json_file.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* summary_file = "/summary.json";

std::string numbered(const std::string& name, int number) {
  char text[16];
  std::snprintf(text, sizeof text, "-%04d", number);
  return name + text;
}

/// The number of a run NAME-0001, or 0.
int number_of(const std::string& folder, const std::string& name) {
  const std::string start = name + "-";
  if (!folder.starts_with(start)) return 0;
  const std::string digits = folder.substr(start.size());
  if (digits.empty() || digits.size() > 9 ||
      digits.find_first_not_of("0123456789") != std::string::npos) {
    return 0;
  }
  return std::stoi(digits);
}

/// A line of metrics.jsonl; nothing where it is torn or another program's.
std::optional<JsonFile> line_of(std::string_view text) {
  try {
    return JsonFile({.what = "the line"}, text, {.values = 1 << 21, .depth = 4});
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<std::uint64_t> step_of(const JsonItem& line) {
  const std::optional<JsonItem> step = line.find("step");
  return step ? step->as_natural() : std::nullopt;
}

bool is_evaluation(const JsonItem& line) {
  const std::optional<JsonItem> phase = line.find("phase");
  return phase && phase->as_text() == "eval";
}

std::optional<double> number_of(const JsonItem& line, const std::string& name) {
  const std::optional<JsonItem> value = line.find(name);
  return value ? value->as_number() : std::nullopt;
}

/// Numbers that are not finite are texts. In tables of metrics they may be: a slice without such a
/// metric.
bool is_finite(const JsonItem& evaluation) {
  const auto members = evaluation.members();
  return std::all_of(members.begin(), members.end(), [](const auto& member) {
    return member.first == "phase" || !member.second.as_text();
  });
}

int highest_number(const std::string& parent, const std::string& name) {
  int highest = 0;
  for (const std::string& folder : list_directory(parent)) {
    highest = std::max(highest, number_of(folder, name));
  }
  return highest;
}

[[noreturn]] void refuse_folder(const std::string& path, const char* message, const char* fix) {
  throw Error(ErrorKind::usage, Diagnostic{.message = message, .file = path, .fix = fix});
}

/// Checkpoints of another run would pass for those of the new one.
void refuse_run(const std::string& path) {
  const std::string checkpoints = path + "/checkpoints";
  const bool has_checkpoints = is_directory(checkpoints) && !list_directory(checkpoints).empty();
  if (!has_checkpoints && !path_exists(path + "/metrics.jsonl")) return;
  refuse_folder(path, "this directory holds a run already",
                "choose another run_dir, or continue it with --resume");
}

void refuse_other_files(const std::string& path) {
  if (list_directory(path).empty() || path_exists(path + "/train.log")) return;
  refuse_folder(path, "this directory holds other files, which a run might overwrite",
                "choose a new or empty run_dir");
}

constexpr const char* other_folder = "name another folder with --run-dir or run_dir";
constexpr const char* same_folder =
    "a run continues in its own directory: make it and its files writable";

/// The result of `make`. If files fail and the error has no fix, it gets `fix`.
template <class Make>
auto mended_by(const char* fix, const Make& make) {
  try {
    return make();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::runtime) throw;
    std::vector<Diagnostic> all = error.diagnostics();
    for (Diagnostic& d : all) {
      if (d.fix.empty()) d.fix = fix;
    }
    throw Error(ErrorKind::runtime, std::move(all));
  }
}

/// Makes folders to see whether they can be made. Those that were not there go with this object.
class TrialFolders {
 public:
  explicit TrialFolders(const std::string& path) {
    for (std::filesystem::path p = path; !p.empty() && !path_exists(p.string());
         p = p.parent_path()) {
      made_.push_back(p.string());
    }
    try {
      make_directories(path);
    } catch (const Error&) {
      remove();
      throw;
    }
  }
  ~TrialFolders() { remove(); }
  TrialFolders(const TrialFolders&) = delete;
  TrialFolders& operator=(const TrialFolders&) = delete;

 private:
  /// The deepest first, and only folders that are empty.
  void remove() {
    for (const std::string& path : made_) ::rmdir(path.c_str());
  }

  std::vector<std::string> made_;
};

}  // namespace

RunDirectory::RunDirectory(std::string path) : path_(std::move(path)) {}

void RunDirectory::open_files() {
  metrics_ = std::make_unique<OutputFile>(path_ + "/metrics.jsonl", OutputFile::Mode::append);
  log_ = std::make_unique<OutputFile>(path_ + "/train.log", OutputFile::Mode::append);
}

RunDirectory RunDirectory::create(const std::string& path, const std::string& parent,
                                  const std::string& name) {
  return mended_by(other_folder, [&] {
    std::string chosen = path;
    if (chosen.empty()) {
      make_directories(parent);
      int highest = highest_number(parent, name);
      for (bool made = false; !made;) {
        chosen = parent + "/" + numbered(name, ++highest);
        try {
          make_directory(chosen);
          made = true;
        } catch (const Error&) {
          if (!path_exists(chosen)) throw;  // else a run that started just now has it
        }
      }
    } else {
      refuse_run(chosen);
      make_directories(chosen);
      refuse_other_files(chosen);
    }
    RunDirectory run(std::move(chosen));
    make_directories(run.checkpoints());
    run.open_files();
    return run;
  });
}

void RunDirectory::try_create(const std::string& path, const std::string& parent,
                              const std::string& name) {
  mended_by(other_folder, [&] {
    std::string chosen = path;
    if (chosen.empty()) {
      const int highest = is_directory(parent) ? highest_number(parent, name) : 0;
      chosen = parent + "/" + numbered(name, highest + 1);
    } else {
      refuse_run(chosen);
      if (is_directory(chosen)) refuse_other_files(chosen);
    }
    TrialFolders(chosen + "/checkpoints");
  });
}

void RunDirectory::try_resume(const std::string& path) {
  mended_by(same_folder, [&] {
    const std::string checkpoints = path + "/checkpoints";
    TrialFolders(checkpoints + "/trial");
    for (const char* file : {"/metrics.jsonl", "/train.log"}) {
      if (path_exists(path + file)) OutputFile(path + file, OutputFile::Mode::append);
    }
  });
}

bool RunDirectory::has_ended(const std::string& path) { return path_exists(path + summary_file); }

std::string RunDirectory::newest_unfinished(const std::string& parent, const std::string& name) {
  if (!is_directory(parent)) return "";
  int best = 0;
  for (const std::string& folder : list_directory(parent)) {
    const int number = number_of(folder, name);
    if (number > best && !has_ended(parent + "/" + folder)) best = number;
  }
  return best > 0 ? parent + "/" + numbered(name, best) : "";
}

std::shared_ptr<const void> RunDirectory::lock(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return nullptr;  // what opens the files says why
  std::shared_ptr<const void> held(nullptr, [file](const void*) { close(file); });
  // `tandem runs` holds it for a moment, to see whether a process trains.
  const auto is_taken = [&] { return flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; };
  int tries = 10;
  while (is_taken() && --tries > 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  if (tries == 0) {
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "another process trains in this directory",
                           .file = path,
                           .fix = "wait for it or stop it, or choose another run_dir"});
  }
  return held;
}

std::size_t RunDirectory::read_metrics(const std::string& text, std::uint64_t step) {
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    const auto parsed = line_of(std::string_view(text).substr(begin, end - begin));
    if (!parsed) break;
    const JsonItem line = parsed->root();
    const std::optional<std::uint64_t> at = step_of(line);
    if (!at || *at > step) break;
    if (is_evaluation(line)) {
      if (at == step && !is_finite(line)) break;  // the run failed at it, and evaluates again
      evaluated_step_ = at;
    } else if (at == step) {
      if (const auto loss = number_of(line, "loss")) resumed_loss_ = loss;
    }
    begin = end + 1;
  }
  return begin;
}

RunDirectory RunDirectory::follow(const std::string& path, std::uint64_t step) {
  RunDirectory run(path);
  const std::string metrics = path + "/metrics.jsonl";
  if (path_exists(metrics)) run.read_metrics(read_file(metrics), step);
  return run;
}

RunDirectory RunDirectory::resume(const std::string& path, std::uint64_t step) {
  return mended_by(same_folder, [&] {
    RunDirectory run(path);
    const std::string metrics = path + "/metrics.jsonl";
    if (path_exists(metrics)) {
      const std::string text = read_file(metrics);
      const std::size_t keep = run.read_metrics(text, step);
      if (keep < text.size()) truncate_file(metrics, keep);
    }
    make_directories(run.checkpoints());
    run.open_files();
    return run;
  });
}

void RunDirectory::begin() {
  if (!log_ || !has_ended(path_)) return;
  mended_by(same_folder, [&] { remove_all(path_ + summary_file); });
}

std::optional<double> RunDirectory::evaluated(std::uint64_t step, const std::string& metric) const {
  for (const auto& [at, value] : evaluations(path_, metric)) {
    if (at == step) return value;
  }
  return std::nullopt;
}

std::vector<std::pair<std::uint64_t, double>> RunDirectory::evaluations(const std::string& path,
                                                                        const std::string& metric) {
  std::vector<std::pair<std::uint64_t, double>> found;
  const std::string metrics = path + "/metrics.jsonl";
  if (!path_exists(metrics)) return found;
  std::istringstream lines(read_file(metrics));
  for (std::string text; std::getline(lines, text);) {
    if (text.find("\"eval\"") == std::string::npos) continue;  // most lines are of steps
    const std::optional<JsonFile> line = line_of(text);
    if (!line || !is_evaluation(line->root())) continue;
    const auto step = step_of(line->root());
    const auto value = number_of(line->root(), metric);
    if (step && value) found.emplace_back(*step, *value);
  }
  return found;
}

void RunDirectory::log_metrics(std::uint64_t step, const std::string& phase, const Values& values,
                               const std::vector<MetricTable>& tables) {
  if (!metrics_) return;
  Json line;
  if (!phase.empty()) line["phase"] = phase;
  line["step"] = step;
  for (const auto& [name, value] : values) {
    if (std::isfinite(value)) {
      line[name] = value;
    } else {
      line[name] = std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    }
  }
  for (const MetricTable& table : tables) line[table.metric] = Json::parse(table_json(table));
  metrics_->write(line.dump() + "\n");
  for (const auto& log : logs_) log->add({step, phase, values, tables});
}

void RunDirectory::log_also(const std::vector<std::string>& formats, std::uint64_t step) {
  if (!metrics_) return;
  for (const std::string& name : formats) {
    const LogFormat* const format = find_log_format(name);
    assert(format != nullptr);  // the configuration was checked
    logs_.push_back(format->open({path_, step, evaluated_step_}));
  }
}

void RunDirectory::log_text(const std::string& line) {
  if (log_) log_->write(line + "\n");
}

void RunDirectory::write_file(const std::string& name, const std::string& content) {
  if (log_) replace_file(path_ + "/" + name, content);
}

}  // namespace tandem
