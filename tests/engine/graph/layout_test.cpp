// Which places of a buffer a layout reaches.
#include <gtest/gtest.h>

#include "engine/graph/types.h"
#include "engine/runtime/layout_copy.h"

namespace tandem {
namespace {

void expect_range(const Layout& layout, const Shape& shape, std::int64_t begin, std::int64_t end) {
  SCOPED_TRACE(to_string(layout) + " of " + to_string(shape));
  const PlaceRange range = place_range(layout, shape);
  EXPECT_EQ(range.begin, begin);
  EXPECT_EQ(range.end, end);
  EXPECT_EQ(span_elements(layout, shape), end - begin);
}

TEST(Layouts, ReachTheirPlaces) {
  expect_range(row_major({3, 4}), {3, 4}, 0, 12);
  expect_range({5, {8, 1}}, {3, 4}, 5, 25);     // rows 8 apart
  expect_range({5, {0, 1}}, {3, 4}, 5, 9);      // one row, three times
  expect_range({2, {}}, {}, 2, 3);              // a scalar
  expect_range({7, {4, 1}}, {0, 4}, 0, 0);      // no element, no place
  expect_range({7, {1000, 1}}, {1, 4}, 7, 11);  // the stride of one index is never taken
}

// Steps backwards reach places before the first element.
TEST(Layouts, ReachBackwards) {
  expect_range({11, {-4, -1}}, {3, 4}, 0, 12);
  expect_range({3, {4, -1}}, {3, 4}, 0, 12);
  expect_range({16, {-8, 2}}, {3, 4}, 0, 23);
}

TEST(Layouts, SayHowManyBytesABufferNeeds) {
  const TensorType type{DType::float32, {3, 4}};
  EXPECT_EQ(buffer_bytes(type, row_major(type.shape)), 48u);
  EXPECT_EQ(buffer_bytes(type, {3, {4, -1}}), 48u);
  EXPECT_EQ(buffer_bytes(type, {5, {8, 1}}), 100u);
}

TEST(Layouts, KeepElementsThatLieBackwards) {
  const TensorType type{DType::float32, {2, 3}};
  const Layout backwards{5, {-3, -1}};
  const float numbers[6] = {0, 1, 2, 3, 4, 5};
  float there[6] = {}, back[6] = {};
  ASSERT_EQ(buffer_bytes(type, backwards), sizeof there);
  to_layout(there, backwards, numbers, type);
  from_layout(back, there, backwards, type);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(there[i], static_cast<float>(5 - i));
    EXPECT_EQ(back[i], numbers[i]);
  }
}

}  // namespace
}  // namespace tandem
