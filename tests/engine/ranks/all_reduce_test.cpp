// The all-reduce of ranks in one process: every algorithm, on many numbers of ranks, gives all
// ranks the bits of sums that are made here one after the other.
#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "engine/operators/collectives/collective_cost.h"
#include "engine/ranks/communicator.h"
#include "engine/ranks/reduce_elements.h"
#include "kernels/cpu/cpu_device.h"
#include "tests/harness/rank_sums.h"
#include "tests/harness/rank_threads.h"

namespace tandem::testing {
namespace {

using ::testing::Each;

/// Numbers of many magnitudes, so that a sum in another order has other bits.
float number(int rank, std::size_t i) {
  const auto seed = static_cast<std::uint32_t>(i * 131 + static_cast<std::size_t>(rank) * 7919);
  const std::uint32_t mixed = (seed * 2654435761U) ^ (seed >> 7);
  return std::ldexp(static_cast<float>(mixed % 20001) - 10000, static_cast<int>(mixed % 17) - 8);
}

std::vector<float> numbers_of(int rank, std::size_t count) {
  std::vector<float> numbers;
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(number(rank, i));
  return numbers;
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& numbers) {
  std::vector<std::uint32_t> bits;
  for (const float one : numbers) bits.push_back(std::bit_cast<std::uint32_t>(one));
  return bits;
}

std::vector<float> sums_of(int ranks, std::size_t count) {
  std::vector<float> sums;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<float> of_rank;
    for (int rank = 0; rank < ranks; ++rank) of_rank.push_back(number(rank, i));
    sums.push_back(sum_of_ranks(of_rank));
  }
  return sums;
}

/// Ranks, how they exchange their numbers, how many numbers.
using Sums = std::tuple<int, CollectiveMethod, std::size_t>;

class AllReduce : public ::testing::TestWithParam<Sums> {
 protected:
  static int ranks() { return std::get<0>(GetParam()); }
  static std::size_t count() { return std::get<2>(GetParam()); }
  /// What each rank gets.
  static std::vector<std::vector<float>> results(Reduction reduction, bool in_place) {
    std::vector<std::vector<float>> all(static_cast<std::size_t>(ranks()));
    RankThreadsOptions options;
    options.ranks = ranks();
    options.sizes = {.all_reduce = std::get<1>(GetParam()), .piece = 64, .message = 40};
    EXPECT_THAT(RankThreads(options).run([&](RankGroup& group) {
      const auto device = make_cpu_device(1);
      device->join(group.make_communicator());
      const auto stream = device->make_stream(StreamKind::collective);
      std::vector<float> from = numbers_of(group.rank(), count());
      std::vector<float> to = in_place ? from : std::vector<float>(from.size(), 9);
      device->communicator()->all_reduce(
          *stream, "sum", {in_place ? to.data() : from.data(), to.data(), to.size()}, reduction);
      device->communicator()->wait(*stream);
      EXPECT_EQ(from, numbers_of(group.rank(), count()));
      all[static_cast<std::size_t>(group.rank())] = to;
    }),
                Each(""));
    return all;
  }
};

INSTANTIATE_TEST_SUITE_P(
    , AllReduce,
    ::testing::Combine(::testing::Values(2, 3, 4, 5, 6, 7, 8, 9, 13),
                       ::testing::Values(CollectiveMethod::doubling, CollectiveMethod::halving,
                                         CollectiveMethod::whole, CollectiveMethod::direct),
                       ::testing::Values(1, 103)),
    [](const auto& of) {
      std::string name;
      for (const CollectiveAlgorithm& algorithm : all_collective_algorithms()) {
        if (algorithm.method == std::get<1>(of.param)) name = algorithm.name;
      }
      return name + std::to_string(std::get<0>(of.param)) + "ranks" +
             std::to_string(std::get<2>(of.param)) + "numbers";
    });

TEST_P(AllReduce, HasTheSameBitsOnAllRanksAndInEveryMethod) {
  const std::vector<std::uint32_t> expected = bits_of(sums_of(ranks(), count()));
  for (const bool in_place : {false, true}) {
    for (const std::vector<float>& got : results(Reduction::sum, in_place))
      EXPECT_EQ(bits_of(got), expected) << (in_place ? "in place" : "");
  }
}

TEST_P(AllReduce, DividesTheSumForAMean) {
  std::vector<float> expected = sums_of(ranks(), count());
  for (float& one : expected) one /= static_cast<float>(ranks());
  EXPECT_THAT(results(Reduction::mean, true), Each(expected));
}

TEST_P(AllReduce, FindsTheMaximum) {
  std::vector<float> expected = numbers_of(0, count());
  for (int rank = 1; rank < ranks(); ++rank) {
    for (std::size_t i = 0; i < expected.size(); ++i)
      expected[i] = std::max(expected[i], number(rank, i));
  }
  EXPECT_THAT(results(Reduction::maximum, false), Each(expected));
}

// 1e8 and -1e8 cancel before the 1 comes; from left to right it would be lost.
TEST(ReduceElements, AddsRanksThatAreFarApartFirst) {
  const float of_rank[] = {1e8F, 1, -1e8F};
  const std::vector<const void*> from{&of_rank[0], &of_rank[1], &of_rank[2]};
  float sum = 0;
  reduce_elements(&sum, from, 1, DType::float32, Reduction::sum);
  EXPECT_EQ(sum, 1);
}

TEST(ReduceElements, HasOneOrderForEachNumberOfRanks) {
  constexpr std::size_t count = 2500;  // blocks, and a part of one
  for (int ranks = 1; ranks <= 33; ++ranks) {
    std::vector<std::vector<float>> inputs;
    std::vector<const void*> from;
    for (int rank = 0; rank < ranks; ++rank) inputs.push_back(numbers_of(rank, count));
    for (const std::vector<float>& one : inputs) from.push_back(one.data());
    std::vector<float> sums(count);
    reduce_elements(sums.data(), from, count, DType::float32, Reduction::sum);
    EXPECT_EQ(bits_of(sums), bits_of(sums_of(ranks, count))) << ranks;
  }
}

}  // namespace
}  // namespace tandem::testing
