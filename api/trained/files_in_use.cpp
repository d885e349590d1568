#include "api/trained/files_in_use.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/data/images/read_images.h"
#include "engine/data/tokens/read_text.h"
#include "engine/formats/new_file.h"
#include "engine/graph/error.h"
#include "importer/file/onnx_file.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;

/// The identity of a file, which is equal for all of its names.
using Identity = std::pair<dev_t, ino_t>;

/// The identity of a regular file only, since pipes and devices may be both read and written.
std::optional<Identity> identity(int failed, const struct stat& status) {
  if (failed != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return Identity{status.st_dev, status.st_ino};
}
std::optional<Identity> identity_of(const std::string& path) {
  struct stat status {};
  return identity(::stat(path.c_str(), &status), status);
}
std::optional<Identity> identity_of(int descriptor) {
  struct stat status {};
  return identity(::fstat(descriptor, &status), status);
}

/// Whether the name is that of a vocabulary, of the list of classes or of the tokenizer.
bool is_vocabulary(std::string_view name, std::string_view stem = "") {
  if (!name.starts_with(stem)) return false;
  name.remove_prefix(stem.size());
  return name == classes_file || name == tokenizer_file ||
         (name.starts_with("vocabulary.") && name.ends_with(".tsv"));
}

/// Files that training writes into the directory of a run.
bool is_of_a_run(const std::string& name) {
  constexpr std::array<std::string_view, 10> names{
      "train.resolved.toml", "started.json", "policy.toml",   "placement.json", "plan.json",
      "operators.json",      "summary.json", "metrics.jsonl", "metrics.csv",    "train.log"};
  return is_vocabulary(name) || std::find(names.begin(), names.end(), name) != names.end();
}

class Target {
 public:
  explicit Target(const std::string& to) : to_(to) {
    identity_ = to == "-" ? identity_of(STDOUT_FILENO) : identity_of(to);
    if (to == "-") return;
    std::error_code ignored;
    const fs::path path = link_target(to);
    folder_ = fs::weakly_canonical(path.parent_path(), ignored);
    name_ = path.filename().string();
  }

  bool is_there() const { return identity_.has_value(); }
  void refuse_where(const std::optional<Identity>& used, const char* message) const {
    if (used && used == identity_) refuse(message);
  }
  void refuse_file(const std::string& path, const char* message) const {
    if (identity_) refuse_where(identity_of(path), message);
  }
  /// Refuses all files in a folder for which `is_one(name)` holds.
  template <class F>
  void refuse_files(const fs::path& folder, const char* message, F is_one) const {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      if (is_one(entry->path().filename().string())) refuse_file(entry->path().string(), message);
    }
  }
  /// Refuses the folder and everything below it, including files that do not exist yet.
  void refuse_below(const fs::path& folder, const char* message) const {
    std::error_code error;
    const fs::path whole = fs::canonical(folder, error);
    if (error) return;
    const auto ends = std::mismatch(whole.begin(), whole.end(), folder_.begin(), folder_.end());
    if (!name_.empty() && ends.first == whole.end()) refuse(message);
    for (fs::recursive_directory_iterator entry(whole, error), end; !error && entry != end;
         entry.increment(error)) {
      refuse_file(entry->path().string(), message);
    }
  }
  /// Refuses a new vocabulary in a run's folder, because it would keep the run from being resumed.
  void refuse_new_vocabulary(const fs::path& folder, const char* message) const {
    std::error_code error;
    const fs::path whole = fs::canonical(folder, error);
    if (!error && whole == folder_ && is_vocabulary(name_)) refuse(message);
  }

 private:
  [[noreturn]] void refuse(const char* message) const {
    throw Error(ErrorKind::usage, Diagnostic{.message = message,
                                             .file = "--to",
                                             .expected = "another file to write",
                                             .got = to_ == "-" ? "standard output" : to_});
  }

  std::string to_;
  std::optional<Identity> identity_;  // empty where the file does not exist
  fs::path folder_;                   // resolved folder, without links
  std::string name_;                  // "" for standard output
};

constexpr const char* is_read = "this file is read";
constexpr const char* is_of_run = "this is a file of the run";

/// Refuses the configuration's own file, its data, its model with the files of weights, and every
/// other file that it names.
void refuse_configured(const std::vector<Target>& targets, const RunConfig& config) {
  std::vector<std::string> read{config.file, config.model.file, config.policy,
                                config.distillation.teacher, config.distillation.weights};
  for (const LoadRule& rule : config.parameters.load) {
    read.push_back(rule.from);
    for (const Target& target : targets) {  // `from` may be a run directory
      target.refuse_files(rule.from, is_read, [](const std::string&) { return true; });
      target.refuse_below(fs::path(rule.from) / "checkpoints", is_read);
    }
  }
  // Only the model says in which files its weights lie, and reading a large one takes a while.
  if (std::any_of(targets.begin(), targets.end(), [](const Target& t) { return t.is_there(); })) {
    for (const fs::path& file : external_files(config.model.file)) read.push_back(file.string());
  }
  for (const Target& target : targets) {
    for (const std::string& path : read) target.refuse_file(path, is_read);
    if (!config.data) continue;
    for (const SplitConfig* split : {&config.data->train, &config.data->eval}) {
      for (const ArrayFiles& array : split->files) {
        for (const std::string& path : array.paths)
          target.refuse_file(path, "this file is data of the configuration");
      }
    }
  }
}

void refuse_run(const Target& target, const fs::path& folder) {
  target.refuse_files(folder, is_of_run, is_of_a_run);
  target.refuse_new_vocabulary(folder, is_of_run);
  target.refuse_below(folder / "checkpoints", is_of_run);
}

}  // namespace

void refuse_files_in_use(const std::string& to, const TrainedRun& run,
                         const TrainedOptions& options) {
  const Target target(to);
  for (const std::string& text : options.data) {
    if (text == "-") target.refuse_where(identity_of(STDIN_FILENO), is_read);
    target.refuse_file(text, is_read);
    target.refuse_file(text.substr(text.find('=') + 1), is_read);  // NAME=FILE
  }
  refuse_configured({target}, run.config);
  const fs::path stem(run.vocabulary_stem);
  if (run.exported()) {
    target.refuse_files(stem.parent_path(), is_read, [&](const std::string& name) {
      return is_vocabulary(name, stem.filename().string());
    });
    return;
  }
  refuse_run(target, stem.parent_path());
}

void refuse_files_in_use(const std::vector<std::string>& to, const RunConfig& config,
                         const std::string& run_dir) {
  const std::vector<Target> targets(to.begin(), to.end());
  refuse_configured(targets, config);
  for (const Target& target : targets) refuse_run(target, run_dir);
}

}  // namespace tandem::api
