// Forward graphs are kept for all policies that answer the questions of the passes alike.
#include "api/model/passed_graphs.h"

#include <gtest/gtest.h>

namespace tandem::testing {
namespace {

using Paths = api::PassedGraphs::Paths;

class PassedGraphs : public ::testing::Test {
 protected:
  /// The passes ask about b where a may become one; `apart`: what may not.
  std::shared_ptr<api::PassedGraph> passed(const Paths& apart, std::int64_t batch = 1) {
    return graphs_.find(
        {batch, true, 0, {}},
        [&](const Paths& paths) {
          return std::find(apart.begin(), apart.end(), paths[0]) == apart.end();
        },
        [&](const api::PassedGraphs::MayMerge& may_merge) {
          ++runs_;
          if (may_merge({"a", "x"})) may_merge({"b", "x"});
          return Graph();
        });
  }

  api::PassedGraphs graphs_;
  int runs_ = 0;
};

TEST_F(PassedGraphs, OnlyAnswersToWhatWasAskedCount) {
  const auto together = passed({});
  EXPECT_EQ(passed({}), together);
  EXPECT_EQ(passed({"c"}), together) << "nothing asked about c";
  const auto apart = passed({"a"});
  EXPECT_NE(apart, together);
  EXPECT_EQ(passed({"a", "b"}), apart) << "b is not asked about where a is apart";
  EXPECT_NE(passed({"b"}), together);
  EXPECT_EQ(passed({}), together) << "earlier ones are kept";
  EXPECT_EQ(runs_, 3);
  EXPECT_NE(passed({}, 2), together) << "another batch";
}

TEST_F(PassedGraphs, AFewAreKept) {
  const auto asked_about = [&](int i) {
    return graphs_.find(
        {1, true, 0, {}}, [&](const Paths& paths) { return paths[0] == std::to_string(i); },
        [&](const api::PassedGraphs::MayMerge& may_merge) {
          ++runs_;
          may_merge({std::to_string(i)});
          return Graph();
        });
  };
  for (int i = 0; i < 5; ++i) asked_about(i);
  EXPECT_EQ(runs_, 5);
  asked_about(4), asked_about(1);
  EXPECT_EQ(runs_, 5);
  asked_about(0);
  EXPECT_EQ(runs_, 6);
}

}  // namespace
}  // namespace tandem::testing
