// Measures the network between the ranks of a run, by the operations that trainings use.
#pragma once

#include "api/model/engine.h"
#include "engine/ranks/rank_group.h"
#include "placement/report/network.h"

namespace tandem::api {

/// All ranks call it. Both numbers make the cost model's formulas yield the measured times. The
/// rate is that of an all-reduce of 32 MiB. The latency is that of one message of an all-reduce of
/// 4 bytes that ranks start after computing for 100 to 200 us, with a different time for each: in a
/// step a waiting rank polls for messages less and less often, while a rank that has nothing else
/// to do finds them at once.
Network measure_network(const Engine& engine, RankGroup& group);

}  // namespace tandem::api
