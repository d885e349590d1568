// `policy edit`: what is spliced in, and that everything else stays as the user wrote it.
#include "placement/edit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/policy.h"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;

const char* const file = R"(# Wide & Deep on one GPU
policy = 1
auto  = [
  { at = "**",              on = "gpu" },            # 188 operators
]
rules = [   # mine
  # the tables are too large: ] } "
  { at = "wide.**", on = "cpu", lookahead = 2 },     # ünï ☃
  { at = 'deep.{0..5}.**',  acts = "recompute" , why = "a } in, a string" },

  { at = "norm.**", op = "Add", state = "gpu" }      # no comma here
]
devices = { gpu = { memory = "20GiB" } } # the GPU
)";

std::string replaced(const std::string& from, const std::string& to) {
  std::string text = file;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string edit(const PolicyEdit& e, const std::string& text = file) {
  return edit_policy(text, "p.toml", e);
}

std::string error_of_edit(const PolicyEdit& e, const std::string& text = file) {
  try {
    edit(e, text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(PolicyEdit, ChangesAValueInPlace) {
  EXPECT_EQ(edit({.at = "wide.**", .set = {{"on", "gpu"}}}),
            replaced("on = \"cpu\", look", "on = \"gpu\", look"));
  EXPECT_EQ(edit({.at = "wide.**", .set = {{"lookahead", "4"}}}),
            replaced("lookahead = 2", "lookahead = 4"));
  EXPECT_EQ(edit({.at = "deep.{0..5}.**", .set = {{"why", "say \"x\""}}}),
            replaced("\"a } in, a string\"", "\"say \\\"x\\\"\""));
}

TEST(PolicyEdit, AddsAnAttributeBehindTheOthers) {
  EXPECT_EQ(edit({.at = "deep.{0..5}.**", .set = {{"state", "cpu"}, {"optional", "true"}}}),
            replaced("string\" }", "string\", state = \"cpu\", optional = true }"));
}

TEST(PolicyEdit, FindsPlacesBehindLettersOfSeveralBytes) {
  const std::string text =
      "policy = 1\nrules = [ { why = \"größer\", at = \"ü\", on = \"cpu\" } ]\n";
  EXPECT_EQ(edit({.at = "ü", .set = {{"on", "gpu"}}}, text),
            "policy = 1\nrules = [ { why = \"größer\", at = \"ü\", on = \"gpu\" } ]\n");
  EXPECT_EQ(edit({.at = "ü", .clear = {"why"}}, text),
            "policy = 1\nrules = [ { at = \"ü\", on = \"cpu\" } ]\n");
}

TEST(PolicyEdit, AppendsARule) {
  EXPECT_EQ(edit({.at = "head.**", .set = {{"run", "cpu"}, {"param", "\"gpu\""}}}),
            replaced("state = \"gpu\" }      # no comma here\n",
                     "state = \"gpu\" },      # no comma here\n"
                     "  { at = \"head.**\", run = \"cpu\", param = \"gpu\" },\n"));
  // other filters: another rule
  EXPECT_THAT(edit({.at = "norm.**", .filters = {{"op", "Mul"}}, .set = {{"on", "cpu"}}}),
              HasSubstr("\n  { at = \"norm.**\", op = \"Mul\", on = \"cpu\" },\n]\ndevices"));
}

TEST(PolicyEdit, MakesTheListWhereThereIsNone) {
  const PolicyEdit e{.at = "a", .set = {{"on", "cpu"}}};
  EXPECT_EQ(edit(e, "policy = 1 # x\n\n[devices.gpu]\nuse = \"cuda:0\"\n"),
            "policy = 1 # x\nrules = [\n  { at = \"a\", on = \"cpu\" },\n]\n\n[devices.gpu]\nuse = "
            "\"cuda:0\"\n");
  EXPECT_EQ(edit(e, "policy = 1"), "policy = 1\nrules = [\n  { at = \"a\", on = \"cpu\" },\n]\n");
  EXPECT_EQ(edit(e, "policy = 1\nrules = []\n"),
            "policy = 1\nrules = [\n  { at = \"a\", on = \"cpu\" },\n]\n");
  EXPECT_EQ(edit(e, "policy = 1\nrules = [ { at = \"b\", on = \"cpu\" } ]\n"),
            "policy = 1\nrules = [ { at = \"b\", on = \"cpu\" }, { at = \"a\", on = \"cpu\" } ]\n");
}

TEST(PolicyEdit, WritesTheVersionWhereItIsMissing) {
  const PolicyEdit e{.at = "a", .set = {{"on", "cpu"}}};
  const std::string rule = "policy = 1\nrules = [\n  { at = \"a\", on = \"cpu\" },\n]\n";
  EXPECT_EQ(edit(e, ""), rule);
  EXPECT_EQ(edit(e, "# mine"), "# mine\n" + rule);
  EXPECT_EQ(edit(e, "# mine\n\n"), "# mine\n\n" + rule);
  EXPECT_EQ(edit(e, "# mine\n  [devices.gpu]\nuse = \"emulated:0\"\n"),
            "# mine\n" + rule + "  [devices.gpu]\nuse = \"emulated:0\"\n");
  EXPECT_EQ(replace_auto("", "p.toml", {"{ at = \"a\", on = \"gpu\" },"}),
            "policy = 1\nauto = [\n  { at = \"a\", on = \"gpu\" },\n]\n");
}

TEST(PolicyEdit, TakesFilesWithAByteOrderMark) {
  const std::string mark = "\xEF\xBB\xBF", rule = "{ at = \"a\", on = \"cpu\" }";
  const PolicyEdit e{.at = "a", .set = {{"on", "cpu"}}};
  EXPECT_EQ(edit(e, mark), mark + "policy = 1\nrules = [\n  " + rule + ",\n]\n");
  EXPECT_EQ(edit(e, mark + "rules = [ { at = \"a\", on = \"gpu\" } ]\n"),
            mark + "policy = 1\nrules = [ " + rule + " ]\n");
  EXPECT_EQ(replace_auto(mark + "auto = []\n", "p.toml", {rule + ","}),
            mark + "policy = 1\nauto = [\n  " + rule + ",\n]\n");
}

TEST(PolicyEdit, GivesAKeyOneValue) {
  EXPECT_EQ(error_of_edit({.at = "a", .set = {{"on", "cpu"}, {"on", "gpu"}}}),
            "on: this key of the rule is given twice");
  EXPECT_EQ(error_of_edit({.at = "wide.**", .set = {{"on", "cpu"}, {"on", "gpu"}}}),
            "on: this key of the rule is given twice");
  EXPECT_EQ(error_of_edit({.at = "a", .set = {{"at", "b"}}}),
            "at: this key of the rule is given twice");
  EXPECT_EQ(error_of_edit({.at = "a", .filters = {{"op", "Add"}}, .set = {{"op", "Mul"}}}),
            "op: this key of the rule is given twice");
  EXPECT_EQ(
      error_of_edit({.at = "a", .filters = {{"on", "cpu"}}, .set = {{"run", "cpu"}}}),
      "on: this is no filter of a rule: expected op, min, after or before (--set gives a rule "
      "its attributes)");
}

TEST(PolicyEdit, ChecksTheNamesOfDevices) {
  EXPECT_EQ(
      error_of_edit({.at = "wide.**", .set = {{"on", "gup"}}}),
      "p.toml:8:26: rules.0.on: unknown device: expected cpu, gpu, gpu0, emulated:0 or a name "
      "of the table devices, or bind it with --device, got \"gup\" (did you mean \"gpu\"?)");
  EXPECT_THAT(error_of_edit({.at = "head.**", .set = {{"run", "cpu"}, {"state", "cpuu"}}}),
              HasSubstr("p.toml:12:42: rules.3.state: unknown device"));
  const std::string declared = replaced("devices = { gpu", "devices = { big = {}, gpu");
  EXPECT_THAT(error_of_edit({.at = "wide.**", .set = {{"on", "bgi"}}}, declared),
              HasSubstr("did you mean \"big\"?"));
  EXPECT_EQ(error_of_edit({.at = "wide.**", .set = {{"on", "big"}}}, declared), "no error");
  for (const char* known : {"gpu", "gpu3", "emulated:1"})
    EXPECT_EQ(error_of_edit({.at = "wide.**", .set = {{"on", known}}}), "no error") << known;
  // names elsewhere in the file may be bound by --device
  EXPECT_EQ(error_of_edit({.at = "norm.**", .filters = {{"op", "Add"}}, .set = {{"run", "cpu"}}},
                          replaced("on = \"cpu\", look", "on = \"later\", look")),
            "no error");
}

TEST(PolicyEdit, ClearsAnAttribute) {
  EXPECT_EQ(edit({.at = "wide.**", .clear = {"lookahead"}}), replaced(", lookahead = 2", ""));
  EXPECT_EQ(edit({.at = "wide.**", .clear = {"on"}}), replaced(", on = \"cpu\"", ""));
}

TEST(PolicyEdit, RemovesARuleAndKeepsItsComment) {
  EXPECT_EQ(edit({.at = "wide.**", .remove = true}),
            replaced("{ at = \"wide.**\", on = \"cpu\", lookahead = 2 },     #", "#"));
  EXPECT_EQ(
      edit({.at = "deep.{0..5}.**", .remove = true}),
      replaced("  { at = 'deep.{0..5}.**',  acts = \"recompute\" , why = \"a } in, a string\" },"
               "\n",
               ""));
  EXPECT_EQ(edit({.at = "norm.**", .filters = {{"op", "Add"}}, .remove = true}),
            replaced("{ at = \"norm.**\", op = \"Add\", state = \"gpu\" }      #", "#"));
}

TEST(PolicyEdit, KeepsARuleFromLosingItsLastAttribute) {
  EXPECT_EQ(error_of_edit({.at = "wide.**", .clear = {"lookahead", "on"}}),
            "p.toml:8:3: wide.**: without `lookahead`, `on` this rule would set nothing (--remove "
            "takes the whole rule away, or --set something else)");
  EXPECT_THAT(error_of_edit({.at = "deep.{0..5}.**", .clear = {"acts"}}),
              HasSubstr("p.toml:9:3: deep.{0..5}.**: without `acts`"));
  EXPECT_EQ(edit({.at = "deep.{0..5}.**", .set = {{"run", "cpu"}}, .clear = {"acts"}}),
            replaced(",  acts = \"recompute\" , why = \"a } in, a string\" }",
                     " , why = \"a } in, a string\", run = \"cpu\" }"));
}

// With the line ends of Windows.
std::string crlf(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '\n' ? "\r\n" : std::string(1, c);
  return result;
}

TEST(PolicyEdit, KeepsTheLineEndsOfTheFile) {
  const PolicyEdit edits[] = {{.at = "wide.**", .set = {{"on", "gpu"}}},
                              {.at = "head.**", .set = {{"run", "cpu"}}},
                              {.at = "wide.**", .clear = {"lookahead"}},
                              {.at = "wide.**", .remove = true},
                              {.at = "deep.{0..5}.**", .remove = true}};
  for (const PolicyEdit& e : edits) EXPECT_EQ(edit(e, crlf(file)), crlf(edit(e))) << e.at;
  const PolicyEdit added{.at = "a", .set = {{"on", "cpu"}}};
  for (const char* text : {"# mine\n\n", "policy = 1 # x\n\n[devices.gpu]\nuse = \"cuda:0\"\n",
                           "policy = 1\nrules = []\n"}) {
    EXPECT_EQ(edit(added, crlf(text)), crlf(edit(added, text))) << text;
  }
  const std::vector<std::string> lines = {"{ at = \"**\", on = \"cpu\" },  # all",
                                          "{ at = \"a.**\", on = \"gpu\" },"};
  EXPECT_EQ(replace_auto(crlf(file), "p.toml", lines), crlf(replace_auto(file, "p.toml", lines)));
  EXPECT_EQ(replace_auto("policy = 1\r\n", "p.toml", lines),
            crlf(replace_auto("policy = 1\n", "p.toml", lines)));
}

TEST(PolicyEdit, FindsTheUsersCommentsInAuto) {
  const std::string text = R"(policy = 1
# before
auto = [  # mine
  # a remark of mine
  { at = "**", on = "gpu" },             # 188 operators, 1.2 GiB
  { at = "a.**", on = "cpu" },           # 1 operator, 512 B
  { at = "#b.**", state = "cpu" },       # 12 parameters, 4.0 KiB
  { at = "loss.**", run = "cpu" },       # 2 added parts, 0 B
  { at = 'c #.**', on = "cpu" },         # 3 operators, 4.0 KiB, but look at it again
]  # behind
rules = [  # mine
]
)";
  EXPECT_THAT(comments_in_auto(text, "p.toml"), ::testing::ElementsAre(3, 4, 9));
  EXPECT_THAT(comments_in_auto(crlf(text), "p.toml"), ::testing::ElementsAre(3, 4, 9));
  EXPECT_THAT(comments_in_auto("policy = 1\n", "p.toml"), ::testing::IsEmpty());
}

TEST(PolicyEdit, RefusesWhatItCannotDo) {
  EXPECT_THAT(error_of_edit({.at = "wid.**", .clear = {"on"}}),
              HasSubstr("p.toml: wid.**: no rule has this selector and these filters (did you mean "
                        "\"wide.**\"?)"));
  EXPECT_THAT(error_of_edit({.at = "wide.**", .set = {{"onn", "cpu"}}}),
              HasSubstr("onn: unknown key of a rule (did you mean `on`?)"));
  EXPECT_THAT(error_of_edit({.at = "wide.**", .set = {{"acts", "drop"}}}),
              HasSubstr("p.toml:8:55: rules.0.acts: unknown value"));
  EXPECT_THAT(error_of_edit({.at = "a**", .set = {{"on", "cpu"}}}), HasSubstr("** stands for"));
  EXPECT_THAT(
      error_of_edit({.at = "a", .set = {{"on", "cpu"}}}, "policy = 1\n[[rules]]\nat = \"a\"\n"),
      HasSubstr("p.toml:2:1: rules: cannot be edited in this form: expected rules = [ ... "
                "], one rule a line"));
  EXPECT_THAT(error_of_edit({.at = "a", .set = {{"on", "cpu"}}}, "policy = \n"),
              HasSubstr("not TOML"));
}

TEST(PolicyEdit, AnotherPlannersAutoReplacesTheListAlone) {
  const std::string text =
      replace_auto(file, "p.toml",
                   {"{ at = \"**\", on = \"cpu\" },  # all", "{ at = \"a.**\", on = \"gpu\" },"});
  EXPECT_EQ(text,
            replaced("  { at = \"**\",              on = \"gpu\" },            # 188 operators",
                     "  { at = \"**\", on = \"cpu\" },  # all\n  { at = \"a.**\", on = "
                     "\"gpu\" },"));
  EXPECT_EQ(replace_auto("policy = 1\nrules = []\n", "p.toml", {"{ at = \"**\", on = \"gpu\" },"}),
            "policy = 1\nauto = [\n  { at = \"**\", on = \"gpu\" },\n]\nrules = []\n");
  EXPECT_EQ(parse_policy(text, "p.toml").rules.size(), 5u);
}

}  // namespace
}  // namespace tandem::testing
