// The order in which training reads its samples, from the configuration and the data.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/data/data_source.h"
#include "engine/data/order/sample_order.h"
#include "engine/data/order/source_order.h"
#include "engine/graph/structures/function_ref.h"

namespace tandem {

/// `data` is what `config` describes, held-out samples left out. Reads weights or classes of all
/// samples where a sampler needs them. Throws Error{usage} for fields that are not there or do not
/// fit, Error{data} with file:row for weights that are none and classes without a weight.
/// `tell` gets a text on what an epoch is made of, where that is not each sample once; may be
/// empty.
std::shared_ptr<const SampleOrder> training_order(const DataConfig& config, const DataSource& data,
                                                  FunctionRef<void(const std::string&)> tell = {});

/// Which samples of the data come from which source. Throws Error{data} for a source without
/// samples.
std::vector<SourceShare> source_shares(const DataConfig& config, const DataSource& data);

}  // namespace tandem
