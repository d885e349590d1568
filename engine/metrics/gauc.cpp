// AUC within groups (Zhu et al. 2017, arXiv:1706.06978), such as the impressions of one user.
#include <algorithm>
#include <cmath>

#include "engine/config/keys/key_visitor.h"
#include "engine/metrics/metric_sums.h"
#include "engine/metrics/sorted_scores.h"

namespace tandem::metrics {
namespace {

struct GroupOptions final : KindOptions {
  std::string group;
  void visit(KeyVisitor& v) override {
    v.key("group", group, required, "data field with an integer for each sample");
  }
};

/// Keeps 16 bytes an element until the end.
class GroupedArea final : public Metric {
 public:
  void add(const MetricInput& input) override {
    const std::int64_t elements = input.values.type().elements();
    const auto samples = static_cast<std::int64_t>(input.groups.size());
    assert(samples > 0 && elements % samples == 0);
    std::int64_t i = 0;
    each_element(input, [&](double logit, double label) {
      nan_ = nan_ || std::isnan(logit);
      const std::int64_t group = input.groups[static_cast<std::size_t>(i++ / (elements / samples))];
      all_.push_back({group, ranked(logit, label > 0.5)});
    });
  }
  std::string sums() const override {
    return bytes_of(nan_) + std::string(reinterpret_cast<const char*>(all_.data()),
                                        all_.size() * sizeof(GroupedScore));
  }
  void add_sums(const std::string& sums) override {
    std::size_t at = 0;
    nan_ = taken_from<bool>(sums, at) || nan_;
    while (at < sums.size()) all_.push_back(taken_from<GroupedScore>(sums, at));
  }
  double value() override {
    if (nan_) return no_number;
    std::sort(all_.begin(), all_.end());
    double sum = 0, counted = 0;
    std::vector<std::uint64_t> scores;
    for (std::size_t i = 0; i < all_.size();) {
      scores.clear();
      const std::int64_t group = all_[i].group;
      for (; i < all_.size() && all_[i].group == group; ++i) scores.push_back(all_[i].score);
      const double area = roc_area(scores);
      if (std::isnan(area)) continue;
      sum += static_cast<double>(scores.size()) * area;
      counted += static_cast<double>(scores.size());
    }
    return counted == 0 ? no_number : sum / counted;
  }
  std::string undefined(const LabelSummary& labels) const override {
    return labels.has_mixed_group ? "" : "no group has labels of both classes";
  }

 private:
  struct GroupedScore {
    std::int64_t group;
    std::uint64_t score;
    auto operator<=>(const GroupedScore&) const = default;
  };
  std::vector<GroupedScore> all_;
  bool nan_ = false;
};

const std::string& group_of(const MetricConfig& metric) {
  return metric.options.as<GroupOptions>().group;
}

}  // namespace

MetricKind gauc() {
  return {.name = "gauc",
          .source = "Zhu et al. 2017, arXiv:1706.06978",
          .help =
              "the mean of the groups' auc, each weighted by its samples; groups without both "
              "classes are left out",
          .options = GroupOptions{},
          .better = Better::larger,
          .scores = binary_scores,
          .labels = "a group with labels of both classes",
          .group = group_of,
          .make = plain<GroupedArea>};
}

}  // namespace tandem::metrics
