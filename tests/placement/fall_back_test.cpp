// Devices without kernels: rules with need = "prefer" fall back, others are an error, and all of it
// is reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/placement/support.h"

namespace tandem::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Device 1 has no kernel for these, by path of the operator.
PlacementFacts without(const std::map<std::string, std::string>& missing) {
  PlacementFacts facts;
  for (const auto& [path, because] : missing) facts.refusals[{1, path}] = because;
  return facts;
}

std::vector<std::string> notes_of(const ResolvedPolicy& resolved) {
  std::vector<std::string> texts;
  for (const Diagnostic& d : resolved.notes) {
    texts.push_back(std::to_string(d.line) + ":" + std::to_string(d.column) + " " + d.path + ": " +
                    d.message);
  }
  return texts;
}

const std::map<std::string, std::string> no_gather{{"embed.Gather", "Gather: test.gather: never"}};

TEST(FallBack, ToTheBuiltInDeviceWithWhatOnlyTheOperatorReads) {
  const ResolvedPolicy resolved = resolve_text(
      rules("{ at = \"**\", on = \"gpu\", need = \"prefer\" },"), {}, {}, without(no_gather));
  EXPECT_EQ(run_of(resolved, "embed.Gather"), "cpu");
  EXPECT_EQ(home_of(resolved, "embed:weight"), "cpu/cpu");
  EXPECT_EQ(run_of(resolved, "layers.0.MatMul"), "gpu");
  EXPECT_EQ(home_of(resolved, "layers.0:weight"), "gpu/gpu");
  const Reason& reason = resolved.find_node("embed.Gather")->run.reason;
  EXPECT_EQ(reason.text, "default, as policy.toml:3 fell back");
  ASSERT_EQ(reason.fallen.size(), 1u);
  EXPECT_EQ(reason.fallen[0].rule, 0);
  EXPECT_EQ(reason.fallen[0].device, 1);
  EXPECT_EQ(reason.fallen[0].because, "Gather: test.gather: never");
  EXPECT_EQ(resolved.rules[0].fallen, 3);
  EXPECT_THAT(
      notes_of(resolved),
      ElementsAre("3:19 **: param fell back from gpu to cpu for embed:weight: nothing that reads "
                  "it can run there",
                  "3:19 **: run fell back from gpu to cpu for embed.Gather: Gather: test.gather: "
                  "never",
                  "3:19 **: state fell back from gpu to cpu for embed:weight: nothing that reads "
                  "it can run there"));
  EXPECT_THAT(resolved.warnings, IsEmpty());
}

TEST(FallBack, ToTheEarlierRule) {
  ResolveOptions options;
  options.bindings = parse_device_arguments({"gpu=emulated:0", "other=emulated:1"});
  const ResolvedPolicy resolved =
      resolve_text(rules("{ at = \"layers.**\", on = \"gpu\" },\n"
                         "{ at = \"embed.**\", on = \"other\" },\n"
                         "{ at = \"embed.**\", on = \"gpu\", need = \"prefer\" },"),
                   {}, options, without(no_gather));
  EXPECT_EQ(run_of(resolved, "embed.Gather"), "other");
  EXPECT_EQ(home_of(resolved, "embed:weight"), "other/other");
  EXPECT_THAT(resolved.find_node("embed.Gather")->run.reason.text, HasSubstr("policy.toml:4, as"));
}

TEST(FallBack, ALaterRuleDecidesAllTheSame) {
  const ResolvedPolicy resolved =
      resolve_text(rules("{ at = \"**\", on = \"gpu\", need = \"prefer\" },\n"
                         "{ at = \"embed.**\", on = \"cpu\" },"),
                   {}, {}, without(no_gather));
  const Reason& reason = resolved.find_node("embed.Gather")->run.reason;
  EXPECT_EQ(reason.rule, 1);
  EXPECT_THAT(reason.fallen, IsEmpty());
  EXPECT_THAT(reason.overridden, ElementsAre(0));
  EXPECT_THAT(resolved.notes, IsEmpty());
}

TEST(FallBack, AViewGoesWithTheOperatorsBehindIt) {
  const ResolvedPolicy resolved =
      resolve_text(rules("{ at = \"**\", on = \"gpu\", need = \"prefer\" },"), {}, {},
                   without({{"head.MatMul", "MatMul: none"}}));
  EXPECT_EQ(run_of(resolved, "head.Transpose"), "cpu");
  EXPECT_EQ(run_of(resolved, "head.MatMul"), "cpu");
  EXPECT_EQ(home_of(resolved, "head:weight"), "cpu/cpu");
}

