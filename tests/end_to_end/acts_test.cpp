// Activations that are kept, offloaded or recomputed: `policy plan` shows the bytes, `policy check`
// names rules without effect, and losses do not change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>

#include "api/program/policy_files.h"
#include "include/tandem/error.h"
#include "tests/api/small_model.h"
#include "tests/end_to_end/parity_support.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using namespace testing;
using ::testing::HasSubstr;

constexpr std::int64_t acts_batch = 2048, width = 64;
constexpr int acts_layers = 16;

// Linear layers with Tanh between them, whose backward pass reads activations.
std::string deep_perceptron() {
  SmallModel model;
  model.input("x", {acts_batch, width}).output("logits", {acts_batch, width});
  std::string x = "x";
  for (int l = 0; l < acts_layers; ++l) {
    const std::string name = "layers." + std::to_string(l);
    const std::string y = l + 1 == acts_layers ? "logits" : name + "_y";
    model.weight(name + ".weight", {width, width}, 0.2f).weight(name + ".bias", {width}, 0.1f);
    model.node("MatMul", name + ".matmul", {x, name + ".weight"}, name + "_product");
    model.node("Add", name + ".add", {name + "_product", name + ".bias"}, name + "_sum");
    model.node("Tanh", name + ".tanh", {name + "_sum"}, y);
    x = y;
  }
  return model.bytes();
}

class ActsTest : public ::testing::Test {
 protected:
  ActsTest() {
    perceptron_ = config("train.toml", write("model.onnx", deep_perceptron()), acts_batch, "logits",
                         "labels");
  }

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  std::string policy(const std::string& rules) {
    return write("policy.toml",
                 "policy = 1\ndevices = { gpu = { use = \"emulated:0\", memory = \"256MiB\" } }\n"
                 "rules = [\n" +
                     rules + "]\n");
  }

  /// train.toml of the perceptron.
  std::string perceptron_;

  static api::PolicyOptions options(const std::string& config, const std::string& policy) {
    api::PolicyOptions options;
    options.config = config;
    options.policy = policy;
    return options;
  }
  Json planned(const std::string& config, const std::string& rules) {
    return Json::parse(api::policy_plan(options(config, policy(rules))).json);
  }
  std::string config(const std::string& name, const std::string& model, std::int64_t samples,
                     const std::string& logits, const std::string& labels) {
    return write(
        name, "model = " + Json(model).dump() + "\nbatch_size = " + std::to_string(samples) +
                  "\nsteps = 1\n[loss]\nterms = [ { name = \"loss\", kind = "
                  "\"softmax_cross_entropy\", logits = \"" +
                  logits + "\", labels = \"" + labels + "\" } ]\n[optimizer]\nkind = \"adam\"\n");
  }
  static std::int64_t peak(const Json& plan, const std::string& device) {
    return plan["devices"][device]["peak"];
  }

  TemporaryFolder folder_;
  const std::string gpu_ = "{ at = \"**\", on = \"gpu\" },\n";
};

TEST_F(ActsTest, PlansOfADeepPerceptronShrink) {
  const std::string all = "{ at = \"layers.**\", acts = ";
  const Json kept = planned(perceptron_, gpu_);
  const Json recomputed = planned(perceptron_, gpu_ + all + "\"recompute\" },\n");
  const Json offloaded = planned(perceptron_, gpu_ + all + "\"offload\" },\n");
  EXPECT_LT(peak(recomputed, "gpu"), peak(kept, "gpu"));
  EXPECT_LT(peak(offloaded, "gpu"), peak(kept, "gpu"));
  const std::int64_t activation = acts_batch * width * 4;
  EXPECT_LT(peak(recomputed, "gpu"), peak(kept, "gpu") - 6 * activation);
  EXPECT_LT(peak(offloaded, "gpu"), peak(kept, "gpu") - 8 * activation);
  EXPECT_GT(peak(offloaded, "cpu"), peak(kept, "cpu") + 8 * activation);
  EXPECT_EQ(recomputed["traffic"]["bytes"], kept["traffic"]["bytes"]);

  // Each result that the backward pass reads is copied out and back once.
  std::int64_t out = 0, back = 0;
  for (const Json& copy : offloaded["transfers"]) {
    if (copy["bytes"] != activation) continue;
    if (copy["from"] == "gpu" && copy["phase"] == "forward") ++out;
    if (copy["from"] == "cpu" && copy["phase"] == "backward") ++back;
  }
  EXPECT_GE(out, acts_layers - 1);
  EXPECT_EQ(back, acts_layers);
}

