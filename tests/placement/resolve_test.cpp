// The result of rules: precedence, what follows from what, filters, reasons, warnings.
#include "placement/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "placement/derive.h"
#include "placement/structure.h"
#include "tests/placement/support.h"

namespace tandem::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> warnings_of(const ResolvedPolicy& resolved) {
  std::vector<std::string> texts;
  for (const Diagnostic& d : resolved.warnings) {
    texts.push_back(std::to_string(d.line) + ":" + std::to_string(d.column) + " " + d.message);
  }
  return texts;
}

TEST(Resolve, WithoutRulesEverythingIsOnTheDefaultDevice) {
  const ResolvedPolicy resolved = resolve_text("", {}, {.default_reason = "device = \"cpu\""});
  EXPECT_EQ(resolved.devices.size(), 1u);
  EXPECT_EQ(run_of(resolved, "embed.Gather"), "cpu");
  EXPECT_EQ(home_of(resolved, "head:weight"), "cpu/cpu");
  EXPECT_EQ(resolved.find_node("embed.Gather")->run.reason.text, "device = \"cpu\"");
  EXPECT_EQ(resolved.find_node("embed.Gather")->run.reason.layer, Layer::builtin);
  EXPECT_EQ(resolved.find_node("nothing"), nullptr);
  EXPECT_EQ(resolved.find_parameter("nothing"), nullptr);
  EXPECT_THAT(resolved.warnings, IsEmpty());
}

TEST(Resolve, OnSetsAllThreeAndExplicitOnesWin) {
  const ResolvedPolicy resolved =
      resolve_text(rules("{ at = \"embed.**\", on = \"gpu\", state = \"cpu\" },\n"
                         "{ at = \"layers.0.**\", param = \"cpu\", on = \"gpu\" },"));
  EXPECT_EQ(run_of(resolved, "embed.Gather"), "gpu");
  EXPECT_EQ(home_of(resolved, "embed:weight"), "gpu/cpu");
  EXPECT_EQ(home_of(resolved, "layers.0.weight"), "cpu/gpu");
}

TEST(Resolve, UnsetParamFollowsItsReaderAndUnsetStateFollowsParam) {
  const ResolvedPolicy resolved =
      resolve_text(rules("{ at = \"layers.0.MatMul\", run = \"gpu\" },\n"
                         "{ at = \"layers.1:weight\", param = \"gpu\" },"));
  EXPECT_EQ(home_of(resolved, "layers.0:weight"), "gpu/gpu");
  EXPECT_EQ(home_of(resolved, "layers.0:bias"), "cpu/cpu");
  EXPECT_EQ(home_of(resolved, "layers.1:weight"), "gpu/gpu");
  const ParameterAttributes& weight = *resolved.find_parameter("layers.0:weight");
  EXPECT_EQ(weight.param.reason.text, "follows layers.0.MatMul (policy.toml:3)");
  EXPECT_TRUE(weight.param.reason.follows);
  EXPECT_THAT(weight.state.reason.text, HasSubstr("follows param"));
  EXPECT_THAT(weight.readers, ElementsAre("layers.0.MatMul"));
}

TEST(Resolve, LaterLayersWinAttributeByAttribute) {
  const ResolvedPolicy resolved = resolve_text(
      "rules = [\n{ at = \"layers.**\", state = \"cpu\" },\n]\n"
      "auto = [\n{ at = \"**\", on = \"gpu\" },\n]\n",
      {"{ at = \"layers.1.**\", run = \"cpu\" }"});
  const ParameterAttributes& weight = *resolved.find_parameter("layers.1:weight");
  EXPECT_EQ(home_of(resolved, "layers.1:weight"), "gpu/cpu");
  EXPECT_EQ(weight.state.reason.layer, Layer::rules);
  EXPECT_EQ(weight.state.reason.text, "policy.toml:3");
  EXPECT_EQ(weight.param.reason.layer, Layer::automatic);
  EXPECT_EQ(run_of(resolved, "layers.1.MatMul"), "cpu");
  EXPECT_EQ(resolved.find_node("layers.1.MatMul")->run.reason.text, "--place:1");
  EXPECT_EQ(run_of(resolved, "layers.0.MatMul"), "gpu");
}

TEST(Resolve, ReasonsListWhatTheyOverrode) {
  const ResolvedPolicy resolved =
      resolve_text(rules("{ at = \"**\", on = \"gpu\" },\n{ at = \"layers.**\", on = \"cpu\" },\n"
                         "{ at = \"layers.10.**\", on = \"gpu\", why = \"as an example\" },"));
  const Reason& reason = resolved.find_node("layers.10.Add")->run.reason;
  EXPECT_EQ(reason.rule, 2);
  EXPECT_EQ(reason.text, "policy.toml:5");
  EXPECT_THAT(reason.overridden, ElementsAre(1, 0));
  EXPECT_THAT(resolved.find_node("layers.1.Add")->run.reason.overridden, ElementsAre(0));
  EXPECT_THAT(resolved.find_node("norm.Add")->run.reason.overridden, IsEmpty());
  EXPECT_EQ(resolved.rules[2].matched, (ItemCounts{.operators = 3, .parameters = 2}));
  EXPECT_EQ(resolved.rules[2].decided, 3 + 2 * 2);
}

