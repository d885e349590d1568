// Metrics that follow from how often each class is predicted rightly, wrongly, and missed.
#pragma once

#include "engine/metrics/metric.h"

namespace tandem::metrics {

/// Counts for one class, or for all classes together.
struct ClassCounts {
  std::int64_t right = 0;   // labelled and predicted so
  std::int64_t wrong = 0;   // predicted so, labelled otherwise
  std::int64_t missed = 0;  // labelled so, predicted otherwise

  bool occurs() const { return right + wrong + missed > 0; }
};

/// part / whole, and 0 where nothing is divided by nothing.
double share(std::int64_t part, std::int64_t whole);

/// How the classes become one number, or none of them does.
enum class Average : std::uint8_t { binary, macro, micro, none };

struct AverageOptions : KindOptions {
  Average average = Average::binary;
  void visit(KeyVisitor& v) override;
};
/// Those of segmentation.
struct RegionOptions final : AverageOptions {
  std::optional<std::int64_t> ignore_index;  // unset: that of the loss
  RegionOptions() { average = Average::macro; }
  void visit(KeyVisitor& v) override;
};

/// Whether `average` asks for a number for each class.
bool is_by_class(const MetricConfig& metric);
/// The kind's, with the average if that is not the kind's default: "f1_macro".
std::string name_with_average(const MetricConfig& metric);
/// Makes the metric `ratio` of the counts of classes, averaged as the options say.
std::unique_ptr<Metric> of_class_counts(const MetricConfig& metric, unsigned scores,
                                        double (*ratio)(const ClassCounts&));

/// `MetricKind::make`
template <double (*ratio)(const ClassCounts&)>
std::unique_ptr<Metric> make_of_counts(const MetricConfig& metric, unsigned scores) {
  return of_class_counts(metric, scores, ratio);
}

}  // namespace tandem::metrics

template <>
inline constexpr std::string_view tandem::names_of<tandem::metrics::Average> =
    "binary|macro|micro|none";
