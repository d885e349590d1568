// A rank that cannot read a sample: the run saves what one process would have saved.
#include "engine/config/keys/config_check.h"
#include "engine/data/order/sample_order.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "tests/training/one_bad_sample.h"
#include "tests/training/ranks/rank_runs.h"

namespace tandem {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RankRuns;

class UnreadableSample : public testing::RankTraining {
 protected:
  std::vector<std::string> keys(const std::string& run, std::vector<std::string> more) const {
    more.insert(more.end(),
                {"run_dir=\"" + (folder_ / run) + "\"", "steps=6", "optimizer.momentum=0.9"});
    return more;
  }
  /// The sample that a run reads at this place of its first epoch.
  std::int64_t sample_at(std::size_t place) const {
    const std::uint64_t seed = testing::small_config(folder_.path(), {}).seed;
    return epoch_order(good_->samples(), {}, seed, 0)[place];
  }

  /// Ranks that meet the sample at `place` save as one process does, and resume from there.
  void expect_saved(int ranks, std::size_t place, const std::vector<std::string>& more,
                    const Shardings& shards = {}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks, place " + std::to_string(place));
    const std::string name = "many-" + std::to_string(number_++);
    train_ = good_;
    const RankRuns whole =
        run_ranks({.ranks = ranks, .keys = keys(name + "-whole", more), .shards = shards});
    ASSERT_THAT(whole.errors, Each(IsEmpty()));
    train_ = std::make_shared<testing::OneBadSample>(good_, sample_at(place));
    const RankRuns one = capture_one(keys(name + "-one", more));
    const RankRuns many = run_ranks({.ranks = ranks, .keys = keys(name, more), .shards = shards});
    EXPECT_THAT(many.errors, Each(HasSubstr("cannot be read")));
    const auto saved = list_checkpoints(folder_ / (name + "/checkpoints"));
    EXPECT_EQ(saved, list_checkpoints(folder_ / (name + "-one/checkpoints")));
    EXPECT_THAT(saved, ElementsAre(checkpoint_name(place / 8)));
    EXPECT_THAT(many.first().messages,
                ::testing::Contains(HasSubstr("is saved: --resume continues from there")));
    train_ = good_;
    const RankRuns rest = run_ranks(
        {.ranks = ranks, .keys = keys(name, more), .resume = folder_ / name, .shards = shards});
    ASSERT_THAT(rest.errors, Each(IsEmpty()));
    testing::expect_near(rest.first().training->states(), whole.first().training->states(), 0);
  }

  std::shared_ptr<const DataSource> good_ = train_;

 private:
  /// One process, whose error is what it ends with.
  RankRuns capture_one(const std::vector<std::string>& keys) {
    RankRuns runs;
    EXPECT_THROW(runs = run_ranks({.ranks = 1, .keys = keys}), Error);
    return runs;
  }

  int number_ = 0;
};

// Steps of 8 samples: the second one reads places 8 to 15, its last rank the last of them.
TEST_F(UnreadableSample, IsSavedBeforeWhicheverRankMeetsIt) {
  expect_saved(2, 15, {});
  expect_saved(2, 8, {});  // a sample of rank 0
  expect_saved(3, 10, {});
  expect_saved(4, 21, {});  // in the smaller last step of the epoch
}

TEST_F(UnreadableSample, InAnyMicroBatch) {
  expect_saved(2, 15, {"micro_batch=4"});
  expect_saved(2, 9, {"micro_batch=4"});
}

TEST_F(UnreadableSample, WithStatesThatRanksShareOut) {
  const Shardings shards{{"fc1.weight", Sharding::state}, {"fc2.weight", Sharding::state}};
  expect_saved(2, 15, {}, shards);
  expect_saved(3, 8, {}, shards);
}

TEST_F(UnreadableSample, InTheFirstStepNothingIsThereToSave) {
  train_ = std::make_shared<testing::OneBadSample>(good_, sample_at(7));
  const RankRuns runs = run_ranks({.ranks = 2, .keys = keys("first", {})});
  EXPECT_THAT(runs.errors, Each(HasSubstr("cannot be read")));
  EXPECT_THAT(runs.errors[0], HasSubstr("rank 1"));
  EXPECT_THAT(list_checkpoints(folder_ / "first/checkpoints"), IsEmpty());
}

// Sources whose samples are in memory and fit need no exchange between ranks.
TEST(MayRefuse, IsKnownOfTypesAndFunctions) {
  const auto source = [](DType dtype, const std::vector<std::string>& functions) {
    FieldConfig field{.name = "x", .from = "x"};
    for (const std::string& function : functions) field.as.push_back(parse_transform(function));
    return make_array_source({{"x", HostTensor(TensorType{dtype, {4, 2}})}}, {field});
  };
  EXPECT_FALSE(source(DType::float32, {})->may_refuse());
  EXPECT_FALSE(source(DType::uint8, {"scale(1/255)"})->may_refuse());
  EXPECT_FALSE(source(DType::int32, {"int64"})->may_refuse());
  EXPECT_TRUE(source(DType::int64, {"int32"})->may_refuse());
  EXPECT_TRUE(source(DType::float32, {"int64"})->may_refuse());
  EXPECT_TRUE(source(DType::int64, {"one_hot(3)"})->may_refuse());
}

}  // namespace
}  // namespace tandem
