// Cases of operators of one domain with onnxruntime's results, as tests/scripts/node_cases.py
// writes them.
#pragma once

#include <string>

#include "tests/importer/support.h"

namespace tandem::testing {

struct DomainCases {
  std::string file;    // its name in tests/data
  std::string domain;  // "com.microsoft"
  int version = 1;     // version of the operator set
};

/// Imports each case and computes it on reference kernels: types and shapes are onnxruntime's,
/// numbers within 1e-5.
void expect_onnxruntimes_results(const DomainCases& cases);
/// The domain's operators that import reads and that have no case, except `others`.
std::string operators_without_case(const DomainCases& cases, const std::string& others = "");

/// x [2, 4] → y by nodes of that domain: the message of the error of its import.
std::string error_of_nodes(const std::string& domain, int version,
                           const std::function<void(ModelMaker&)>& make);

}  // namespace tandem::testing
