#include "api/use/prediction_file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>

#include "engine/formats/files.h"
#include "engine/formats/new_file.h"
#include "engine/formats/npy.h"
#include "engine/graph/error.h"
#include "engine/graph/text.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;

constexpr const char* to_option = "--to";

[[noreturn]] void refuse_place(const std::string& to, std::string message, std::string expected,
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

/// A file in the making. What is there and is no file (a pipe, a device) is written as it comes.
class Output {
 public:
  explicit Output(const std::string& to) {
    if (to == "-") return;
    if (is_device(to)) {
      file_ = std::make_unique<OutputFile>(to, OutputFile::Mode::append);
      return;
    }
    place_.emplace(to, to_option);
    file_ = std::make_unique<OutputFile>(place_->make());
  }

  void write(std::string_view text) {
    if (file_) return file_->write(text);
    const bool written =
        std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    if (written) return;
    throw Error(ErrorKind::runtime,
                Diagnostic{.message = std::string("cannot write: ") + std::strerror(errno),
                           .file = "standard output"});
  }
  void finish() {
    if (!file_) return;
    if (place_) file_->sync();
    file_->close();
    if (place_) place_->finish(file_->path());
  }

 private:
  std::optional<NewFile> place_;      // of a file
  std::unique_ptr<OutputFile> file_;  // null: standard output
};

// ---------------------------------------------------------------- text

/// The shortest digits that read back to the same number.
void append_number(std::string& text, const HostTensor& values, std::int64_t index) {
  char digits[40];
  const auto at = static_cast<std::size_t>(index);
  const auto put = [&](auto value) {
    if (value != value) {  // whatever its sign
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

class TextFile final : public PredictionFile {
 public:
  TextFile(const std::string& to, char separator, bool header)
      : output_(to), separator_(separator), header_(header) {}

  void name_classes(std::vector<std::string> classes) override { classes_ = std::move(classes); }
  void start(const std::vector<PredictedArray>& arrays) override {
    arrays_ = arrays;
    if (!header_) return;
    for (const PredictedArray& array : arrays) {
      const std::int64_t columns = array.sample.elements();
      for (std::int64_t i = 0; i < columns; ++i) {
        const bool many = columns > 1;
        append_cell(quoted(many ? array.name + "[" + std::to_string(i) + "]" : array.name));
      }
    }
    end_line();
    flush();
  }
  void add(const std::vector<HostTensor>& values, std::int64_t first, std::int64_t count) override {
    for (std::int64_t row = first; row < first + count; ++row) {
      for (std::size_t a = 0; a < values.size(); ++a) {
        const std::int64_t columns = arrays_[a].sample.elements();
        for (std::int64_t i = row * columns; i < (row + 1) * columns; ++i) {
          const std::string* name = class_name(a, values[a], i);
          append_cell(name != nullptr ? quoted(*name) : "");
          if (name == nullptr) append_number(text_, values[a], i);
        }
      }
      end_line();
      if (text_.size() >= piece) flush();
    }
    flush();
  }
  void add_missing(std::int64_t rows) override {
    for (std::int64_t row = 0; row < rows; ++row) {
      for (const PredictedArray& array : arrays_) {
        for (std::int64_t i = 0; i < array.sample.elements(); ++i)
          append_cell(is_float(array.sample.dtype) ? "nan" : "-1");
      }
      end_line();
    }
    flush();
  }
  void finish() override { output_.finish(); }

 private:
  static constexpr std::size_t piece = std::size_t{1} << 20;

  /// Null where the number is no class that has a name.
  const std::string* class_name(std::size_t array, const HostTensor& values,
                                std::int64_t index) const {
    const std::string& name = arrays_[array].name;
    const bool is_class = name == "class" || name.ends_with(".class");
    if (classes_.empty() || !is_class || values.dtype() != DType::int64) return nullptr;
    const auto number =
        static_cast<std::uint64_t>(values.as<std::int64_t>()[static_cast<std::size_t>(index)]);
    return number < classes_.size() ? &classes_[number] : nullptr;
  }
  std::string quoted(const std::string& name) const {
    if (separator_ != ',' || name.find_first_of(",\"\r\n") == std::string::npos) return name;
    std::string text = "\"";
    for (const char c : name) text += c == '"' ? std::string("\"\"") : std::string(1, c);
    return text + "\"";
  }
  void append_cell(std::string_view content) {
    if (!line_start_) text_ += separator_;
    line_start_ = false;
    text_ += content;
  }
  void end_line() {
    text_ += '\n';
    line_start_ = true;
  }
  void flush() {
    output_.write(text_);
    text_.clear();
  }

  Output output_;
  char separator_;
  bool header_, line_start_ = true;
  std::vector<std::string> classes_;  // names by number, where they stand for it
  std::vector<PredictedArray> arrays_;
  std::string text_;
};

// ---------------------------------------------------------------- arrays

/// The header of an array says how long it is: elements are kept beside until that is known.
class ArrayFile final : public PredictionFile {
 public:
  explicit ArrayFile(const std::string& to)
      : to_(to), archive_(to.ends_with(".npz")), place_(to, to_option), whole_(place_.make()) {}

  void start(const std::vector<PredictedArray>& arrays) override {
    if (!archive_ && arrays.size() != 1) {
      const std::string names = joined(arrays, ", ", &PredictedArray::name);
      refuse_place(to_, "an .npy file holds one array, and these are " + names, "a file.npz",
                   "write an .npz file, or choose one: --as class");
    }
    arrays_ = arrays;
    for (std::size_t a = 0; a < arrays.size(); ++a)
      parts_.push_back(std::make_unique<OutputFile>(place_.make()));
  }
  void add(const std::vector<HostTensor>& values, std::int64_t first, std::int64_t count) override {
    for (std::size_t a = 0; a < values.size(); ++a) {
      const std::size_t bytes = arrays_[a].sample.bytes();
      parts_[a]->write(
          static_cast<const char*>(values[a].data()) + bytes * static_cast<std::size_t>(first),
          bytes * static_cast<std::size_t>(count));
    }
    rows_ += count;
  }
  void add_missing(std::int64_t rows) override {
    std::vector<HostTensor> values;
    for (const PredictedArray& array : arrays_) {
      TensorType type = array.sample;
      type.shape.insert(type.shape.begin(), 1);
      HostTensor value(type);
      if (type.dtype == DType::float32) {
        std::ranges::fill(value.as<float>(), std::numeric_limits<float>::quiet_NaN());
      } else if (type.dtype == DType::float64) {
        std::ranges::fill(value.as<double>(), std::numeric_limits<double>::quiet_NaN());
      } else {
        std::ranges::fill(value.as<std::int64_t>(), -1);
      }
      values.push_back(std::move(value));
    }
    for (std::int64_t row = 0; row < rows; ++row) add(values, 0, 1);
  }
  void finish() override {
    for (const auto& part : parts_) part->close();
    std::vector<NamedTensor> tensors;
    for (std::size_t a = 0; a < arrays_.size(); ++a) {
      TensorType type = arrays_[a].sample;
      type.shape.insert(type.shape.begin(), rows_);
      auto file = std::make_shared<MappedFile>(parts_[a]->path(), true);
      tensors.push_back({arrays_[a].name, HostTensor(std::move(type), file->data(), file)});
    }
    if (archive_) {
      write_npz(whole_, tensors);
    } else {
      write_npy(whole_, tensors[0].tensor);
    }
    place_.finish(whole_);
  }

 private:
  std::string to_;
  bool archive_;
  NewFile place_;
  std::string whole_;  // the file in the making
  std::vector<PredictedArray> arrays_;
  std::vector<std::unique_ptr<OutputFile>> parts_;
  std::int64_t rows_ = 0;
};

}  // namespace

void PredictionFile::check(const std::string& to, bool header, bool class_names) {
  if (to == "-") return;
  const std::string ending = fs::path(to).extension().string();
  const bool is_text = ending == ".tsv" || ending == ".csv" || is_device(to);
  if (is_directory(to)) refuse_place(to, "this is a folder", "a file to write", "");
  if (!is_text && ending != ".npy" && ending != ".npz")
    refuse_place(to, "the ending of the name decides the format",
                 ".tsv, .csv, .npy or .npz, or \"-\"", "");
  if (header && !is_text)
    refuse_place(to, "--header names the columns of text", "a file.tsv or file.csv", "");
  if (class_names && !is_text)
    refuse_place(to, "--class-names are for text", "a file.tsv or file.csv", "");
}

std::unique_ptr<PredictionFile> PredictionFile::open(const std::string& to, bool header) {
  check(to, header);
  const bool is_array = (to.ends_with(".npy") || to.ends_with(".npz")) && !is_device(to);
  if (is_array) return std::make_unique<ArrayFile>(to);
  return std::make_unique<TextFile>(to, to.ends_with(".csv") ? ',' : '\t', header);
}

}  // namespace tandem::api
