// Turns the rules of [parameters] shape that give numbers of rows into import options.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/data/data_source.h"
#include "engine/formats/named_tensor.h"
#include "importer/import_graph.h"

namespace tandem::api {

/// How many rows the vocabulary of a rule's field has.
using VocabularyRows = std::function<std::int64_t(const ShapeRule&)>;

std::vector<RowsRule> rows_rules(const RunConfig& config, const VocabularyRows& vocabulary_rows);

/// Counts in the prepared table of the run's data, which is made where it does not exist; callbacks
/// in `options` report that and may stop it. Throws Error{usage} where the field has no vocabulary.
std::int64_t prepared_vocabulary_rows(const RunConfig& config, const ShapeRule& rule,
                                      OpenOptions options);

/// Counts in the vocabulary that a run has saved; needs no data. Empty where `run_dir` is "" or
/// holds no vocabulary of that name; throws Error{data} where the file is broken.
std::optional<std::int64_t> saved_vocabulary_rows(const RunConfig& config,
                                                  const std::string& run_dir,
                                                  const ShapeRule& rule);

/// Rows that the rule's tables have in a run: those of its weights, else of the vocabulary that
/// lies in `run_dir`. Needs no data where that is not "". Throws Error{usage} where neither is
/// there.
std::int64_t trained_vocabulary_rows(const RunConfig& config, const std::string& run_dir,
                                     const std::vector<NamedTensor>& weights,
                                     const ShapeRule& rule);

}  // namespace tandem::api
