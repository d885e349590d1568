// The policy commands on a three-layer perceptron of MNIST's size: every copy is known by hand.
// Their texts: tests/expected/commands/policy.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "api/program/policy_files.h"
#include "engine/formats/arrays/npy.h"
#include "placement/policy.h"
#include "tandem/tandem.h"
#include "tests/api/small_model.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;
using Json = nlohmann::json;

constexpr std::int64_t plan_batch = 32, pixels = 28 * 28, hidden = 512, classes = 10, samples = 96;

std::string perceptron() {
  testing::SmallModel model;
  const std::string in[] = {"flat", "hidden1", "hidden2"}, out[] = {"hidden1", "hidden2", ""};
  const std::int64_t widths[] = {pixels, hidden, hidden, classes};
  model.input("image", {plan_batch, 1, 28, 28}).output("logits", {plan_batch, classes});
  model.node("Flatten", "flatten", {"image"}, "flat");
  for (int l = 0; l < 3; ++l) {
    const std::string name = "layer" + std::to_string(l + 1);
    const std::string sum = l == 2 ? "logits" : name + "_sum";
    model.weight(name + ".weight", {widths[l], widths[l + 1]}, 0.05f);
    model.weight(name + ".bias", {widths[l + 1]}, 0.05f);
    model.node("MatMul", name + ".matmul", {in[l], name + ".weight"}, name + "_product");
    model.node("Add", name + ".add", {name + "_product", name + ".bias"}, sum);
    if (l < 2) model.node("Relu", "relu" + std::to_string(l + 1), {sum}, out[l]);
  }
  return model.bytes();
}

/// A folder with model, data, train.toml and policies.
class PolicyTest : public ::testing::Test {
 protected:
  PolicyTest() {
    write("model.onnx", perceptron());
    HostTensor images(TensorType{DType::float32, {samples, 1, 28, 28}}),
        labels(TensorType{DType::int32, {samples}});
    std::int64_t i = 0;
    for (float& x : images.as<float>()) x = static_cast<float>(i++ % 97) / 97;
    for (std::int32_t& y : labels.as<std::int32_t>()) y = static_cast<std::int32_t>(i++ % classes);
    write_npz(folder_ / "train.npz", {{"image", images}, {"labels", labels}});
    write("train.toml", R"(model = "model.onnx"
policy = "policy.toml"
batch_size = 32
steps = 3
[loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ]
[optimizer]
kind = "adam"
[data]
kind = "npz"
[data.train]
files = [ "train.npz" ]
)");
    write("policy.toml", R"(policy = 1
rules = [
  { at = "**", on = "gpu" },
  { at = "layer{1..3}.{matmul,add}", on = "cpu" },
]
)");
    write("better.toml", R"(policy = 1
rules = [
  { at = "**", on = "gpu" },
  { at = "{flatten,relu?,layer{1..3}.*}", on = "cpu" },
]
)");
  }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  std::string read(const std::string& path) const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  PolicyOptions options(const std::string& policy = "") const {
    PolicyOptions options;
    options.config = folder_ / "train.toml";
    if (!policy.empty()) options.policy = folder_ / policy;
    options.devices = {"gpu=emulated:0,memory=64MiB"};
    return options;
  }
  Json plan(const PolicyOptions& options) const { return Json::parse(policy_plan(options).json); }

  testing::TemporaryFolder folder_;
};

std::vector<Json> dense(const Json& transfers) {
  std::vector<Json> kept;
  for (const Json& transfer : transfers) {
    if (transfer["bytes"].get<std::size_t>() >= 16) kept.push_back(transfer);
  }
  return kept;
}

std::size_t bytes_of(const std::vector<Json>& transfers) {
  std::size_t bytes = 0;
  for (const Json& transfer : transfers) bytes += transfer["bytes"].get<std::size_t>();
  return bytes;
}