TEST(Resolve, RangesAndAnchorsAreExact) {
  const ResolvedPolicy resolved =
      resolve_text(rules("{ at = \"layers.{1..5}.**\", run = \"gpu\" },\n"
                         "{ at = \"layers.1\", param = \"gpu\" },"));
  EXPECT_EQ(run_of(resolved, "layers.0.Add"), "cpu");
  EXPECT_EQ(run_of(resolved, "layers.1.Add"), "gpu");
  EXPECT_EQ(run_of(resolved, "layers.10.Add"), "cpu");
  EXPECT_EQ(home_of(resolved, "layers.10:bias"), "cpu/cpu");
}

TEST(Resolve, FiltersByOperatorAndSize) {
  const ResolvedPolicy resolved =
      resolve_text(rules("{ at = \"**\", op = \"MatMul\", on = \"gpu\" },\n"
                         "{ at = \"**\", min = \"3KiB\", state = \"gpu\" },"));
  EXPECT_EQ(run_of(resolved, "layers.1.MatMul"), "gpu");
  EXPECT_EQ(run_of(resolved, "layers.1.Add"), "cpu");
  EXPECT_EQ(home_of(resolved, "layers.1:weight"), "gpu/gpu");
  EXPECT_EQ(home_of(resolved, "layers.1:bias"), "cpu/cpu");
  EXPECT_EQ(home_of(resolved, "embed:weight"), "cpu/gpu") << "3,200 bytes";
  const ResolvedPolicy readers =
      resolve_text(rules("{ at = \"**\", min = \"3KiB\", run = \"gpu\" },"));
  EXPECT_EQ(run_of(readers, "embed.Gather"), "gpu") << "it reads a large parameter";
  EXPECT_EQ(run_of(readers, "layers.0.MatMul"), "cpu");
}

TEST(Resolve, AViewOfAParameterBelongsToWhatReadsIt) {
  const ResolvedPolicy resolved = resolve_text(rules("{ at = \"head.MatMul\", on = \"gpu\" },"));
  EXPECT_EQ(run_of(resolved, "head.Transpose"), "gpu");
  EXPECT_EQ(home_of(resolved, "head:weight"), "gpu/gpu");
  const ResolvedPolicy placed = resolve_text(rules(
      "{ at = \"head.MatMul\", run = \"gpu\" },\n{ at = \"head.Transpose\", run = \"cpu\" },"));
  EXPECT_EQ(run_of(placed, "head.Transpose"), "cpu") << "a later rule that names it is honoured";
}

TEST(Resolve, DataFlowCones) {
  const ResolvedPolicy after =
      resolve_text(rules("{ at = \"**\", after = \"layers.1.Add\", on = \"gpu\" },"));
  EXPECT_EQ(run_of(after, "layers.1.Add"), "cpu");
  EXPECT_EQ(run_of(after, "layers.1.Relu"), "gpu");
  EXPECT_EQ(run_of(after, "head.MatMul"), "gpu");
  EXPECT_EQ(home_of(after, "layers.10:weight"), "gpu/gpu");
  EXPECT_EQ(home_of(after, "layers.1:bias"), "cpu/cpu");

  const ResolvedPolicy between = resolve_text(
      rules("{ at = \"**\", after = \"layers.0.Relu\", before = \"hidden\", on = \"gpu\" },"));
  EXPECT_EQ(run_of(between, "layers.0.Relu"), "cpu");
  EXPECT_EQ(run_of(between, "layers.1.MatMul"), "gpu");
  EXPECT_EQ(run_of(between, "layers.10.Relu"), "gpu") << "it makes the value";
  EXPECT_EQ(run_of(between, "norm.Add"), "cpu");
}

TEST(Resolve, BuffersLiveWhereTheyAreReadAndHaveNoStateOfTheirOwn) {
  const ResolvedPolicy resolved =
      resolve_text(rules("{ at = \"**\", run = \"gpu\" },\n{ at = \"**\", state = \"cpu\" },"));
  EXPECT_EQ(home_of(resolved, "norm.running_mean"), "gpu/gpu");
  EXPECT_EQ(home_of(resolved, "layers.0:weight"), "gpu/cpu");
}

