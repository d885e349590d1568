// `policy auto` on four networks, with a slow host and a fast accelerator that is too small for
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "api/policy/policy_case.h"
#include "api/program/policy_files.h"
#include "engine/config/keys/config_value.h"
#include "engine/runtime/program.h"
#include "placement/auto/auto_case.h"
#include "tandem/tandem.h"
#include "tests/api/placed_networks.h"
#include "tests/api/small_model.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

/// The device of every node and state in the micro-batch with the update, one per line.
std::string placement_text(PolicyCase& of) {
  const TrainingGraph training = of.training();
  const Placement placement = of.placed().place(training.graph);
  std::string text;
  for (std::size_t n = 0; n < placement.nodes.size(); ++n) {
    const std::string& device = placement.devices[placement.nodes[n].device];
    text += training.graph.nodes[n].path + " " + device + "\n";
  }
  for (std::size_t s = 0; s < placement.states.size(); ++s) {
    const PlacedState& state = placement.states[s];
    text += training.graph.states[s].name + " " + placement.devices[state.param] + " " +
            placement.devices[state.state] + "\n";
  }
  return text;
}

class PolicyAutoTest : public testing::PlacedNetworks {
 protected:
  Json plan(PolicyOptions options, const std::string& policy) const {
    options.policy = folder_ / policy;
    return Json::parse(policy_plan(options).json);
  }
  /// Memory of the accelerator in which this fraction of the network fits.
  std::size_t part_of(const PolicyOptions& options, double part) const {
    write("all.toml", "policy = 1\nrules = [ { at = \"**\", on = \"gpu\" } ]\n");
    const double peak = plan(options, "all.toml")["devices"]["gpu"]["peak"].get<double>();
    return static_cast<std::size_t>(part * peak);
  }
  std::string every_other_layer(const PolicyOptions& options) const {
    PolicyOptions names = options;
    names.policy = folder_ / "all.toml";
    std::vector<std::string> layers;
    const Json listed = Json::parse(policy_names(names).json);
    for (const Json& row : listed["names"]) {
      const std::string path = row["path"];
      const std::size_t colon = path.find(':');
      if (row["op"] != "parameter" || colon == std::string::npos) continue;
      const std::string layer = path.substr(0, colon);
      if (std::find(layers.begin(), layers.end(), layer) == layers.end()) layers.push_back(layer);
    }
    std::string rules;
    for (std::size_t i = 0; i < layers.size(); i += 2)
      rules += "  { at = \"" + layers[i] + ".**\", on = \"cpu\" },\n";
    return rules;
  }
  static std::size_t rules_in(const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find("{ at = ", at)) != std::string::npos; ++at) ++count;
    return count;
  }
};

class PolicyAutoOf : public PolicyAutoTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(PolicyAutoOf, IsNeverSlowerThanWhatPeopleWrite) {
  PolicyOptions with = options(GetParam(), "auto.toml");
  const std::size_t memory = part_of(with, 0.6);
  with.devices = {"gpu=emulated:0,memory=" + std::to_string(memory) + "B"};
  PolicyAutoOptions automatic;
  automatic.most_plans = 300;
  const Json report = Json::parse(policy_auto(with, automatic).json);
  const Json found = plan(with, "auto.toml");
  ASSERT_TRUE(found["fits"]) << read("auto.toml");
  const double time = found["time"]["step_ms"];
  EXPECT_DOUBLE_EQ(report["after"]["step_ms"].get<double>(), time);

  const std::string there = "  { at = \"**\", on = \"gpu\" },\n";
  const std::pair<const char*, std::string> baselines[] = {
      {"all cpu", "  { at = \"**\", on = \"cpu\" },\n"},
      {"all gpu", there},
      {"embeddings cpu",
       there + "  { at = \"**\", op = \"Gather\", on = \"cpu\", optional = true },\n"},
      {"optimizer state cpu", "  { at = \"**\", on = \"gpu\", state = \"cpu\" },\n"},
      {"every other layer cpu", there + every_other_layer(with)}};
  double best = 1e30;
  for (const auto& [name, rules] : baselines) {
    write("baseline.toml", "policy = 1\nrules = [\n" + rules + "]\n");
    const Json other = plan(with, "baseline.toml");
    if (!other["fits"]) continue;
    best = std::min(best, other["time"]["step_ms"].get<double>());
    EXPECT_LE(time, other["time"]["step_ms"].get<double>() * (1 + 1e-9)) << name;
  }
  // Each of these networks has a part that fits the accelerator and runs faster there.
  EXPECT_LT(time, best) << read("auto.toml");
  std::printf("%s: %.4f ms, best of the others %.4f ms, %d plans\n%s", GetParam(), time, best,
              report["plans"].get<int>(), read("auto.toml").c_str());

