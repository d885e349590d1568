// Large tensors of one number.
#include "engine/train/updates/filled_tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace tandem {
namespace {

long resident_mib() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word != "RssAnon:") continue;
    long kib = 0;
    status >> kib;
    return kib >> 10;
  }
  return 0;
}

TEST(FilledTensor, HoldsTheNumberEverywhere) {
  for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{7, 3}, Shape{3000, 1000}}) {
    const HostTensor tensor = filled_tensor(shape, 0.25f);
    EXPECT_EQ(tensor.shape(), shape);
    EXPECT_TRUE(std::ranges::all_of(tensor.as<float>(), [](float x) { return x == 0.25f; }));
  }
}

TEST(FilledTensor, IsLargeWithoutMemory) {
  const long before = resident_mib();
  const HostTensor tensor = filled_tensor({100'000'003}, -1.5f);  // 381 MiB, no whole pieces
  EXPECT_TRUE(std::ranges::all_of(tensor.as<float>(), [](float x) { return x == -1.5f; }));
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer keeps a shadow of every byte that was read";
#endif
  EXPECT_LT(resident_mib() - before, 100);
}

}  // namespace
}  // namespace tandem
