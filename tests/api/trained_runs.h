// Small runs for tests of what trained models are used for: rows as in Criteo's logs, digits as
// idx files.
#pragma once

#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "engine/formats/arrays/npy.h"
#include "engine/formats/files.h"
#include "tandem/tandem.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {

/// Rows of a label, 13 integers and 26 categories, tab separated; some fields are empty.
class ClickRows {
 public:
  explicit ClickRows(unsigned seed) : random_(seed) {}

  /// `words`: number of different values of a category.
  std::vector<std::string> rows(int count, int words) {
    std::vector<std::string> all;
    for (int row = 0; row < count; ++row) {
      const int hidden = below(4);
      std::string text = std::to_string(below(10) < 2 + 2 * hidden ? 1 : 0);
      for (int i = 0; i < 13; ++i)
        text += "\t" + (below(5) == 0 ? std::string() : std::to_string(below(4) + hidden - 2));
      for (int c = 0; c < 26; ++c)
        text += "\t" + (below(9) == 0 ? std::string() : "w" + std::to_string(below(words)));
      all.push_back(std::move(text));
    }
    return all;
  }

 private:
  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  std::mt19937 random_;
};

inline std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

inline std::string without_label(const std::string& row) { return row.substr(row.find('\t') + 1); }

constexpr int click_samples = 53, click_batch = 16;  // held out: three micro-batches, one of 5

/// Writes train.tsv, eval.tsv and train.toml of a wide & deep model whose tables have as many rows
/// as the vocabulary.
inline void write_clicks(const TemporaryFolder& folder, const std::string& more = "") {
  ClickRows clicks(5);
  write_file(folder / "train.tsv", joined(clicks.rows(160, 6)));
  write_file(folder / "eval.tsv", joined(clicks.rows(click_samples, 9)));  // some words are unknown
  write_file(folder / "train.toml",
             "model = \"" + source_folder() + R"toml(/models/wide_deep/model.onnx"
batch_size = 16
epochs = 1
)toml" + more + R"toml(
[parameters]
shape = [ { at = "{wide,deep}:weight", rows = "vocabulary(ids)" } ]
init  = [ { at = "{wide,deep}:weight", kind = "normal", std = 0.3 } ]
[loss]
terms = [
  { name = "click", kind = "binary_cross_entropy", logits = "logits", labels = "label" },
  { name = "l2",    kind = "sum_of_squares", of = "deep_rows", weight = 1e-4, reduction = "sum" },
]
[optimizer]
kind   = "adam"
lr     = 1e-2
groups = [ { at = "wide:*", kind = "ftrl" }, { at = "deep:*", kind = "lazy_adam" } ]
[data]
kind    = "tsv"
columns = [ "label", "i{1..13}", "c{1..26}" ]
[data.train]
files   = [ "train.tsv" ]
[data.eval]
files   = [ "eval.tsv" ]
[data.fields]
ids   = { from = [ "i{1..13}", "c{1..26}" ], as = [ "missing(-1)", "vocabulary(min_count=2)" ] }
label = { from = "label", as = [ "float32" ] }
[eval]
every   = "5 steps"
metrics = [ "auc", "log_loss", "calibration", "accuracy" ]
best    = "log_loss"
[checkpoint]
every   = "5 steps"
keep    = 0
)toml");
}

/// Writes bytes as an idx file: [count, extents…].
inline void write_idx(const std::string& path, const std::vector<std::uint32_t>& shape,
                      const std::vector<std::uint8_t>& bytes) {
  std::string text{'\0', '\0', '\x08', static_cast<char>(shape.size())};
  for (const std::uint32_t extent : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(extent >> shift & 255);
  }
  text.append(bytes.begin(), bytes.end());
  write_file(path, text);
}

/// Writes train- and test-images and -labels of the committed digits, and train.toml. Returns the
/// test labels.
inline std::vector<std::int64_t> write_digits(const TemporaryFolder& folder) {
  const std::string digits = source_folder() + "/models/digits/";
  std::vector<std::int64_t> labels;
  for (const std::string split : {"train", "test"}) {
    for (const NamedTensor& array : read_npz(digits + "digits_" + split + ".npz")) {
      const HostTensor small = array.tensor.converted(DType::uint8);
      const auto values = small.as<std::uint8_t>();
      std::vector<std::uint32_t> shape;
      for (const std::int64_t extent : small.shape())
        shape.push_back(static_cast<std::uint32_t>(extent));
      write_idx(folder / (split + "-" + array.name), shape, {values.begin(), values.end()});
      if (split == "test" && array.name == "labels") labels.assign(values.begin(), values.end());
    }
  }
  write_file(folder / "train.toml", "model = \"" + digits + R"toml(model.onnx"
batch_size = 32
steps = 60
[loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ]
[optimizer]
kind = "adam"
lr   = 2e-3
[data]
kind = "idx"
[data.train]
files = { images = "train-images", labels = "train-labels" }
[data.eval]
files = { images = "test-images", labels = "test-labels" }
[data.fields]
image  = { from = "images", as = [ "reshape(1, 8, 8)", "scale(1/16)" ] }
labels = "labels"
[eval]
metrics = [ "accuracy" ]
)toml");
  return labels;
}

inline void train(const TemporaryFolder& folder, const api::TrainOptions& with = {}) {
  api::TrainOptions options = with;
  options.run_dir = folder / "run";
  api::Trainer(folder / "train.toml", options).run();
}

}  // namespace tandem::testing