  // There are few rules, and each of them has an effect.
  const std::string text = read("auto.toml");
  EXPECT_LE(rules_in(text), 8u) << text;
  PolicyCase written(with);
  const std::string placement = placement_text(written);
  const std::vector<std::string> lines = report["auto"];
  for (const std::string& line : lines) {
    EXPECT_TRUE(
        std::regex_search(line, std::regex("# [0-9]+ (operator|parameter)s?, [0-9.]+ .?i?B")))
        << line;
    std::string fewer = text;
    fewer.erase(fewer.find(line), line.size());
    try {
      written.replace_policy(fewer);
      EXPECT_NE(placement_text(written), placement) << line;
    } catch (const Error&) {  // a parameter has no home: the rule was needed too
    }
  }
}

std::string name_of_network(const ::testing::TestParamInfo<const char*>& info) {
  return info.param;
}
INSTANTIATE_TEST_SUITE_P(Networks, PolicyAutoOf, ::testing::Values("mlp", "lenet5"),
                         name_of_network);
INSTANTIATE_TEST_SUITE_P(LongNetworks, PolicyAutoOf, ::testing::Values("conv_bn", "gpt"),
                         name_of_network);

TEST_F(PolicyAutoTest, EqualInputGivesEqualFiles) {
  PolicyOptions with = options("mlp", "first.toml");
  const std::size_t memory = part_of(with, 0.6);
  PolicyAutoOptions automatic;
  automatic.budgets = {"gpu=" + std::to_string(memory) + "B"};
  automatic.most_plans = 120;
  policy_auto(with, automatic);
  const std::string first = read("first.toml");
  EXPECT_THAT(first, HasSubstr("policy = 1\n"));
  EXPECT_THAT(first,
              HasSubstr("devices = { gpu = { use = \"emulated:0\", memory = \"256MiB\" } }"));
  automatic.to = folder_ / "second.toml";
  policy_auto(with, automatic);
  EXPECT_EQ(read("second.toml"), first);
  automatic.to.clear();
  const Report again = policy_auto(with, automatic);
  EXPECT_THAT(again.text, HasSubstr("says that already"));
  EXPECT_EQ(read("first.toml"), first);
  const Json after = Json::parse(again.json)["after"];
  EXPECT_LE(after["devices"]["gpu"]["peak"].get<std::size_t>(), memory);
}

TEST_F(PolicyAutoTest, TheUsersRulesAndCommentsStay) {
  const std::string before = R"(# mine
policy = 1
devices = { gpu = { use = "emulated:0", memory = "256MiB" } }   # small
rules = [
  { at = "2.**", on = "cpu" },  # stays here
]
)";
  write("policy.toml", before);
  const PolicyOptions with = options("mlp", "policy.toml");
  PolicyAutoOptions automatic;
  automatic.most_plans = 120;
  policy_auto(with, automatic);
  std::string text = read("policy.toml");
  EXPECT_THAT(text, HasSubstr("auto = [\n  { at = \"**\", on = \"gpu\" }"));
  const std::size_t start = text.find("auto = ["), end = text.find("\n]\n", start);
  text.erase(start, end + 3 - start);
  EXPECT_EQ(text, before);
  EXPECT_EQ(Json::parse(policy_explain(with, "2.Gemm").json)["attributes"]["run"]["value"], "cpu");
  EXPECT_EQ(Json::parse(policy_explain(with, "0.Gemm").json)["attributes"]["run"]["value"], "gpu");
}

TEST_F(PolicyAutoTest, CommentsOfItsOldListAreNamedBeforeTheyGo) {
  write("policy.toml",
        "policy = 1\r\nauto = [\r\n  # the first layer is too large\r\n"
        "  { at = \"**\", on = \"cpu\" },  # 5 operators, 1.0 KiB\r\n]\r\n# end\r\n");
  const PolicyOptions with = options("mlp", "policy.toml");
  PolicyAutoOptions automatic;
  automatic.most_plans = 60;
  const Report report = policy_auto(with, automatic);
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_THAT(report.warnings[0], HasSubstr("policy.toml:3: this comment was in the list auto"));
  EXPECT_EQ(Json::parse(report.json)["lost_comments"], Json({3}));
  const std::string text = read("policy.toml");
  EXPECT_THAT(text, AllOf(HasSubstr("on = \"gpu\""), HasSubstr("]\r\n# end\r\n")));
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; ++at)
    EXPECT_EQ(text[at - 1], '\r') << text.substr(0, at);
  EXPECT_THAT(policy_auto(with, automatic).warnings, IsEmpty());
}

