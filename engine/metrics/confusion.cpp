// How often each label was predicted as each class.
#include "engine/metrics/class_scores.h"
#include "engine/metrics/metric_sums.h"

namespace tandem::metrics {
namespace {

constexpr std::int64_t most_confused_classes = 1000;  // a million numbers an evaluation

class Confusion final : public Metric {
 public:
  explicit Confusion(bool is_binary) : is_binary_(is_binary) {}

  void add(const MetricInput& input) override {
    classes_ = decided_classes(input.values.shape(), input.labels.shape(), is_binary_);
    counts_.resize(static_cast<std::size_t>(classes_ * classes_));
    each_decision(input, is_binary_, input.ignore_index,
                  [&](std::int64_t label, std::int64_t predicted) {
                    ++counts_[static_cast<std::size_t>(label * classes_ + predicted)];
                  });
  }
  std::string sums() const override {
    return bytes_of(classes_) +
           std::string(reinterpret_cast<const char*>(counts_.data()), counts_.size() * 8);
  }
  void add_sums(const std::string& sums) override {
    std::size_t at = 0;
    const auto classes = taken_from<std::int64_t>(sums, at);
    if (classes == 0) return;  // from a rank without samples
    classes_ = classes;
    counts_.resize(static_cast<std::size_t>(classes * classes));
    for (std::int64_t& count : counts_) count += taken_from<std::int64_t>(sums, at);
  }
  MetricTable table() override {
    MetricTable table;
    table.is_matrix = true;
    for (std::int64_t c = 0; c < classes_; ++c) table.names.push_back(std::to_string(c));
    for (const std::int64_t count : counts_) table.numbers.push_back(static_cast<double>(count));
    return table;
  }
  std::string unfit(const TensorType& values, const TensorType& labels) const override {
    const std::int64_t classes = decided_classes(values.shape, labels.shape, is_binary_);
    if (classes <= most_confused_classes) return "";
    return "at most " + std::to_string(most_confused_classes) + " classes";
  }

 private:
  bool is_binary_;
  std::int64_t classes_ = 0;
  std::vector<std::int64_t> counts_;  // by label, then by prediction
};

std::unique_ptr<Metric> make_confusion(const MetricConfig&, unsigned scores) {
  return std::make_unique<Confusion>((scores & binary_scores) != 0);
}

bool always_a_table(const MetricConfig&) { return true; }

}  // namespace

MetricKind confusion() {
  return {.name = "confusion",
          .source = "scikit-learn: confusion_matrix",
          .help =
              "how many labels of each class (rows) were predicted as each class (columns); of "
              "up to 1000 classes",
          .better = Better::neither,
          .scores = class_scores | binary_scores,
          .is_table = always_a_table,
          .make = make_confusion};
}

}  // namespace tandem::metrics
