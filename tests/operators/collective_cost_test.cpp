// The cost of operations over all ranks: numbers computed by hand from the formulas of Thakur,
// Rabenseifner and Gropp 2005, on a network of 100 Gb/s with 5 us a message.
#include "engine/operators/collectives/collective_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace tandem {
namespace {

constexpr double latency = 5e-6, bandwidth = 12.5e9;
// Half of the gradients of the digits example: two all-reduces of 75 KiB. It takes 6.144 us to
// send.
constexpr double half_of_digits = 75 << 10;

double seconds_of(const CollectiveCost& cost) {
  return cost.messages * latency + cost.bytes / bandwidth;
}

std::optional<CollectiveCost> cost_of(const std::string& name, const CollectiveWork& work) {
  for (const CollectiveAlgorithm& algorithm : all_collective_algorithms()) {
    if (algorithm.name == name) return algorithm.cost(work);
  }
  ADD_FAILURE() << "no algorithm " << name;
  return std::nullopt;
}

double all_reduce_seconds(const std::string& name, double ranks, double bytes) {
  return seconds_of(cost_of(name, {CollectiveKind::all_reduce, ranks, bytes}).value());
}

TEST(CollectiveCosts, OfAnAllReduceOverManyRanks) {
  // 8190 messages, and 4095 / 4096 of the bytes twice.
  EXPECT_NEAR(all_reduce_seconds("ring", 4096, half_of_digits), 40.962285e-3, 1e-9);
  // Twice 4095 messages, of which 4094 start while others are under way.
  EXPECT_NEAR(all_reduce_seconds("direct", 4096, half_of_digits), 5.139785e-3, 1e-9);
  EXPECT_NEAR(all_reduce_seconds("whole", 10, half_of_digits), (2 * 5 + 9 * 6.144) * 1e-6, 1e-12);
  EXPECT_NEAR(all_reduce_seconds("ring", 512, half_of_digits), 5.122264e-3, 1e-9);
  // 24 messages, and all bytes twice.
  EXPECT_NEAR(all_reduce_seconds("tree", 4096, half_of_digits), 132.288e-6, 1e-9);
  // 12 messages with all bytes.
  EXPECT_NEAR(all_reduce_seconds("doubling", 4096, half_of_digits), 133.728e-6, 1e-9);
  // 24 messages, and 4095 / 4096 of the bytes twice.
  EXPECT_NEAR(all_reduce_seconds("halving", 4096, half_of_digits), 132.285e-6, 1e-9);
}

// Six ranks are four and two that give all their bytes to others and get all sums: 2 messages more,
// and the bytes twice.
TEST(CollectiveCosts, OfRanksThatAreNoPowerOfTwo) {
  EXPECT_NEAR(all_reduce_seconds("doubling", 6, half_of_digits), (4 * 5 + 4 * 6.144) * 1e-6, 1e-12);
  EXPECT_NEAR(all_reduce_seconds("halving", 6, half_of_digits), (6 * 5 + 3.5 * 6.144) * 1e-6,
              1e-12);
  EXPECT_NEAR(all_reduce_seconds("tree", 6, half_of_digits), (6 * 5 + 2 * 6.144) * 1e-6, 1e-12);
}

TEST(CollectiveCosts, OfTheOtherOperations) {
  using Kind = CollectiveKind;
  for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all}) {
    // 7 messages with 7 / 8 of the bytes.
    EXPECT_NEAR(seconds_of(cost_of("direct", {kind, 8, half_of_digits}).value()),
                (1.75 * 5 + 0.875 * 6.144) * 1e-6, 1e-12);
    if (kind != Kind::all_to_all) {
      EXPECT_NEAR(seconds_of(cost_of("ring", {kind, 8, half_of_digits}).value()),
                  (7 * 5 + 0.875 * 6.144) * 1e-6, 1e-12);
    }
    EXPECT_FALSE(cost_of("tree", {kind, 8, half_of_digits}));
    EXPECT_EQ(cost_of("ring", {kind, 8, half_of_digits}).has_value(), kind != Kind::all_to_all);
  }
}

TEST(CollectiveCosts, WhatIsAddedUp) {
  const auto added = [](const char* name, double ranks, double bytes) {
    return cost_of(name, {CollectiveKind::all_reduce, ranks, bytes}).value().added;
  };
  EXPECT_DOUBLE_EQ(added("ring", 8, 800), 700);
  EXPECT_DOUBLE_EQ(added("direct", 8, 800), 700);
  EXPECT_DOUBLE_EQ(added("halving", 8, 800), 700);
  EXPECT_DOUBLE_EQ(added("doubling", 8, 800), 2400);
  EXPECT_DOUBLE_EQ(added("doubling", 9, 800), 3200);
}

std::string chosen(CollectiveLibrary library, CollectiveKind kind, double ranks, double bytes) {
  return choose_collective(library, {kind, ranks, bytes}, latency * bandwidth).algorithm->name;
}

TEST(ChosenCollectives, OfNcclAreTreesForManyRanksAndRingsForManyBytes) {
  const auto nccl = CollectiveLibrary::nccl;
  EXPECT_EQ(chosen(nccl, CollectiveKind::all_reduce, 4096, half_of_digits), "tree");
  EXPECT_EQ(chosen(nccl, CollectiveKind::all_reduce, 8, 1 << 30), "ring");
  EXPECT_EQ(chosen(nccl, CollectiveKind::all_gather, 8, 1 << 10), "ring");
  EXPECT_EQ(chosen(nccl, CollectiveKind::all_to_all, 8, 1 << 10), "direct");
}

TEST(ChosenCollectives, OfMessagesGoByRanksAndBytes) {
  const auto of = [](double ranks, double bytes) {
    return choose_collective(CollectiveLibrary::messages,
                             {CollectiveKind::all_reduce, ranks, bytes}, assumed_bytes_a_message);
  };
  EXPECT_STREQ(of(2, 1 << 10).algorithm->name, "doubling");
  EXPECT_STREQ(of(2, 16 << 20).algorithm->name, "halving");
  EXPECT_STREQ(of(3, 1 << 10).algorithm->name, "whole");
  EXPECT_STREQ(of(3, 16 << 20).algorithm->name, "direct");
  EXPECT_STREQ(of(8, 1 << 10).algorithm->name, "whole");
  EXPECT_STREQ(of(8, 16 << 20).algorithm->name, "direct");
  EXPECT_STREQ(of(64, 1 << 10).algorithm->name, "doubling");
  EXPECT_STREQ(of(64, 16 << 20).algorithm->name, "halving");
  EXPECT_STREQ(of(1000, 1 << 20).algorithm->name, "halving");
  EXPECT_STREQ(of(1000, 1 << 30).algorithm->name, "direct");
  // Both all-reduces of the digits example: 2 x 25 messages, and 24.57 us for the bytes.
  EXPECT_STREQ(of(4096, half_of_digits).algorithm->name, "halving");
  EXPECT_NEAR(2 * seconds_of(of(4096, half_of_digits).cost), 0.27457e-3, 1e-8);
}

// Ranks that exchange messages say to their neighbours what they run, which is a message.
TEST(ChosenCollectives, OfMessagesBeginWithOne) {
  const CollectiveWork work{CollectiveKind::all_gather, 8, half_of_digits};
  const CollectiveCost chosen =
      choose_collective(CollectiveLibrary::messages, work, assumed_bytes_a_message).cost;
  EXPECT_EQ(chosen.messages, 2.75);
  EXPECT_DOUBLE_EQ(chosen.bytes, 0.875 * half_of_digits);
}

}  // namespace
}  // namespace tandem
