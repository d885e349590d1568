// The keys of eval.metrics, which follow from the list of metrics.
#include "engine/config/kinds/metric_keys.h"

#include <algorithm>

#include "engine/config/keys/key_visitor.h"
#include "engine/graph/text.h"
#include "engine/logs/log_members.h"
#include "engine/metrics/metric.h"

namespace tandem {

std::string MetricConfig::default_name() const {
  const std::string text =
      kind->default_name != nullptr ? kind->default_name(*this) : std::string(kind->name);
  return by.empty() ? text : text + "_by_" + by;
}

std::vector<std::string> MetricConfig::fields() const {
  std::vector<std::string> fields;
  for (const std::string& field : {by, group_field(*this)}) {
    if (!field.empty()) fields.push_back(field);
  }
  return fields;
}

const MetricConfig* EvalConfig::find(std::string_view metric) const {
  return find_named(metrics, metric);
}

namespace {

/// Once all keys of a metric are read.
void check_metric(const TableReader& table, MetricConfig& metric) {
  const ConfigValue* const name = table.valid("name");
  if (name == nullptr) metric.name = metric.default_name();
  const auto report = [&](std::string message, std::string fix) {
    table.report(name ? name->where : table.where(), "name", std::move(message), "", metric.name,
                 std::move(fix));
  };
  const bool is_taken = metric.name.empty() ||
                        (metric.name == "loss") != (metric.kind->name == "loss") ||
                        is_log_member(metric.name);
  if (is_taken) report("not a name for a metric", "choose another one");
  const MetricKind& kind = *metric.kind;
  if (metric.by.empty()) return;
  if (kind.make == nullptr || (kind.is_table != nullptr && kind.is_table(metric))) {
    table.report(table.find("by")->where, "by",
                 kind.make == nullptr ? "the loss is of all samples together"
                                      : "this metric has many numbers already",
                 "a metric that is one number", metric.name, "leave `by` out");
  }
}

void visit_metric(KeyVisitor& v, MetricConfig& metric) {
  const std::string names = names_in(all_metrics());
  const auto chosen = [&metric] {
    return static_cast<std::size_t>(metric.kind - &all_metrics()[0]);
  };
  const auto choose = [&metric](std::size_t kind) {
    metric.kind = &all_metrics()[kind];
    metric.options = metric.kind->options;
  };
  v.place(metric.where);
  v.key("kind", word(names, chosen, choose), required, "the formula, in docs/metrics.md");
  v.key("name", metric.name, by_default("(the kind, with what distinguishes it from others)"),
        written_if(metric.kind != nullptr && metric.name != metric.default_name()),
        "its name in metrics.jsonl, eval.best and schedules");
  v.key("by", text_or_none(metric.by),
        "data field with an integer for each sample: one value of the metric for each value of the "
        "field, of which there may be 1000");
  KindList kinds{.names = names, .visit = [&metric](KeyVisitor& inside, std::size_t kind) {
                   AnyOptions others = all_metrics()[kind].options;
                   const bool is_own = metric.kind == &all_metrics()[kind];
                   (is_own ? metric.options : others).visit(inside);
                 }};
  if (metric.kind != nullptr) kinds.chosen = chosen();
  kinds.tell = kinds.visit;
  v.of_kind(kinds);
  v.when_read([&](const TableReader& table) {
    if (metric.kind != nullptr) check_metric(table, metric);
  });
}

void check_names(const TableReader& table, const std::vector<MetricConfig>& metrics) {
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    for (std::size_t before = 0; before < i; ++before) {
      if (metrics[before].name != metrics[i].name || metrics[before] == metrics[i]) continue;
      table.report(metrics[i].where, "metrics." + std::to_string(i) + ".name",
                   "two metrics have the same name", "", metrics[i].name,
                   "give one of them a `name`");
    }
  }
}

}  // namespace

void visit_metrics(KeyVisitor& v, std::vector<MetricConfig>& metrics) {
  v.tables("metrics", metrics, "a metric by its kind, or a table with the keys below", visit_metric,
           or_only("kind", string_value), "what is measured");
  v.when_read([&](const TableReader& table) { check_names(table, metrics); });
}

}  // namespace tandem
