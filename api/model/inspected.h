// A model that was imported for inspection, as JSON and as text.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "importer/export_notes.h"
#include "importer/model_notices.h"
#include "importer/training_info/training_info.h"
#include "placement/counts.h"
#include "tandem/model.h"

namespace tandem::api {

struct Engine;

using Json = nlohmann::ordered_json;

struct Inspected {
  ImportResult imported;
  Graph forward;
  /// The forward graph, with any length for free dimensions: names what reads a parameter.
  Graph named;
  ItemCounts counts;  // counts of the items that rules of a policy may name
  std::vector<std::string> recognised;
  std::vector<Problem> problems;  // what blocks training; missing operators first
  std::vector<ExportNote> export_notes;
  std::vector<ModelNotice> notices;
  bool has_training_info = false;
  std::shared_ptr<const TrainingAlgorithm> algorithm;  // the training_info, where it could be read
};

/// Throws Error{usage} with each name that is no pass.
void check_passes(const std::vector<std::string>& names);

/// Throws Error{usage} where the file cannot be read as a model at all.
Inspected open_for_inspection(const Engine& engine, const std::string& path,
                              const ModelOptions& options);

/// The model as values of the public library.
std::vector<ModelPort> ports_of(const std::vector<PortSummary>& ports);
std::vector<ModelParameter> parameters_of(const Inspected& inspected);
std::vector<Diagnostic> problems_of(const Inspected& inspected);

/// Whether free lengths of the file are the only thing that is missing.
bool lacks_lengths_alone(const Inspected& inspected);

Json to_json(const Inspected& inspected);
/// `parameters`: listed one by one, else counted.
std::string to_text(const Inspected& inspected, const std::string& path, bool parameters);
Json notices_json(const std::vector<ModelNotice>& notices);
/// How far the model is from training, a table of missing operators, the other problems.
std::string problems_text(const Inspected& inspected);

}  // namespace tandem::api
