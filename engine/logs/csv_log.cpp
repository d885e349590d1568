// log.also = ["csv"]: metrics.csv, a row for each line of metrics.jsonl. A column that appears
// later widens the file: it is written anew from metrics.jsonl, so that it is what that says at any
// time.
#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "engine/formats/files.h"
#include "engine/logs/metrics_file.h"

namespace tandem {
namespace {

/// As RFC 4180 has it: quoted where it holds a comma, a quote or the end of a line.
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

/// The numbers of a line by their columns; of tables one for each name, "f1.cat". Matrices have
/// none.
std::vector<std::pair<std::string, double>> csv_numbers(const LoggedLine& line) {
  std::vector<std::pair<std::string, double>> numbers = line.values;
  for (const MetricTable& table : line.tables) {
    for (std::size_t i = 0; !table.is_matrix && i < table.names.size(); ++i)
      numbers.emplace_back(table.metric + "." + table.names[i], table.numbers[i]);
  }
  return numbers;
}

class CsvLog final : public MetricsLog {
 public:
  explicit CsvLog(const LogPlace& place)
      : metrics_(place.run_dir + "/metrics.jsonl"), path_(place.run_dir + "/metrics.csv") {
    write_anew();
  }

  void add(const LoggedLine& line) override {
    if (takes_columns(line))
      write_anew();
    else
      file_->write(row(line));
  }

 private:
  /// Whether the line brings a column that was not there before.
  bool takes_columns(const LoggedLine& line) {
    const std::size_t before = names_.size();
    for (const auto& [name, number] : csv_numbers(line)) {
      if (columns_.try_emplace(name, names_.size()).second) names_.push_back(name);
    }
    return names_.size() > before;
  }

  std::string row(const LoggedLine& line) const {
    std::vector<std::string> cells(names_.size());
    // Shortest digits that read back to the same number; "nan", "inf" and "-inf".
    for (const auto& [name, number] : csv_numbers(line))
      cells[columns_.at(name)] = fmt::format("{}", number);
    std::string text =
        fmt::format("{},{}", line.step, line.phase.empty() ? "train" : csv_cell(line.phase));
    for (const std::string& cell : cells) text += "," + cell;
    return text + "\n";
  }

  void write_anew() {
    read_metrics_file(metrics_, [&](LoggedLine&& line) { takes_columns(line); });
    std::string text = "step,phase";
    for (const std::string& name : names_) text += "," + csv_cell(name);
    text += "\n";
    read_metrics_file(metrics_, [&](LoggedLine&& line) { text += row(line); });
    file_.reset();
    replace_file(path_, text);
    file_ = std::make_unique<OutputFile>(path_, OutputFile::Mode::append);
  }

  std::string metrics_, path_;
  std::vector<std::string> names_;  // the columns after step and phase
  std::unordered_map<std::string, std::size_t> columns_;
  std::unique_ptr<OutputFile> file_;
};

}  // namespace

std::unique_ptr<MetricsLog> open_csv_log(const LogPlace& place) {
  return std::make_unique<CsvLog>(place);
}

}  // namespace tandem
