// Names of devices: which exist, what two names for one device have in common. Mistakes:
// tests/expected/policy_file/devices.txt.
#include <gtest/gtest.h>

#include "placement/device_use.h"
#include "tests/placement/support.h"

namespace tandem::testing {
namespace {

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

}  // namespace
}  // namespace tandem::testing
