// The arrays of `data.kind = "images"`: `images`, and `labels` by sub-folders or a list.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/data/array_set.h"
#include "engine/data/data_source.h"

namespace tandem {

/// Null splits where there are none, or where something was reported.
struct ImageSplits {
  std::shared_ptr<const ArraySet> train, eval;
  std::vector<std::string> classes;  // by number; empty where no field takes labels
  std::vector<std::string> warnings;
};

/// Opens the arrays of these names. Classes are those of the training data, or `options.classes`;
/// held-out pictures have no others.
ImageSplits read_images(const DataConfig& config, const ArrayNames& names,
                        const OpenOptions& options, std::vector<Diagnostic>& errors);

/// The file of a run that names its classes, a line each.
inline constexpr const char* classes_file = "classes.txt";
SavedVocabulary saved_classes(const std::vector<std::string>& classes);
/// The names in such a file's text; without any none.
std::vector<std::string> classes_in(const std::string& text);
/// Reads such a file. Error{data} where it is empty.
std::vector<std::string> read_classes(const std::string& path);

}  // namespace tandem
