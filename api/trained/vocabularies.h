// Reads and checks the vocabularies that lie next to a run's weights.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/trained/trained_run.h"
#include "engine/data/data_source.h"
#include "engine/data/table_plan.h"
#include "engine/formats/new_file.h"

namespace tandem::api {

/// Throws Error{data} where the run was trained with other ids than those of `vocabularies`.
void refuse_other_vocabularies(const std::string& run_dir,
                               const std::vector<SavedVocabulary>& vocabularies);

/// The vocabularies of a plan, by their number in it, as the model was trained with them. Throws
/// Error{data} where one does not exist, cannot be read, or does not fit the weights.
std::vector<Vocabulary> load_vocabularies(TrainedModel& trained, const TablePlan& plan);
/// The vocabularies of the fields whose words are needed, and the list of classes, as far as the
/// files STEM + NAME exist.
std::vector<SavedVocabulary> saved_vocabularies(const RunConfig& config, const std::string& stem);
/// The vocabularies of a trained model. Throws as above where one differs from that of the
/// training.
std::vector<SavedVocabulary> checked_vocabularies(const TrainedModel& trained);
/// Names of the classes that the model was trained with, by number; empty where its data names
/// none. Throws as above.
std::vector<std::string> load_classes(TrainedModel& trained);
/// Replaces the tokenizer of [data] by the one that the model was trained with. Throws as above.
void use_own_tokenizer(TrainedModel& trained, DataConfig& data);
/// The text of the vocabulary of characters that the model was trained with; "" where there is
/// none. Throws as above.
std::string load_characters(TrainedModel& trained);
/// Throws Error{data} where the model was trained with other vocabularies.
void expect_vocabularies(const TrainedRun& run, const std::vector<SavedVocabulary>& vocabularies);

/// The sha256 of a run's vocabularies by file name, for the metadata of an export. Throws
/// Error{data} where one differs from that of `trained`, the checkpoint's.
std::map<std::string, std::string> vocabulary_hashes(
    const std::string& run_dir, const std::map<std::string, std::string>& trained);

/// Copies a run's vocabularies next to an export: STEM + vocabulary.NAME.tsv, and its list of
/// classes and its tokenizer as STEM + classes.txt and STEM + tokenizer.json.
class VocabularyCopies {
 public:
  VocabularyCopies(const std::string& run_dir, const std::string& stem);
  /// Paths of the copies.
  const std::vector<std::string>& paths() const { return paths_; }
  /// Writes the copies to temporary files next to their final places.
  void make();
  /// Moves them to their final places.
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
