// Policies that name GPUs: a missing GPU is reported where the policy asks for it, with a way to do
// without it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "api/policy/policy_case.h"
#include "kernels/emulated/emulated_device.h"
#include "placement/report/fit.h"
#include "tests/api/cuda_reports.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using ::testing::HasSubstr;

DeviceReport one_gpu(int ordinal, const std::string& problem) {
  DeviceReport report;
  report.toolkit = report.driver = "13.0";
  report.devices = {{ordinal, "Tesla P4", std::size_t{8} << 30, 0, 6, 1, problem}};
  return report;
}

class PolicyGpus : public ::testing::Test {
 protected:
  PolicyOptions options(const std::string& policy) const {
    PolicyOptions options;
    options.model = source_folder() + "/models/digits/model.onnx";
    options.bind = {{"batch", 4}};
    options.policy = folder_ / "policy.toml";
    std::ofstream(options.policy) << "policy = 1\n" + policy;
    return options;
  }
  PlacingArguments with(const DeviceReport& report, decltype(DeviceBackend::open) open = {}) {
    PlacingArguments placing;
    placing.machine = machine_with_gpus(
        [this, report] {
          ++looked_;
          return report;
        },
        std::move(open));
    return placing;
  }
  /// Returns the only error.
  Diagnostic error_of(const std::string& policy, const PlacingArguments& placing) const {
    try {
      PolicyCase(options(policy), placing).devices();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_EQ(error.diagnostics().size(), 1u) << error.what();
      return error.diagnostics()[0];
    }
    ADD_FAILURE() << "no error";
    return {};
  }

  testing::TemporaryFolder folder_;
  int looked_ = 0;
};

TEST_F(PolicyGpus, AMissingGpuIsSaidAtTheRule) {
  const std::string on_gpu =
      "rules = [\n  { at = \"conv1.**\", on = \"gpu\" },\n"
      "  { at = \"**\", on = \"gpu\" },\n]\n";
  const Diagnostic d = error_of(on_gpu, with(without_driver()));
  EXPECT_EQ(d.file, folder_ / "policy.toml");
  EXPECT_EQ(d.line, 3);
  EXPECT_EQ(d.message, "this machine has no NVIDIA driver");
  EXPECT_EQ(d.got, "\"gpu\"");
  EXPECT_EQ(d.fix, "install one; or try it with --device gpu=emulated:0");
  EXPECT_EQ(looked_, 1);
  const Diagnostic old = error_of("devices = { gpu = { use = \"cuda:1\" } }\n" + on_gpu,
                                  with(one_gpu(1, "it is too old")));
  EXPECT_EQ(old.message, "cuda:1 (Tesla P4) cannot be used: it is too old");
  EXPECT_EQ(old.line, 4);
}

TEST_F(PolicyGpus, NobodyLooksForGpusThatNoRuleUses) {
  PolicyCase of(options("devices = { gpu = { use = \"emulated:0\" }, big = { use = \"cuda:1\" } }\n"
                        "rules = [\n  { at = \"conv1.**\", on = \"gpu\" },\n]\n"),
                with(without_driver()));
  EXPECT_EQ(of.devices().size(), 2u);
  EXPECT_EQ(looked_, 0);
}

TEST_F(PolicyGpus, WhatKeepsADeviceFromStartingIsSaidAtTheRuleToo) {
  const Diagnostic d = error_of(
      "devices = { far = { use = \"cuda:63\" } }\nrules = [\n  { at = \"conv1.**\", on = \"far\" "
      "},\n]\n",
      with(one_gpu(63, "")));  // exists on no machine
  EXPECT_EQ(d.file, folder_ / "policy.toml");
  EXPECT_EQ(d.line, 4);
  EXPECT_THAT(d.fix, HasSubstr("try it with --device far=emulated:0"));
  EXPECT_NE(d.message, "");
}

TEST_F(PolicyGpus, ATestMayMakeAGpuThatIsNotThere) {
  PlacingArguments placing = with(without_driver());
  std::string use;
  placing.make_device = [&](const ResolvedDevice& device,
                            const std::shared_ptr<OrderChecker>& monitor) {
    use = device.use;
    EmulatedOptions emulated;
    emulated.name = device.name;
    emulated.monitor = monitor;
    return make_emulated_device(emulated);
  };
  PolicyCase of(options("rules = [\n  { at = \"conv1.**\", on = \"gpu3\" },\n]\n"), placing);
  EXPECT_EQ(of.devices().size(), 2u);
  EXPECT_EQ(use, "cuda:3");
  EXPECT_EQ(looked_, 0);
}

