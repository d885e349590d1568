#include "engine/train/evaluation/evaluated_metrics.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "engine/graph/error.h"
#include "engine/metrics/sliced_metric.h"
#include "engine/train/evaluation/metric_fields.h"

namespace tandem {
namespace {

const LossTerm* term_for(const RunConfig& config, const MetricKind& metric) {
  for (const LossTerm& term : config.loss.terms) {
    if (metric.fits(*term.kind) && !names_teacher(term.labels)) return &term;
  }
  return nullptr;
}

/// Why labels of a field have no such metric; "" where they have. Reads only as many labels as it
/// needs.
std::string undefined_reason(const EvaluatedMetric& metric, const DataSource& source) {
  const int labels_field = source.find_field(metric.term->labels);
  if (labels_field < 0 || !metric.config->by.empty()) return "";  // a slice may lack it
  const std::unique_ptr<Metric> any = metric.make();
  LabelSummary labels;
  std::string reason;
  std::vector<std::int64_t> samples, groups;
  each_piece(source, [&](std::int64_t first, std::int64_t count) {
    samples.resize(static_cast<std::size_t>(count));
    std::iota(samples.begin(), samples.end(), first);
    TensorType type = source.fields()[static_cast<std::size_t>(labels_field)].sample;
    type.shape.insert(type.shape.begin(), count);
    HostTensor values(std::move(type));
    source.fill(labels_field, samples, nullptr, values.data());
    if (metric.group_field >= 0) groups = field_values(source, metric.group_field, first, count);
    labels.add(values, groups);
    reason = any->undefined(labels);
    return !reason.empty();
  });
  return reason;
}

Diagnostic no_such_metric(const EvaluatedMetric& metric, const std::string& reason) {
  const std::string& name = metric.config->name;
  Diagnostic d;
  d.path = "eval";
  d.message = "eval.metrics: the held-out data has no " + name;
  d.expected = metric.config->kind->labels;
  d.got = reason + " (field " + metric.term->labels + ")";
  d.fix = "evaluate on other data, or leave \"" + name + "\" out";
  return d;
}

Diagnostic of_file(const RunConfig& config, std::string message) {
  Diagnostic d;
  d.file = config.file;
  d.message = std::move(message);
  return d;
}

/// eval.best wants a number that is better at one end.
void check_best_metric(const RunConfig& config, std::vector<Diagnostic>& problems) {
  const MetricConfig* const best = config.eval.find(config.eval.best);
  if (best == nullptr) return;
  const std::string head = "eval.best: \"" + config.eval.best + "\" ";
  if (!is_one_number(*best)) {
    Diagnostic d = of_file(config, head + "is more than one number");
    d.expected = "a metric that is one number";
    d.got = config.eval.best;
    d.fix = "choose another one, or have it in eval.metrics once more without `by`";
    problems.push_back(std::move(d));
  } else if (best->kind->better == Better::neither) {
    Diagnostic d = of_file(config, head + "is best near 1, not at an end");
    d.expected = "a metric that is better the larger or the smaller it is";
    d.got = config.eval.best;
    d.fix = "choose another one, such as log_loss";
    problems.push_back(std::move(d));
  }
}

/// Metrics that cannot be computed from this configuration: Error{usage}, all at once.
void check_metrics(const RunConfig& config) {
  std::vector<Diagnostic> problems;
  for (const MetricConfig& metric : config.eval.metrics) {
    if (metric.kind->make == nullptr || term_for(config, *metric.kind) != nullptr) continue;
    Diagnostic d = of_file(config, "eval.metrics: \"" + metric.name +
                                       "\" needs a loss term that names logits and labels");
    d.expected = "a term of kind " + losses_with(metric.kind->scores);
    d.got = config.loss.terms.empty() ? "no [loss] terms" : "none";
    d.fix = "give the loss in [loss] terms";
    problems.push_back(std::move(d));
  }
  check_best_metric(config, problems);
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

/// Replaces numbers by words; leaves them where a word would be the name of two.
void name_by_words(MetricTable& table, const std::vector<std::string>& words) {
  std::vector<std::string> names = table.names;
  for (std::string& name : names) {
    const std::string* const word = word_of(words, std::stoll(name));
    if (word != nullptr) name = *word;
  }
  if (std::set(names.begin(), names.end()).size() == names.size()) table.names = std::move(names);
}

}  // namespace

std::unique_ptr<Metric> EvaluatedMetric::make() const {
  const auto one = [this] { return config->kind->make(*config, term->kind->scores); };
  if (slice_field < 0) return one();
  return std::make_unique<SlicedMetric>(slices, one);
}

std::vector<EvaluatedMetric> evaluated_metrics(const RunConfig& config, const DataSource& source,
                                               const FieldWords& words) {
  check_metrics(config);
  std::vector<EvaluatedMetric> all;
  for (const MetricConfig& metric : config.eval.metrics) {
    const bool again = std::any_of(all.begin(), all.end(), [&](const EvaluatedMetric& other) {
      return other.config->name == metric.name;
    });
    if (metric.kind->make == nullptr || again) continue;
    EvaluatedMetric one{&metric, term_for(config, *metric.kind)};
    const std::string groups = group_field(metric);
    if (!groups.empty()) one.group_field = metric_field(source, groups, metric.name);
    if (!metric.by.empty()) {
      one.slice_field = metric_field(source, metric.by, metric.name);
      one.slices = slice_values(source, one.slice_field, most_slices, metric.name);
    }
    const auto found = words.find(metric.by.empty() ? one.term->labels : metric.by);
    if (found != words.end()) one.words = found->second;
    all.push_back(std::move(one));
  }
  std::vector<Diagnostic> problems;
  for (const EvaluatedMetric& metric : all) {
    const std::string reason = undefined_reason(metric, source);
    if (!reason.empty()) problems.push_back(no_such_metric(metric, reason));
  }
  if (!problems.empty()) throw Error(ErrorKind::data, std::move(problems));
  return all;
}

void check_types(const EvaluatedMetric& metric, const TensorType& values, const TensorType& labels,
                 const std::string& file) {
  const std::string expected = metric.make()->unfit(values, labels);
  if (expected.empty()) return;
  Diagnostic d;
  d.file = file;
  d.message = "eval.metrics: \"" + metric.config->name + "\" does not fit \"" +
              metric.term->values[0] + "\" and \"" + metric.term->labels + "\"";
  d.expected = expected;
  d.got = to_string(values) + " and " + to_string(labels);
  d.fix = "change the metric's keys, or leave it out";
  throw Error(ErrorKind::usage, std::move(d));
}

void MetricSums::start(const std::vector<EvaluatedMetric>& all) {
  of = &all;
  metrics.clear();
  for (const EvaluatedMetric& metric : all) metrics.push_back(metric.make());
}

std::string MetricSums::text() const {
  std::string text;
  for (const std::unique_ptr<Metric>& metric : metrics) {
    const std::string sums = metric->sums();
    const std::uint64_t bytes = sums.size();
    text.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
    text += sums;
  }
  return text;
}

void MetricSums::add(const std::string& text) {
  std::size_t at = 0;
  for (const std::unique_ptr<Metric>& metric : metrics) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, text.data() + at, sizeof bytes);
    at += sizeof bytes;
    metric->add_sums(text.substr(at, static_cast<std::size_t>(bytes)));
    at += static_cast<std::size_t>(bytes);
  }
}

std::vector<std::pair<std::string, double>> MetricSums::values() const {
  std::vector<std::pair<std::string, double>> values;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    const MetricConfig& config = *(*of)[i].config;
    if (is_one_number(config)) values.emplace_back(config.name, metrics[i]->value());
  }
  return values;
}

std::vector<MetricTable> MetricSums::tables() const {
  std::vector<MetricTable> tables;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    const MetricConfig& config = *(*of)[i].config;
    if (is_one_number(config)) continue;
    tables.push_back(metrics[i]->table());
    tables.back().metric = config.name;
    name_by_words(tables.back(), (*of)[i].words);
  }
  return tables;
}

}  // namespace tandem
