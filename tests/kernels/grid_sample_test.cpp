// GridSample and its gradient against the reference: more positions than are handled at once, few
// samples for many threads, both activation layouts.
#include <gtest/gtest.h>

#include "tests/kernels/pointwise_check.h"

namespace tandem::testing {
namespace {

struct Sampled {
  Shape x, grid;
  Attributes attributes;
};

Attributes sampling(const char* mode, const char* padding, std::int64_t align_corners) {
  return {{"mode", std::string(mode)},
          {"padding_mode", std::string(padding)},
          {"align_corners", align_corners}};
}

void check_sampled(const Sampled& s) {
  Shape y{s.x[0], s.x[1]};
  y.insert(y.end(), s.grid.begin() + 1, s.grid.end() - 1);
  NodeInput x{random_tensor(s.x)}, dy{random_tensor(y, 2)};
  const NodeInput grid{random_tensor(s.grid, 3, -1.4, 1.4)};
  for (const bool last : {false, true}) {
    SCOPED_TRACE(last ? "channels-last" : "row-major");
    NodeCheck forward{.op = "GridSample", .inputs = {x, grid}, .attributes = s.attributes};
    NodeCheck gradient{.op = "GridSampleGrad", .inputs = {dy, x, grid}, .attributes = s.attributes};
    if (last) {
      forward.inputs[0].layout = gradient.inputs[1].layout = channels_last(s.x);
      gradient.inputs[0].layout = channels_last(y);
      forward.output_layouts = {channels_last(y)};
      gradient.output_layouts = {channels_last(s.x)};
    }
    forward.features = gradient.features = {"baseline"};
    forward.same_of_any_threads = gradient.same_of_any_threads = true;
    check(forward);
    check(gradient);
    gradient.unread = {0};
    check(gradient);
    gradient.unread = {1};
    check(gradient);
  }
}

TEST(GridSample, Planes) {
  for (const char* mode : {"linear", "nearest", "cubic"}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      for (const std::int64_t corners : {0, 1}) {
        SCOPED_TRACE(std::string(mode) + " " + padding + " " + std::to_string(corners));
        check_sampled({{2, 5, 9, 7}, {2, 13, 11, 2}, sampling(mode, padding, corners)});
      }
    }
  }
}

TEST(GridSample, OneSampleForManyThreads) {
  check_sampled({{1, 7, 40, 30}, {1, 37, 41, 2}, sampling("linear", "zeros", 0)});
  check_sampled({{1, 1, 64, 64}, {1, 64, 64, 2}, sampling("linear", "border", 1)});
}

TEST(GridSample, ManySamples) {
  check_sampled({{5, 3, 28, 28}, {5, 28, 28, 2}, sampling("linear", "zeros", 0)});
}

TEST(GridSample, LinesAndVolumes) {
  check_sampled({{2, 3, 50}, {2, 700, 1}, sampling("linear", "reflection", 0)});
  check_sampled({{1, 4, 5, 6, 7}, {1, 6, 5, 7, 3}, sampling("linear", "zeros", 1)});
  check_sampled({{1, 2, 5, 6, 7}, {1, 3, 4, 5, 3}, sampling("cubic", "border", 0)});
}

// One position, and one element: such maps are row-major and channels-last at once.
TEST(GridSample, SinglePlacesAndElements) {
  check_sampled({{2, 5, 6, 7}, {2, 1, 1, 2}, sampling("linear", "zeros", 0)});
  check_sampled({{2, 5, 1, 1}, {2, 6, 7, 2}, sampling("linear", "border", 0)});
  check_sampled({{2, 1, 6, 7}, {2, 5, 4, 2}, sampling("linear", "zeros", 1)});
}

}  // namespace
}  // namespace tandem::testing
