// The keys of [eval], [checkpoint] and [log]: what a run tells and keeps while it goes on.
#include "engine/graph/text.h"
#include "engine/training/config/key_visitor.h"
#include "engine/training/config/kinds/metric_keys.h"

namespace tandem {
namespace {

void check_best(const TableReader& table, const EvalConfig& c) {
  if (!c.best.empty() && c.find(c.best) == nullptr) {
    table.report(table.find("best")->where, "best", "not one of the metrics",
                 joined(c.metrics, ", ", &MetricConfig::name), c.best, "add it to `eval.metrics`");
  }
  if (c.patience > 0 && c.best.empty())
    table.report(table.find("patience")->where, "patience", "patience needs `eval.best`");
}

}  // namespace

void visit(KeyVisitor& v, EvalConfig& c) {
  v.key("every", c.every, by_default("(after the last step only)"), "how often");
  visit_metrics(v, c.metrics);
  v.key("best", text_or_none(c.best),
        "the name of the metric whose best checkpoint is kept as `best`; one that is one number");
  v.key("patience", c.patience, at_least(0),
        "stop after so many evaluations without a better `best`; 0: never");
  v.key("weights", c.weights,
        "what is evaluated, and so decides about `best`: the trained weights, or an average of "
        "them (optimizer.ema, optimizer.swa)");
  v.when_read([&](const TableReader& table) { check_best(table, c); });
}

void visit(KeyVisitor& v, CheckpointConfig& c) {
  v.key("every", c.every, by_default("\"30 min\""), "how often");
  v.key("keep", c.keep, at_least(0), "how many of the newest are kept, besides the best; 0: all");
  v.key("shard_mib", c.shard_mib, between(1, 1 << 20),
        "larger tensors go into files of about so many MiB, by ranges of rows");
}

void visit(KeyVisitor& v, LogConfig& c) {
  v.key("every", c.every, "how often");
  v.key("norms", c.norms, parts("[]", selector_value, "which parameters"),
        "parameters whose gradients' and updates' norms metrics.jsonl gets");
  v.later_key("also", list_value, "other formats of the metrics");
}

}  // namespace tandem