TEST_F(PolicyTest, PlanListsEveryCopy) {
  const Json json = plan(options());
  const std::vector<Json> copies = dense(json["transfers"]);
  EXPECT_EQ(copies.size(), 13u);
  EXPECT_EQ(bytes_of(copies), 727'680u);
  EXPECT_EQ(json["traffic"]["copies"], 13);
  EXPECT_EQ(json["traffic"]["bytes"], 727'680);
  std::vector<std::size_t> labels;
  for (const Json& copy : copies) {
    if (copy["producer"] == "labels") labels.push_back(copy["bytes"]);
  }
  EXPECT_THAT(labels, ElementsAre(plan_batch * 4));  // int32, as in the file

  ASSERT_EQ(json["hints"].size(), 1u) << json["hints"];
  const Json& hint = json["hints"][0];
  EXPECT_EQ(hint["kind"], "view");
  EXPECT_EQ(hint["path"], "flatten");
  EXPECT_EQ(hint["bytes"], 200'704);
  EXPECT_EQ(hint["line"], 3);
  EXPECT_THAT(policy_plan(options()).text, HasSubstr("13 a step, 727680 bytes (710.6 KiB)"));
  EXPECT_TRUE(json["fits"]);
  EXPECT_THAT(policy_plan(options()).text, HasSubstr("200704 bytes cross every step"));
}

TEST_F(PolicyTest, PlanTellsMemoryAndTime) {
  const Json json = plan(options());
  const std::size_t parameters =
      4 * (pixels * hidden + hidden * hidden + hidden * classes + 2 * hidden + classes);
  EXPECT_EQ(json["devices"]["cpu"]["parameters"], parameters);
  EXPECT_GE(json["devices"]["cpu"]["state"], 2 * parameters);
  EXPECT_EQ(json["devices"]["gpu"]["parameters"], 0);
  EXPECT_EQ(json["devices"]["gpu"]["limit"], 64 << 20);
  EXPECT_GT(json["devices"]["gpu"]["peak"], 4 * plan_batch * hidden);
  EXPECT_GT(json["time"]["step_ms"], 0);
}

TEST_F(PolicyTest, ShapesAndActivationsBesideTheProductsSaveCopies) {
  const Json json = plan(options("better.toml"));
  const std::vector<Json> copies = dense(json["transfers"]);
  EXPECT_EQ(copies.size(), 3u);
  EXPECT_EQ(bytes_of(copies), 2'688u);
  EXPECT_THAT(policy_plan(options("better.toml")).text,
              HasSubstr("3 a step, 2688 bytes (2.6 KiB)"));
  EXPECT_THAT(json["hints"], IsEmpty());
}

TEST_F(PolicyTest, DiffSaysWhatMoves) {
  const PolicyDiff diff = policy_diff(options(), folder_ / "policy.toml", folder_ / "better.toml");
  EXPECT_TRUE(diff.differs);
  const Json json = Json::parse(diff.json);
  std::vector<std::string> moved;
  for (const Json& move : json["operators"]) {
    EXPECT_EQ(move["attribute"], "run");
    EXPECT_EQ(move["from"], "gpu");
    EXPECT_EQ(move["to"], "cpu");
    moved.push_back(move["path"]);
  }
  EXPECT_THAT(moved, UnorderedElementsAre("flatten", "relu1", "relu2"));
  EXPECT_THAT(json["parameters"], IsEmpty());
  EXPECT_EQ(json["transfers"]["copies"], Json({{"a", 13}, {"b", 3}}));
  EXPECT_EQ(json["transfers"]["bytes"], Json({{"a", 727'680}, {"b", 2'688}}));
  EXPECT_THAT(diff.text, HasSubstr("run gpu -> cpu"));
  EXPECT_THAT(diff.text, HasSubstr("13 -> 3 a step, 710.6 KiB -> 2.6 KiB"));
  EXPECT_THAT(diff.text,
              HasSubstr("~ {flatten,relu1,relu2}            run gpu -> cpu (3 operators)\n"));
  ASSERT_EQ(json["groups"].size(), 1u) << json["groups"];
  EXPECT_EQ(json["groups"][0]["at"], "{flatten,relu1,relu2}");
  EXPECT_EQ(json["groups"][0]["operators"], 3);
  EXPECT_EQ(json["groups"][0]["moves"],
            Json::parse(R"([{"attribute": "run", "from": "gpu", "to": "cpu"}])"));
  EXPECT_FALSE(policy_diff(options(), "", folder_ / "policy.toml").differs);
}

TEST_F(PolicyTest, DiffFoldsModulesThatMoveAlike) {
  write("all.toml", "policy = 1\nrules = [ { at = \"**\", on = \"gpu\" } ]\n");
  write("two.toml",
        "policy = 1\nrules = [ { at = \"**\", on = \"gpu\" },\n"
        "  { at = \"layer{1..2}.**\", on = \"cpu\" },\n"
        "  { at = \"relu1\", acts = \"offload\" },\n]\n");
  const PolicyDiff diff = policy_diff(options(), folder_ / "all.toml", folder_ / "two.toml");
  EXPECT_THAT(diff.text,
              AllOf(HasSubstr("~ {layer1,layer2}.**               run, param, state gpu -> cpu "
                              "(4 operators, 4 parameters)\n"),
                    HasSubstr("~ relu1                            acts keep -> offload "
                              "(1 operator)\n")));
  EXPECT_EQ(std::count(diff.text.begin(), diff.text.end(), '~'), 2);
  const Json json = Json::parse(diff.json);
  EXPECT_EQ(json["groups"].size(), 2u);
  EXPECT_EQ(json["operators"].size(), 4u + 1u);
  EXPECT_EQ(json["parameters"].size(), 2u * 4u);  // param and state of each
}

TEST_F(PolicyTest, ExplainFollowsTheOperatorIntoBackwardAndUpdate) {
  const Report report = policy_explain(options(), "layer1.matmul");
  const Json json = Json::parse(report.json);
  const Json& run = json["attributes"]["run"];
  EXPECT_EQ(run["value"], "cpu");
  EXPECT_EQ(run["rule"]["line"], 4);
  EXPECT_EQ(run["overridden"][0]["line"], 3);
  std::vector<std::string> phases;
  for (const Json& node : json["nodes"]) {
    EXPECT_EQ(node["device"], "cpu") << node;
    EXPECT_EQ(node["requested"], "cpu") << node;
    if (node["phase"] == "backward") {
      EXPECT_EQ(node["reason"], "follows its operator layer1.matmul (policy.toml:4)");
    }
    phases.push_back(node["phase"]);
  }
  EXPECT_THAT(phases, Contains("forward"));
  EXPECT_THAT(phases, Contains("backward"));  // dW; the image takes no gradient
  EXPECT_THAT(phases, Contains("update"));
  EXPECT_THAT(report.text, HasSubstr("overrides policy.toml:3"));
  const Report relu = policy_explain(options(), "relu1", Phase::backward);
  EXPECT_THAT(relu.text, HasSubstr("backward   gpu"));
  EXPECT_THAT(relu.text, Not(HasSubstr("forward")));
  const Json weight = Json::parse(policy_explain(options(), "layer1:weight", Phase::update).json);
  EXPECT_EQ(weight["attributes"]["state"]["value"], "cpu");
  ASSERT_FALSE(weight["nodes"].empty());
  EXPECT_EQ(weight["nodes"][0]["device"], "cpu");
  EXPECT_EQ(weight["nodes"][0]["reason"], "state policy.toml:4");
  PolicyOptions filtered = options();
  filtered.place = {R"({ at = "**", op = "Relu", after = "layer1.add", run = "cpu" })"};
  EXPECT_THAT(policy_explain(filtered, "relu2").text,
              HasSubstr(R"(at = "**", op = "Relu", after = "layer1.add")"));
}

TEST_F(PolicyTest, ExplainCountsWhatEachLineDecidesOfAModule) {
  write("three.toml",
        "policy = 1\nrules = [\n  { at = \"**\", on = \"gpu\", state = \"cpu\", why = \"room\" },\n"
        "  { at = \"layer{2..3}.**\", on = \"cpu\" },\n]\n");
  const Report module = policy_explain(options("three.toml"), "layer1");
  EXPECT_THAT(module.text, AllOf(HasSubstr("layer1.** (2 operators, 2 parameters)\n"
                                           "  three.toml:3  at = \"**\"  (room)\n"
                                           "    run        gpu        2 operators: layer1.**\n"
                                           "    param      gpu        2 parameters: layer1.**\n"
                                           "    state      cpu        2 parameters: layer1.**\n"
                                           "    nodes      "),
                                 HasSubstr(" forward on gpu"), HasSubstr(" update on cpu")));
  const Json json = Json::parse(policy_explain(options("three.toml"), "layer{1..3}.**").json);
  EXPECT_EQ(json["path"], "layer{1..3}.**");
  EXPECT_EQ(json["kind"], "selector");
  EXPECT_EQ(json["counts"]["operators"], 6);
  EXPECT_EQ(json["counts"]["parameters"], 6);
  // gpu by line 3: run, param, and state on the cpu; by line 4 all three.
  std::vector<std::string> groups;
  for (const Json& group : json["groups"]) {
    EXPECT_EQ(group["paths"].size(),
              group["operators"].get<std::size_t>() + group["parameters"].get<std::size_t>());
    EXPECT_EQ(group["requested"], group["value"]);
    groups.push_back(group["attribute"].get<std::string>() + " " +
                     group["value"].get<std::string>() + " " + group["rule"]["line"].dump() + " " +
                     group["at"].dump() + " " + std::to_string(group["paths"].size()));
  }
  EXPECT_THAT(groups,
              ElementsAre("run gpu 3 [\"layer1.**\"] 2", "param gpu 3 [\"layer1.**\"] 2",
                          "state cpu 3 [\"layer1.**\"] 2", "run cpu 4 [\"{layer2,layer3}.**\"] 4",
                          "param cpu 4 [\"{layer2,layer3}.**\"] 4",
                          "state cpu 4 [\"{layer2,layer3}.**\"] 4"));
  EXPECT_FALSE(json["nodes"].empty());
  for (const Json& node : json["nodes"]) {
    const std::string path = node["path"];
    if (path.starts_with("layer")) {
      EXPECT_EQ(node["device"], path[5] == '1' ? "gpu" : "cpu") << node;
    }
  }
}

TEST_F(PolicyTest, ExplainCutsLongTexts) {
  PolicyOptions many = options();
  for (int l = 1; l <= 3; ++l) {
    for (const char* part : {".matmul", ".add", ":weight", ":bias"}) {
      for (const char* attributes : {"lookahead = 2", "on = \"cpu\""}) {
        many.place.push_back("{ at = \"layer" + std::to_string(l) + part + "\", " + attributes +
                             " }");
      }
    }
  }
  const Report report = policy_explain(many, "**");
  EXPECT_EQ(std::count(report.text.begin(), report.text.end(), '\n'),
            1 + 40 + 1);  // operator, values, cost
  EXPECT_THAT(report.text, HasSubstr(" more lines: --json has all\n"));
}

TEST_F(PolicyTest, HomesThatMoveBytesAreHinted) {
  PolicyOptions with = options("better.toml");
  with.place = {"{ at = \"layer2:weight\", state = \"gpu\" }"};
  const Json json = plan(with);
  ASSERT_EQ(json["hints"].size(), 1u) << json["hints"];
  EXPECT_EQ(json["hints"][0]["kind"], "home");
  EXPECT_EQ(json["hints"][0]["bytes"], 2 * 4 * hidden * hidden);  // gradient there, weight back
}

TEST_F(PolicyTest, HomesThatMoveNothingAreNotHinted) {
  PolicyOptions with = options();  // an update in place reads what the gradient is made of
  with.overrides = {"optimizer.kind=sgd"};
  const Json planned = plan(with);
  for (const Json& hint : planned["hints"]) EXPECT_EQ(hint["kind"], "view") << hint;
}

TEST_F(PolicyTest, PlanSaysWhatDoesNotFit) {
  PolicyOptions small = options();
  small.devices = {"gpu=emulated:0,memory=64KiB"};
  const Plan plan = policy_plan(small);
  EXPECT_FALSE(plan.fits);
  const std::string says = "the plan does not fit into gpu";
  const std::size_t first = plan.text.find(says);
  ASSERT_NE(first, std::string::npos) << plan.text;
  EXPECT_EQ(plan.text.find(says, first + 1), std::string::npos) << plan.text;
  const Json json = Json::parse(plan.json);
  EXPECT_FALSE(json["fits"]);
  EXPECT_EQ(json["hints"][0]["message"], says);
  const auto peak = json["devices"]["gpu"]["peak"].get<std::size_t>();
  small.devices = {"gpu=emulated:0,memory=" + std::to_string(peak - 1) + "B"};
  EXPECT_THAT(policy_plan(small).text, HasSubstr("expected at most " + std::to_string(peak - 1) +
                                                 " bytes, got " + std::to_string(peak) + " bytes"));
}

// What a remedy is said to do, it does: the same rule on the command line comes to the same plan.
TEST_F(PolicyTest, RemediesArePlanned) {
  PolicyOptions small = options();
  small.policy = folder_ / "all.toml";
  write("all.toml", "policy = 1\nrules = [\n  { at = \"**\", on = \"gpu\" },\n]\n");
  EXPECT_THAT(plan(small)["remedies"], IsEmpty());
  const auto peak = plan(small)["devices"]["gpu"]["peak"].get<std::int64_t>();
  // Three layers with two moments each: more state than anything else.
  small.devices = {"gpu=emulated:0,memory=" + std::to_string(peak * 3 / 4) + "B"};
  const Plan full = policy_plan(small);
  const Json remedies = Json::parse(full.json)["remedies"];
  ASSERT_GE(remedies.size(), 1u) << full.text;
  EXPECT_THAT(full.text, HasSubstr("remedies    add one of these after the policy's rules:\n"));
  double last = 0;
  for (const Json& remedy : remedies) {
    SCOPED_TRACE(remedy.dump());
    PolicyOptions with = small;
    with.place = {remedy["rule"].get<std::string>()};
    const Json mended = plan(with);
    EXPECT_EQ(mended["fits"], remedy["suffices"]);
    EXPECT_EQ(peak - mended["devices"]["gpu"]["peak"].get<std::int64_t>(), remedy["bytes"]);
    EXPECT_EQ(mended["time"]["step_ms"], remedy["step_ms"]);
    EXPECT_THAT(full.text, HasSubstr("  " + remedy["rule"].get<std::string>() + " "));
    if (!remedy["suffices"].get<bool>()) continue;
    EXPECT_GE(remedy["step_ms"].get<double>(), last) << "fastest first";
    last = remedy["step_ms"];
  }
  EXPECT_GT(last, 0) << "none suffices: " << full.text;
}

// A run keeps a program for each size and place of a micro-batch: what fits by the plan also
// trains.
TEST_F(PolicyTest, PlanCountsAllProgramsOfARun) {
  const std::vector<std::vector<std::string>> cases{
      {"batch_size=64"}, {"batch_size=64", "micro_batch=16"}, {"data.eval.fraction=0.25"}};
  int number = 0;
  for (const std::vector<std::string>& overrides : cases) {
    SCOPED_TRACE(overrides.back());
    PolicyOptions planned = options();
    planned.overrides = overrides;
    planned.place = {"{ at = \"**\", on = \"gpu\" }"};
    const auto peak = plan(planned)["devices"]["gpu"]["peak"].get<std::int64_t>();
    const auto trains = [&](std::int64_t bytes) {
      TrainOptions train;
      train.overrides = overrides;
      train.place = planned.place;
      train.devices = {"gpu=emulated:0,memory=" + std::to_string(bytes) + "B"};
      train.run_dir = folder_ / ("run" + std::to_string(number++));
      Trainer(folder_ / "train.toml", train).run();
    };
    EXPECT_NO_THROW(trains(peak));
    EXPECT_THROW(trains(peak - 64), Error);
    planned.devices = {"gpu=emulated:0,memory=" + std::to_string(peak) + "B"};
    EXPECT_TRUE(policy_plan(planned).fits);
    planned.devices = {"gpu=emulated:0,memory=" + std::to_string(peak - 64) + "B"};
    EXPECT_FALSE(policy_plan(planned).fits);
  }
}

// Without a limit of the policy's the host swaps: what it has is no limit.
TEST_F(PolicyTest, TheHostHasALimitOnlyWhereThePolicySetsOne) {
  PolicyOptions free = options();
  const Json json = plan(free);
  EXPECT_TRUE(json["devices"]["cpu"]["limit"].is_null());
  EXPECT_GT(json["devices"]["cpu"]["memory"], 0);
  EXPECT_THAT(policy_plan(free).text, Not(HasSubstr("would swap")));
  free.devices.push_back("cpu=memory=512MiB");
  EXPECT_EQ(plan(free)["devices"]["cpu"]["limit"], 512 << 20);
}

TEST_F(PolicyTest, ModelsAreEnough) {
  PolicyOptions options;
  options.model = folder_ / "model.onnx";
  options.bind = {{"batch", 8}};
  options.policy = folder_ / "policy.toml";
  options.devices = {"gpu=emulated:0"};
  const Json json = plan(options);
  EXPECT_TRUE(json["fits"]);
  EXPECT_THAT(json["hints"].dump(), HasSubstr(std::to_string(2 * 8 * 4 * pixels)));
}

TEST_F(PolicyTest, NamesHaveTheirBytes) {
  const Json all = Json::parse(policy_names(options(), "", "bytes").json)["names"];
  EXPECT_EQ(all[0]["path"], "layer1:weight");
  EXPECT_EQ(all[0]["bytes"], 4 * pixels * hidden);
}

TEST_F(PolicyTest, CommandsSayWhatTheyNeed) {
  const auto text = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(text([&] { policy_names(options(), "", "size"); }),
            "there is no such order: expected graph, path, op or bytes, got size");
  const std::string which =
      "which model the policy is for: expected a train.toml (--config) or an "
      "ONNX file (--model), got ";
  const std::string help = " (tandem policy --help has examples)";
  EXPECT_EQ(text([&] { policy_check({}); }), which + "neither" + help);
  PolicyOptions both = options();
  both.model = folder_ / "model.onnx";
  EXPECT_EQ(text([&] { policy_check(both); }), which + "both" + help);
  EXPECT_EQ(text([&] { phase_of("forwards"); }).substr(0, 22), "there is no such phase");
  both = options("policy.toml");
  both.made = Policy();
  EXPECT_THAT(text([&] { policy_check(both); }), HasSubstr("two policies"));
  EXPECT_THAT(text([&] { policy_edit(folder_ / "policy.toml", {.at = "relu1"}); }),
              HasSubstr("policy edit: nothing to do"));
}

TEST_F(PolicyTest, EditSplicesOneRule) {
  PolicyChange change;
  change.at = "relu1";
  change.set = {{"run", "cpu"}};
  const Report report = policy_edit(folder_ / "policy.toml", change);
  EXPECT_THAT(report.text, HasSubstr("\n+  { at = \"relu1\", run = \"cpu\" },\n"));
  EXPECT_THAT(report.text, Not(HasSubstr("\n-")));
  EXPECT_THAT(policy_edit(folder_ / "policy.toml", change).text, HasSubstr("says that already"));
  change.set.clear();
  change.remove = true;
  policy_edit(folder_ / "policy.toml", change);
  EXPECT_THAT(read(folder_ / "policy.toml"), Not(HasSubstr("relu1")));
}

TEST_F(PolicyTest, TrainingUnderAPolicyRecordsIt) {
  TrainOptions on_both, on_cpu;
  on_both.devices = {"gpu=emulated:0,memory=64MiB"};
  on_both.run_dir = folder_ / "both";
  Trainer trainer(folder_ / "train.toml", on_both);
  EXPECT_THAT(trainer.summary(), HasSubstr("placement: gpu 3 operators "));
  EXPECT_THAT(trainer.summary(), HasSubstr(" | cpu 6 operators "));
  EXPECT_THAT(trainer.summary(), HasSubstr(" | 13 crossings, 710.6 KiB/step | policy policy.toml"));
  const TrainResult both = trainer.run();

  on_cpu.devices = on_both.devices;
  on_cpu.place = {"{ at = \"**\", on = \"cpu\" }"};
  on_cpu.run_dir = folder_ / "cpu";
  const TrainResult cpu = Trainer(folder_ / "train.toml", on_cpu).run();
  EXPECT_NEAR(both.loss, cpu.loss, 1e-5 * std::abs(cpu.loss));

  const Json placement = Json::parse(read(both.run_dir + "/placement.json"));
  EXPECT_EQ(placement["devices"], Json({"cpu", "gpu"}));
  EXPECT_EQ(placement["uses"]["gpu"], "emulated:0");
  for (const Json& node : placement["nodes"]) {
    if (node["path"] != "relu1" || node["op"] == "Transfer") continue;
    EXPECT_EQ(node["device"], "gpu") << node;
    EXPECT_EQ(node["reason"], "policy.toml:3") << node;
  }
  EXPECT_THAT(read(both.run_dir + "/policy.toml"), HasSubstr("layer{1..3}.{matmul,add}"));
}

TEST_F(PolicyTest, RulesOfTheCommandLineMayHaveSeveralLines) {
  TrainOptions options;
  options.devices = {"gpu=emulated:0,memory=64MiB"};
  options.place = {"{ at = \"relu1\", on = \"cpu\", why = \"\"\"two\nlines\"\"\" }"};
  options.run_dir = folder_ / "lines";
  const TrainResult result = Trainer(folder_ / "train.toml", options).run();
  EXPECT_THAT(read(result.run_dir + "/policy.toml"),
              HasSubstr("\n# --place { at = \"relu1\", on = \"cpu\", why = \"\"\"two\n# lines"));
  EXPECT_NO_THROW(parse_policy(read(result.run_dir + "/policy.toml"), "policy.toml"));
}

TEST_F(PolicyTest, MemoryThatTheSystemRefusesIsNamed) {
  write("huge.toml",
        "policy = 1\ndevices = { big = { use = \"emulated:0\", memory = \"1e18B\" } }\n"
        "rules = [ { at = \"**\", on = \"big\" } ]\n");
  try {
    plan(options("huge.toml"));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::does_not_fit);
    EXPECT_THAT(error.what(), HasSubstr("huge.toml:2:"));
    EXPECT_THAT(error.what(), HasSubstr("got \"1e18B\" (set a smaller memory= for this device)"));
  }
}

TEST_F(PolicyTest, TheRunDirectorySaysWhatBecomesOfResults) {
  TrainOptions options;
  options.devices = {"gpu=emulated:0,memory=64MiB"};
  options.run_dir = folder_ / "acts";
  options.place = {R"({ at = "**", on = "gpu" })",
                   R"({ at = "relu1", acts = "offload", lookahead = 2 })",
                   R"({ at = "layer2.add", acts = "recompute" })"};
  const TrainResult result = Trainer(folder_ / "train.toml", options).run();
  const Json placement = Json::parse(read(result.run_dir + "/placement.json"));
  EXPECT_EQ(
      placement["operators"],
      Json::parse(R"([{"path": "relu1", "acts": "offload", "reason": "--place:2", "lookahead": 2},
                            {"path": "layer2.add", "acts": "recompute", "reason": "--place:3"}])"));
  EXPECT_EQ(placement["fell_back"], Json::array());
}

}  // namespace
}  // namespace tandem::api
