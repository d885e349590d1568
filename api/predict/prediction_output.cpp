#include "api/predict/prediction_output.h"

#include <cassert>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "engine/graph/error.h"
#include "engine/train/evaluation/field_words.h"

namespace tandem::api {
namespace {
namespace fs = std::filesystem;
}

void refuse_place(const std::string& to, std::string message, std::string expected,
                  std::string fix) {
  throw Error(ErrorKind::usage, Diagnostic{.message = std::move(message),
                                           .file = to_option,
                                           .expected = std::move(expected),
                                           .got = to,
                                           .fix = std::move(fix)});
}

bool is_device(const std::string& to) {
  std::error_code ignored;
  const fs::file_status status = fs::status(to, ignored);
  return to != "-" && fs::exists(status) && !fs::is_regular_file(status);
}

PredictionOutput::PredictionOutput(const std::string& to) {
  if (to == "-") return;
  if (is_device(to)) {
    file_ = std::make_unique<OutputFile>(to, OutputFile::Mode::append);
    return;
  }
  place_.emplace(to, to_option);
  file_ = std::make_unique<OutputFile>(place_->make());
}

void PredictionOutput::write(std::string_view text) {
  if (file_) return file_->write(text);
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (written) return;
  throw Error(ErrorKind::runtime,
              Diagnostic{.message = std::string("cannot write: ") + std::strerror(errno),
                         .file = "standard output"});
}

void PredictionOutput::finish() {
  if (!file_) return;
  if (place_) file_->sync();
  file_->close();
  if (place_) place_->finish(file_->path());
}

void append_number(std::string& text, const HostTensor& values, std::int64_t index) {
  char digits[40];
  const auto at = static_cast<std::size_t>(index);
  const auto put = [&](auto value) {
    if (value != value) {  // NaN of either sign
      text += "nan";
      return;
    }
    text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  };
  if (values.dtype() == DType::float32) {
    put(values.as<float>()[at]);
  } else if (values.dtype() == DType::float64) {
    put(values.as<double>()[at]);
  } else {
    put(values.as<std::int64_t>()[at]);
  }
}

const std::string* word_in(const PredictedArray& array, const HostTensor& values,
                           std::int64_t index) {
  if (array.words.empty() || values.dtype() != DType::int64) return nullptr;
  return word_of(array.words, values.as<std::int64_t>()[static_cast<std::size_t>(index)]);
}

void IdRows::add(std::vector<std::vector<std::string>> rows) {
  for (std::vector<std::string>& row : rows) rows_.push_back(std::move(row));
}

std::vector<std::string> IdRows::next() {
  if (names_.empty()) return {};
  assert(!rows_.empty());
  std::vector<std::string> row = std::move(rows_.front());
  rows_.pop_front();
  return row;
}

}  // namespace tandem::api
