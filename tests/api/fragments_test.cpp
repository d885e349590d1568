// Fragments of HTML for notebooks: well formed, with the numbers, and hostile names as plain text.
#include "api/program/fragments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/api/digits.h"
#include "tests/api/html_check.h"

namespace tandem::api {
namespace {

using tandem::testing::html_mistake;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string hostile =
    "</td></style><script>alert(1)</script><img src=x onerror=\"alert('2')\">&\x01\xff";

/// The fragment, which is checked.
std::string checked(const std::string& fragment) {
  EXPECT_THAT(fragment, StartsWith("<div class=\"tandem\"><style>"));
  EXPECT_EQ(html_mistake("<!DOCTYPE html>" + fragment), "");
  EXPECT_THAT(fragment, Not(HasSubstr("<script")));
  EXPECT_THAT(fragment, Not(HasSubstr("<img")));
  return fragment;
}

const std::string escaped = "&lt;script&gt;alert(1)&lt;/script&gt;";

TEST(Fragments, APlanHasItsDevicesCopiesAndRemedies) {
  Plan plan;
  plan.fits = false;
  plan.seconds = 0.0125;
  plan.ranks = 2;
  plan.devices = {
      {.name = "cpu", .use = "cpu", .peak = 3 << 20, .is_limited = false},
      {.name = hostile, .use = hostile, .peak = 5 << 20, .peak_at = hostile, .limit = 4 << 20}};
  plan.copies = {{.value = "small", .from = "cpu", .to = "gpu", .bytes = 16},
                 {.value = hostile, .from = hostile, .to = hostile, .bytes = 2048},
                 {.value = "loss", .from = "gpu", .to = "cpu", .bytes = 4, .is_scalar = true}};
  plan.traffic = {.copies = 2, .bytes = 2064};
  plan.exchanges = {{.op = hostile, .path = hostile, .device = hostile, .algorithm = hostile}};
  plan.hints = {{.kind = Plan::Hint::Kind::view,
                 .message = hostile,
                 .fix = hostile,
                 .file = hostile,
                 .line = 3}};
  plan.misfits = {{.message = "too much", .path = hostile, .expected = "4 MiB"}};
  plan.remedies = {
      {.rule = {}, .text = hostile, .freed = 1 << 20, .suffices = true, .seconds = 0.25}};
  plan.notes = {hostile};
  const std::string html = checked(plan_html(plan));
  for (const char* text :
       {"Does not fit.", "12.5 ms a step", "5.0 MiB", "2 copies between devices", "2.0 KiB", "250"})
    EXPECT_THAT(html, HasSubstr(text));
  EXPECT_LT(html.find("2.0 KiB"), html.find("16 B"));  // the largest first
  EXPECT_THAT(html, Not(HasSubstr(">loss<")));
  std::size_t places = 0;
  for (std::size_t at = html.find(escaped); at != std::string::npos;
       at = html.find(escaped, at + 1))
    ++places;
  EXPECT_EQ(places, 16u);
  plan = {};
  plan.devices = {{.name = "cpu"}};
  EXPECT_THAT(checked(plan_html(plan)), HasSubstr("<b>Fits.</b>"));
}

TEST(Fragments, PlansAndExplanationsOfTheDigits) {
  PolicyOptions options;
  options.config = tandem::testing::digits + "train.toml";
  options.policy = tandem::testing::digits + "policy.toml";
  const Plan plan = policy_plan(options);
  const std::string of_plan = checked(plan_html(plan));
  EXPECT_THAT(of_plan, HasSubstr("emulated:0"));
  EXPECT_THAT(of_plan, HasSubstr(">gpu → cpu<"));
  const std::string of_weight = checked(explanation_html(policy_explain(options, "fc1:weight")));
  EXPECT_THAT(of_weight, HasSubstr("<td>param</td><td>cpu</td>"));
  EXPECT_THAT(of_weight, HasSubstr("policy.toml:8"));
  EXPECT_THAT(of_weight, HasSubstr("In a step"));
  const std::string of_selector = checked(explanation_html(policy_explain(options, "conv*.**")));
  EXPECT_THAT(of_selector, HasSubstr("Which are"));
  EXPECT_THAT(of_selector, HasSubstr("<td>run</td><td>gpu</td>"));
}

TEST(Fragments, ASearchHasItsRulesAndWhatItCompared) {
  Report found;
  found.json = R"({"auto": ["{ at = \"**\", on = \"gpu\" }", "</code><script>alert(1)</script>"],
    "before": null, "after": {"step_ms": 1.5, "transfer_bytes": 4096, "fits": true,
    "devices": {"</td><script>alert(1)</script>": {"peak": 1024, "limit": null}}},
    "baselines": [{"name": "everything on <b>gpu</b>", "step_ms": 2, "transfer_bytes": 0, "devices": {}, "fits": false}],
    "plans": 1234})";
  const std::string html = checked(found_policy_html(found));
  for (const char* text : {"{ at = &quot;**&quot;, on = &quot;gpu&quot; }", "1.0 KiB", "4.0 KiB",
                           "everything on &lt;b&gt;gpu&lt;/b&gt;", "1,234 placements"})
    EXPECT_THAT(html, HasSubstr(text));
  EXPECT_THAT(html, Not(HasSubstr("as it was")));
  found.json = "broken";
  checked(found_policy_html(found));
}

TEST(Fragments, MetricsAreTablesBarsAndMatrices) {
  EvaluationReport report;
  report.json = R"({"run": "runs/<b>", "samples": 360, "metrics": {"loss": 0.125, "<i>": "nan",
    "f1": {"cat</th>": 0.5, "dog": "nan"}, "confusion": [[8, 2], [0, 5]],
    "words": {"classes": ["<a>", "b"], "rows": [[1, 0], [0, 3]]}}})";
  const std::string html = checked(evaluation_html(report));
  for (const char* text : {"runs/&lt;b&gt;", "360 samples", "<td class=\"number\">0.125</td>",
                           "&lt;i&gt;", "cat&lt;/th&gt;", "--part:0.800", "&lt;a&gt;"})
    EXPECT_THAT(html, HasSubstr(text));
  report.json = "";
  checked(evaluation_html(report));

  const MetricTable table{
      .metric = hostile, .names = {hostile, "b"}, .numbers = {1, 0, 0, 3}, .is_matrix = true};
  EXPECT_THAT(checked(metric_table_html(table)), HasSubstr(escaped));
  TrainResult result;
  result.run_dir = hostile;
  result.loss = std::nan("");
  result.evaluation = {{hostile, 0.75}};
  result.best_metric = hostile;
  result.best_value = 0.875;
  result.best_step = 40;
  result.tables = {table};
  const std::string of_run = checked(train_result_html(result));
  EXPECT_THAT(of_run, HasSubstr("0.875"));
  EXPECT_THAT(of_run, HasSubstr("at step 40"));
  EXPECT_THAT(of_run, Not(HasSubstr("loss of the last step")));
}

}  // namespace
}  // namespace tandem::api
