// The emulated device's memory: inaccessible to the host, guarded, limited, and never cleared.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "engine/runtime/arenas.h"
#include "tests/kernels/emulated_support.h"

namespace tandem::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

// A kernel that writes one byte at a distance from its output.
std::unique_ptr<PreparedKernel> poke(std::ptrdiff_t distance) {
  return prepared([=](const KernelArguments& arguments) {
    static_cast<volatile char*>(arguments.outputs[0])[distance] = 1;
  });
}

void run_poke(std::ptrdiff_t distance, std::size_t bytes, bool growing) {
  Emulated emulated;
  auto memory = growing ? emulated.device->reserve(1 << 20) : emulated.device->allocate(bytes);
  ASSERT_TRUE(memory->grow(bytes));
  const auto kernel = poke(distance);
  const UnaryCall call(*kernel, "poke", nullptr, memory->address(), 1);
  emulated.compute->run(call.call());
  emulated.compute->synchronize();
}

TEST(EmulatedMemoryDeathTest, HostCannotTouchIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Emulated emulated;
  const auto memory = emulated.device->allocate(4096);
  auto* bytes = static_cast<volatile char*>(memory->address());
  EXPECT_DEATH(bytes[0] = 1, "");
  EXPECT_DEATH(static_cast<void>(bytes[100]), "");
}

TEST(EmulatedMemoryDeathTest, GuardPages) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  run_poke(4095, 4096, false);
  run_poke(8191, 8192, true);
  EXPECT_DEATH(run_poke(4096, 4096, false), "");
  EXPECT_DEATH(run_poke(192, 192, false), "");  // plain blocks end directly at the guard
  EXPECT_DEATH(run_poke(-1, 4096, false), "");
  EXPECT_DEATH(run_poke(8192, 8192, true), "");
  EXPECT_DEATH(run_poke(-1, 8192, true), "");
}

TEST(EmulatedMemoryDeathTest, ForeignAddressesAreNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Emulated emulated;
  const auto memory = emulated.device->allocate(64);
  const auto kernel = affine(1, 0, 4);
  float x[4] = {};
  const UnaryCall call(*kernel, "layer1.add", x, memory->address(), 16);
  EXPECT_DEATH(emulated.compute->run(call.call()), "emulated:0.compute: 'layer1.add': input");
}

TEST(EmulatedMemory, FreshAndReusedMemoryIsNaN) {
  Emulated emulated;
  const std::size_t n = 3000;
  for (int round = 0; round < 3; ++round) {
    const auto memory = emulated.device->allocate(n * sizeof(float));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->address()) % 64, 0u);
    for (const float x : read_floats(*emulated.device, memory->address(), n))
      ASSERT_TRUE(std::isnan(x));
    const std::vector<float> ones(n, 1.0f);
    emulated.device->to_device(memory->address(), ones.data(), n * sizeof(float));
    EXPECT_THAT(read_floats(*emulated.device, memory->address(), n), Each(1.0f));
  }
}

TEST(EmulatedMemory, GrowsInPlaceAndKeepsContent) {
  Emulated emulated;
  const auto memory = emulated.device->reserve(1 << 20);
  ASSERT_NE(memory, nullptr);
  void* address = memory->address();
  EXPECT_EQ(memory->bytes(), 0u);
  ASSERT_TRUE(memory->grow(100));
  const float one = 1;
  emulated.device->to_device(address, &one, sizeof(one));
  ASSERT_TRUE(memory->grow(10000));
  EXPECT_EQ(memory->address(), address);
  const std::vector<float> x = read_floats(*emulated.device, address, 2500);
  EXPECT_EQ(x[0], 1.0f);
  for (std::size_t i = 1; i < x.size(); ++i) ASSERT_TRUE(std::isnan(x[i]));
  EXPECT_FALSE(memory->grow((1 << 20) + 1));
}

TEST(EmulatedMemory, LimitIsExact) {
  Emulated emulated;
  const std::size_t limit = emulated.device->memory_bytes();
  auto first = emulated.device->allocate(limit - 640);
  const auto second = emulated.device->allocate(600);  // counts in units of 64
  EXPECT_EQ(emulated.device->counters().bytes_in_use, limit);
  try {
    emulated.device->allocate(1);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::does_not_fit);
    EXPECT_THAT(error.what(), HasSubstr("emulated:0"));
    EXPECT_THAT(error.what(), HasSubstr("1 bytes wanted"));
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(limit) + " in use"));
    EXPECT_THAT(error.what(), HasSubstr("at most " + std::to_string(limit)));
  }
  const auto growing = emulated.device->reserve(limit);
  EXPECT_FALSE(growing->grow(64));
  first.reset();
  EXPECT_TRUE(growing->grow(64));
  EXPECT_EQ(emulated.device->counters().bytes_in_use, 704u);
  EXPECT_EQ(emulated.device->counters().peak_bytes, limit);
}

TEST(EmulatedMemory, ServesAsArena) {
  Emulated emulated;
  Arenas arenas;
  void* address = arenas.ensure(*emulated.device, 1000);
  EXPECT_EQ(arenas.ensure(*emulated.device, 5000), address);
  EXPECT_EQ(emulated.device->counters().bytes_in_use, 5056u);
  EXPECT_THROW(arenas.ensure(*emulated.device, std::size_t{2} << 20), Error);
}

TEST(EmulatedMemory, CopiesAreExact) {
  Emulated emulated;
  const std::size_t n = 10007;
  std::vector<float> from(n), to(n, 0.0f);
  std::iota(from.begin(), from.end(), 0.5f);
  const std::size_t bytes = n * sizeof(float);
  const auto a = emulated.device->allocate(bytes), b = emulated.device->allocate(bytes);
  const auto arrived = emulated.device->make_event(), moved = emulated.device->make_event();
  emulated.copy_in->copy(a->address(), from.data(), bytes, {"x"});
  emulated.copy_in->record(*arrived, 1);
  emulated.compute->wait(*arrived, 1);
  emulated.compute->copy(b->address(), a->address(), bytes, {"x within"});
  emulated.compute->record(*moved, 1);
  emulated.copy_out->wait(*moved, 1);
  emulated.copy_out->copy(to.data(), b->address(), bytes, {"x back"});
  emulated.device->synchronize();
  EXPECT_EQ(to, from);
  EXPECT_EQ(emulated.first_error(), "");
  const DeviceCounters counters = emulated.device->counters();
  EXPECT_EQ(counters.bytes_to_device, bytes);
  EXPECT_EQ(counters.bytes_to_host, bytes);
  EXPECT_EQ(counters.copies, 2u);
}

}  // namespace
}  // namespace tandem::testing
