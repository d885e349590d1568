// Descriptions of GPUs: their properties as cuDNN reads them.
#pragma once

#include <string>
#include <vector>

namespace tandem::testing {

struct DescribedGpu {
  std::string name;        // "sm_90 (H100)"
  std::string properties;  // JSON
};

/// An A100 and an H100, by their data sheets.
std::vector<DescribedGpu> described_gpus();

}  // namespace tandem::testing
