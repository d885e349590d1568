// The keys of eval.metrics: short and long forms, names, what is refused, the page in docs/.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "engine/metrics/metric.h"
#include "engine/training/config/run_config.h"
#include "tests/harness/folders.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string head = "model = \"m.onnx\"\nsteps = 4\n[optimizer]\nkind = \"sgd\"\n";

RunConfig parse_eval(const std::string& eval, const std::string& more = "") {
  return parse_run_config(head + more + "[eval]\n" + eval + "\n", "/folder/train.toml");
}

std::vector<std::string> names_of_metrics(const std::string& metrics) {
  std::vector<std::string> names;
  for (const MetricConfig& metric : parse_eval("metrics = [ " + metrics + " ]").eval.metrics)
    names.push_back(metric.name);
  return names;
}

std::string refusal(const std::string& eval, const std::string& more = "") {
  try {
    parse_eval(eval, more);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
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

TEST(MetricKeysTest, RefusesWhatAKindDoesNotHave) {
  EXPECT_THAT(refusal("metrics = [ 'acuracy' ]"), AllOf(HasSubstr("eval.metrics.0: unknown value"),
                                                        HasSubstr("did you mean \"accuracy\"")));
  EXPECT_THAT(refusal("metrics = [ { kind = 'auc', k = 3 } ]"), HasSubstr("not an option of auc"));
  EXPECT_THAT(refusal("metrics = [ { kind = 'gauc' } ]"), HasSubstr("group: this key is missing"));
  EXPECT_THAT(refusal("metrics = [ { kind = 'top_k', k = 0 } ]"), HasSubstr("out of range"));
  EXPECT_THAT(refusal("metrics = [ { k = 3 } ]"), HasSubstr("kind: this key is missing"));
  EXPECT_THAT(refusal("metrics = [ { kind = 'f1', average = 'mean' } ]"),
              HasSubstr("unknown value"));
  EXPECT_THAT(refusal("metrics = [ 3 ]"), HasSubstr("wrong type"));
}

TEST(MetricKeysTest, NamesAreNotTakenTwice) {
  EXPECT_EQ(refusal("metrics = [ 'auc', 'auc' ]"), "no error");
  EXPECT_THAT(refusal("metrics = [ 'top_5', { kind = 'top_k' } ]"),
              HasSubstr("two metrics have the same name"));
  for (const char* name : {"step", "phase", "loss", ""}) {
    EXPECT_THAT(refusal(std::string("metrics = [ { kind = 'auc', name = '") + name + "' } ]"),
                HasSubstr("not a name for a metric"))
        << name;
  }
  EXPECT_THAT(refusal("metrics = [ { kind = 'loss', name = 'mean' } ]"),
              HasSubstr("not a name for a metric"));
}

TEST(MetricKeysTest, TermsOfTheLossHaveOtherNames) {
  const std::string first = "{ kind = 'mae', predictions = 'x', targets = 'y' }";
  const std::string second = "{ name = 'l2', kind = 'sum_of_squares', of = 'x' }";
  const auto told = [](const std::string& terms, const std::string& metrics) {
    return refusal("metrics = [ " + metrics + " ]", "[loss]\nterms = [ " + terms + " ]\n");
  };
  // metrics.jsonl has terms by their names where there are several.
  EXPECT_EQ(told(first, "'mae'"), "no error");
  EXPECT_EQ(told(first + ", " + second, "'mse'"), "no error");
  EXPECT_THAT(told(first + ", " + second, "'mse', 'mae'"),
              AllOf(HasSubstr("a metric and a term of the loss have the same name"),
                    HasSubstr("mae"), HasSubstr("give one of them another `name`")));
  EXPECT_EQ(told(first + ", " + second, "{ kind = 'mae', name = 'distance' }"), "no error");
}

TEST(MetricKeysTest, OnlyNumbersAreSliced) {
  EXPECT_THAT(refusal("metrics = [ { kind = 'confusion', by = 'x' } ]"),
              HasSubstr("many numbers already"));
  EXPECT_THAT(refusal("metrics = [ { kind = 'f1', average = 'none', by = 'x' } ]"),
              HasSubstr("many numbers already"));
  EXPECT_THAT(refusal("metrics = [ { kind = 'loss', by = 'x' } ]"),
              HasSubstr("of all samples together"));
  EXPECT_EQ(refusal("metrics = [ { kind = 'f1', average = 'macro', by = 'x' } ]"), "no error");
}

TEST(MetricKeysTest, SchedulesLookAtOneNumber) {
  const auto plateau = [](const std::string& metric, const std::string& metrics) {
    return refusal("every = '1 epoch'\nmetrics = [ " + metrics + " ]",
                   "[optimizer.schedule]\nkind = 'plateau'\nmetric = '" + metric + "'\n");
  };
  EXPECT_EQ(plateau("f1_macro", "{ kind = 'f1', average = 'macro' }"), "no error");
  EXPECT_EQ(plateau("loss", ""), "no error");
  EXPECT_THAT(plateau("f1", "{ kind = 'f1', average = 'macro' }"),
              AllOf(HasSubstr("not one of the metrics"), HasSubstr("f1_macro")));
  EXPECT_THAT(plateau("auc_by_x", "{ kind = 'auc', by = 'x' }"), HasSubstr("more than one number"));
  EXPECT_THAT(plateau("confusion", "'confusion'"), HasSubstr("more than one number"));
  EXPECT_THAT(plateau("calibration", "'calibration'"), HasSubstr("best near 1"));
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