TEST_F(PolicyGpus, APartOfTheMemoryIsTakenOnce) {
  PolicyCase of(options("devices = { gpu = { use = \"emulated:0\", memory = \"50%\" } }\n"
                        "rules = [\n  { at = \"conv1.**\", on = \"gpu\" },\n]\n"),
                PlacingArguments{});
  const std::size_t capacity = of.devices()[1]->memory_bytes();
  EXPECT_EQ(capacity, std::size_t{1} << 30) << "half of an emulated device";
  EXPECT_EQ(memory_limit(of.resolved().devices[1], *of.devices()[1]), capacity);
}

TEST_F(PolicyGpus, ALimitHoldsForAllNamesOfADevice) {
  const std::string rules =
      "rules = [\n  { at = \"conv1.**\", on = \"a\" },\n  { at = \"conv2.**\", on = \"c\" },\n]\n";
  const std::string limited = "c = { use = \"emulated:0\", memory = \"64MiB\" } }\n" + rules;
  PolicyCase of(options("devices = { a = { use = \"emulated:0\" }, " + limited));
  ASSERT_EQ(of.devices().size(), 2u);
  EXPECT_EQ(of.devices()[1]->memory_bytes(), std::size_t{64} << 20);
  const Diagnostic d =
      error_of("devices = { a = { use = \"emulated:0\", memory = \"1KiB\" }, " + limited, {});
  EXPECT_EQ(d.path, "devices.c.memory");
  EXPECT_EQ(d.line, 2);
  EXPECT_EQ(d.expected, "\"1KiB\", as policy.toml:2 says");
}

TEST_F(PolicyGpus, Tf32IsAskedOfAGpuOnlyWhereTheConfigurationAsks) {
  const std::string on_gpu =
      "devices = { big = { use = \"cuda:1\" } }\n"
      "rules = [\n  { at = \"conv1.**\", on = \"big\" },\n]\n";
  for (const char* key : {"", "precision.tf32=false", "precision.tf32=true"}) {
    const bool asked = std::string(key) == "precision.tf32=true";
    PolicyOptions options = this->options(on_gpu);
    if (*key != '\0') options.overrides = {key};
    std::vector<bool> allowed;
    const auto in_software = [&](const DeviceRequest& request) {
      allowed.push_back(request.allow_tf32);
      EmulatedOptions emulated;
      emulated.name = request.name;
      emulated.monitor = request.monitor;
      return make_emulated_device(emulated);
    };
    PolicyCase of(options, with(one_gpu(1, ""), in_software));
    EXPECT_EQ(of.devices().size(), 2u);
    EXPECT_EQ(allowed, std::vector<bool>{asked}) << key;
    EXPECT_TRUE(of.resolved().notes.empty()) << to_string(of.resolved().notes[0]);
  }
}

TEST_F(PolicyGpus, OrderIsCheckedOfGpusOnlyWhereThatIsAskedFor) {
#ifdef NDEBUG
  constexpr bool by_itself = false;
#else
  constexpr bool by_itself = true;
#endif
  const std::string gpu = "rules = [\n  { at = \"conv1.**\", on = \"big\" },\n";
  const std::string both =
      "devices = { big = { use = \"cuda:1\" }, other = { use = \"emulated:0\" } }\n" + gpu +
      "  { at = \"conv2.**\", on = \"other\" },\n]\n";
  const std::string alone = "devices = { big = { use = \"cuda:1\" } }\n" + gpu + "]\n";
  const auto checked = [&](const std::string& policy, bool asked) {
    bool found = false;
    PlacingArguments placing = with(one_gpu(1, ""), [&](const DeviceRequest& request) {
      found = request.monitor->checks_order();
      EmulatedOptions emulated;
      emulated.name = request.name;
      return make_emulated_device(emulated);
    });
    placing.check_order = asked;
    PolicyCase of(options(policy), placing);
    of.devices();
    return found;
  };
  EXPECT_EQ(checked(alone, false), by_itself);
  EXPECT_TRUE(checked(alone, true));
  EXPECT_TRUE(checked(both, false)) << "of an emulated device it is checked always";
}

TEST_F(PolicyGpus, Tf32WithoutAGpuIsNoted) {
  for (const char* rules : {"rules = []\n",
                            "devices = { gpu = { use = \"emulated:0\" } }\n"
                            "rules = [\n  { at = \"conv1.**\", on = \"gpu\" },\n]\n"}) {
    PolicyOptions options = this->options(rules);
    EXPECT_TRUE(PolicyCase(options).resolved().notes.empty());
    options.overrides = {"precision.tf32=true"};
    PolicyCase of(options);
    of.devices();
    ASSERT_EQ(of.resolved().notes.size(), 1u);
    EXPECT_EQ(to_string(of.resolved().notes[0]),
              "precision.tf32 = true changes nothing: no device of this run is a GPU");
    const Report report = policy_check(options);
    const std::size_t first = report.text.find("precision.tf32");
    ASSERT_NE(first, std::string::npos) << report.text;
    EXPECT_EQ(report.text.find("precision.tf32", first + 1), std::string::npos) << report.text;
  }
}

}  // namespace
}  // namespace tandem::api
