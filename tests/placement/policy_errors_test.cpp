// Every kind of error in a policy: line, column and the suggestion.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "engine/formats/files.h"
#include "placement/policy_keys.h"
#include "tests/harness/folders.h"
#include "tests/placement/support.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Line 2 is `rules = [`, the rule is line 3.
std::string rule(const std::string& text) { return only_error("rules = [\n" + text + ",\n]\n"); }

// All errors of a rule, with what was expected and what was there.
std::string details(const std::string& text) {
  std::string all;
  for (const Diagnostic& d : errors_of("rules = [\n" + text + ",\n]\n")) {
    all += (all.empty() ? "" : "\n") + std::to_string(d.line) + ":" + std::to_string(d.column) +
           " " + d.message + ", expected " + d.expected + ", got " + d.got;
  }
  return all;
}

TEST(PolicyErrors, EmptyNames) {
  EXPECT_THAT(only_error("devices = { \"\" = { use = \"emulated:0\" } }"),
              HasSubstr("not the name of a device"));
  EXPECT_THAT(only_error("devices = { \"a\\u001B\" = { use = \"emulated:0\" } }"),
              HasSubstr("not the name of a device"));
  EXPECT_THAT(rule("{ at = \"**\", op = \"\", on = \"cpu\" }"),
              HasSubstr("no operator has an empty type"));
}

TEST(PolicyErrors, NotToml) {
  EXPECT_THAT(only_error("rules = [ { at = \"**\" on = \"cpu\" } ]"), HasSubstr("2:23 not TOML"));
}

TEST(PolicyErrors, TheVersionIsNeededAndKnown) {
  try {
    parse_policy("rules = []\n", "p.toml");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics()[0].path, "policy");
    EXPECT_THAT(error.what(), HasSubstr("this key is missing"));
  }
  try {
    parse_policy("policy = 2\n", "p.toml");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "p.toml:1:10: policy: this program reads version 1: expected policy = 1, got "
                 "integer 2");
  }
}

TEST(PolicyErrors, AMissingVersionIsSaidAtTheTop) {
  try {
    parse_policy("rules = []\n", "p.toml");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "p.toml:1:1: policy: this key is missing: expected integer");
  }
}

TEST(PolicyErrors, TomlsOwnRules) {
  EXPECT_THAT(only_error("rules = []\nrules = []\n"), HasSubstr("3:9 not TOML"));
  EXPECT_THAT(rule(R"({ at = "**", on = "cpu", on = "gpu" })"), HasSubstr("3:31 not TOML"));
  EXPECT_THAT(rule(R"({ at = "**", on = "cpu", lookahead = 1e400 })"),
              HasSubstr("a number is out of range"));
}

TEST(PolicyErrors, UnknownKeys) {
  EXPECT_EQ(only_error("rule = []\n"), "2:1 unknown key (did you mean `rules`?)");
  EXPECT_EQ(rule(R"({ at = "**", onn = "cpu", on = "cpu" })"),
            "3:14 unknown key (did you mean `rules.0.on`?)");
  EXPECT_EQ(rule(R"({ at = "**", prefetch = 1, on = "cpu" })"),
            "3:14 unknown key (did you mean `rules.0.lookahead`?)");
  EXPECT_EQ(only_error("devices = { gpu = { uses = \"cuda:0\" } }\n"),
            "2:21 unknown key (did you mean `devices.gpu.use`?)");
}

TEST(PolicyErrors, WrongTypesAndValues) {
  EXPECT_EQ(rule(R"({ at = "**", on = 1 })"), "3:19 wrong type");
  EXPECT_EQ(rule(R"({ at = "**", acts = "recomptue" })"),
            "3:21 unknown value (did you mean \"recompute\"?)");
  EXPECT_EQ(rule(R"({ at = "**", on = "cpu", need = "prefered" })"),
            "3:33 unknown value (did you mean \"prefer\"?)");
  EXPECT_EQ(rule(R"({ at = "**", lookahead = -1 })"), "3:26 out of range");
  EXPECT_EQ(rule(R"({ at = "**", on = "cpu", min = "64 M" })"), "3:32 not a size");
  EXPECT_EQ(rule(R"({ at = "layers.{5..1}.**", on = "cpu" })"),
            "3:8 a range is two numbers, the smaller one first (like {0..5})");
  EXPECT_EQ(rule(R"({ at = "layers**", on = "cpu" })"),
            "3:8 ** stands for whole parts, between dots (use * inside a part)");
  EXPECT_EQ(rule(R"({ on = "cpu" })"), "3:1 this key is missing");
  EXPECT_EQ(rule(R"({ at = "**", why = "no reason" })"), "3:1 this rule sets nothing");
}

