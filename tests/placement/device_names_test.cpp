// Names of devices: which exist, what two names for one device have in common, and which keys have
// no meaning for a device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/device_use.h"
#include "tests/placement/support.h"

namespace tandem::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Line 3 is a rule for everything on `first`, line 4 one for the head on `second`, line 6 is where
// `tables` begin.
std::string on_two(const std::string& first, const std::string& second, const std::string& tables) {
  return "rules = [\n{ at = \"**\", on = \"" + first + "\" },\n{ at = \"{head,norm}.**\", on = \"" +
         second + "\" },\n]\n" + tables;
}

std::string on(const std::string& name) {
  return "rules = [\n{ at = \"**\", on = \"" + name + "\" },\n]\n";
}

// A machine without accelerators.
ResolveOptions bare() {
  ResolveOptions options;
  options.bindings = {DeviceBinding{.name = "cpu"}};
  return options;
}

TEST(DeviceUse, NumbersAreZeroToSixtyThreeWithoutLeadingZeros) {
  for (const char* good : {"0", "9", "10", "63"}) {
    EXPECT_EQ(device_number(good), std::stoi(good)) << good;
  }
  for (const char* bad :
       {"", "00", "01", "64", "099", "-1", "+1", " 1", "1 ", "1.", "0x1", "99999999999999999999"}) {
    EXPECT_EQ(device_number(bad), std::nullopt) << bad;
  }
}

TEST(DeviceUse, NamesAndUsesHaveOneRange) {
  EXPECT_EQ(builtin_use("cpu"), "cpu");
  EXPECT_EQ(builtin_use("gpu"), "cuda:local");
  EXPECT_EQ(builtin_use("gpu63"), "cuda:63");
  EXPECT_EQ(builtin_use("emulated:63"), "emulated:63");
  for (const char* name : {"gpu64", "gpu01", "gpu-1", "emulated:", "emulated:64", "emulated:00",
                           "cuda:0", "cuda:local", "card"}) {
    EXPECT_EQ(builtin_use(name), "") << name;
  }
  for (const char* use : {"cpu", "cuda:local", "cuda:0", "cuda:63", "emulated:0", "emulated:63"}) {
    EXPECT_TRUE(is_device_use(use)) << use;
  }
  for (const char* use : {"", "gpu", "cuda", "cuda:", "cuda:64", "cuda:01", "emulated:-1",
                          "emulated:00", "cuda:locale"}) {
    EXPECT_FALSE(is_device_use(use)) << use;
  }
  EXPECT_EQ(builtin_name("cuda:local"), "gpu");
  EXPECT_EQ(builtin_name("cuda:3"), "gpu3");
  EXPECT_EQ(builtin_name("cuda:03"), "");
  EXPECT_EQ(builtin_name("emulated:0"), "");
}

TEST(DeviceNames, OneDeviceHasOneName) {
  EXPECT_EQ(only_error(on("gpu01")), "3:19 unknown device (did you mean \"gpu1\"?)");
  EXPECT_EQ(only_error(on("emulated:00")), "3:19 unknown device (did you mean \"emulated:0\"?)");
  EXPECT_EQ(only_error(on("gpu64")), "3:19 unknown device");
  EXPECT_EQ(errors_of(on("gpu64"))[0].expected, "gpu0 to gpu63, without leading zeros");
  EXPECT_EQ(only_error(on("gpu63"), {}, {.machine = {"cuda:0"}}),
            "3:19 this machine has no cuda:63 (try it with --device gpu63=emulated:0)");
}

TEST(DeviceNames, WhatUseSaysIsNoNameOfARule) {
  EXPECT_EQ(only_error(on("cuda:0")), "3:19 unknown device (did you mean \"gpu0\"?)");
  EXPECT_EQ(only_error(on("cuda:12")), "3:19 unknown device (did you mean \"gpu12\"?)");
  EXPECT_EQ(only_error(on("cuda:local")), "3:19 unknown device (did you mean \"gpu\"?)");
  EXPECT_EQ(only_error("devices = { a = { use = \"gpu\" } }\n"),
            "2:25 unknown device (did you mean \"cuda:local\"?)");
  EXPECT_EQ(only_error("devices = { a = { use = \"gpu3\" } }\n"),
            "2:25 unknown device (did you mean \"cuda:3\"?)");
}

TEST(DeviceNames, NumbersThatNoDeviceHas) {
  const std::vector<Diagnostic> large = errors_of("devices = { gpu = { use = \"cuda:99\" } }\n");
  ASSERT_EQ(large.size(), 1u);
  EXPECT_EQ(to_string(large[0]),
            "folder/policy.toml:2:27: devices.gpu.use: no device has this number: expected cuda:0 "
            "to cuda:63, without leading zeros, got string \"cuda:99\"");
  EXPECT_EQ(only_error("devices = { gpu = { use = \"emulated:00\" } }\n"),
            "2:27 no device has this number (did you mean \"emulated:0\"?)");
}

TEST(DeviceNames, WhatIsWrongInTheTableIsNotSaidAgainAtTheRules) {
  const auto error = [](const std::string& device) {
    return only_error("devices = { gpu = " + device + " }\n" + on("gpu"), {}, bare());
  };
  EXPECT_EQ(error("{ use = \"emulated:-1\" }"), "2:27 no device has this number");
  EXPECT_EQ(error("{ use = \"coda:0\" }"), "2:27 unknown device (did you mean \"cuda:0\"?)");
  EXPECT_EQ(error("{ use = 5 }"), "2:27 wrong type");
  EXPECT_EQ(error("{ memory = \"2 Gb\" }"), "2:30 not a size");
  EXPECT_EQ(error("{ memory = 5 }"), "2:30 wrong type");
  EXPECT_EQ(error("{ uses = \"cuda:0\" }"), "2:21 unknown key (did you mean `devices.gpu.use`?)");
  EXPECT_EQ(error("\"emulated:0\""), "2:19 wrong type");
  EXPECT_THAT(error("{ memory = \"2GiB\" }"), HasSubstr("no accelerator"))
      << "nothing else is wrong";
}

