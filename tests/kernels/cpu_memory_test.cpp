// Memory of the cpu where the process may have few addresses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/graph/error.h"
#include "engine/runtime/arenas.h"
#include "engine/runtime/program.h"
#include "kernels/cpu/cpu_device.h"
#include "tests/harness/few_addresses.h"

namespace tandem {
namespace {

using testing::FewAddresses;

constexpr std::size_t mib = std::size_t{1} << 20, gib = std::size_t{1} << 30;

TEST(CpuMemoryTest, AReservationLeavesAddressesToOthers) {
  const std::unique_ptr<Device> device = make_cpu_device(1);
  const FewAddresses few(64 * gib);
  ASSERT_TRUE(few.is_set());
  const std::unique_ptr<Memory> range = device->reserve(1024 * gib);
  if (range != nullptr) {
    ASSERT_TRUE(range->grow(2 * mib));
    static_cast<char*>(range->address())[2 * mib - 1] = 1;
    EXPECT_FALSE(range->grow(1024 * gib));
  }
  const std::unique_ptr<Memory> other = device->allocate(64 * mib);
  static_cast<char*>(other->address())[64 * mib - 1] = 1;
  const std::shared_ptr<Arenas> arenas = make_arenas();
  auto* bytes = static_cast<char*>(arenas->ensure(*device, 2 * mib));
  bytes[0] = bytes[2 * mib - 1] = 1;
  EXPECT_EQ(arenas->ensure(*device, mib), bytes);
}

TEST(CpuMemoryTest, ALimitOnAddressesIsNamed) {
  const std::unique_ptr<Device> device = make_cpu_device(1);
  std::string text = "no error";
  {
    const FewAddresses few(64 * gib);
    ASSERT_TRUE(few.is_set());
    try {
      device->allocate(128 * gib);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::does_not_fit);
      text = error.what();
    }
  }
  EXPECT_THAT(text, ::testing::HasSubstr("137438953472 bytes more"));
  EXPECT_THAT(text, ::testing::HasSubstr("ulimit -v"));
}

}  // namespace
}  // namespace tandem