TEST_F(PolicyAutoTest, RulesThatPlaceEverythingLeaveNothingToSearch) {
  const std::string pinned = R"(policy = 1
rules = [
  { at = "**", on = "gpu" },  # all of it
]
)";
  write("policy.toml", pinned);
  const PolicyOptions with = options("mlp", "policy.toml");
  const Report report = policy_auto(with, {});
  EXPECT_THAT(report.text, HasSubstr("its rules place everything already: nothing is left to"));
  EXPECT_THAT(report.text, HasSubstr("to search\n  policy.toml:3  at = \"**\"\n"));
  const Json json = Json::parse(report.json);
  EXPECT_TRUE(json["pinned"]);
  ASSERT_EQ(json["pinned_by"].size(), 1u);
  EXPECT_EQ(json["pinned_by"][0]["line"], 3);
  EXPECT_EQ(json["pinned_by"][0]["rule"], "**");
  EXPECT_EQ(read("policy.toml"), pinned);
  write("policy.toml", "policy = 1\nrules = [\n  { at = \"**\", run = \"gpu\" },\n]\n");
  EXPECT_FALSE(Json::parse(policy_auto(with, {}).json)["pinned"]) << "homes are left";
}

// Rules of the file are the reason why nothing fits; a rule about state, which they do not leave to
// the search, would make room.
TEST_F(PolicyAutoTest, PinningRulesThatDoNotFitAreNamedWithWhatWould) {
  PolicyOptions with = options("mlp", "policy.toml");
  const std::string first =
      "policy = 1\nauto = [\n  { at = \"**\", on = \"cpu\" },\n]\nrules = [\n"
      "  { at = \"**\", on = \"gpu\" },\n";
  write("policy.toml", first + "  { at = \"2.**\", param = \"gpu\" },\n]\n");
  write("less.toml", first + "  { at = \"**\", state = \"cpu\" },\n]\n");
  const auto peak = [&](const std::string& policy) {
    return plan(with, policy)["devices"]["gpu"]["peak"].get<std::size_t>();
  };
  const std::size_t most = peak("policy.toml"), least = peak("less.toml");
  ASSERT_LT(least, most);
  PolicyAutoOptions automatic;
  automatic.budgets = {"gpu=" + std::to_string((least + most) / 2) + "B"};
  const std::string before = read("policy.toml");
  try {
    policy_auto(with, automatic);
    FAIL() << read("policy.toml");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::does_not_fit);
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("these rules place everything, so that nothing is left to search: "
                                "policy.toml:6  at = \"**\", policy.toml:7  at = \"2.**\"; it "
                                "exceeds gpu"),
                      HasSubstr("{ at = \"**\", state = \"cpu\" }, which frees "),
                      HasSubstr("or raise the budget")));
  }
  EXPECT_EQ(read("policy.toml"), before);
}

TEST_F(PolicyAutoTest, AFasterListStays) {
  const PolicyOptions with = options("gpt", "fast.toml");
  policy_auto(with, {});
  const std::string found = read("fast.toml");
  PolicyAutoOptions hasty;
  hasty.most_plans = 1;
  EXPECT_THAT(policy_auto(with, hasty).text, HasSubstr("kept as it is"));
  EXPECT_EQ(read("fast.toml"), found);
}

TEST_F(PolicyAutoTest, SaysWithNumbersWhereNothingFits) {
  const PolicyOptions with = options("lenet5", "none.toml");
  PolicyAutoOptions automatic;
  automatic.budgets = {"gpu=1KiB", "cpu=2KiB"};
  automatic.most_plans = 80;
  try {
    policy_auto(with, automatic);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::does_not_fit);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("2.0 KiB"), HasSubstr("parameters"),
                                    HasSubstr("raise the budget")));
  }
  EXPECT_THAT(read("none.toml"), IsEmpty());
}