TEST(PolicyErrors, Sizes) {
  EXPECT_EQ(details(R"({ at = "embed.**", cache = "2 Gib" })"),
            "3:28 not the size of a cache, expected \"2GiB\", or a part of the table, \"10%\", got "
            "string \"2 Gib\"");
  EXPECT_EQ(details(R"({ at = "**", on = "cpu", min = "-1MiB" })"),
            "3:32 not a size, expected \"64MiB\" or \"2GiB\", got string \"-1MiB\"");
  EXPECT_EQ(details(R"({ at = "**", lookahead = 65 })"),
            "3:26 out of range, expected at least 0, at most 64, got 65");
}

TEST(PolicyErrors, Selectors) {
  const auto at = [](const std::string& selector) {
    return rule("{ why = \"ü\", at = '" + selector + "', on = \"cpu\" }");
  };
  EXPECT_EQ(at(""), "3:19 an empty selector matches nothing (`**` means everything)");
  EXPECT_EQ(at("a}"), "3:19 a } without its {");
  EXPECT_EQ(at("{a,b"), "3:19 a { without its }");
  EXPECT_EQ(at("{x..3}"), "3:19 a range is two numbers, the smaller one first (like {0..5})");
  EXPECT_EQ(at("{{{{{{{{{{a}}}}}}}}}}"), "3:19 sets are nested too deeply");
  EXPECT_EQ(at("re:" + std::string(1001, 'a')),
            "3:19 the regular expression has more than 1000 characters");
  EXPECT_THAT(at("re:("), HasSubstr("3:19 the regular expression cannot be read"));
  EXPECT_EQ(at("re:(a{99}){99}"),
            "3:19 the regular expression repeats too much: matching it could take very long "
            "(smaller numbers in {}, or * and +)");
  EXPECT_EQ(at("re:(a)\\1"),
            "3:19 back-references are not understood: matching them could take very long "
            "(write the repeated part out, or use two rules)");
  EXPECT_EQ(at("re:(?=.*a(?!.*b)).*"),
            "3:19 a look-ahead inside of another one is not understood: matching it could take "
            "very long (write them one behind the other, or use two rules)");
  EXPECT_THAT(at("re:(?=.*[(?=])(?=.*b)\\\\(?=z"), HasSubstr("cannot be read"))
      << "one behind the other, and in brackets, they are understood";
  EXPECT_EQ(rule(R"({ at = "**", after = "a}", before = "{", on = "cpu" })"),
            "3:22 a } without its {\n3:37 a { without its }");
}

TEST(PolicyErrors, RulesThatMatchNothing) {
  EXPECT_EQ(rule(R"({ at = "layer.{0..5}.**", on = "cpu" })"),
            "3:8 matches nothing in this model (did you mean \"layers.{0..5}.**\"? (6 operators, 4 "
            "parameters))");
  EXPECT_EQ(rule(R"({ at = "layers.0:wieght", param = "cpu" })"),
            "3:8 matches nothing in this model (did you mean \"layers.0:weight\"? (0 operators, 1 "
            "parameter))");
  EXPECT_THAT(rule(R"({ at = "Gather", on = "cpu" })"), HasSubstr("\"**.Gather\""));
  EXPECT_THAT(rule(R"({ at = "zzz", on = "cpu" })"),
              HasSubstr("(`tandem policy names` lists all)"));
  EXPECT_EQ(rule(R"({ at = "zzz", on = "cpu", optional = true })"), "no error");
}

