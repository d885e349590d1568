// Which table is for which column of texts, where each looks up a table of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/init/column_tables.h"

namespace tandem::api {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(InitTables, TheLargestTableIsForTheColumnWithMostTexts) {
  EXPECT_THAT(order_of_tables({5, 12, 4, 180, 8}, {10, 200, 6, 16, 8}), ElementsAre(4, 3, 2, 1, 0));
  EXPECT_THAT(order_of_tables({5, 12}, {13, 5}), IsEmpty()) << "5 texts and what training lacks";
  EXPECT_THAT(order_of_tables({5}, {13, 5}), IsEmpty());
}

}  // namespace
}  // namespace tandem::api
