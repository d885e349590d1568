#include "api/trained/class_words.h"

#include <nlohmann/json.hpp>

#include "api/trained/vocabularies.h"

namespace tandem::api {
namespace {

constexpr std::string_view words_key = "class_names.";

}  // namespace

FieldWords exported_words(const std::map<std::string, std::string>& metadata) {
  FieldWords all;
  for (const auto& [key, text] : metadata) {
    if (!key.starts_with(words_key)) continue;
    const nlohmann::json list = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!list.is_array()) continue;  // not written by this program
    std::vector<std::string> words;
    for (const nlohmann::json& word : list) {
      if (word.is_string()) words.push_back(word.get<std::string>());
    }
    if (!words.empty() && words.size() == list.size())
      all.emplace(key.substr(words_key.size()), std::move(words));
  }
  return all;
}

FieldWords trained_words(const TrainedModel& trained) {
  const TrainedRun& run = trained.run();
  FieldWords words;
  if (!run.guessed) words = field_words(run.config, checked_vocabularies(trained));
  if (!run.exported()) return words;
  const FieldWords own = exported_words(trained.file().metadata());
  for (const auto& [field, of_field] : own) words[field] = of_field;
  if (own.size() != 1 || !run.guessed) return words;
  // A guess may use another name for the labels.
  for (const LossTerm& term : run.config.loss.terms) {
    if (!term.labels.empty()) words.emplace(term.labels, own.begin()->second);
  }
  return words;
}

std::map<std::string, std::string> words_metadata(const RunConfig& config,
                                                  const std::string& run_dir) {
  std::map<std::string, std::string> metadata;
  const FieldWords words = field_words(config, saved_vocabularies(config, run_dir + "/"));
  for (const LossTerm& term : config.loss.terms) {
    const auto found = words.find(term.labels);
    if (found != words.end()) {
      metadata[std::string(words_key) + term.labels] =
          nlohmann::json(found->second)
              .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    }
  }
  return metadata;
}

}  // namespace tandem::api
