// Files of the cases of tests/expected that are too long or not text, from short descriptions.
#pragma once

#include <string>

#include "tests/harness/expected_output.h"

namespace tandem::testing {

/// Writes each text of the case whose name does not begin with "_" into the folder, under its name.
///   NAME.onnx   lines "input NAME 8x4 [int64]", "free_input NAME batch,length [int64]", "weight
///               NAME 4x3 SCALE", "integer NAME VALUE", "node OP NAME IN,IN OUT [KEY=VALUE]",
///               "output NAME 8x3" and "free_output NAME batch,classes", as in SmallModel
///   NAME.npz    lines "NAME TYPE 50x4 LEAST..MOST [STEP]": the numbers between, again and again
///   others      "copy PATH" is a file of the source tree; else the text, `repeated`, in which
///               "SOURCE/" is the source tree
void write_files(const ExpectedCase& of, const std::string& folder);
void write_case_file(const std::string& path, const std::string& text);

}  // namespace tandem::testing