TEST(PolicyErrors, FiltersThatLeaveNothing) {
  EXPECT_EQ(rule(R"({ at = "**", op = "Gathr", on = "cpu" })"),
            "3:19 this model has no operator of this type (did you mean \"Gather\"?)");
  EXPECT_EQ(rule(R"({ at = "layers.**", op = "Gather", on = "cpu" })"),
            "3:26 no operator of this type is covered by `at`");
  EXPECT_EQ(rule(R"({ at = "{head,layers.*}.**", op = "Relux", on = "cpu" })"),
            "3:35 this model has no operator of this type (did you mean \"Relu\"?)");
  EXPECT_EQ(details(R"({ at = "layers.**", min = "1MiB", on = "cpu" })"),
            "3:27 no parameter is that large, expected at most 256 B, got 1.0 MiB");
  EXPECT_EQ(rule(R"({ at = "**", min = "64MiB", on = "cpu" })"), "3:20 no parameter is that large");
  EXPECT_EQ(rule(R"({ at = "**", after = "layers.9.Add", on = "cpu" })"),
            "3:22 after names no operator or value of this model (did you mean \"layers.0.Add\"?)");
  EXPECT_EQ(rule(R"({ at = "**", before = "hiden", on = "cpu" })"),
            "3:23 before names no operator or value of this model (did you mean \"hidden\"?)");
  EXPECT_EQ(rule(R"({ at = "**", after = "norm.Add", before = "norm.Add", on = "cpu" })"),
            "3:1 matches nothing: its filters leave nothing together");
}

TEST(PolicyErrors, Devices) {
  EXPECT_EQ(rule(R"({ at = "**", on = "gup" })"), "3:19 unknown device (did you mean \"gpu\"?)");
  EXPECT_EQ(rule(R"({ at = "**", on = "cpu", state = "cpuu" })"),
            "3:34 unknown device (did you mean \"cpu\"?)");
  ResolveOptions bare;
  bare.bindings = {DeviceBinding{.name = "cpu"}};
  EXPECT_EQ(only_error("rules = [ { at = \"**\", on = \"gpu\" }, { at = \"**\", on = \"gpu\" } ]\n",
                       {}, bare),
            "2:29 this machine has no accelerator that Tandem can use (try it with "
            "--device gpu=emulated:0)");
  EXPECT_EQ(only_error("rules = [ { at = \"**\", on = \"gpu3\" } ]\n", {}, {.machine = {"cuda:0"}}),
            "2:29 this machine has no cuda:3 (try it with --device gpu3=emulated:0)");
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
  EXPECT_EQ(only_error("devices = { big = { memory = \"2GiB\" } }\n"
                       "rules = [ { at = \"**\", on = \"big\" } ]\n"),
            "3:29 the device does not say what it is (add use = \"cuda:local\" to devices.big)");
  EXPECT_EQ(only_error("devices = { gpu = { use = \"coda:0\" } }\n"),
            "2:27 unknown device (did you mean \"cuda:0\"?)");
  EXPECT_EQ(only_error("devices = { cpu = { use = \"emulated:0\", memory = \"lots\" } }\n"),
            "2:27 cpu is the host itself (bind gpu, or another name)\n2:50 not a size");
}

TEST(PolicyErrors, TheTableOfDevices) {
  EXPECT_EQ(only_error("[devices.gpu]\nuse = \"emulated:0\"\nbandwidth = \"25 G/s\"\n"
                       "latency = \"soon\"\n[devices.cpu]\nthreads = 0\nmemory = \"110%\"\n"),
            "4:13 not a rate\n5:11 not a time\n7:11 not a number of threads\n8:10 not a size");
  EXPECT_EQ(only_error("devices = { gpu = \"emulated:0\" }\n"), "2:19 wrong type");
  EXPECT_EQ(only_error("devices = { cpu = { threads = 4097 } }\n"), "2:31 not a number of threads");
  const std::vector<Diagnostic> errors = errors_of("devices = { gpu = { memory = \"2 Gb\" } }\n");
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(
      to_string(errors[0]),
      "folder/policy.toml:2:30: devices.gpu.memory: not a size: expected \"2GiB\", \"90%\" or "
      "\"auto\", got string \"2 Gb\"");
}