TEST_F(PolicyAutoTest, WhatIsMissingIsSaid) {
  const auto text = [](const auto& f) {
    try {
      f();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  PolicyOptions with = options("mlp", "new.toml");
  PolicyAutoOptions automatic;
  automatic.budgets = {"gpu:2GiB"};
  EXPECT_THAT(text([&] { policy_auto(with, automatic); }), HasSubstr("NAME=SIZE, like gpu=20GiB"));
  automatic.budgets = {"gpu=2GiB", "cpu=1GiB", "gpu=3GiB"};
  EXPECT_EQ(text([&] { policy_auto(with, automatic); }),
            "--budget: this device has a budget already: expected one budget a device, got "
            "\"gpu=2GiB\" and \"gpu=3GiB\"");
  automatic.budgets = {"gup=2GiB"};
  EXPECT_THAT(text([&] { policy_auto(with, automatic); }),
              AllOf(HasSubstr("--budget"), HasSubstr("did you mean gpu?")));
  automatic.budgets.clear();
  write("lost.toml", "policy = 1\nrules = [\n  { at = \"nowhere.**\", on = \"cpu\" },\n]\n");
  with.policy = folder_ / "lost.toml";
  EXPECT_THAT(text([&] { policy_auto(with, automatic); }), HasSubstr("lost.toml:3:10: nowhere.**"));
  write("old.toml", "policy = 1\nauto = [\n  { at = \"**\", no = \"key\" },\n]\n" +
                        std::string("rules = [ { at = \"nowhere\", on = \"cpu\" } ]\n"));
  with.policy = folder_ / "old.toml";  // its list is replaced, wrong or not
  EXPECT_THAT(text([&] { policy_auto(with, automatic); }),
              AllOf(HasSubstr("old.toml:5:18: nowhere: "), Not(HasSubstr("key"))));
  with.policy = folder_ / "new.toml";
  with.devices.clear();
  with.profile.clear();
  EXPECT_THAT(text([&] { policy_auto(with, automatic); }), HasSubstr("between which devices?"));
  automatic.budgets = {"gpu=1GiB"};
  setenv("CUDA_VISIBLE_DEVICES", "", 1);  // no GPU, whatever this machine has
  EXPECT_THAT(text([&] { policy_auto(with, automatic); }),
              AllOf(StartsWith("--budget: gpu: "), HasSubstr("try it with --device gpu=emulated:0"),
                    Not(HasSubstr(".toml"))));
  automatic.budgets = {"gpu=1GiB"};
  with.devices = {"far=cuda:63"};  // exists on no machine
  EXPECT_THAT(text([&] { policy_auto(with, automatic); }),
              AllOf(StartsWith("--budget: gpu: "), Not(HasSubstr(".toml"))));
  automatic.budgets.clear();
  EXPECT_THAT(text([&] { policy_auto(with, automatic); }),
              AllOf(StartsWith("--device: far: "), Not(HasSubstr(".toml"))));
  with.devices.clear();
  write("table.toml",
        "policy = 1\nauto = [\n  { at = \"**\", on = \"cpu\" },\n]\n"
        "devices = { far = { use = \"cuda:63\" } }\n");
  with.policy = folder_ / "table.toml";
  EXPECT_THAT(text([&] { policy_auto(with, automatic); }), HasSubstr("table.toml: devices.far: "));
  with.policy = folder_ / "new.toml";
  automatic.budgets = {"gpu01=1GiB"};
  EXPECT_THAT(text([&] { policy_auto(with, automatic); }), HasSubstr("--budget: unknown device"));
  automatic.budgets = {"gpu=1GiB"};
  unsetenv("CUDA_VISIBLE_DEVICES");
  with.profile = folder_ / "profile.json";
  EXPECT_EQ(text([&] { policy_auto(with, automatic); }), "no error");  // a plan needs no hardware
  with.policy.clear();
  EXPECT_THAT(text([&] { policy_auto(with, automatic); }), HasSubstr("which file?"));

  write("broken.json", R"({ "tandem_device_profile": 1, "devices": {
    "gpu": { "flops_per_secnd": 1, "bytes_per_second": -1 } } })");
  with.profile = folder_ / "broken.json";
  EXPECT_THAT(text([&] { policy_check(with); }),
              AllOf(HasSubstr("devices.gpu.flops_per_secnd: unknown key (did you mean "
                              "flops_per_second?)"),
                    HasSubstr("devices.gpu.bytes_per_second")));
}

TEST_F(PolicyAutoTest, LargeModelsGetFewerTries) {
  EXPECT_EQ(usual_plans(5), 600);
  EXPECT_EQ(usual_plans(100), 600);
  EXPECT_EQ(usual_plans(200), 150);  // a quarter for twice the operators
  EXPECT_EQ(usual_plans(1000), 75);
  EXPECT_EQ(usual_plans(1'000'000), 75);
}

