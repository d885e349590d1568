// Code shared by the formats of predictions: output file, numbers, names of classes.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/predict/prediction_file.h"
#include "engine/formats/files.h"
#include "engine/formats/new_file.h"

namespace tandem::api {

inline constexpr const char* to_option = "--to";

[[noreturn]] void refuse_place(const std::string& to, std::string message, std::string expected,
                               std::string fix);

/// Whether something exists there that is no regular file: a pipe, a device.
bool is_device(const std::string& to);

/// A file that appears when it is complete, or standard output ("-"). Pipes and devices are written
/// to directly.
class PredictionOutput {
 public:
  explicit PredictionOutput(const std::string& to);
  void write(std::string_view text);
  void finish();

 private:
  std::optional<NewFile> place_;      // set for a file
  std::unique_ptr<OutputFile> file_;  // null: standard output
};

/// The shortest digits that read back to the same number; "nan", "inf", "-inf".
void append_number(std::string& text, const HostTensor& values, std::int64_t index);

/// The word that replaces a number; null where the array has none for it.
const std::string* word_in(const PredictedArray& array, const HostTensor& values,
                           std::int64_t index);

/// Ids of rows that are still to be written.
class IdRows {
 public:
  void name(std::vector<std::string> names) { names_ = std::move(names); }
  const std::vector<std::string>& names() const { return names_; }
  void add(std::vector<std::vector<std::string>> rows);
  /// The ids of the next row: one text per name.
  std::vector<std::string> next();

 private:
  std::vector<std::string> names_;
  std::deque<std::vector<std::string>> rows_;
};

// The formats.
std::unique_ptr<PredictionFile> open_text_predictions(const std::string& to, bool header);
std::unique_ptr<PredictionFile> open_array_predictions(const std::string& to, bool header);
std::unique_ptr<PredictionFile> open_json_lines_predictions(const std::string& to, bool header);

}  // namespace tandem::api
