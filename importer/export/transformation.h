// What may be done to a model on its way into an exported file: each in a file of its own, listed
// in all_transformations.inl in the order in which they happen.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "importer/export_graph.h"
#include "importer/file/onnx_content.h"

namespace tandem::importer {

/// The model as it will be written: in inference form, with all trained values in its initializers.
struct ExportedModel {
  onnx::ModelProto& proto;
  const OnnxFile::Content& content;  // content of the original file: its name and its limits
  std::vector<std::string> notes;    // for people
};

struct Transformation {
  std::string_view name;
  bool (*is_wanted)(const ExportOptions& options);
  /// Throws Error{usage} where it cannot be done.
  void (*apply)(ExportedModel& model, const ExportOptions& options);
};

const std::vector<Transformation>& export_transformations();

}  // namespace tandem::importer