TEST_F(PolicyAutoTest, ManyRulesAreNotAllTriedAway) {
  constexpr int operators = 48, searched = 8, most_trials = 16;
  testing::SmallModel model;
  model.input("x", {4, 8}).output("y", {4, 8});
  PolicyRules rules;
  for (int i = 0; i < operators; ++i) {
    const std::string name = "op_" + std::to_string(i);
    model.node("Relu", name, {i == 0 ? "x" : "v" + std::to_string(i - 1)},
               i + 1 == operators ? "y" : "v" + std::to_string(i));
    rules.push_back(rule_on(name, "gpu"));
  }
  write("flat.onnx", model.bytes());
  PolicyOptions with = options("mlp", "many.toml");
  with.model = folder_ / "flat.onnx";
  with.bind.clear();
  with.overrides.clear();
  PolicyCase open(with, PlacingArguments{.devices = with.devices, .text = "policy = 1\n"});
  AutoCase of(open, {"cpu", "gpu"}, {}, searched);
  of.check_devices();
  EXPECT_EQ(of.most_plans(), searched);
  of.simplified(rules);
  EXPECT_LE(of.plans(), 1 + most_trials);  // the rules themselves, then without each one of them
  EXPECT_FALSE(of.all_simplified());
  of.simplified({rules[0]});
  EXPECT_TRUE(of.all_simplified());
}

TEST_F(PolicyAutoTest, DevicesMayHaveAnyName) {
  PolicyOptions with = options("mlp", "named.toml");
  with.devices = {"my \"gpu\"=emulated:0,memory=256MiB"};
  with.profile.clear();
  PolicyAutoOptions automatic;
  automatic.most_plans = 1;
  policy_auto(with, automatic);
  EXPECT_THAT(
      read("named.toml"),
      HasSubstr(R"(devices = { "my \"gpu\"" = { use = "emulated:0", memory = "256MiB" } })"));
  // ${ is not replaced in keys.
  const PolicyOptions plain = options("mlp", "plain.toml");
  for (const char* name : {"${gpu}", "gpu.0", "é \\ #", "on"}) {
    with.devices = {std::string(name) + "=emulated:0,memory=256MiB"};
    with.policy = folder_ / "again.toml";
    std::remove((folder_ / "again.toml").c_str());
    policy_auto(with, automatic);
    write("again.toml",
          read("again.toml") + "rules = [ { at = \"**\", on = " + toml_string(name) + " } ]\n");
    PolicyOptions later = plain;
    later.devices.clear();
    later.profile.clear();
    EXPECT_TRUE(plan(later, "again.toml")["devices"].contains(name)) << read("again.toml");
  }
  with.policy = folder_.path();
  try {
    policy_auto(with, automatic);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), HasSubstr("this is a folder"));
  }
}

TEST_F(PolicyAutoTest, MeasuredTimesCanBeStoredAndTakenAgain) {
  PolicyOptions with = options("mlp", "measured.toml");
  with.profile.clear();
  PolicyAutoOptions automatic;
  automatic.most_plans = 60;
  automatic.measure = true;
  automatic.save_profile = folder_ / "stored.json";
  policy_auto(with, automatic);
  const Json stored = Json::parse(read("stored.json"));
  for (const char* device : {"cpu", "gpu"}) {
    const Json& kernels = stored["devices"][device]["kernel_seconds"];
    EXPECT_GE(kernels.size(), 5u) << device;
    for (const auto& [request, seconds] : kernels.items())
      EXPECT_GT(seconds.get<double>(), 0) << request;
  }
  const std::string text = read("measured.toml");
  with.profile = automatic.save_profile;
  automatic = {};
  automatic.most_plans = 60;
  automatic.to = folder_ / "taken.toml";
  policy_auto(with, automatic);
  EXPECT_EQ(read("taken.toml"), text);

  // A measured kernel has its measured time.
  PolicyOptions slow = options("mlp", "measured.toml");
  Json changed = stored;
  for (auto& [name, device] : changed["devices"].items()) {
    for (auto& [request, seconds] : device["kernel_seconds"].items()) seconds = 1.0;
  }
  write("slow.json", changed.dump());
  slow.profile = folder_ / "slow.json";
  EXPECT_GT(plan(slow, "measured.toml")["time"]["step_ms"].get<double>(), 1e3);
}