TEST(DeviceNames, TwoLimitsOfOneDeviceAreAnError) {
  const std::vector<Diagnostic> errors =
      errors_of(on_two("a", "c",
                       "[devices.a]\nuse = \"emulated:0\"\nmemory = \"64MiB\"\n"
                       "[devices.c]\nuse = \"emulated:0\"\nmemory = \"1KiB\"\n"));
  ASSERT_EQ(errors.size(), 1u) << "once, for parameters and operators, in all rules";
  EXPECT_EQ(to_string(errors[0]),
            "folder/policy.toml:11:10: devices.c.memory: a and c are one device, emulated:0, and "
            "do not agree: expected \"64MiB\", as policy.toml:8 says, got \"1KiB\" (say it once, "
            "or give one of the names another `use`)");
  EXPECT_EQ(only_error(on_two("gpu", "cpu",
                              "[devices.gpu]\nuse = \"cpu\"\nmemory = \"1KiB\"\n"
                              "[devices.cpu]\nmemory = \"90%\"\n"),
                       {}, bare()),
            "8:10 cpu and gpu are one device, cpu, and do not agree (say it once, or give one of "
            "the names another `use`)");
  EXPECT_EQ(only_error(on_two("a", "c",
                              "[devices.a]\nuse = \"emulated:0\"\nlatency = \"10us\"\n"
                              "[devices.c]\nuse = \"emulated:0\"\nlatency = \"20us\"\n"))
                .substr(0, 5),
            "11:11");
}

TEST(DeviceNames, TwoLimitsFromTheCommandLine) {
  ResolveOptions options;
  options.bindings =
      parse_device_arguments({"gpu=emulated:0,memory=2GiB", "big=emulated:0,memory=3GiB"});
  const std::vector<Diagnostic> errors = errors_of(on_two("gpu", "big", ""), {}, options);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].file, "--device");
  EXPECT_EQ(errors[0].line, 2);
  EXPECT_EQ(errors[0].column, 23);
  EXPECT_EQ(errors[0].expected, "\"2GiB\", as --device:1 says");
}

TEST(DeviceNames, WhatIsSaidOfOneNameHoldsForTheDevice) {
  const ResolvedPolicy host =
      resolve_text(on("gpu") + "[devices.gpu]\nuse = \"cpu\"\nmemory = \"1KiB\"\n", {}, bare());
  ASSERT_EQ(host.devices.size(), 1u);
  EXPECT_EQ(host.devices[0].name, "cpu");
  EXPECT_EQ(host.devices[0].binding.memory_bytes, 1024u);

  const ResolvedPolicy both =
      resolve_text(on_two("a", "c",
                          "[devices.a]\nuse = \"emulated:0\"\nlatency = \"10us\"\n"
                          "[devices.c]\nuse = \"emulated:0\"\nlatency = \"10us\"\n"
                          "memory = \"1KiB\"\n"));
  ASSERT_EQ(both.devices.size(), 2u);
  EXPECT_EQ(both.devices[1].binding.memory_bytes, 1024u);
  EXPECT_EQ(both.devices[1].binding.where_of("memory").line, 12);
}

TEST(DeviceNames, ANameThatNoRuleUsesSaysNothing) {
  const ResolvedPolicy resolved =
      resolve_text(on("a") +
                   "[devices.a]\nuse = \"emulated:0\"\nmemory = \"64MiB\"\n"
                   "[devices.c]\nuse = \"emulated:0\"\nmemory = \"1KiB\"\n");
  EXPECT_EQ(resolved.devices[1].binding.memory_bytes, 64u << 20);
}

std::vector<std::string> device_warnings_of(const std::string& text,
                                            const ResolveOptions& options) {
  std::vector<std::string> all;
  for (const Diagnostic& d : resolve_text(text, {}, options).warnings) {
    all.push_back(std::to_string(d.line) + ":" + std::to_string(d.column) + " " + d.path + ": " +
                  d.message);
  }
  return all;
}

TEST(DeviceWarnings, KeysThatDoNothingForADevice) {
  const std::string link = "bandwidth = \"25GB/s\"\nlatency = \"10us\"\n";
  EXPECT_THAT(
      device_warnings_of(
          on("gpu") + "[devices.gpu]\nuse = \"cuda:local\"\n" + link + "threads = 4\n",
          {.machine = {"cuda:0"}}),
      ElementsAre("7:13 devices.gpu.bandwidth: does not change the link of cuda:0: only times that "
                  "plans predict",
                  "8:11 devices.gpu.latency: does not change the link of cuda:0: only times that "
                  "plans predict",
                  "9:11 devices.gpu.threads: does nothing for cuda:0: it is of the cpu"));
  EXPECT_THAT(
      device_warnings_of(on("cpu") + "[devices.cpu]\nbandwidth = \"25GB/s\"\nthreads = 4\n", {}),
      ElementsAre("6:13 devices.cpu.bandwidth: does nothing for the cpu: it is of an "
                  "emulated device's link"));
  EXPECT_THAT(device_warnings_of(on("far") + "[devices.far]\nuse = \"emulated:1\"\n" + link +
                                     "[devices.cpu]\nthreads = \"physical\"\n",
                                 {}),
              IsEmpty());
}

}  // namespace
}  // namespace tandem::testing
