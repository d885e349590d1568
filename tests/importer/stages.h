// Whether every stage of `inspect` gives the diagnosis that it gives without a stage.
#pragma once

#include <string>

namespace tandem::testing {

/// Test failures if a stage of this file gives another diagnosis, in text or as JSON.
void expect_same_diagnosis(const std::string& model_bytes);

}  // namespace tandem::testing
