// The keys of eval.metrics: short and long forms, names, the page in docs/. What is refused:
// tests/expected/config/metrics.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "engine/config/run_config.h"
#include "engine/formats/files.h"
#include "engine/metrics/metric.h"
#include "tests/harness/folders.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

const std::string head = "model = \"m.onnx\"\nsteps = 4\n[optimizer]\nkind = \"sgd\"\n";

RunConfig parse_eval(const std::string& eval) {
  return parse_run_config(head + "[eval]\n" + eval + "\n", "/folder/train.toml");
}

std::vector<std::string> names_of_metrics(const std::string& metrics) {
  std::vector<std::string> names;
  for (const MetricConfig& metric : parse_eval("metrics = [ " + metrics + " ]").eval.metrics)
    names.push_back(metric.name);
  return names;
}

TEST(MetricKeysTest, WordsAreShortForTables) {
  const RunConfig config = parse_eval("metrics = [ 'accuracy', { kind = 'top_k', k = 3 } ]");
  ASSERT_EQ(config.eval.metrics.size(), 2u);
  EXPECT_EQ(config.eval.metrics[0].kind, find_metric("accuracy"));
  EXPECT_EQ(config.eval.metrics[1].kind, find_metric("top_k"));
  EXPECT_EQ(parse_eval("metrics = [ { kind = 'accuracy' }, { kind = 'top_k', k = 3 } ]"), config);
  EXPECT_EQ(parse_run_config(to_toml(config), "/other/train.toml"), config) << to_toml(config);
}

TEST(MetricKeysTest, NamesTellThemApart) {
  EXPECT_THAT(names_of_metrics("'auc', 'top_5', { kind = 'top_k', k = 3 }, 'f1'"),
              ElementsAre("auc", "top_5", "top_3", "f1"));
  EXPECT_THAT(names_of_metrics("{ kind = 'f1', average = 'macro' }, { kind = 'iou' }, "
                               "{ kind = 'iou', average = 'none' }, { kind = 'f1', by = 'country', "
                               "average = 'micro' }, { kind = 'auc', name = 'area' }"),
              ElementsAre("f1_macro", "iou", "iou_none", "f1_micro_by_country", "area"));
}

TEST(MetricKeysTest, DefaultsAndOptionsSurviveTheResolvedFile) {
  for (const MetricKind& kind : all_metrics()) {
    std::string keys = "kind = '" + std::string(kind.name) + "'";
    std::string options;
    for (const KeyInfo& option : kind.options.keys()) {
      const bool is_text = (option.type & string_value) != 0;
      const std::string set = ", " + std::string(option.path) + " = " + (is_text ? "'micro'" : "7");
      (option.fallback == "required" ? keys : options) += set;
    }
    for (const std::string& more : {std::string(), options}) {
      const RunConfig config = parse_eval("metrics = [ { " + keys + more + " } ]");
      const std::string resolved = to_toml(config);
      EXPECT_EQ(parse_run_config(resolved, "/other/train.toml"), config) << resolved;
      const MetricConfig& metric = config.eval.metrics[0];
      EXPECT_EQ(metric.kind, &kind);
      for (const KeyInfo& option : kind.options.keys()) {
        const bool has_default = !option.fallback.starts_with('(');
        const bool is_written =
            resolved.find(", " + std::string(option.path) + " = ") != std::string::npos;
        EXPECT_EQ(is_written, has_default || !more.empty()) << kind.name << " " << option.path;
      }
      if (more.empty() && kind.group == nullptr) {
        EXPECT_EQ(metric, metric_of(kind.name));
      }
    }
  }
}

TEST(MetricKeysTest, WhatIsBetterFollowsFromTheName) {
  const EvalConfig eval = parse_eval("metrics = [ { kind = 'auc', name = 'area' }, 'rmse' ]").eval;
  EXPECT_EQ(better_of(eval.metrics, "area"), Better::larger);
  EXPECT_EQ(better_of(eval.metrics, "rmse"), Better::smaller);
  EXPECT_EQ(better_of(eval.metrics, "loss"), Better::smaller);
  EXPECT_EQ(eval.find("auc"), nullptr);
  EXPECT_EQ(eval.find("area"), &eval.metrics[0]);
}

TEST(MetricKeysTest, EachNameIsThereOnce) {
  std::set<std::string_view> names;
  for (const MetricKind& kind : all_metrics()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
    EXPECT_FALSE(kind.help.empty() || kind.source.empty()) << kind.name;
  }
  EXPECT_EQ(find_metric("precison"), nullptr);
}

// TANDEM_METRICS_PAGE=docs/metrics.md writes the page instead.
TEST(ListOfMetrics, ThePageInDocsIsCurrent) {
  if (const char* page = std::getenv("TANDEM_METRICS_PAGE")) write_file(page, metrics_markdown());
  EXPECT_EQ(read_file(source_folder() + "/docs/metrics.md"), metrics_markdown());
}

}  // namespace
}  // namespace tandem
