#include "api/predict/prediction_file.h"

#include <cassert>
#include <filesystem>

#include "api/predict/prediction_output.h"
#include "engine/graph/text.h"

namespace tandem::api {
namespace {

struct PredictionFormat {
  std::string_view ending;
  bool is_text;     // it may contain names of classes, and ids
  bool has_header;  // a line with the columns' names
  bool has_batches;
  std::unique_ptr<PredictionFile> (*open)(const std::string& to, bool header);
};

/// The first one is used for standard output, pipes and devices.
constexpr PredictionFormat prediction_formats[] = {
    {".tsv", true, true, false, open_text_predictions},
    {".csv", true, true, false, open_text_predictions},
    {".jsonl", true, false, true, open_json_lines_predictions},
    {".npy", false, false, false, open_array_predictions},
    {".npz", false, false, true, open_array_predictions},
};

/// The format by the ending; null for other endings.
const PredictionFormat* format_of(const std::string& to) {
  if (to == "-" || is_device(to)) return &prediction_formats[0];
  const std::string ending = std::filesystem::path(to).extension().string();
  for (const PredictionFormat& format : prediction_formats) {
    if (format.ending == ending) return &format;
  }
  return nullptr;
}

/// ".tsv, .csv or .jsonl"
template <class Predicate>
std::string endings_where(Predicate is_one) {
  std::vector<std::string> endings;
  for (const PredictionFormat& format : prediction_formats) {
    if (is_one(format)) endings.emplace_back(format.ending);
  }
  const std::string last = endings.back();
  endings.pop_back();
  return joined(endings) + " or " + last;
}

}  // namespace

void PredictionFile::check(const std::string& to, const PredictionLook& look) {
  if (to != "-" && is_directory(to)) refuse_place(to, "this is a folder", "a file to write", "");
  const PredictionFormat* format = format_of(to);
  if (format == nullptr)
    refuse_place(to, "the ending of the name decides the format",
                 endings_where([](const auto&) { return true; }) + ", or \"-\"", "");
  const auto refuse = [&](const char* message, bool PredictionFormat::*has) {
    refuse_place(to, message,
                 "a name that ends in " + endings_where([&](const auto& f) { return f.*has; }), "");
  };
  if (look.header && !format->has_header)
    refuse("--header names the columns of text", &PredictionFormat::has_header);
  if (look.class_names && !format->is_text)
    refuse("--class-names are for text", &PredictionFormat::is_text);
  if (!look.ids.empty() && !format->is_text)
    refuse("--id columns are for text", &PredictionFormat::is_text);
}

void PredictionFile::check_batches(const std::string& to, const std::string& value) {
  const PredictionFormat* format = format_of(to);
  if (format != nullptr && format->has_batches) return;
  refuse_place(to, "'" + value + "' has no entry for each row: it is written batch by batch",
               "a name that ends in " + endings_where([](const auto& f) { return f.has_batches; }),
               "name outputs that have one with --output");
}

void PredictionFile::start_batches(const std::vector<std::string>& /*names*/) {
  assert(false && "a format without batches");
}

void PredictionFile::add_batch(const PredictedBatch& /*batch*/) {
  assert(false && "a format without batches");
}

std::unique_ptr<PredictionFile> PredictionFile::open(const std::string& to,
                                                     const PredictionLook& look) {
  check(to, look);
  std::unique_ptr<PredictionFile> file = format_of(to)->open(to, look.header);
  file->name_ids(look.ids);
  return file;
}

}  // namespace tandem::api
