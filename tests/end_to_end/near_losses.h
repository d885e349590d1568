// Compares the losses of two runs, step by step.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tandem::testing {

/// `tolerance`: relative, for each loss.
inline void expect_near_losses(const std::vector<double>& a, const std::vector<double>& b,
                               double tolerance = 1e-5) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], tolerance * std::fabs(b[i])) << "step " << i + 1;
}

}  // namespace tandem::testing
