// The result of rules about devices, other models and added parts. Places with their reasons:
// tests/expected/policy_file/places.txt.
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

TEST(Resolve, WhatMayBecomeOneAndWhatMayFallBack) {
  const ResolvedPolicy resolved =
      resolve_text(rules("{ at = \"layers.*.Relu\", acts = \"recompute\" },\n"
                         "{ at = \"embed.**\", on = \"gpu\", lookahead = 2, need = \"prefer\" },"));
  EXPECT_TRUE(resolved.find_node("embed.Gather")->run.reason.prefer);
  const std::vector<std::string> equal{"layers.0.Relu", "layers.1.Relu", "unknown"},
      different{"layers.0.Add", "layers.0.Relu"};
  EXPECT_TRUE(resolved.may_merge(equal));
  EXPECT_FALSE(resolved.may_merge(different));
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
