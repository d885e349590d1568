// Errors of a policy about the machine and files. Those of its text:
// tests/expected/policy_file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "engine/formats/files.h"
#include "placement/policy_keys.h"
#include "placement/selectors/policy_schema.h"
#include "tests/harness/folders.h"
#include "tests/placement/support.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;

TEST(PolicyErrors, WhatAMissingDeviceLacksIsAskedOnceAName) {
  std::vector<std::string> asked;
  ResolveOptions told;
  told.machine = {"cuda:0"};  // these are not looked at
  told.local = 1;
  told.missing = [&](const std::string& use) -> std::optional<Diagnostic> {
    asked.push_back(use);
    Diagnostic d;
    d.message = "there is no driver for " + use;
    d.fix = "install one";
    return d;
  };
  EXPECT_EQ(only_error("rules = [ { at = \"**\", on = \"gpu\" }, { at = \"**\", on = \"gpu\" } ]\n",
                       {}, told),
            "2:29 there is no driver for cuda:1 (install one; or try it with --device "
            "gpu=emulated:0)");
  EXPECT_EQ(asked, std::vector<std::string>{"cuda:1"}) << "once a name";
}

TEST(PolicyErrors, Files) {
  const auto text = [](const std::string& path) {
    try {
      read_policy_text(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(text("/nowhere/policy.toml"),
            "/nowhere/policy.toml: there is no such policy file: expected a policy.toml");
  EXPECT_EQ(text("/dev"), "/dev: this is a folder: expected a policy.toml");
  EXPECT_EQ(
      text("/dev/zero"),
      "/dev/zero: the policy is not a regular file (it is read several times: store it first)");
  const TemporaryFolder folder;
  std::ofstream(folder / "large.toml") << std::string((4 << 20) + 1, '#');
  EXPECT_THAT(text(folder / "large.toml"),
              HasSubstr("this is no policy file: it is too large: expected at most 4.0 MiB"));
}

TEST(DeviceArguments, AreRead) {
  const auto bindings = parse_device_arguments(
      {"gpu=emulated:0,memory=2GiB,bandwidth=25GB/s,latency=10us", "cpu=memory=90%,threads=4"});
  ASSERT_EQ(bindings.size(), 2u);
  EXPECT_EQ(bindings[0].name, "gpu");
  EXPECT_EQ(bindings[0].use, "emulated:0");
  EXPECT_EQ(bindings[0].memory_bytes, 2ull << 30);
  EXPECT_DOUBLE_EQ(*bindings[0].bandwidth, 25e9);
  EXPECT_DOUBLE_EQ(*bindings[0].latency, 10e-6);
  EXPECT_DOUBLE_EQ(*bindings[1].memory_fraction, 0.9);
  EXPECT_EQ(*bindings[1].threads, 4);
}

TEST(PolicyKeys, ARuleIsWrittenAsItWasRead) {
  for (const std::string rule :
       {R"({ at = "re:'a.*'", op = "Gather", min = "4KiB", after = "a", before = "{b,c}.**", )"
        R"(on = "gpu", state = "cpu", acts = "offload", lookahead = 2, ship = "rows", )"
        R"(cache = "2GiB", shard = "rows", need = "prefer", optional = true, why = "\"a\"" })",
        R"({ at = "a.**", min = "1500B", run = "gpu", param = "cpu", cache = "12.5%" })"})
    EXPECT_EQ(to_toml(parse_policy("policy = 1\nrules = [ " + rule + " ]", "").rules.at(0)), rule);
}

TEST(PolicyKeys, ListsExplainsAndSchema) {
  EXPECT_THAT(config_keys_text(policy_keys()), HasSubstr("rules[].lookahead"));
  EXPECT_THAT(explain_config_key("rules.0.acts", policy_keys()),
              HasSubstr("values: keep, offload, recompute"));
  EXPECT_THROW(explain_config_key("rules.0.act", policy_keys()), Error);
  EXPECT_THAT(config_json_schema(policy_keys()), HasSubstr("\"title\": \"policy.toml\""));
  for (const KeyInfo& key : policy_keys().keys) EXPECT_FALSE(key.help.empty()) << key.path;
}

// TANDEM_POLICY_PAGE=docs/policy_toml.md writes the page instead.
TEST(PolicyKeys, ThePageInDocsIsCurrent) {
  const std::string text = config_keys_markdown(policy_keys());
  if (const char* page = std::getenv("TANDEM_POLICY_PAGE")) write_file(page, text);
  EXPECT_EQ(read_file(source_folder() + "/docs/policy_toml.md"), text);
}

// TANDEM_POLICY_SCHEMA=docs/schema/policy.schema.json writes the schema instead.
TEST(PolicyKeys, TheSchemaInDocsIsCurrent) {
  const std::string text = policy_json_schema();
  if (const char* file = std::getenv("TANDEM_POLICY_SCHEMA")) write_file(file, text);
  EXPECT_EQ(read_file(source_folder() + "/docs/schema/policy.schema.json"), text);
}

}  // namespace
}  // namespace tandem::testing