TEST(Resolve, ActivationsLookaheadAndNeed) {
  const ResolvedPolicy resolved =
      resolve_text(rules("{ at = \"layers.*.Relu\", acts = \"recompute\" },\n"
                         "{ at = \"embed.**\", on = \"gpu\", lookahead = 2, need = \"prefer\" },"));
  EXPECT_EQ(resolved.find_node("layers.10.Relu")->acts.value, Activations::recompute);
  EXPECT_EQ(resolved.find_node("layers.10.Add")->acts.value, Activations::keep);
  EXPECT_EQ(resolved.find_node("embed.Gather")->lookahead.value, 2);
  EXPECT_EQ(resolved.find_parameter("embed.weight")->lookahead.value, 2);
  EXPECT_TRUE(resolved.find_node("embed.Gather")->run.reason.prefer);
  const std::vector<std::string> equal{"layers.0.Relu", "layers.1.Relu", "unknown"},
      different{"layers.0.Add", "layers.0.Relu"};
  EXPECT_TRUE(resolved.may_merge(equal));
  EXPECT_FALSE(resolved.may_merge(different));
}

TEST(Resolve, PartsThatAreAddedCanBeNamed) {
  const std::string text = rules(
      "{ at = \"loss.**\", run = \"gpu\" },\n{ at = \"optimizer.layers.0.**\", on = \"gpu\" },");
  EXPECT_EQ(home_of(resolve_text(text), "layers.0:weight"), "cpu/gpu");
  const ResolvedPolicy resolved = resolve_text(text, {}, {.added = {{"loss.ce", "Mul"}}});
  EXPECT_EQ(run_of(resolved, "loss.ce"), "gpu");
  EXPECT_TRUE(resolved.find_node("loss.ce")->added);
  EXPECT_THAT(only_error(rules("{ at = \"loss.cee\", run = \"gpu\" },"), {},
                         {.added = {{"loss.ce", "Mul"}}}),
              HasSubstr("did you mean \"loss.ce\"?"));
}

TEST(Resolve, RawNamesWork) {
  PlacementFacts facts;
  facts.raw_names["layers.0.MatMul"] = "/layers/0/MatMul";
  const ResolvedPolicy resolved =
      resolve_text(rules("{ at = \"/layers/0/MatMul\", run = \"gpu\" },\n{ at = \"head.weight\", "
                         "state = \"gpu\" },"),
                   {}, {}, facts);
  EXPECT_EQ(run_of(resolved, "layers.0.MatMul"), "gpu");
  EXPECT_EQ(run_of(resolved, "/layers/0/MatMul"), "gpu");
  EXPECT_EQ(home_of(resolved, "head:weight"), "cpu/gpu");
}

TEST(Resolve, NamesForOneDeviceAreOneDevice) {
  const ResolvedPolicy resolved = resolve_text(
      rules("{ at = \"embed.**\", on = \"gpu\" },\n{ at = \"head.**\", on = \"emulated:0\" },\n"
            "{ at = \"norm.**\", run = \"emulated:1\" },"));
  ASSERT_EQ(resolved.devices.size(), 3u);
  EXPECT_EQ(resolved.devices[1].name, "gpu");
  EXPECT_EQ(resolved.devices[1].use, "emulated:0");
  EXPECT_EQ(run_of(resolved, "head.MatMul"), "gpu");
  const ResolvedPolicy second = resolve_text(rules("{ at = \"embed.**\", on = \"gpu\" },"), {},
                                             {.machine = {"cuda:0", "cuda:1"}, .local = 1});
  EXPECT_EQ(second.devices[1].use, "cuda:1");
  EXPECT_EQ(second.devices[1].where.line, 3) << "what asks for it first";
}

TEST(Resolve, TheCommandLineOverlaysTheTableOfDevices) {
  ResolveOptions options;
  options.bindings = parse_device_arguments({"gpu=emulated:0,latency=10us"});
  const ResolvedPolicy resolved = resolve_text(
      "devices = { gpu = { use = \"cuda:local\", memory = \"2GiB\", bandwidth = \"25GB/s\" }, "
      "cpu = { memory = \"90%\", threads = \"physical\" } }\n" +
          rules("{ at = \"**\", on = \"gpu\" },"),
      {}, options);
  const DeviceBinding& gpu = resolved.devices[1].binding;
  EXPECT_EQ(gpu.use, "emulated:0");
  EXPECT_EQ(gpu.memory_bytes, 2ull << 30);
  EXPECT_DOUBLE_EQ(*gpu.bandwidth, 25e9);
  EXPECT_DOUBLE_EQ(*gpu.latency, 10e-6);
  EXPECT_DOUBLE_EQ(*resolved.devices[0].binding.memory_fraction, 0.9);
  EXPECT_EQ(*resolved.devices[0].binding.threads, 0);
}

