// Memory of the cpu if the process has few addresses left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>

#include "engine/graph/host_memory.h"
#include "engine/runtime/arenas.h"
#include "engine/runtime/program.h"
#include "engine/runtime/state_entry.h"
#include "kernels/cpu/cpu_device.h"
#include "tests/harness/few_addresses.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using testing::FewAddresses;
using ::testing::HasSubstr;
using ::testing::StartsWith;

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

// The error of `take` if the process may have only `more` additional bytes.
std::string refusal(std::size_t more, const std::function<void()>& take) {
  const FewAddresses few(more);
  EXPECT_TRUE(few.is_set());
  try {
    take();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::does_not_fit);
    return error.what();
  }
  return "no error";
}

constexpr const char* limit = "bytes of addresses in all, to which the process is limited, got ";

TEST(CpuMemoryTest, TheArenaIsNamed) {
  const std::unique_ptr<Device> device = make_cpu_device(1);
  const std::shared_ptr<Arenas> arenas = make_arenas();
  EXPECT_THAT(
      refusal(64 * mib, [&] { arenas->ensure(*device, gib); }),
      AllOf(StartsWith("the host has no memory left for the arena of activations, "
                       "gradients and workspace: expected at most "),
            HasSubstr(std::string(limit) + "1073741824 bytes more"), HasSubstr("a smaller batch")));
}

TEST(CpuMemoryTest, AStateIsNamed) {
  const std::unique_ptr<Device> device = make_cpu_device(1);
  const TensorType type{DType::float32, {std::int64_t{1} << 33, 4}};
  State state;
  state.name = "deep.weight/exp_avg";
  state.kind = StateKind::optimizer;
  state.parameter = "deep.weight";
  char nothing = 0;
  state.start = HostTensor(type, &nothing, nullptr);
  state.starts_at_zero = true;
  StateStore states;
  const StateLayout layout{0, row_major(type.shape)};
  EXPECT_THAT(refusal(64 * gib, [&] { states.create(state, layout, *device); }),
              AllOf(StartsWith("deep.weight/exp_avg: the host has no memory left for "
                               "float32[8589934592, 4]: expected at most "),
                    HasSubstr(std::string(limit) + "137438953472 bytes more"),
                    HasSubstr("parameters.shape"), HasSubstr("optimizer.groups"),
                    HasSubstr("{ at = \"deep.weight\", state = \"gpu\" }")));
}

TEST(CpuMemoryTest, ATensorOfTheHostIsNamed) {
  const TensorType type{DType::float32, {std::int64_t{1} << 33, 4}};
  EXPECT_THAT(refusal(64 * gib, [&] { const HostTensor tensor(type); }),
              HasSubstr(std::string(limit) + "float32[8589934592, 4], 137438953472 bytes"));
}

TEST(CpuMemoryTest, WhatTheMachineHasIsSaid) {
  try {
    fail_without_memory({.message = "no memory", .fix = "take less"});
  } catch (const Error& error) {
    const std::size_t bytes = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                              static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    EXPECT_THAT(error.what(), HasSubstr("expected at most " + std::to_string(bytes) +
                                        " bytes, which the machine has ("));
  }
}

}  // namespace
}  // namespace tandem
