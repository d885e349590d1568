#include "engine/train/evaluation/field_words.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string_view>

#include "engine/data/functions/field_function.h"
#include "engine/data/images/read_images.h"
#include "engine/data/table_plan.h"
#include "engine/formats/files.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

constexpr std::int64_t most_words = 100'000;  // in a vocabulary, whose file is read for them

std::string saved_text(const SavedVocabulary& saved) {
  return saved.path.empty() ? saved.text : read_file(saved.path);
}

/// Whether the functions are at most conversions to another type.
bool are_casts(std::span<const Transform> functions) {
  return std::all_of(functions.begin(), functions.end(), [](const Transform& function) {
    return dtype_from_name(function.text).has_value();
  });
}

/// Values by their ids, where 0 is the id of all unknown ones. Where each column has its own ids,
/// the field's is the first of `columns`: ids of others are none of its words.
std::vector<std::string> words_of(const SavedVocabulary& saved,
                                  const std::vector<std::string>& columns, bool by_table) {
  if (saved.rows > most_words) return {};
  Vocabulary vocabulary;
  try {
    vocabulary = Vocabulary::parse(saved_text(saved), columns);
  } catch (const std::invalid_argument& problem) {
    throw Error(ErrorKind::data,
                Diagnostic{.message = problem.what(),
                           .file = saved.path.empty() ? saved.file_name : saved.path,
                           .fix = "take a whole copy of the vocabulary"});
  }
  if (vocabulary.size() > most_words) return {};
  std::vector<std::string> words(1);
  for (std::int64_t id = 1; id < vocabulary.size(); ++id) {
    if (by_table && vocabulary.column(id) != 0) continue;  // each column has ids of its own
    words.emplace_back(vocabulary.column(id) == 0 ? vocabulary.value(id) : std::string_view());
  }
  return words;
}

/// All columns that a vocabulary counts, those of `first` in front.
std::vector<std::string> columns_of(const DataConfig& data, const FieldConfig& first,
                                    const std::string& vocabulary) {
  std::vector<std::string> columns = first.columns;
  for (const FieldConfig& field : data.fields) {
    const bool counts = std::any_of(field.as.begin(), field.as.end(), [&](const Transform& as) {
      return vocabulary_name(field, as) == vocabulary;
    });
    if (counts) columns.insert(columns.end(), field.columns.begin(), field.columns.end());
  }
  return columns;
}

const SavedVocabulary* find(const std::vector<SavedVocabulary>& saved, bool are_classes,
                            const std::string& name) {
  const auto found = std::find_if(saved.begin(), saved.end(), [&](const SavedVocabulary& one) {
    return are_classes ? one.file_name == classes_file
                       : one.name == name && one.file_name.starts_with("vocabulary.");
  });
  return found == saved.end() ? nullptr : &*found;
}

std::vector<std::string> words_of(const DataConfig& data, const FieldConfig& field,
                                  const std::vector<SavedVocabulary>& saved) {
  for (std::size_t i = 0; i < field.as.size(); ++i) {
    const FieldFunction& function = *field.as[i].function;
    const std::string vocabulary = vocabulary_name(field, field.as[i]);
    const std::vector<std::string>* const words = function.words();
    if (words == nullptr && vocabulary.empty()) continue;
    if (!are_casts(std::span(field.as).subspan(i + 1))) return {};
    if (words != nullptr) return *words;
    const SavedVocabulary* const of = find(saved, false, vocabulary);
    const bool by_value = function.vocabulary()->by_value;
    if (of == nullptr || (!by_value && field.columns.size() != 1)) return {};
    return words_of(*of,
                    by_value ? std::vector<std::string>() : columns_of(data, field, vocabulary),
                    function.vocabulary()->by_table);
  }
  return {};
}

}  // namespace

std::set<std::string> worded_fields(const RunConfig& config) {
  std::set<std::string> fields;
  for (const LossTerm& term : config.loss.terms) {
    if (!term.labels.empty()) fields.insert(term.labels);
  }
  for (const MetricConfig& metric : config.eval.metrics) {
    if (!metric.by.empty()) fields.insert(metric.by);
  }
  return fields;
}

FieldWords field_words(const RunConfig& config, const std::vector<SavedVocabulary>& saved) {
  FieldWords all;
  if (!config.data) return all;
  const auto add = [&](const std::string& field, std::vector<std::string> words) {
    if (!words.empty()) all.emplace(field, std::move(words));
  };
  for (const std::string& name : worded_fields(config)) {
    const auto field = std::find_if(config.data->fields.begin(), config.data->fields.end(),
                                    [&](const FieldConfig& one) { return one.name == name; });
    const bool is_there = field != config.data->fields.end();
    if (config.data->images()) {
      const bool are_labels = is_there ? field->from == "labels" && are_casts(field->as)
                                       : config.data->fields.empty() && name == "labels";
      const SavedVocabulary* const classes = find(saved, true, "");
      if (are_labels && classes != nullptr) add(name, classes_in(saved_text(*classes)));
    } else if (is_there) {
      add(name, words_of(*config.data, *field, saved));
    }
  }
  return all;
}

const std::string* word_of(const std::vector<std::string>& words, std::int64_t number) {
  if (number < 0 || number >= static_cast<std::int64_t>(words.size())) return nullptr;
  const std::string& word = words[static_cast<std::size_t>(number)];
  return word.empty() ? nullptr : &word;
}

}  // namespace tandem
