// `policy edit`: what is spliced in, and that everything else stays as the user wrote it.
#include "placement/edit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/policy.h"

namespace tandem::testing {
namespace {

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
