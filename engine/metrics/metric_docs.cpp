// The page of docs/ about metrics.
#include <fmt/format.h>

#include "engine/graph/text.h"
#include "engine/metrics/metric.h"

namespace tandem {
namespace {

constexpr std::string_view metrics_head = R"(# Metrics

Written by `make docs` from the list that also reads the configuration; do not edit. `eval.metrics` names them, or has tables with
a `kind` of these, the keys below it, and those of every metric: `name`, `by` ([train_toml.md](train_toml.md)).

- **Values and labels** are those of the first loss term that fits, without its weights. Labels that its `ignore_index` names do not count where
  a metric is about classes.
- **All samples** count, in one process or over ranks, in any order: sums do not round until the end, sorted scores are kept until then.
- **Decisions**: of losses of classes the first greatest score; of losses of yes and no a score above 0, and every element is one.

| kind | better | losses | value | keys | as |
|---|---|---|---|---|---|
)";

std::string better_text(Better better) {
  if (better == Better::neither) return "neither";
  return better == Better::larger ? "larger" : "smaller";
}

}  // namespace

std::string metrics_markdown() {
  std::string text(metrics_head);
  for (const MetricKind& kind : all_metrics()) {
    std::vector<std::string> keys;
    for (const KeyInfo& option : kind.options.keys())
      keys.push_back(fmt::format("`{}`: {}", option.path, option.fallback));
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", kind.name, better_text(kind.better),
                        kind.make == nullptr ? "all" : losses_with(kind.scores),
                        table_cell(kind.help), joined(keys, "; "), table_cell(kind.source));
  }
  return text;
}

}  // namespace tandem