TEST(PolicyErrors, ReadersOnTwoDevices) {
  const OperatorSet operators = all_operators();
  Graph tied = forward_graph(operators);
  // head's weight is read by a second operator on another device
  const State& weight = *tied.find_state("layers.0.weight");
  for (Node& node : tied.nodes) {
    if (node.path == "layers.1.MatMul") node.inputs[1] = weight.initial;
  }
  const Policy policy = parse_policy(
      "policy = 1\nrules = [\n  { at = \"layers.1.MatMul\", run = \"emulated:0\" },\n]\n",
      "p.toml");
  try {
    resolve(policy, tied);
    FAIL();
  } catch (const Error& error) {
    ASSERT_EQ(error.diagnostics().size(), 1u);
    const Diagnostic& d = error.diagnostics()[0];
    EXPECT_EQ(d.line, 3);
    EXPECT_EQ(d.column, 35);
    EXPECT_EQ(d.path, "layers.0:weight");
    EXPECT_EQ(d.got, "layers.0.MatMul on cpu (default), layers.1.MatMul on emulated:0 (p.toml:3)");
    EXPECT_EQ(d.fix, "add { at = \"layers.0:weight\", param = \"cpu\" }");
  }
}

TEST(PolicyErrors, WordsThatAreNone) {
  EXPECT_EQ(rule(R"({ at = "layers.*.Relu", on = "gpu", ship = "auto" })"), "no error");
  EXPECT_EQ(rule(R"({ at = "embed.**", on = "gpu", shard = "row" })"),
            "3:40 unknown value (did you mean \"rows\"?)");
}

TEST(PolicyWarnings, RulesThatCoverNothingTheyCouldChange) {
  const auto warning = [](const std::string& rule) {
    const std::vector<Diagnostic> all = resolve_text("rules = [\n" + rule + ",\n]\n").warnings;
    if (all.size() != 1) return std::to_string(all.size()) + " warnings";
    const Diagnostic& d = all[0];
    return std::to_string(d.line) + ":" + std::to_string(d.column) + " " + d.path + ": " +
           d.message + (d.fix.empty() ? "" : " (" + d.fix + ")");
  };
  EXPECT_EQ(warning(R"({ at = "layers.*.Relu", state = "cpu" })"),
            "3:33 layers.*.Relu: sets the home of parameters, but covers none that it could move");
  EXPECT_EQ(warning(R"({ at = "layers.0:weight", run = "cpu" })"),
            "3:33 layers.0:weight: sets what operators do, but covers none");
  EXPECT_EQ(warning(R"({ at = "head", run = "cpu" })"),
            "3:8 head: covers parameters only, no operator (\"head.**\" covers the operators too)");
}

TEST(PolicyErrors, ArgumentsPointIntoThemselves) {
  EXPECT_EQ(
      only_error("", {R"({ at = "embed.**", on = "gpu" })", R"({ at = "embd.**", on = "cpu" })"}),
      "2:8 matches nothing in this model (did you mean \"embed.**\"? (1 operator, 1 "
      "parameter))");
  EXPECT_EQ(only_error("", {R"({ at = "**", onn = "cpu", on = "cpu" })"}),
            "1:14 unknown key (did you mean `rules.0.on`?)");
  EXPECT_EQ(only_error("", {"embed.**=cpu"}).substr(0, 12), "1:1 not TOML");
  EXPECT_EQ(only_error("", {R"({ at = "**", on = "cpu" } ], model = [ "x")"}), "1:1 not a rule");
  const std::vector<Diagnostic> errors = errors_of("", {"\"**\""});
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].file, "--place");
  EXPECT_EQ(errors[0].expected, "'{ at = \"wide.**\", on = \"cpu\" }'");
}

TEST(PolicyErrors, AllAtOnceAndInOrder) {
  EXPECT_EQ(only_error("rules = [\n"
                       "  { at = \"nothing.here\", on = \"cpu\" },\n"
                       "  { at = \"**\", acts = \"drop\" },\n"
                       "  { at = \"**\", on = \"mars\" },\n"
                       "]\n",
                       {R"({ at = "**", min = "1PB", on = "cpu" })"}),
            "3:10 matches nothing in this model (`tandem policy names` lists all)\n"
            "4:23 unknown value\n"
            "5:21 unknown device\n"
            "1:20 not a size");
}

TEST(PolicyErrors, ListsOfTheWrongForm) {
  EXPECT_EQ(only_error("rules = { at = \"**\", on = \"cpu\" }\n"), "2:9 wrong type");
  EXPECT_EQ(only_error("rules = [ \"**\" ]\n"), "2:11 wrong type");
  EXPECT_EQ(only_error("model = 3\n"), "2:9 wrong type");
  EXPECT_EQ(only_error("model = { structur = \"x\" }\n"),
            "2:11 unknown key (did you mean `model.structure`?)");
}

