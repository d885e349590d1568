#include "engine/metrics/class_counts.h"

#include "engine/config/keys/key_visitor.h"
#include "engine/metrics/class_scores.h"
#include "engine/metrics/metric_sums.h"

namespace tandem::metrics {
namespace {

class RatioOfCounts final : public Metric {
 public:
  RatioOfCounts(const MetricConfig& metric, bool is_binary, double (*ratio)(const ClassCounts&))
      : average_(metric.options.as<AverageOptions>().average),
        is_binary_(is_binary),
        ratio_(ratio) {
    if (const auto* own = metric.options.find<RegionOptions>())
      own_ignore_index_ = own->ignore_index;
  }

  void add(const MetricInput& input) override {
    const auto classes = static_cast<std::size_t>(
        decided_classes(input.values.shape(), input.labels.shape(), is_binary_));
    if (counts_.size() < classes) counts_.resize(classes);
    const auto ignore_index = own_ignore_index_ ? own_ignore_index_ : input.ignore_index;
    each_decision(input, is_binary_, ignore_index, [&](std::int64_t label, std::int64_t predicted) {
      ClassCounts& labelled = counts_[static_cast<std::size_t>(label)];
      if (label == predicted) {
        ++labelled.right;
      } else {
        ++labelled.missed;
        ++counts_[static_cast<std::size_t>(predicted)].wrong;
      }
    });
  }

  std::string sums() const override {
    std::string bytes;
    for (const ClassCounts& c : counts_) bytes += bytes_of(c.right, c.wrong, c.missed);
    return bytes;
  }
  void add_sums(const std::string& sums) override {
    std::size_t at = 0;
    for (std::size_t i = 0; at < sums.size(); ++i) {
      if (i == counts_.size()) counts_.emplace_back();
      counts_[i].right += taken_from<std::int64_t>(sums, at);
      counts_[i].wrong += taken_from<std::int64_t>(sums, at);
      counts_[i].missed += taken_from<std::int64_t>(sums, at);
    }
  }

  double value() override {
    if (average_ == Average::binary) return counts_.size() < 2 ? 0 : ratio_(counts_[1]);
    ClassCounts all;
    double sum = 0;
    std::int64_t occurring = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      const ClassCounts& c = counts_[i];
      if (!counts(i)) continue;
      all.right += c.right;
      all.wrong += c.wrong;
      all.missed += c.missed;
      sum += ratio_(c);
      ++occurring;
    }
    if (average_ == Average::micro) return ratio_(all);
    return occurring == 0 ? 0 : sum / static_cast<double>(occurring);
  }

  MetricTable table() override {
    MetricTable table;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      table.names.push_back(std::to_string(i));
      table.numbers.push_back(counts(i) ? ratio_(counts_[i]) : no_number);
    }
    return table;
  }

  std::string unfit(const TensorType& values, const TensorType& labels) const override {
    const std::int64_t classes = decided_classes(values.shape, labels.shape, is_binary_);
    if (average_ == Average::binary && classes != 2)
      return "two classes, or `average` = \"macro\", \"micro\" or \"none\"";
    return "";
  }

 private:
  /// Whether a class is one of those that are averaged.
  bool counts(std::size_t i) const {
    const bool is_ignored = own_ignore_index_ && *own_ignore_index_ == static_cast<std::int64_t>(i);
    return counts_[i].occurs() && !is_ignored;
  }

  Average average_;
  std::optional<std::int64_t> own_ignore_index_;
  bool is_binary_;
  double (*ratio_)(const ClassCounts&);
  std::vector<ClassCounts> counts_;  // by class
};

}  // namespace

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

void AverageOptions::visit(KeyVisitor& v) {
  v.key("average", average,
        "binary: of class 1; macro: the mean over the classes that occur among labels or "
        "predictions; micro: of all decisions together; none: one number a class");
}

void RegionOptions::visit(KeyVisitor& v) {
  AverageOptions::visit(v);
  v.key("ignore_index", ignore_index, by_default("(that of the loss)"),
        "labels that do not count, nor does that class among the averaged ones");
}

bool is_by_class(const MetricConfig& metric) {
  return metric.options.as<AverageOptions>().average == Average::none;
}

std::string name_with_average(const MetricConfig& metric) {
  const Average average = metric.options.as<AverageOptions>().average;
  const bool is_usual = average == metric.kind->options.as<AverageOptions>().average;
  return std::string(metric.kind->name) + (is_usual ? "" : "_" + std::string(choice_name(average)));
}

std::unique_ptr<Metric> of_class_counts(const MetricConfig& metric, unsigned scores,
                                        double (*ratio)(const ClassCounts&)) {
  return std::make_unique<RatioOfCounts>(metric, (scores & binary_scores) != 0, ratio);
}

}  // namespace tandem::metrics
