// Ids of samples of arrays and of pictures, which are written next to their predictions.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/data/sample_stream.h"

namespace tandem::api {

/// Adds the arrays that ids are read from: to the fields of `wanted` where it has any, and to the
/// names in `arrays`.
void add_id_arrays(const std::vector<std::string>& ids, DataConfig& wanted,
                   std::vector<std::string>& arrays);

/// Empty where no ids are asked for. Throws Error{usage} for arrays that do not exist or have more
/// than one number per sample, and for other ids of pictures than "path".
std::function<IdTexts(std::int64_t)> ids_of_samples(
    std::shared_ptr<const tandem::DataSource> source, const std::vector<std::string>& ids,
    bool are_pictures);

}  // namespace tandem::api
