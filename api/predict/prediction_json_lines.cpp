// Writes predictions as .jsonl: one object per row, with arrays of several entries as lists of
// their shape; or one object per batch.
#include <nlohmann/json.hpp>

#include "api/predict/prediction_output.h"

namespace tandem::api {
namespace {

std::string json_string(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class JsonLinesFile final : public PredictionFile {
 public:
  explicit JsonLinesFile(const std::string& to) : output_(to) {}

  void name_ids(std::vector<std::string> names) override { ids_.name(std::move(names)); }
  void add_ids(std::vector<std::vector<std::string>> rows) override { ids_.add(std::move(rows)); }
  void start(const std::vector<PredictedArray>& arrays) override { arrays_ = arrays; }

  void add(const std::vector<HostTensor>& values, std::int64_t first, std::int64_t count) override {
    for (std::int64_t row = first; row < first + count; ++row) {
      begin();
      for (std::size_t a = 0; a < values.size(); ++a) {
        append_name(arrays_[a].name);
        std::int64_t at = row * arrays_[a].sample.elements();
        append_nested(arrays_[a].sample, 0, at, [&](std::int64_t index) {
          const std::string* name = word_in(arrays_[a], values[a], index);
          if (name != nullptr)
            text_ += json_string(*name);
          else
            append_value(values[a], index);
        });
      }
      end();
    }
    flush();
  }
  void add_missing(std::int64_t rows) override {
    for (std::int64_t row = 0; row < rows; ++row) {
      begin();
      for (const PredictedArray& array : arrays_) {
        append_name(array.name);
        std::int64_t at = 0;
        append_nested(array.sample, 0, at, [&](std::int64_t) {
          text_ += is_float(array.sample.dtype) ? "\"nan\"" : "-1";
        });
      }
      end();
    }
    flush();
  }
  void start_batches(const std::vector<std::string>& names) override { batch_names_ = names; }
  void add_batch(const PredictedBatch& batch) override {
    text_ += "{\"batch\": " + std::to_string(batch.number) + ", \"rows\": [";
    for (std::size_t i = 0; i < batch.rows.size(); ++i)
      text_ += (i > 0 ? ", " : "") + std::to_string(batch.rows[i]);
    text_ += ']';
    is_first_ = false;
    for (std::size_t v = 0; v < batch.values.size(); ++v) {
      append_name(batch_names_[v]);
      std::int64_t at = 0;
      append_lists(batch.values[v], 0, at);
    }
    text_ += "}\n";
    flush();
  }
  void finish() override { output_.finish(); }

 private:
  static constexpr std::size_t piece = std::size_t{1} << 20;

  void begin() {
    text_ += '{';
    is_first_ = true;
    const std::vector<std::string> ids = ids_.next();
    for (std::size_t i = 0; i < ids.size(); ++i) {
      append_name(ids_.names()[i]);
      text_ += json_string(ids[i]);
    }
  }
  void end() {
    text_ += "}\n";
    if (text_.size() >= piece) flush();
  }
  void append_name(const std::string& name) {
    text_ += (is_first_ ? "" : ", ") + json_string(name) + ": ";
    is_first_ = false;
  }
  /// Numbers that are not finite, which JSON lacks, become texts, as in metrics.jsonl.
  void append_value(const HostTensor& values, std::int64_t index) {
    std::string number;
    append_number(number, values, index);
    const bool is_number = number.find_first_of("ni") == std::string::npos;
    text_ += is_number ? number : '"' + number + '"';
  }
  /// A single entry is written without a list, whatever its shape.
  template <class Append>
  void append_nested(const TensorType& sample, std::size_t axis, std::int64_t& at,
                     const Append& append) {
    if (sample.elements() == 1 || axis == sample.shape.size()) {
      append(at++);
      return;
    }
    text_ += '[';
    for (std::int64_t i = 0; i < sample.shape[axis]; ++i) {
      if (i > 0) text_ += ", ";
      append_nested(sample, axis + 1, at, append);
    }
    text_ += ']';
  }
  void append_lists(const HostTensor& value, std::size_t axis, std::int64_t& at) {
    if (axis == value.shape().size()) return append_value(value, at++);
    text_ += '[';
    for (std::int64_t i = 0; i < value.shape()[axis]; ++i) {
      if (i > 0) text_ += ", ";
      append_lists(value, axis + 1, at);
    }
    text_ += ']';
  }
  void flush() {
    output_.write(text_);
    text_.clear();
  }

  PredictionOutput output_;
  IdRows ids_;
  std::vector<PredictedArray> arrays_;
  std::vector<std::string> batch_names_;
  std::string text_;
  bool is_first_ = true;
};

}  // namespace

std::unique_ptr<PredictionFile> open_json_lines_predictions(const std::string& to,
                                                            bool /*header*/) {
  return std::make_unique<JsonLinesFile>(to);
}

}  // namespace tandem::api
