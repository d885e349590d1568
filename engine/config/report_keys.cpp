// The keys of [eval], [checkpoint] and [log]: what a run reports and keeps while it trains.
#include <algorithm>
#include <set>

#include "engine/config/keys/key_visitor.h"
#include "engine/config/kinds/metric_keys.h"
#include "engine/graph/text.h"
#include "engine/logs/metrics_log.h"

namespace tandem {
namespace {

void check_best(const TableReader& table, const EvalConfig& c) {
  if (!c.best.empty() && c.find(c.best) == nullptr) {
    table.report(table.find("best")->where, "best", "not one of the metrics",
                 joined(c.metrics, ", ", &MetricConfig::name), c.best,
                 std::string("add it: eval.metrics = [ ") + (c.metrics.empty() ? "" : "…, ") +
                     "\"" + c.best + "\" ]");
  }
  if (c.patience > 0 && c.best.empty())
    table.report(table.find("patience")->where, "patience", "patience needs `eval.best`");
}

void check_log(const TableReader& table, const LogConfig& c) {
  const std::set<std::string> also(c.also.begin(), c.also.end());
  if (also.size() < c.also.size())
    table.report(table.find("also")->where, "also", "a format is named twice");
  const auto takes_histograms = [](const std::string& name) {
    const LogFormat* const format = find_log_format(name);
    return format != nullptr && format->takes_histograms;
  };
  if (!c.histograms.empty() && std::none_of(also.begin(), also.end(), takes_histograms)) {
    table.report(table.find("histograms")->where, "histograms",
                 "no format of `log.also` can hold histograms", "", "",
                 "log.also = [\"tensorboard\"]");
  }
  if (!c.histograms_every) return;
  const Where& where = table.find("histograms_every")->where;
  if (c.histograms.empty())
    table.report(where, "histograms_every", "this key needs `log.histograms`");
  // Ranks of a run would have to agree on a clock.
  if (c.histograms_every->unit == Duration::Unit::seconds)
    table.report(where, "histograms_every", "a time", "\"500 steps\" or \"1 epoch\"");
}

}  // namespace

void visit(KeyVisitor& v, EvalConfig& c) {
  v.key("every", c.every, by_default("(after the last step only)"), "how often");
  visit_metrics(v, c.metrics);
  v.key(
      "best", text_or_none(c.best),
      "the name of the metric whose best checkpoint is kept as `best`; it must be a single number");
  v.key("patience", c.patience, at_least(0),
        "stop after this number of evaluations without a better `best`; 0: never");
  v.key("weights", c.weights,
        "what is evaluated, and so decides about `best`: the trained weights, or an average of "
        "them (optimizer.ema, optimizer.swa)");
  v.when_read([&](const TableReader& table) { check_best(table, c); });
}

void visit(KeyVisitor& v, CheckpointConfig& c) {
  v.key("every", c.every, by_default("\"30 min\""), "how often");
  v.key("keep", c.keep, at_least(0), "how many of the newest are kept, besides the best; 0: all");
  v.key("shard_mib", c.shard_mib, between(1, 1 << 20),
        "larger tensors are divided by rows into files of about this many MiB");
}

void visit(KeyVisitor& v, LogConfig& c) {
  v.key("every", c.every, "how often");
  v.key("norms", c.norms, parts("[]", selector_value, "which parameters"),
        "parameters whose gradients' and updates' norms metrics.jsonl gets");
  static const std::string formats = names_in(all_log_formats());
  v.key("also", c.also, parts("[]", string_value, one_of(formats), "a format"),
        "other formats of what metrics.jsonl says: metrics.csv, event files for TensorBoard");
  v.key("histograms", c.histograms, parts("[]", selector_value, "which parameters"),
        "parameters of whose values the formats that can hold them get histograms");
  v.key("histograms_every", c.histograms_every, by_default("(with each checkpoint)"),
        "how often, in steps or epochs");
  v.when_read([&](const TableReader& table) { check_log(table, c); });
}

}  // namespace tandem
