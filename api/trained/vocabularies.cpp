#include "api/trained/vocabularies.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "api/trained/class_words.h"
#include "engine/data/images/image_list.h"
#include "engine/data/images/read_images.h"
#include "engine/data/table_plan.h"
#include "engine/data/tokens/read_text.h"
#include "engine/formats/files.h"
#include "engine/formats/sha256.h"
#include "engine/graph/error.h"
#include "engine/graph/parameter_names.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/evaluation/field_words.h"

namespace tandem::api {
namespace {

std::vector<std::string> vocabulary_files(const std::string& run_dir) {
  std::vector<std::string> names;
  if (!is_directory(run_dir)) return names;
  for (const std::string& name : list_directory(run_dir)) {
    const bool is_vocabulary = name.starts_with("vocabulary.") && name.ends_with(".tsv");
    if (is_vocabulary || name == classes_file || name == tokenizer_file) names.push_back(name);
  }
  return names;
}

/// The vocabularies of all fields, in the order of training, with the names of their files.
std::vector<std::pair<std::string, std::string>> file_names(const DataConfig& config) {
  std::vector<std::pair<std::string, std::string>> named;
  std::vector<std::string> taken;
  for (const FieldConfig& field : config.fields) {
    for (const Transform& function : field.as) {
      const std::string name = vocabulary_name(field, function);
      if (name.empty()) continue;
      const bool known = std::any_of(named.begin(), named.end(),
                                     [&](const auto& other) { return other.first == name; });
      if (known) continue;
      taken.push_back(vocabulary_file_name(name, taken));
      named.emplace_back(name, taken.back());
    }
  }
  return named;
}

std::string file_of(const TrainedRun& run, const std::string& vocabulary) {
  for (const auto& [name, file] : file_names(*run.config.data)) {
    if (name == vocabulary) return file;
  }
  return vocabulary_file_name(vocabulary, {});
}

[[noreturn]] void refuse_vocabulary(const std::string& file, std::string message,
                                    std::string expected, std::string got, std::string fix) {
  throw Error(ErrorKind::data, Diagnostic{.message = std::move(message),
                                          .file = file,
                                          .expected = std::move(expected),
                                          .got = std::move(got),
                                          .fix = std::move(fix)});
}

std::string shown_hash(const std::string& sha256) { return "sha256 " + sha256.substr(0, 16) + "…"; }

/// The inputs of a resumed or evaluated run that decide the contents of this file.
std::string first_cause(const std::string& file_name) {
  if (file_name == tokenizer_file) return "the tokenizer, data.tokenizer,";
  if (file_name == characters_file) return "the training files and data.tokenizer";
  return "the training files and field functions";
}

constexpr const char* whole_copy = "take a whole copy of the run directory";

/// Throws where `known`, hashes by file name, has a different one for this file. `who`: the trained
/// run or model, for the message.
void expect_hash(const std::map<std::string, std::string>& known, const std::string& stem,
                 const std::string& file, const std::string& sha256, const std::string& who,
                 const std::string& fix) {
  const auto found = known.find(file);
  if (found == known.end() || found->second == sha256) return;
  refuse_vocabulary(
      stem + file,
      "this is not the vocabulary that the " + who + " was trained with: ids would mean other rows",
      shown_hash(found->second), shown_hash(sha256), fix);
}

/// Throws where a table that has one row per word has another number of rows.
void expect_rows(TrainedModel& trained, const TablePlan& plan,
                 const std::vector<Vocabulary>& vocabularies) {
  if (trained.run().shape.empty()) return;
  const ParameterNames names(trained.imported());
  for (const State& state : trained.imported().states) {
    const ShapeRule* last = nullptr;
    for (const ShapeRule& rule : trained.run().shape) {
      if (state.kind == StateKind::parameter && names.covers(Selector(rule.at), state))
        last = &rule;
    }
    if (last == nullptr || last->vocabulary.empty()) continue;
    for (const TableField& field : plan.fields) {
      if (field.name != last->vocabulary || !field.vocabulary) continue;
      const std::int64_t words = vocabularies[*field.vocabulary].rows();
      const std::int64_t rows = state.start.type().shape.at(0);
      if (words == rows) continue;
      refuse_vocabulary(
          trained.run().vocabulary_stem +
              file_of(trained.run(), plan.vocabularies[*field.vocabulary].name),
          "the vocabulary does not fit \"" + state.name + "\", which has a row for each word",
          std::to_string(rows) + " rows", std::to_string(words),
          "take the vocabulary of the run that the weights come from");
    }
  }
}

/// Names of classes if there is no other source: folders of the training data, in the order of
/// training.
std::vector<std::string> classes_of_folders(const TrainedRun& run) {
  const ImageFiles* images = run.config.data ? run.config.data->images() : nullptr;
  if (!run.exported() || images == nullptr || !images->labels.empty()) return {};
  std::set<std::string> names;
  for (const ArrayFiles& files : run.config.data->train.files) {
    for (const std::string& path : files.paths) {
      if (!is_directory(path)) continue;
      for (const std::string& name : folders_in(path)) {
        if (!name.starts_with('.')) names.insert(name);
      }
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace

std::vector<Vocabulary> load_vocabularies(TrainedModel& trained, const TablePlan& plan) {
  const TrainedRun& run = trained.run();
  const auto known = run.exported() ? trained.file().metadata() : run.content.position.vocabularies;
  std::vector<Vocabulary> vocabularies;
  for (const VocabularyPlan& wanted : plan.vocabularies) {
    const std::string file = file_of(run, wanted.name), path = run.vocabulary_stem + file;
    if (!path_exists(path)) {
      refuse_vocabulary(
          path, "the vocabulary \"" + wanted.name + "\" is not there", "", "",
          run.exported()
              ? "`tandem export` has written it to the folder of the model: keep them together"
              : whole_copy);
    }
    const std::string text = read_file(path);
    expect_hash(
        known, run.vocabulary_stem, file, sha256(text.data(), text.size()),
        run.exported() ? "exported model" : "checkpoint",
        run.exported() ? "take the one that `tandem export` wrote with this model" : whole_copy);
    try {
      const std::vector<std::string> no_names;
      vocabularies.push_back(
          Vocabulary::parse(text, wanted.by_value ? no_names : plan.columns, wanted.by_table));
    } catch (const std::invalid_argument& problem) {
      refuse_vocabulary(path, problem.what(), std::string("one that counts by ") + wanted.by(), "",
                        whole_copy);
    }
  }
  expect_rows(trained, plan, vocabularies);
  return vocabularies;
}

namespace {

/// The path of a file next to the weights that defines the meaning of numbers, checked against that
/// of the training; "" where the model was trained without one.
std::string own_file(TrainedModel& trained, const char* name, const std::string& what,
                     const std::string& are_not) {
  const TrainedRun& run = trained.run();
  const auto known = run.exported() ? trained.file().metadata() : run.content.position.vocabularies;
  if (!known.contains(name)) return "";
  const std::string path = run.vocabulary_stem + name;
  const char* fix =
      run.exported()
          ? "`tandem export` has written it to the folder of the model: keep them together"
          : whole_copy;
  if (!path_exists(path)) refuse_vocabulary(path, what + " is not there", "", "", fix);
  const std::string hash = hash_file(path).sha256;
  if (hash != known.at(name)) {
    refuse_vocabulary(path, are_not + " that the model was trained with",
                      shown_hash(known.at(name)), shown_hash(hash), fix);
  }
  return path;
}

}  // namespace

std::vector<SavedVocabulary> saved_vocabularies(const RunConfig& config, const std::string& stem) {
  std::vector<SavedVocabulary> saved;
  if (!config.data) return saved;
  const auto add = [&](const std::string& name, const std::string& file) {
    if (!path_exists(stem + file)) return;
    SavedVocabulary& one = saved.emplace_back();
    one.name = name;
    one.file_name = file;
    one.path = stem + file;
  };
  const std::set<std::string> wanted = worded_fields(config);
  for (const auto& [name, file] : file_names(*config.data)) {
    const bool is_wanted = std::any_of(
        config.data->fields.begin(), config.data->fields.end(), [&](const FieldConfig& field) {
          return wanted.contains(field.name) &&
                 std::any_of(field.as.begin(), field.as.end(), [&](const Transform& function) {
                   return vocabulary_name(field, function) == name;
                 });
        });
    if (is_wanted) add(name, file);
  }
  if (config.data->images()) add("classes", classes_file);
  return saved;
}

std::vector<SavedVocabulary> checked_vocabularies(const TrainedModel& trained) {
  const TrainedRun& run = trained.run();
  const auto known = run.exported() ? trained.file().metadata() : run.content.position.vocabularies;
  std::vector<SavedVocabulary> saved = saved_vocabularies(run.config, run.vocabulary_stem);
  for (SavedVocabulary& one : saved) {
    one.sha256 = hash_file(one.path).sha256;
    expect_hash(
        known, run.vocabulary_stem, one.file_name, one.sha256,
        run.exported() ? "exported model" : "checkpoint",
        run.exported() ? "take the one that `tandem export` wrote with this model" : whole_copy);
  }
  return saved;
}

std::vector<std::string> load_classes(TrainedModel& trained) {
  const TrainedRun& run = trained.run();
  // An exported model contains its names of classes, even without the file next to it.
  if (run.exported() && !path_exists(run.vocabulary_stem + classes_file)) {
    const FieldWords own = exported_words(trained.file().metadata());
    if (own.size() == 1) return own.begin()->second;
  }
  const std::string path =
      own_file(trained, classes_file, "the list of classes", "these are not the classes");
  return path.empty() ? classes_of_folders(trained.run()) : read_classes(path);
}

void use_own_tokenizer(TrainedModel& trained, DataConfig& data) {
  const std::string path =
      own_file(trained, tokenizer_file, "the tokenizer", "this is not the tokenizer");
  if (path.empty()) return;
  if (std::string* const named = data.tokenizer_path()) *named = path;
}

std::string load_characters(TrainedModel& trained) {
  if (!trained.run().config.data || !trained.run().config.data->text()) return "";
  const std::string path = own_file(trained, characters_file, "the vocabulary of characters",
                                    "these are not the characters");
  return path.empty() ? "" : read_file(path);
}

void expect_vocabularies(const TrainedRun& run, const std::vector<SavedVocabulary>& vocabularies) {
  for (const SavedVocabulary& v : vocabularies) {
    const std::string path = run.vocabulary_stem + v.file_name;
    if (path_exists(path) && hash_file(path).sha256 == v.sha256) continue;
    refuse_vocabulary(
        path,
        v.file_name == classes_file
            ? "the held-out pictures are a part of training data that has other classes"
            : "the held-out rows are a part of training data that make another vocabulary: ids "
              "would mean other rows",
        path_exists(path) ? shown_hash(hash_file(path).sha256) : "a vocabulary of that name",
        shown_hash(v.sha256), "evaluate on files of their own: --data FILE");
  }
}

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
        name == classes_file
            ? "the run was trained with these classes, the data has others: numbers would mean "
              "other classes"
            : "the run was trained with this vocabulary, the data makes another one: ids would "
              "mean other rows";
    d.expected = "sha256 " + then.sha256.substr(0, 16) + "…";
    d.got = now == vocabularies.end() ? "no vocabulary of that name"
                                      : "sha256 " + now->sha256.substr(0, 16) + "…";
    d.fix = "resume with " + first_cause(name) + " of the first run";
    problems.push_back(std::move(d));
  }
  for (const SavedVocabulary& v : vocabularies) {
    const std::string path = run_dir + "/" + v.file_name;
    if (path_exists(path) || list_checkpoints(run_dir + "/checkpoints").empty()) continue;
    problems.push_back({.message = "the run was trained without a vocabulary \"" + v.name + "\"",
                        .file = path,
                        .fix = "resume with " + first_cause(v.file_name) + " of the first run"});
  }
  if (!problems.empty()) throw Error(ErrorKind::data, std::move(problems));
}

std::map<std::string, std::string> vocabulary_hashes(
    const std::string& run_dir, const std::map<std::string, std::string>& trained) {
  std::map<std::string, std::string> hashes;
  for (const std::string& name : vocabulary_files(run_dir)) {
    hashes[name] = hash_file(run_dir + "/" + name).sha256;
    expect_hash(trained, run_dir + "/", name, hashes[name], "checkpoint", whole_copy);
  }
  return hashes;
}

VocabularyCopies::VocabularyCopies(const std::string& run_dir, const std::string& stem) {
  for (const std::string& name : vocabulary_files(run_dir)) {
    sources_.push_back(run_dir + "/" + name);
    paths_.push_back(stem + name);
  }
}

void VocabularyCopies::make() {
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    Copy& copy = copies_.emplace_back();
    copy.place = std::make_unique<NewFile>(paths_[i], paths_[i]);
    copy.made = copy.place->make();
    write_file(copy.made, read_file(sources_[i]));
  }
}

void VocabularyCopies::finish() {
  for (Copy& copy : copies_) copy.place->finish(copy.made);
}

}  // namespace tandem::api
