// What a rank computes in a step: shapes of programs, shares that are too small, sample axes of
// random numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/data/subset_source.h"
#include "engine/graph/builder.h"
#include "engine/train/sharding/random_samples.h"
#include "engine/train/steps/micro_batch_programs.h"
#include "tests/training/support.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = MicroBatchKind;

TEST(NeededShapesTest, AreOfARanksOwnSamples) {
  // Steps of 10 samples in micro-batches of 5, the last one of 4; three ranks.
  const auto shapes = [](int rank) { return needed_shapes(24, 10, 5, false, {rank, 3}); };
  EXPECT_THAT(shapes(0), ElementsAre(MicroBatchShape{2, 10, Kind::first, 5},
                                     MicroBatchShape{2, 10, Kind::last, 5},
                                     MicroBatchShape{2, 4, Kind::whole, 4}));
  EXPECT_THAT(shapes(2), ElementsAre(MicroBatchShape{1, 10, Kind::first, 5},
                                     MicroBatchShape{1, 10, Kind::last, 5},
                                     MicroBatchShape{1, 4, Kind::whole, 4}));
}

TEST(NeededShapesTest, EachRankNeedsASample) {
  const RunConfig config = testing::small_config("folder");  // batches of 8
  const auto refusal = [&](std::int64_t samples, int ranks) {
    return testing::error_text([&] {
      refuse_small_shares(needed_shapes(samples, 8, 8, false, {0, ranks}), config, ranks);
    });
  };
  EXPECT_EQ(refusal(19, 3), "no error");
  EXPECT_THAT(refusal(19, 4), AllOf(HasSubstr("fewer samples than there are ranks"),
                                    HasSubstr("4 samples at least"), HasSubstr("got 3 at the end"),
                                    HasSubstr("drop_last = true")));
  EXPECT_THAT(refusal(16, 9), AllOf(HasSubstr("got 8 of a step"), HasSubstr("fewer ranks")));
}

TEST(PartSourceTest, HasTheSamplesOfItsPart) {
  const auto source = testing::small_data(11, 3);
  const auto part = make_part_source(source, {4, 5});
  ASSERT_EQ(part->samples(), 5);
  const std::int64_t whole_samples[] = {6, 4, 8}, part_samples[] = {2, 0, 4};
  float expected[18], found[18];
  source->fill(0, whole_samples, nullptr, expected);
  part->fill(0, part_samples, nullptr, found);
  EXPECT_TRUE(std::equal(std::begin(expected), std::end(expected), found));
  EXPECT_EQ(part->describe(0, 1), source->describe(0, 5));
}

Graph random_graph(const OperatorSet& operators, std::int64_t batch) {
  GraphBuilder g(operators);
  const ValueId x = g.input("x", {DType::float32, {batch, 6}});
  const auto drop = [&](const char* path, Shape shape, ValueId from) {
    g.set_scope({path, Phase::forward, {}});
    g.output(path, g.node("Dropout", {g.reshape(from, std::move(shape))})[0]);
  };
  drop("rows", {batch, 6}, x);
  drop("split", {2 * batch, 3}, x);  // two entries a sample
  g.set_scope({"turn", Phase::forward, {}});
  drop("columns", {6, batch}, g.transpose(x, {1, 0}));
  const ValueId same = g.input("same", {DType::float32, {4}});
  drop("none", {4}, same);
  g.set_scope({"pairs", Phase::forward, {}});
  const ValueId pairs = g.matmul(x, g.transpose(x, {1, 0}));
  drop("both", {batch, batch}, pairs);
  return g.finish();
}

TEST(RandomSamplesTest, AxisIsTheOneByWhichTwoBatchesDiffer) {
  const OperatorSet operators = all_operators();
  const Graph own = random_graph(operators, 3), other = random_graph(operators, 4);
  ASSERT_TRUE(draws_random_numbers(own));
  EXPECT_FALSE(draws_random_numbers(testing::small_network(operators, 3)));
  std::vector<std::string> notes;
  const Graph marked = with_random_samples({own, 3}, {other, 4}, 7, notes);
  std::map<std::string, Ints> samples;
  for (const Node& node : marked.nodes) {
    if (node.op->random) samples[node.path] = node.attributes.integers("samples");
  }
  EXPECT_EQ(samples.at("rows"), (Ints{0, 1, 7}));
  EXPECT_EQ(samples.at("split"), (Ints{0, 2, 14}));
  EXPECT_EQ(samples.at("columns"), (Ints{1, 1, 7}));
  EXPECT_EQ(samples.at("none"), Ints{});
  EXPECT_EQ(samples.at("both"), Ints{});
  EXPECT_THAT(notes, ElementsAre(HasSubstr("both draws the same random numbers on every rank")));
}

}  // namespace
}  // namespace tandem
