// The trials of a search as a picture: the metric over each key.
#pragma once

#include <string>
#include <vector>

#include "api/commands/tune/trials.h"

namespace tandem::api {

/// SVG. Trials without a value are not in it.
std::string trials_picture(const Search& search, const std::vector<Trial>& trials);

}  // namespace tandem::api
