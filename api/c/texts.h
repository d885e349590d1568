// Lists of texts that callers of the C library give.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tandem/c_values.h"

namespace tandem::c_library {

/// Throws Error{usage} where one is null.
std::vector<std::string> texts_of(const TandemTexts& texts, const char* name);

/// Texts of the form "batch=32". Throws Error{usage} with all that have another form.
std::vector<std::pair<std::string, std::int64_t>> sizes_of(const TandemTexts& texts,
                                                           const char* name);

}  // namespace tandem::c_library
