// Moving items in a policy's text: which rule is written, and that all other items stay.
#include "placement/moves/move_items.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/placement/support.h"

namespace tandem::testing {
namespace {

std::string listed(const std::string& lines) { return "policy = 1\nrules = [\n" + lines + "]\n"; }

MovedIn model(const std::string& kept = "") {
  static const PolicyItems items(shared_graph(), {}, {{"loss.total", ""}});
  return {shared_graph(), items, "cpu", kept};
}

/// The lines of the list `rules` after a move.
std::string moved(const std::string& lines, const std::vector<std::string>& at,
                  const std::string& key, const std::optional<std::string>& value,
                  const std::string& kept = "") {
  const std::string text = listed(lines);
  const std::string after = move_items(text, "p.toml", {at, {{key, value}}}, model(listed(kept)));
  const std::size_t start = after.find("rules = [\n") + 10;
  return after.substr(start, after.rfind("]") - start);
}

std::string line(const std::string& at, const std::string& rest) {
  return "  { at = \"" + at + "\", " + rest + " },\n";
}

const std::string all_on_gpu = line("**", "on = \"gpu\"");

TEST(MoveItems, AddsOneLineAndWidensIt) {
  const std::string one = moved(all_on_gpu, {"layers.0.**"}, "on", "cpu");
  EXPECT_EQ(one, all_on_gpu + line("layers.0.**", "on = \"cpu\""));
  EXPECT_EQ(moved(one, {"layers.1.**"}, "on", "cpu"),
            all_on_gpu + line("layers.{0,1}.**", "on = \"cpu\""));
}

TEST(MoveItems, NarrowsARuleThatMatchesMore) {
  const std::string two = all_on_gpu + line("layers.{0,1}.**", "on = \"cpu\"");
  EXPECT_EQ(moved(two, {"layers.0.**"}, "on", "gpu"),
            all_on_gpu + line("layers.1.**", "on = \"cpu\""));
}

TEST(MoveItems, MovingBackLeavesNoRule) {
  EXPECT_EQ(moved(all_on_gpu + line("layers.0.**", "on = \"cpu\""), {"layers.0.**"}, "on", "gpu"),
            all_on_gpu);
  // Several rules below what moves.
  EXPECT_EQ(moved(all_on_gpu + line("layers.0.MatMul", "run = \"cpu\"") +
                      line("layers.10.**", "on = \"cpu\""),
                  {"layers.**"}, "on", "gpu"),
            all_on_gpu);
}

TEST(MoveItems, ChangesTheLineOfThisSelectorAndKeepsItsComment) {
  const std::string noted = "  { at = \"head.**\", run = \"cpu\" },  # small\n";
  EXPECT_EQ(moved(all_on_gpu + noted, {"head.**"}, "on", "gpu"),
            all_on_gpu + "  { at = \"head.**\", on = \"gpu\" },  # small\n");
  const std::string above = "  # the head\n" + line("head.**", "on = \"cpu\"");
  EXPECT_EQ(moved(all_on_gpu + above, {"head.**"}, "on", "gpu"),
            all_on_gpu + "  # the head\n" + line("head.**", "on = \"gpu\""));
}

TEST(MoveItems, AnEarlierRuleIsNotEnoughWhereALaterOneDecides) {
  const std::string lines = line("head.**", "on = \"cpu\", why = \"first\"") + all_on_gpu;
  EXPECT_EQ(moved(lines, {"head.**"}, "on", "cpu"), lines + line("head.**", "on = \"cpu\""));
}

TEST(MoveItems, RulesOfPeopleStayWhereTheyRepeatOthers) {
  const std::string lines = all_on_gpu + line("layers.0.**", "on = \"gpu\"");
  EXPECT_EQ(moved(lines, {"head.**"}, "on", "cpu", lines), lines + line("head.**", "on = \"cpu\""));
}

TEST(MoveItems, WithoutAValueTheOtherRulesDecide) {
  EXPECT_EQ(moved(all_on_gpu + line("layers.0.**", "on = \"gpu\", acts = \"offload\""),
                  {"layers.0.**"}, "acts", std::nullopt),
            all_on_gpu + line("layers.0.**", "on = \"gpu\""));
  EXPECT_EQ(moved(all_on_gpu + line("layers.0.**", "acts = \"offload\""), {"layers.**"}, "acts",
                  std::nullopt),
            all_on_gpu);
}

TEST(MoveItems, WhatHoldsAlreadyChangesNothing) {
  EXPECT_EQ(moved(all_on_gpu, {"layers.0.**"}, "run", "gpu"), all_on_gpu);
  EXPECT_EQ(moved(line("head.**", "on = \"gpu\""), {"layers.0.**"}, "on", "cpu"),
            line("head.**", "on = \"gpu\""));  // the device of the run
  EXPECT_THROW(moved(all_on_gpu, {"head.**"}, "speed", "9"), Error);
}

TEST(AddRule, GoesIntoALineThatMeansTheSame) {
  const std::string text = listed(all_on_gpu);
  EXPECT_EQ(add_rule(text, "p.toml", "{ at = \"**\", state = \"cpu\" }", model()),
            listed(line("**", "on = \"gpu\", state = \"cpu\"")));
  const std::string head = listed(all_on_gpu + line("head.**", "on = \"gpu\""));
  EXPECT_EQ(add_rule(head, "p.toml", "{ at = \"**\", state = \"cpu\" }", model(head)),
            listed(all_on_gpu + line("head.**", "on = \"gpu\"") + line("**", "state = \"cpu\"")));
  for (const char* wrong : {"}", "{ at = 3 }", "{ at = \"**\" }, { at = \"**\" }"})
    EXPECT_THROW(add_rule(text, "p.toml", wrong, model()), Error) << wrong;
}

}  // namespace
}  // namespace tandem::testing