/// Seconds of a steady-state step by the virtual clock of the emulated devices.
double virtual_step(const PolicyOptions& options, double& predicted) {
  PolicyCase of(options);
  predicted = of.plan().seconds;
  const TrainingGraph training = of.training();
  const std::vector<Device*>& devices = of.devices();
  StateStore states;
  Program program(training.graph, of.placed().place(training.graph), of.engine().operators, devices,
                  states, make_arenas(), {});
  StepContext context;
  const auto run = [&](std::uint64_t steps, std::uint64_t from) {
    for (std::uint64_t ticket = from; ticket < from + steps; ++ticket) {
      for (std::size_t i = 0; i < training.graph.inputs.size(); ++i) {
        std::memset(program.input_slot(static_cast<int>(i), ticket), 0,
                    training.graph.type(training.graph.inputs[i].value).bytes());
      }
      context.step = ticket + 1;
      program.run(context, ticket);
    }
    for (Device* device : devices) device->synchronize();
    return of.engine().monitor->virtual_time();
  };
  constexpr std::uint64_t warm = 4, timed = 10;
  const double start = run(warm, 0);
  return (run(timed, warm) - start) / timed;
}

TEST_F(PolicyAutoTest, PoliciesRankAlikeInThePlanAndOnTheVirtualClock) {
  PolicyOptions with = options("gpt", "policy.toml");
  with.profile.clear();  // the emulated device only has assumed times
  with.devices = {"gpu=emulated:0,memory=256MiB,bandwidth=1GB/s,latency=20us"};
  with.overrides.push_back("threads=1");
  const char* policies[] = {R"({ at = "**", on = "gpu" })",
                            R"({ at = "**", on = "gpu" }, { at = "blocks.0.**", on = "cpu" })",
                            R"({ at = "**", on = "gpu" }, { at = "**:*", state = "cpu" })",
                            R"({ at = "**", on = "gpu" }, { at = "blocks.*.up.**", on = "cpu" })",
                            R"({ at = "**", on = "gpu", param = "cpu" , state = "cpu" })"};
  std::vector<std::pair<double, double>> times;
  for (const char* policy : policies) {
    write("policy.toml", std::string("policy = 1\nrules = [ ") + policy + " ]\n");
    double predicted = 0;
    const double emulated = virtual_step(with, predicted);
    std::printf("predicted %.4f ms, emulated %.4f ms  %s\n", predicted * 1e3, emulated * 1e3,
                policy);
    times.emplace_back(predicted, emulated);
  }
  std::sort(times.begin(), times.end());
  for (std::size_t i = 1; i < times.size(); ++i) {
    EXPECT_GT(times[i].first, times[i - 1].first * 1.01) << "too close to tell";
    EXPECT_GT(times[i].second, times[i - 1].second);
  }
}

TEST_F(PolicyAutoTest, ProgressTellsTheBestSoFar) {
  write("policy.toml", "policy = 1\n");
  PolicyAutoOptions automatic;
  automatic.budgets = {"gpu=64MiB"};
  std::vector<int> counts;
  std::vector<double> best;
  automatic.on_progress = [&](int plans, int most, double best_ms) {
    EXPECT_LE(plans, most);
    counts.push_back(plans);
    best.push_back(best_ms);
  };
  const Json report = Json::parse(policy_auto(options("mlp", "policy.toml"), automatic).json);
  ASSERT_FALSE(counts.empty());
  EXPECT_TRUE(std::is_sorted(counts.begin(), counts.end()));
  for (std::size_t i = 1; i < best.size(); ++i) {
    if (best[i - 1] >= 0) {
      EXPECT_LE(best[i], best[i - 1]);
    }
  }
  EXPECT_FALSE(report["stopped"]);
}

TEST_F(PolicyAutoTest, AStoppedSearchWritesTheBestSoFar) {
  write("policy.toml", "policy = 1\n");
  PolicyAutoOptions automatic;
  automatic.budgets = {"gpu=64MiB"};
  int plans = 0;
  automatic.on_progress = [&](int count, int, double best_ms) {
    plans = count;
    if (best_ms >= 0) automatic.stop.request_stop();
  };
  const Report report = policy_auto(options("mlp", "policy.toml"), automatic);
  EXPECT_TRUE(Json::parse(report.json)["stopped"]);
  EXPECT_THAT(report.text, HasSubstr("interrupted: the best of these"));
  EXPECT_LT(plans, 100);
  EXPECT_THAT(report.text, AnyOf(HasSubstr("auto = ["), HasSubstr("kept as it is")));
}

}  // namespace
}  // namespace tandem::api