TEST_F(ActsTest, RecomputeSavesMemoryOnTheHostToo) {
  const Json kept = planned(perceptron_, "{ at = \"**\", on = \"cpu\" },\n");
  const Json again =
      planned(perceptron_,
              "{ at = \"**\", on = \"cpu\" },\n{ at = \"layers.**\", acts = \"recompute\" },\n");
  EXPECT_LT(peak(again, "cpu"), peak(kept, "cpu"));
}

TEST_F(ActsTest, PlansOfAGptShrink) {
  const Json fixture = read_fixture("gpt");
  const std::string model =
      parity_folder() + fixture["files"]["logits"]["torchscript"].get<std::string>();
  const std::string gpt =
      config("gpt.toml", model, 64, fixture["loss"]["logits"], fixture["loss"]["labels"]);
  const Json kept = planned(gpt, gpu_);
  const Json recomputed = planned(gpt, gpu_ + "{ at = \"**\", acts = \"recompute\" },\n");
  const Json offloaded = planned(gpt, gpu_ + "{ at = \"**\", acts = \"offload\" },\n");
  EXPECT_LT(peak(recomputed, "gpu"), peak(kept, "gpu"));
  EXPECT_LT(peak(offloaded, "gpu"), peak(kept, "gpu"));
}

TEST_F(ActsTest, OffloadOnTheHostIsAWarning) {
  const auto warnings = [&](const std::string& rules) {
    return Json::parse(api::policy_check(options(perceptron_, policy(rules))).json)["warnings"];
  };
  const std::string rule = "{ at = \"layers.3.**\", acts = \"offload\" },\n";
  const Json found = warnings("{ at = \"**\", on = \"cpu\" },\n" + rule);
  ASSERT_EQ(found.size(), 1u) << found;
  EXPECT_THAT(found[0]["message"].get<std::string>(), HasSubstr("offload does nothing for 3 oper"));
  EXPECT_EQ(found[0]["line"], 5);
  EXPECT_EQ(warnings(gpu_ + rule).size(), 0u);
}

TEST_F(ActsTest, LookaheadBoundsTheRoomOfFetchedWeights) {
  const auto with = [&](int lookahead) {
    return peak(planned(perceptron_, gpu_ + "{ at = \"**:*\", on = \"cpu\", lookahead = " +
                                         std::to_string(lookahead) + " },\n"),
                "gpu");
  };
  EXPECT_LE(with(0), with(1));
  EXPECT_LT(with(1), with(8));
  EXPECT_EQ(with(1),
            peak(planned(perceptron_, gpu_ + "{ at = \"**:*\", on = \"cpu\" },\n"), "gpu"));
}

struct ActsCase {
  std::string network;
  std::size_t optimizer = 0;
};
void PrintTo(const ActsCase& c, std::ostream* stream) { *stream << c.network; }

constexpr int steps_with_acts = 5, policies_with_acts = 12;

std::vector<std::string> operators_of(const std::string& model, std::int64_t samples) {
  api::PolicyOptions options;
  options.model = model;
  options.bind = {{"batch", samples}};
  std::vector<std::string> paths;
  const Json listed = Json::parse(api::policy_names(options, "", "graph").json);
  for (const Json& row : listed["names"]) {
    if (row["kind"] == "operator" && !row["path"].get<std::string>().empty())
      paths.push_back(row["path"]);
  }
  return paths;
}

