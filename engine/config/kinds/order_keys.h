// The keys of [data] that say which samples training reads, in which order and batches.
#pragma once

#include <string>

#include "engine/config/keys/key_visitor.h"
#include "engine/config/run_config.h"

namespace tandem {

/// Visits the keys of data.train: sources, epoch_end, shuffle, sampler.
void visit_order(KeyVisitor& train, DataConfig& c, const std::string& root);
/// Visits the keys of data.buckets.
void visit_buckets(KeyVisitor& v, BucketConfig& c);

}  // namespace tandem
