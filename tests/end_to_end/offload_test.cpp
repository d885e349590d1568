// A GPT whose optimizer state does not fit the accelerator: the error names the numbers and the
// rule that helps. With that rule it trains, and its losses are those of a device without a limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "api/model/engine.h"
#include "include/tandem/error.h"
#include "placement/quantities.h"
#include "tests/end_to_end/parity_support.h"
#include "tests/harness/program.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using tandem::testing::Ended;
using tandem::testing::run_program;
using namespace testing;
using ::testing::HasSubstr;

constexpr int offload_steps = 10;

/// Runs the program and captures both of its output streams.
Ended run(const std::string& arguments) { return run_program(arguments + " 2>&1"); }

class OffloadTest : public ::testing::TestWithParam<const char*> {
 protected:
  OffloadTest() {
    const Json fixture = read_fixture("gpt");
    const auto quoted = [](const std::string& text) { return Json(text).dump(); };
    const std::string model = fixture["files"]["logits"]["torchscript"],
                      batches = fixture["batches"];
    std::ofstream(folder_ / "train.toml")
        << "model = " << quoted(parity_folder() + model) << "\npolicy = \"policy.toml\"\n"
        << "batch_size = " << fixture["batch"] << "\nsteps = " << offload_steps << "\n[loss]\n"
        << R"(terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits",)"
        << " labels = \"labels\" } ]\n[optimizer]\nkind = \"" << GetParam() << "\"\nlr = 0.003\n"
        << "[data]\nkind = \"npz\"\n[data.train]\nfiles = [ " << quoted(parity_folder() + batches)
        << " ]\n[log]\nevery = \"1 step\"\n";
    write_policy({});
  }

  void write_policy(const std::vector<std::string>& rules) {
    std::ofstream file(folder_ / "policy.toml");
    file << "policy = 1\nrules = [\n  { at = \"**\", on = \"gpu\" },\n";
    for (const std::string& rule : rules) file << "  " << rule << ",\n";
    file << "]\n";
  }

  static std::string device(std::size_t limit) {
    return "gpu=emulated:0" + (limit > 0 ? ",memory=" + std::to_string(limit) + "B" : "");
  }

  /// The accelerator's memory in the plan.
  Json memory(std::size_t limit = 0) {
    api::PolicyOptions options;
    options.config = folder_ / "train.toml";
    options.devices = {device(limit)};
    const api::Plan plan = api::policy_plan(options);
    Json memory = Json::parse(plan.json)["devices"]["gpu"];
    memory["fits"] = plan.fits;
    return memory;
  }

  std::vector<double> losses(std::size_t limit) {
    api::TrainOptions options;
    options.devices = {device(limit)};
    options.run_dir = folder_ / ("run" + std::to_string(limit));
    api::Trainer(folder_ / "train.toml", options).run();
    std::ifstream file(options.run_dir + "/metrics.jsonl");
    std::vector<double> losses;
    for (std::string line; std::getline(file, line);) losses.push_back(Json::parse(line)["loss"]);
    return losses;
  }

  TemporaryFolder folder_;
};

TEST_P(OffloadTest, StateOnTheHostMakesRoom) {
  const Json everything = memory();
  const std::vector<double> expected = losses(0);
  ASSERT_EQ(expected.size(), std::size_t{offload_steps});
  write_policy({R"({ at = "**", state = "cpu" })"});
  const Json without_state = memory();
  EXPECT_EQ(without_state["state"], 0);
  const std::size_t most = everything["peak"], least = without_state["peak"];
  ASSERT_LT(least, most);
  const std::size_t limit = least + (most - least) / 2;

  write_policy({});
  EXPECT_FALSE(memory(limit)["fits"]);
  std::string rule;
  try {
    losses(limit);
    FAIL() << "trained with " << most << " bytes planned for " << limit;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::does_not_fit);
    ASSERT_EQ(error.diagnostics().size(), 1u);
    const Diagnostic& d = error.diagnostics()[0];
    EXPECT_EQ(d.message, "the plan does not fit into gpu");
    EXPECT_EQ(d.path, everything["peak_at"]);
    const auto text = [](std::size_t bytes) { return bytes_text(static_cast<double>(bytes)); };
    EXPECT_EQ(d.expected, "at most " + text(limit));
    EXPECT_THAT(d.got, HasSubstr(text(most) + " (parameters "));
    EXPECT_THAT(d.got, HasSubstr("state " + text(everything["state"]) + ","));
    const std::size_t start = d.fix.find('{'), end = d.fix.find('}');
    ASSERT_NE(end, std::string::npos) << d.fix;
    rule = d.fix.substr(start, end + 1 - start);
  }
  EXPECT_EQ(rule, R"({ at = "**", state = "cpu" })");

  write_policy({rule});
  EXPECT_TRUE(memory(limit)["fits"]);
  const std::vector<double> under_limit = losses(limit);
  ASSERT_EQ(under_limit.size(), expected.size());
  for (int step = 0; step < offload_steps; ++step) {
    EXPECT_NEAR(under_limit[step], expected[step], 1e-5 * std::abs(expected[step]))
        << "step " << step + 1;
  }
  EXPECT_LT(expected.back(), expected.front());
}

// Advice that the policy follows already is not repeated.
TEST_P(OffloadTest, ActivationsAreNotAdvisedTwice) {
  const std::string command = "policy plan --config " + (folder_ / "train.toml") + " --device ";
  for (const std::string acts : {"", ", acts = \"recompute\"", ", acts = \"offload\""}) {
    write_policy({"{ at = \"**\", state = \"cpu\"" + acts + " }"});
    const Ended refused = run(command + device(memory()["peak"].get<std::size_t>() - 1));
    EXPECT_EQ(refused.code, 3) << refused.text;
    EXPECT_THAT(refused.text, HasSubstr(", inputs, outputs and others "));
    EXPECT_THAT(refused.text, HasSubstr("activations take most of it: "));
    EXPECT_EQ(refused.text.find("add the rule { at = \"**\", acts = ") == std::string::npos,
              !acts.empty());
    EXPECT_THAT(refused.text, HasSubstr("use a smaller batch_size or micro_batch"));
  }
}

TEST_P(OffloadTest, TheProgramEndsWithThreeAndTheRule) {
  write_policy({R"({ at = "**", state = "cpu" })"});
  const std::size_t least = memory()["peak"];
  write_policy({});
  const std::size_t limit = least + (memory()["peak"].get<std::size_t>() - least) / 2;
  const std::string config = folder_ / "train.toml", policy = folder_ / "policy.toml";
  const std::string with = " --device " + device(limit);
  for (const std::string& command : {"policy plan --config " + config, "train --dry-run " + config,
                                     "train " + config + " --run-dir " + (folder_ / "refused")}) {
    const Ended refused = run(command + with);
    EXPECT_EQ(refused.code, 3) << command << "\n" << refused.text;
    EXPECT_THAT(refused.text, HasSubstr("the plan does not fit into gpu: expected at most "));
    EXPECT_THAT(refused.text, HasSubstr(R"(add the rule { at = "**", state = "cpu" }: it keeps )"));
  }
  EXPECT_EQ(run("policy edit " + policy + " --at '**' --set state=cpu").code, 0);
  EXPECT_EQ(run("policy plan --config " + config + with).code, 0);
  const Ended trained = run("train " + config + with + " --run-dir " + (folder_ / "trained"));
  EXPECT_EQ(trained.code, 0) << trained.text;
}

INSTANTIATE_TEST_SUITE_P(Optimizers, OffloadTest, ::testing::Values("adam", "adamw"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tandem