TEST(PolicyErrors, TheListAutoIsCheckedLikeTheRules) {
  EXPECT_EQ(only_error("auto = [\n  { at = \"**\", onn = \"cpu\", on = \"cpu\" },\n"
                       "  { at = \"nowhere.**\", on = \"cpu\" },\n"
                       "  { at = \"**\", acts = \"drop\", why = \"x\" },\n]\n"),
            "3:16 unknown key (did you mean `auto.0.on`?)\n"
            "4:10 matches nothing in this model (`tandem policy names` lists all)\n"
            "5:23 unknown value");
}

TEST(PolicyErrors, VariablesThatAreNotSet) {
  EXPECT_THAT(only_error("model = { file = \"${TANDEM_NO_SUCH_VARIABLE}/m.onnx\" }\n"),
              HasSubstr("2:18 the environment variable TANDEM_NO_SUCH_VARIABLE is not set"));
}

TEST(PolicyErrors, TheDeviceOfTheRun) {
  ResolveOptions options;
  options.bindings = {DeviceBinding{.name = "cpu"}};
  options.default_device = "gpu";
  const std::vector<Diagnostic> errors = errors_of("", {}, options);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].path, "device") << "the key of train.toml";
  EXPECT_EQ(errors[0].message, "this machine has no accelerator that Tandem can use");
  EXPECT_EQ(errors[0].fix, "try it with --device gpu=emulated:0");
}

TEST(PolicyWarnings, OffloadOnTheHost) {
  const std::vector<Diagnostic> all =
      resolve_text("rules = [\n{ at = \"layers.**\", acts = \"offload\" },\n]\n").warnings;
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(to_string(all[0]),
            "folder/policy.toml:3:28: layers.**: offload does nothing for 9 operators on cpu: what "
            "they make is there already (acts = \"recompute\" saves memory there)");
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

TEST(DeviceArguments, ErrorsPointIntoTheArgument) {
  const auto text = [](const std::vector<std::string>& arguments) {
    try {
      parse_device_arguments(arguments);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(text({"gpu"}), HasSubstr("--device:1:1: not a device"));
  EXPECT_THAT(text({"gpu=emulatd:0"}),
              HasSubstr("--device:1:5: unknown device: expected cpu, cuda:local, cuda:N or "
                        "emulated:N, got \"emulatd:0\" (did you mean \"emulated:0\"?)"));
  EXPECT_THAT(text({"gpu=emulated:0,memry=2GiB"}),
              HasSubstr("--device:1:16: unknown key: expected use, memory, threads, bandwidth or "
                        "latency, got memry (did you mean `memory`?)"));
  EXPECT_THAT(text({"cpu=memory=1GiB,threads=many"}),
              HasSubstr("--device:1:25: not a number of threads: expected 1 to 4096 or "
                        "\"physical\", got \"many\""));
  EXPECT_THAT(text({"cpu=threads=4", "gpu=emulated:0,memory=2,latency=soon,bandwidth=0GB/s"}),
              ::testing::AllOf(HasSubstr("--device:2:23: not a size"),
                               HasSubstr("--device:2:33: not a time"),
                               HasSubstr("--device:2:48: not a rate")));
}

TEST(DeviceArguments, EachKeyOnceAndNoEmptyOnes) {
  const auto text = [](const std::string& argument) {
    try {
      parse_device_arguments({argument});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(text("gpu=emulated:0,,,"),
            "--device:1:16: nothing stands between these commas: expected KEY=VALUE, got "
            "\"gpu=emulated:0,,,\" (take the comma away)");
  EXPECT_THAT(text("gpu=emulated:0,"), HasSubstr("--device:1:16: nothing stands"));
  EXPECT_THAT(text("gpu=,memory=2GiB"), HasSubstr("--device:1:5: nothing stands"));
  EXPECT_EQ(text("gpu=emulated:0,cuda:0"),
            "--device:1:16: `use` is said twice: expected each key once, got \"cuda:0\"");
  EXPECT_THAT(text("cpu=memory=1GiB,memory=2GiB"), HasSubstr("--device:1:24: `memory` is said"));
  EXPECT_THAT(text("gpu=emulated:00"), HasSubstr("(did you mean \"emulated:0\"?)"));
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

}  // namespace
}  // namespace tandem::testing