TEST(FallBack, UpdatesFallBackAlone) {
  const std::map<std::string, std::string> no_update{
      {"optimizer.layers.0.weight", "AdamUpdate: none"}};
  const ResolvedPolicy both = resolve_text(
      rules("{ at = \"**\", on = \"gpu\", need = \"prefer\" },"), {}, {}, without(no_update));
  EXPECT_EQ(home_of(both, "layers.0:weight"), "gpu/cpu");
  EXPECT_EQ(home_of(both, "layers.1:weight"), "gpu/gpu");
  EXPECT_THAT(notes_of(both), ElementsAre("3:19 **: state fell back from gpu to cpu for "
                                          "layers.0:weight: AdamUpdate: none"));
  const ResolvedPolicy follows = resolve_text(
      rules("{ at = \"**\", run = \"gpu\", need = \"prefer\" },"), {}, {}, without(no_update));
  EXPECT_EQ(home_of(follows, "layers.0:weight"), "gpu/cpu");
  EXPECT_EQ(home_of(follows, "layers.0:bias"), "gpu/gpu");
  const ResolvedPolicy named = resolve_text(
      rules("{ at = \"optimizer.layers.0.weight\", on = \"gpu\", need = \"prefer\" },"), {}, {},
      without(no_update));
  EXPECT_EQ(home_of(named, "layers.0:weight"), "cpu/cpu");
}

TEST(FallBack, ReadersThatPartThatWayAreNoError) {
  const OperatorSet operators = all_operators();
  Graph tied = forward_graph(operators);
  const State& weight = *tied.find_state("layers.0.weight");
  for (Node& node : tied.nodes) {
    if (node.path == "layers.1.MatMul") node.inputs[1] = weight.initial;
  }
  ResolveOptions options;
  options.bindings = parse_device_arguments({"gpu=emulated:0"});
  const Policy policy = parse_policy(
      "policy = 1\nrules = [ { at = \"**.MatMul\", run = \"gpu\", need = \"prefer\" } ]\n",
      "p.toml");
  const ResolvedPolicy resolved =
      resolve(policy, tied, options, without({{"layers.0.MatMul", "MatMul: none"}}));
  EXPECT_EQ(home_of(resolved, "layers.0:weight"), "gpu/gpu") << "with the reader that is there";
}

TEST(FallBack, WithoutPreferItIsAnErrorAtTheRule) {
  EXPECT_EQ(only_error(rules("{ at = \"layers.**\", on = \"cpu\" },\n{ at = \"embed.**\", on = "
                             "\"gpu\" },"),
                       {}, {}, without(no_gather)),
            "4:25 gpu has no kernel for this operator (need = \"prefer\" lets the rule fall back; "
            "or add { at = \"embed.Gather\", run = \"cpu\" })");
  const std::vector<Diagnostic> errors =
      errors_of(rules("{ at = \"**\", run = \"gpu\" },"), {}, {},
                without({{"layers.0.Relu", "Relu: no half"}, {"layers.1.Relu", "Relu: none"}}));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].path, "layers.0.Relu");
  EXPECT_EQ(errors[0].got, "Relu: no half");
  EXPECT_EQ(errors[0].column, 20);
  EXPECT_EQ(errors[0].message,
            "gpu has no kernel for this operator, nor for 1 more that are placed there in the same "
            "way");
  EXPECT_EQ(only_error(rules("{ at = \"**:weight\", state = \"gpu\" },"), {}, {},
                       without({{"optimizer.head.weight", "AdamUpdate: none"}})),
            "3:29 gpu has no kernel for this parameter's update (need = \"prefer\" lets the rule "
            "fall back; or add { at = \"head:weight\", state = \"cpu\" })");
}

TEST(FallBack, WhatItFallsBackToMustHaveAKernelToo) {
  EXPECT_THAT(only_error(rules("{ at = \"**\", on = \"gpu\" },\n"
                               "{ at = \"embed.**\", run = \"gpu\", need = \"prefer\" },"),
                         {}, {}, without(no_gather)),
              HasSubstr("3:19 gpu has no kernel for this operator"));
  ResolveOptions options;
  options.default_device = "gpu";
  EXPECT_EQ(only_error("", {}, options, without(no_gather)),
            "0:0 gpu has no kernel for this operator (add the rule { at = \"embed.Gather\", run = "
            "\"cpu\" })");
}

}  // namespace
}  // namespace tandem::testing