/// The module that an operator belongs to: its path without the last part.
std::string module_of(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? path : path.substr(0, dot) + ".**";
}

std::string random_acts(const std::vector<std::string>& operators, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const char* const acts[] = {"keep", "offload", "recompute"};
  const auto device = [&] { return random() % 3 == 0 ? "cpu" : "gpu"; };
  std::string text =
      "policy = 1\ndevices = { gpu = { use = \"emulated:0\", memory = \"256MiB\" } }\nrules = [\n";
  const auto rule = [&](const std::string& at, const std::string& keys) {
    text += "  { at = \"" + at + "\", " + keys + " },\n";
  };
  rule("**", std::string("on = \"") + (seed < 3 ? "gpu" : device()) + "\", acts = \"" +
                 acts[seed % 3] + "\"");
  rule("**:*", std::string("param = \"") + device() + "\", state = \"" + device() +
                   "\", lookahead = " + std::to_string(random() % 3));
  if (seed >= 3) {
    for (const std::string& path : operators) {
      const std::string at = random() % 2 == 0 ? path : module_of(path);
      if (random() % 3 == 0) rule(at, std::string("acts = \"") + acts[random() % 3] + "\"");
      if (random() % 6 == 0) rule(path, std::string("run = \"") + device() + "\"");
    }
  }
  if (random() % 2 == 0)
    rule("loss.**", std::string("acts = \"") + acts[random() % 3] + "\", optional = true");
  return text + "]\n";
}

class ActsPoliciesTest : public ::testing::TestWithParam<ActsCase> {
 protected:
  ActsPoliciesTest() : fixture_(read_fixture(GetParam().network)), samples_(fixture_["batch"]) {}

  std::string model() const {
    return parity_folder() + fixture_["files"]["logits"]["torchscript"].get<std::string>();
  }

  std::vector<double> losses_under(const std::string& policy) {
    std::vector<std::string> settings =
        settings_of(fixture_["optimizers"][GetParam().optimizer], fixture_, false);
    if (!policy.empty()) settings.push_back("policy=" + Json(policy).dump());
    const auto feeds = read_feeds(fixture_);
    api::Session session(model(), samples_, settings);
    std::vector<double> losses;
    for (int step = 0; step < steps_with_acts; ++step) {
      api::Tensors fed;
      for (const auto& [name, tensor] : feeds)
        fed[name] = array_of(tensor, step * samples_, samples_);
      losses.push_back(session.step(fed));
    }
    return losses;
  }

  Json fixture_;
  std::int64_t samples_;
};

TEST_P(ActsPoliciesTest, LossesAreThoseOfTheCpu) {
  const std::vector<std::string> operators = operators_of(model(), samples_);
  ASSERT_FALSE(operators.empty());
  const std::vector<double> expected = losses_under("");
  const TemporaryFolder folder;
  const std::string path = folder / "policy.toml";
  for (std::uint64_t seed = 0; seed < policies_with_acts; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::string policy = random_acts(operators, seed);
    std::ofstream(path) << policy;
    const std::vector<double> losses = losses_under(path);
    for (int step = 0; step < steps_with_acts; ++step) {
      ASSERT_NEAR(losses[step], expected[step], 1e-5 * std::abs(expected[step]))
          << "step " << step + 1 << "\n"
          << policy;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, ActsPoliciesTest,
                         ::testing::Values(ActsCase{"mlp", 0}, ActsCase{"lenet5", 3},
                                           ActsCase{"conv_bn", 1}, ActsCase{"gpt", 4},
                                           ActsCase{"encoder", 2}, ActsCase{"tied_decoder", 4}),
                         [](const auto& info) { return info.param.network; });

}  // namespace
}  // namespace tandem
