// Writes predictions as .tsv and .csv: one line per row.
#include "api/predict/prediction_output.h"

namespace tandem::api {
namespace {

class TextFile final : public PredictionFile {
 public:
  TextFile(const std::string& to, char separator, bool header)
      : output_(to), separator_(separator), header_(header) {}

  void name_ids(std::vector<std::string> names) override { ids_.name(std::move(names)); }
  void add_ids(std::vector<std::vector<std::string>> rows) override { ids_.add(std::move(rows)); }
  void start(const std::vector<PredictedArray>& arrays) override {
    arrays_ = arrays;
    if (!header_) return;
    for (const std::string& name : ids_.names()) append_cell(cell(name));
    for (const PredictedArray& array : arrays) {
      const std::int64_t columns = array.sample.elements();
      for (std::int64_t i = 0; i < columns; ++i) {
        const bool many = columns > 1;
        append_cell(cell(many ? array.name + "[" + std::to_string(i) + "]" : array.name));
      }
    }
    end_line();
    flush();
  }
  void add(const std::vector<HostTensor>& values, std::int64_t first, std::int64_t count) override {
    for (std::int64_t row = first; row < first + count; ++row) {
      append_ids();
      for (std::size_t a = 0; a < values.size(); ++a) {
        const std::int64_t columns = arrays_[a].sample.elements();
        for (std::int64_t i = row * columns; i < (row + 1) * columns; ++i) {
          const std::string* name = word_in(arrays_[a], values[a], i);
          append_cell(name != nullptr ? cell(*name) : "");
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
      append_ids();
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

  /// A text as a cell of the format: csv quotes it, tsv escapes tabs and line breaks.
  std::string cell(const std::string& content) const {
    if (separator_ == ',') return quoted(content);
    std::string text;
    for (const char c : content) {
      if (c == '\t')
        text += "\\t";
      else if (c == '\n')
        text += "\\n";
      else if (c == '\r')
        text += "\\r";
      else
        text += c;
    }
    return text;
  }
  void append_ids() {
    for (const std::string& id : ids_.next()) append_cell(cell(id));
  }
  static std::string quoted(const std::string& name) {
    if (name.find_first_of(",\"\r\n") == std::string::npos) return name;
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

  PredictionOutput output_;
  char separator_;
  bool header_, line_start_ = true;
  IdRows ids_;
  std::vector<PredictedArray> arrays_;
  std::string text_;
};

}  // namespace

std::unique_ptr<PredictionFile> open_text_predictions(const std::string& to, bool header) {
  return std::make_unique<TextFile>(to, to.ends_with(".csv") ? ',' : '\t', header);
}

}  // namespace tandem::api
