// What tells the samples of arrays and of pictures: ids that stand beside their predictions.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/training/data/sample_stream.h"

namespace tandem::api {

/// Arrays that ids are read from: fields of `wanted` where it has any, and names of `arrays`.
void add_id_arrays(const std::vector<std::string>& ids, DataConfig& wanted,
                   std::vector<std::string>& arrays);

/// Nothing where no ids are asked for. Throws Error{usage} for arrays that are not there or have
/// more than a number a sample, and for other ids of pictures than "path".
std::function<IdTexts(std::int64_t)> ids_of_samples(std::shared_ptr<const DataSource> source,
                                                    const std::vector<std::string>& ids,
                                                    bool are_pictures);

}  // namespace tandem::api
