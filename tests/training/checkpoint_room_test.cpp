// Whether a disk has room for the checkpoints of a run.
#include "engine/train/checkpoints/checkpoint_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t mib = 1 << 20;

TEST(CheckpointRoom, WarnsWhereTheDiskIsTooSmall) {
  EXPECT_EQ(room_warning(30 * mib, 10 * mib, 2), "");
  EXPECT_EQ(room_warning(std::nullopt, 10 * mib, 2), "");
  const std::string some = room_warning(30 * mib - 1, 10 * mib, 2);
  EXPECT_THAT(some, HasSubstr("2 of 10.0 MiB and another while it is written take 30.0 MiB"));
  EXPECT_THAT(some, HasSubstr("checkpoint.keep"));
  EXPECT_THAT(room_warning(3 * mib, 10 * mib, 2),
              HasSubstr("no checkpoint can be written: one takes 10.0 MiB, the disk has 3.0 MiB"));
  EXPECT_NE(room_warning(mib, 1, std::int64_t{1} << 62), "");  // no product wraps around
}

TEST(CheckpointRoom, AsksTheDiskOfTheNearestFolder) {
  const testing::TemporaryFolder folder;
  const std::optional<std::uint64_t> free = free_bytes(folder.path());
  ASSERT_TRUE(free);
  EXPECT_GT(*free, 0u);
  EXPECT_TRUE(free_bytes(folder / "not/there/yet"));
  EXPECT_EQ(free_bytes("/proc/not/there"), 0u);
  EXPECT_TRUE(free_bytes("not_there"));
}

}  // namespace
}  // namespace tandem
