// The vocabularies of a run beside its weights.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/use/trained_run.h"
#include "engine/formats/new_file.h"
#include "engine/training/data/data_source.h"
#include "engine/training/data/table_plan.h"

namespace tandem::api {

/// Throws Error{data} where the run was trained with other ids than these.
void refuse_other_vocabularies(const std::string& run_dir,
                               const std::vector<SavedVocabulary>& vocabularies);

/// Those of a plan, by their number in it, as the model was trained with them. Throws Error{data}
/// where one is not there, cannot be read, or does not fit the weights.
std::vector<Vocabulary> load_vocabularies(TrainedModel& trained, const TablePlan& plan);
/// The vocabularies of fields whose words are wanted and the list of classes, as far as the files
/// STEM + NAME are there.
std::vector<SavedVocabulary> saved_vocabularies(const RunConfig& config, const std::string& stem);
/// Those of a trained model. Throws as above where one is not that of the training.
std::vector<SavedVocabulary> checked_vocabularies(const TrainedModel& trained);
/// Names of the classes that the model was trained with, by number; empty where its data names
/// none. Throws as above.
std::vector<std::string> load_classes(TrainedModel& trained);
/// [data] with the tokenizer that the model was trained with in place of the file that it names.
/// Throws as above.
void use_own_tokenizer(TrainedModel& trained, DataConfig& data);
/// The text of the vocabulary of characters that the model was trained with; "" where there is
/// none. Throws as above.
std::string load_characters(TrainedModel& trained);
/// Throws Error{data} where the model was trained with others.
void expect_vocabularies(const TrainedRun& run, const std::vector<SavedVocabulary>& vocabularies);

/// The sha256 of a run's vocabularies by file name: what the metadata of an export holds. Throws
/// Error{data} where one is not that of `trained`, the checkpoint's.
std::map<std::string, std::string> vocabulary_hashes(
    const std::string& run_dir, const std::map<std::string, std::string>& trained);

/// Copies of a run's vocabularies with an export: STEM + vocabulary.NAME.tsv; and of its list of
/// classes and its tokenizer, STEM + classes.txt and STEM + tokenizer.json.
class VocabularyCopies {
 public:
  VocabularyCopies(const std::string& run_dir, const std::string& stem);
  /// The files.
  const std::vector<std::string>& paths() const { return paths_; }
  /// Makes them beside their places.
  void make();
  /// And puts them there.
  void finish();

 private:
  struct Copy {
    std::unique_ptr<NewFile> place;
    std::string made;
  };
  std::vector<std::string> sources_, paths_;
  std::vector<Copy> copies_;
};

}  // namespace tandem::api