TEST(ResolveWarnings, RulesWithoutEffect) {
  const ResolvedPolicy resolved =
      resolve_text(rules("{ at = \"layers.0.**\", on = \"gpu\" },\n{ at = \"**\", on = \"cpu\" },"),
                   {"{ at = \"embed.**\", on = \"cpu\" }"});
  EXPECT_THAT(warnings_of(resolved),
              ElementsAre("3:1 this rule has no effect: overridden by policy.toml:4"));
}

TEST(ResolveWarnings, AScopeAloneCoversNoOperator) {
  const ResolvedPolicy resolved = resolve_text(rules("{ at = \"layers.0\", on = \"gpu\" },"));
  ASSERT_EQ(resolved.warnings.size(), 2u);
  EXPECT_EQ(resolved.warnings[0].column, 8);
  EXPECT_THAT(resolved.warnings[0].message, HasSubstr("no operator"));
  EXPECT_THAT(resolved.warnings[0].fix, HasSubstr("\"layers.0.**\""));
}

TEST(ResolveWarnings, HomesThatMoveBytesEveryStep) {
  const ResolvedPolicy state = resolve_text(
      rules("{ at = \"**\", on = \"gpu\" },\n{ at = \"layers.**:weight\", state = \"cpu\" },"));
  // three weights of 256 bytes: gradient to the host, weight back
  EXPECT_THAT(warnings_of(state), ElementsAre("4:36 state of 3 parameters on cpu, read on gpu: "
                                              "1.5 KiB cross every step"));
  const ResolvedPolicy weight = resolve_text(
      rules("{ at = \"**\", on = \"gpu\" },\n{ at = \"layers.0:weight\", param = \"cpu\" },"));
  // the weight twice and the refreshed weight; its gradient stays
  EXPECT_THAT(warnings_of(weight), ElementsAre("4:35 weights of 1 parameter on cpu, read on gpu: "
                                               "768 B cross every step"));
}

TEST(ResolveWarnings, AnotherModel) {
  const std::string hash = structure_hash(shared_graph());
  EXPECT_THAT(hash, ::testing::StartsWith("sha256:"));
  EXPECT_THAT(
      resolve_text("model = { file = \"m.onnx\", structure = \"" + hash + "\" }\n").warnings,
      IsEmpty());
  const ResolvedPolicy other = resolve_text("model = { structure = \"sha256:00\" }\n");
  EXPECT_THAT(warnings_of(other), ElementsAre("2:9 this policy was made for another model"));
}

TEST(ResolveWarnings, AnotherModelsFile) {
  const std::string own = std::filesystem::absolute("folder/own.onnx").string();
  const std::string hash = structure_hash(shared_graph());
  const auto warnings = [&](const std::string& model) {
    return resolve_text("model = " + model + "\n", {}, {.model_file = own}).warnings;
  };
  EXPECT_THAT(warnings("\"own.onnx\""), IsEmpty());
  EXPECT_THAT(warnings("{ file = \"../folder/own.onnx\" }"), IsEmpty());
  // A file may be renamed: where there is a hash, it decides.
  EXPECT_THAT(warnings("{ file = \"old.onnx\", structure = \"" + hash + "\" }"), IsEmpty());
  EXPECT_EQ(warnings("{ file = \"own.onnx\", structure = \"sha256:00\" }").size(), 1u);
  for (const char* model : {"\"other.onnx\"", "{ file = \"other.onnx\" }"}) {
    const std::vector<Diagnostic> found = warnings(model);
    ASSERT_EQ(found.size(), 1u) << model;
    EXPECT_EQ(to_string(found[0]),
              "folder/policy.toml:2:9: model: this policy was made for another model: expected " +
                  std::filesystem::absolute("folder/other.onnx").string() + ", got " + own +
                  " (check it with `tandem policy check`, then update or remove `model`; model = { "
                  "structure = \"" +
                  hash + "\" } means any file of its graph)");
  }
}

TEST(ForwardPlacement, LeavesAddedPartsOpenThatNoRulePlaced) {
  const ResolvedPolicy resolved =
      resolve_text(rules("{ at = \"layers.0.**\", on = \"gpu\", state = \"cpu\" },\n"
                         "{ at = \"loss.ce\", run = \"gpu\" },"),
                   {}, {.added = {{"loss.ce", "Mul"}, {"loss.total", "Add"}}});
  const ForwardPlacement forward = forward_placement(resolved);
  EXPECT_FALSE(forward.nodes.contains("loss.total"));
  EXPECT_EQ(forward.nodes.at("loss.ce").device, 1);
  EXPECT_EQ(forward.nodes.at("layers.0.Add").reason, "policy.toml:3");
  const PlacedState& weight = forward.parameters.at("layers.0.weight");
  EXPECT_EQ(weight.param, 1);
  EXPECT_EQ(weight.state, 0);
  EXPECT_THAT(derive_placement(shared_graph(), resolved).devices, ElementsAre("cpu", "gpu"));
}

}  // namespace
}  // namespace tandem::testing
