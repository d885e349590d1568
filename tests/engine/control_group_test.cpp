// The memory that a control group leaves, with folders like those of versions 1 and 2.
#include "engine/graph/control_group.h"

#include <gtest/gtest.h>

#include <limits>

#include "engine/formats/files.h"
#include "engine/graph/host_memory.h"
#include "tests/harness/few_addresses.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using testing::TemporaryFolder;

class ControlGroup : public ::testing::Test {
 protected:
  void file(const std::string& path, const std::string& content) {
    make_directories((folder_ / path).substr(0, (folder_ / path).rfind('/')));
    write_file(folder_ / path, content);
  }
  std::size_t left() { return memory_left_of_group(folder_ / "groups", folder_.path()); }
  const TemporaryFolder folder_;
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
};

TEST_F(ControlGroup, TheTightestLimitOfTheSecondVersion) {
  file("groups", "0::/outer/inner\n");
  EXPECT_EQ(left(), unlimited);
  file("outer/inner/memory.max", "max\n");
  file("outer/inner/memory.current", "700\n");
  EXPECT_EQ(left(), unlimited);
  file("outer/memory.max", "1000\n");
  file("outer/memory.current", "900\n");
  EXPECT_EQ(left(), 100u);
  file("outer/memory.stat", "anon 500\ninactive_file 300\nactive_file 50\nshmem 7\n");
  EXPECT_EQ(left(), 450u);
  file("outer/inner/memory.max", "600\n");
  EXPECT_EQ(left(), 0u);
}

TEST_F(ControlGroup, TheFirstVersion) {
  file("groups", "3:cpuset:/\n4:memory:/job\n0::/\n");
  file("memory/memory.limit_in_bytes", "9223372036854771712\n");
  file("memory/memory.usage_in_bytes", "5000\n");
  EXPECT_EQ(left(), unlimited);
  file("memory/job/memory.limit_in_bytes", "4000\n");
  file("memory/job/memory.usage_in_bytes", "3000\n");
  file("memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 200\ntotal_active_file 5\n");
  EXPECT_EQ(left(), 1205u);
}

// In a container the group's folder is the root itself.
TEST_F(ControlGroup, AGroupThatIsNotMounted) {
  file("groups", "0::/docker/0123\n");
  file("memory.max", "100\n");
  file("memory.current", "40\n");
  EXPECT_EQ(left(), 60u);
}

TEST(HostMemoryTest, FreeIsTheLeastOfAllLimits) {
  HostMemory memory;
  memory.bytes = 100;
  EXPECT_EQ(memory.free(), 100u);
  memory.available = 80;
  EXPECT_EQ(memory.free(), 80u);
  memory.group = 60;
  EXPECT_EQ(memory.free(), 60u);
  memory.addresses_left = 50;
  EXPECT_EQ(memory.free(), 50u);
  constexpr std::size_t gib = std::size_t{1} << 30;
  const testing::FewAddresses few(2 * gib);
  if (!few.is_set()) GTEST_SKIP();
  // The process may have returned some addresses since the limit was set.
  EXPECT_LT(host_memory().addresses_left, 3 * gib);
  EXPECT_GT(host_memory().addresses_left, gib);
}

}  // namespace
}  // namespace tandem
