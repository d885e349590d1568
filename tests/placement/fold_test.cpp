// Many names as few selectors: each covers names with the same label, and nothing else.
#include "placement/selectors/fold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "engine/graph/selector.h"
#include "placement/selectors/siblings.h"

namespace tandem::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// embed, twelve blocks with an attention and two layers each, a head.
std::vector<std::string> transformer() {
  std::vector<std::string> names{"embed.Gather"};
  for (int block = 0; block < 12; ++block) {
    const std::string scope = "blocks." + std::to_string(block);
    for (const char* layer : {".attn.q", ".attn.k", ".mlp.fc1"}) {
      names.push_back(scope + layer + ".MatMul");
      names.push_back(scope + layer + ".Add");
    }
    names.push_back(scope + ".Add#1");
  }
  names.push_back("head.MatMul");
  return names;
}

template <class LabelOf>
std::vector<std::string> selectors(const std::vector<std::string>& names, const LabelOf& label_of) {
  std::vector<int> labels;
  for (const std::string& name : names) labels.push_back(label_of(name));
  std::vector<std::string> found;
  for (const Folded& fold : folded(names, labels))
    found.push_back(fold.at + " " + std::to_string(fold.label) + " " +
                    std::to_string(fold.items.size()));
  return found;
}

bool has(const std::string& name, const char* part) { return name.find(part) != std::string::npos; }

TEST(Fold, ModulesWholeAndSiblingsAsRanges) {
  const std::vector<std::string> names = transformer();
  EXPECT_THAT(selectors(names, [](const auto&) { return 0; }), ElementsAre("** 0 86"));
  EXPECT_THAT(selectors(names, [](const auto&) { return -1; }), IsEmpty());
  EXPECT_THAT(selectors(names, [](const auto& n) { return has(n, "blocks") ? 0 : -1; }),
              ElementsAre("blocks.** 0 84"));
  EXPECT_THAT(selectors(names, [](const auto& n) { return has(n, "attn") ? 0 : -1; }),
              ElementsAre("blocks.{0..11}.attn.** 0 48"));
  // One block differs: the ranges before and after it stay.
  EXPECT_THAT(selectors(names,
                        [](const auto& n) {
                          return has(n, "blocks.3.") ? 1 : has(n, "blocks.") ? 0 : -1;
                        }),
              ElementsAre("blocks.{0..2}.** 0 21", "blocks.3.** 1 7", "blocks.{4..11}.** 0 56"));
  EXPECT_THAT(selectors(names, [](const auto& n) { return has(n, ".q.Add") ? 0 : -1; }),
              ElementsAre("blocks.{0..11}.attn.q.Add 0 12"));
}

TEST(Fold, ParametersByRole) {
  const std::vector<std::string> names = {"fc1:weight", "fc1:bias", "fc2:weight", "fc2:bias",
                                          "fc3:weight", "fc3:bias", "norm.mean"};
  EXPECT_THAT(selectors(names, [](const auto& n) { return has(n, "weight") ? 0 : -1; }),
              ElementsAre("fc{1..3}:weight 0 3"));
  EXPECT_THAT(selectors(names, [](const auto& n) { return has(n, "fc2") ? -1 : 0; }),
              ElementsAre("{fc1,fc3,norm}.** 0 5"));
}

TEST(Fold, NamesThatMeanSomethingInSelectors) {
  const std::vector<std::string> names = {"a{0,1}.Relu", "re:x.Relu", "Relu"};
  const std::vector<Folded> folds = folded(names, {0, 1, 2});
  ASSERT_EQ(folds.size(), 3u);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Selector at(folds[i].at);
    for (std::size_t other = 0; other < names.size(); ++other)
      EXPECT_EQ(at.matches(names[other]), other == i) << folds[i].at << " " << names[other];
  }
}

// Whatever the labels: one selector covers each name with a label, and none covers the others.
TEST(Fold, SelectorsCoverTheirItemsAlone) {
  const std::vector<std::string> names = transformer();
  std::mt19937 random(5);
  for (int trial = 0; trial < 40; ++trial) {
    std::vector<int> labels;
    for (const std::string& name : names) {
      const bool odd = random() % 10 == 0;
      labels.push_back(odd ? static_cast<int>(random() % 3) - 1
                           : static_cast<int>((name.size() + static_cast<std::size_t>(trial)) % 3) -
                                 1);
    }
    std::vector<int> covered(names.size(), -1);
    for (const Folded& fold : folded(names, labels)) {
      const Selector at(fold.at);
      std::vector<int> matched;
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (!at.matches(names[i])) continue;
        matched.push_back(static_cast<int>(i));
        EXPECT_EQ(covered[i], -1) << fold.at;
        covered[i] = fold.label;
      }
      EXPECT_EQ(matched, fold.items) << fold.at;
    }
    EXPECT_EQ(covered, labels);
  }
}

TEST(Fold, SetsOfSiblingsAreNotLong) {
  std::vector<std::string> names;
  for (char c = 'a'; c <= 'z'; ++c) names.push_back(std::string(8, c));
  const std::vector<PartSet> sets = part_sets(names, 10);
  ASSERT_GT(sets.size(), 3u);
  std::size_t members = 0;
  for (const PartSet& set : sets) {
    EXPECT_LT(set.text.size(), 70u);
    members += set.members.size();
  }
  EXPECT_EQ(members, names.size());
}

}  // namespace
}  // namespace tandem::testing
