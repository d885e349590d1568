// Graphs of a segment: one for each set of places that its slots take, after one run without; what
// cannot be captured is not tried again.
#include "engine/runtime/segment_graphs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "tests/kernels/emulated_support.h"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t bytes = 64;

/// y = x + 1, y in one of many places.
struct OneKernel {
  explicit OneKernel(bool capture = true)
      : emulated({.memory_bytes = std::size_t{1} << 20, .capture = capture}),
        memory(emulated.device->allocate(100 * bytes)),
        kernel(affine(0, 1, bytes / sizeof(float))),
        base{nullptr, memory_at(0)},
        graphs(segment, *emulated.compute) {}

  std::byte* memory_at(std::size_t place) {
    return static_cast<std::byte*>(memory->address()) + place * bytes;
  }
  std::function<void()> enqueue() {
    return [this] {
      UnaryCall& call = calls.emplace_back(*kernel, "one", nullptr, base[1], bytes);
      call.context = context;
      emulated.compute->run(call.call());
    };
  }
  /// A step with the slot at that place: whether there is a graph, and whether one may be captured.
  std::pair<bool, bool> look(std::size_t place) {
    base[1] = memory_at(place);
    graphs.look(base);
    return {graphs.graph() != nullptr, graphs.can_be_captured()};
  }

  Segment segment{.queue = 0, .begin = 0, .end = 1, .kernels = {0}, .slots = {1}};
  Emulated emulated;
  std::unique_ptr<Memory> memory;
  std::unique_ptr<PreparedKernel> kernel;
  std::vector<std::byte*> base;
  StepContext context;
  std::deque<UnaryCall> calls;  // graphs read their contexts when they are launched
  SegmentGraphs graphs;
};

const std::pair<bool, bool> plain{false, false}, due{false, true}, ready{true, false};

TEST(SegmentGraphs, EachSetOfPlacesHasOne) {
  OneKernel one;
  EXPECT_EQ(one.look(0), plain);
  EXPECT_EQ(one.look(1), plain);
  EXPECT_EQ(one.look(0), due);
  Captured* const first = one.graphs.capture(one.enqueue());
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(one.look(1), due);
  Captured* const second = one.graphs.capture(one.enqueue());
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(one.look(0), ready);
  EXPECT_EQ(one.graphs.graph(), first);
  EXPECT_EQ(one.look(1), ready);
  EXPECT_EQ(one.graphs.graph(), second);
  one.emulated.compute->launch(*second);
  EXPECT_EQ(read_floats(*one.emulated.device, one.memory_at(1), 1)[0], 1.0f);
  EXPECT_EQ(one.graphs.problem(), "");
}

TEST(SegmentGraphs, WhatFailsIsNotTriedAgain) {
  OneKernel one;
  one.look(0);
  one.look(1);
  ASSERT_EQ(one.look(0), due);
  EXPECT_EQ(one.graphs.capture([&] { one.emulated.device->allocate(64); }), nullptr);
  EXPECT_THAT(one.graphs.problem(), HasSubstr("the host allocates while capturing"));
  for (const std::size_t place : {0, 1, 0, 1}) EXPECT_EQ(one.look(place), plain);
  one.enqueue()();  // the stream works on
  one.emulated.device->synchronize();
  EXPECT_EQ(read_floats(*one.emulated.device, one.memory_at(1), 1)[0], 1.0f);
}

TEST(SegmentGraphs, CapturesThatCannotBeginAreNotTriedAgain) {
  OneKernel one;
  one.look(0);
  ASSERT_EQ(one.look(0), due);
  one.emulated.copy_in->begin_capture();
  EXPECT_EQ(one.graphs.capture(one.enqueue()), nullptr);
  EXPECT_THAT(one.graphs.problem(), HasSubstr("another one is under way"));
  EXPECT_NE(one.emulated.copy_in->end_capture(), nullptr);  // that one is still under way
  EXPECT_EQ(one.look(0), plain);
}

TEST(SegmentGraphs, PlacesThatNeverComeAgainEndIt) {
  OneKernel one;
  for (std::size_t place = 0; place < SegmentGraphs::most_turns; ++place)
    EXPECT_EQ(one.look(place), plain);
  EXPECT_EQ(one.graphs.problem(), "");
  EXPECT_EQ(one.look(3), due);
  EXPECT_EQ(one.look(SegmentGraphs::most_turns), plain);
  EXPECT_THAT(one.graphs.problem(), HasSubstr("more than 16 sets of places"));
  EXPECT_EQ(one.look(3), plain);
}

TEST(SegmentGraphs, NoneWhereTheStreamCapturesNothing) {
  OneKernel one(false);
  for (int step = 0; step < 3; ++step) EXPECT_EQ(one.look(0), plain);
  EXPECT_EQ(one.graphs.problem(), "");
}

}  // namespace
}  // namespace tandem::testing
