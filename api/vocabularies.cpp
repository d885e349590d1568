#include "api/vocabularies.h"

#include <algorithm>
#include <filesystem>

#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "engine/training/checkpoint.h"

namespace tandem::api {
namespace {

std::vector<std::string> vocabulary_files(const std::string& run_dir) {
  std::vector<std::string> names;
  if (!is_directory(run_dir)) return names;
  for (const std::string& name : list_directory(run_dir)) {
    if (name.starts_with("vocabulary.") && name.ends_with(".tsv")) names.push_back(name);
  }
  return names;
}

}  // namespace

void refuse_other_vocabularies(const std::string& run_dir,
                               const std::vector<SavedVocabulary>& vocabularies) {
  std::vector<Diagnostic> problems;
  for (const std::string& name : vocabulary_files(run_dir)) {
    const auto now = std::find_if(vocabularies.begin(), vocabularies.end(),
                                  [&](const SavedVocabulary& v) { return v.file_name == name; });
    const WrittenFile then = hash_file(run_dir + "/" + name);
    if (now != vocabularies.end() && now->sha256 == then.sha256) continue;
    Diagnostic d;
    d.file = run_dir + "/" + name;
    d.message =
        "the run was trained with this vocabulary, the data makes another one: ids would "
        "mean other rows";
    d.expected = "sha256 " + then.sha256.substr(0, 16) + "…";
    d.got = now == vocabularies.end() ? "no vocabulary of that name"
                                      : "sha256 " + now->sha256.substr(0, 16) + "…";
    d.fix = "resume with the training files and field functions of the first run";
    problems.push_back(std::move(d));
  }
  for (const SavedVocabulary& v : vocabularies) {
    const std::string path = run_dir + "/" + v.file_name;
    if (path_exists(path) || list_checkpoints(run_dir + "/checkpoints").empty()) continue;
    Diagnostic d;
    d.file = path;
    d.message = "the run was trained without a vocabulary \"" + v.name + "\"";
    d.fix = "resume with the field functions of the first run";
    problems.push_back(std::move(d));
  }
  if (!problems.empty()) throw Error(ErrorKind::data, std::move(problems));
}

std::vector<std::string> export_vocabularies(const std::string& run_dir, const std::string& to) {
  std::vector<std::string> written;
  for (const std::string& name : vocabulary_files(run_dir)) {
    const std::string path = std::filesystem::path(to).replace_extension("").string() + "." + name;
    replace_file(path, read_file(run_dir + "/" + name));
    written.push_back(path);
  }
  return written;
}

}  // namespace tandem::api
