// What lies between the ranks of a run, measured by the operations that trainings use.
#pragma once

#include "api/model/engine.h"
#include "engine/ranks/rank_group.h"
#include "placement/report/network.h"

namespace tandem::api {

/// All ranks call it. The rate is that of an all-reduce of 32 MiB by the cost model's formula,
/// 2 (n - 1) / n of its bytes in each direction; the latency that of one of its 2 (n - 1) messages
/// where it has 4 bytes and ranks compute before, for 100 to 200 us, each another time: in a step a
/// rank that waits looks for messages less and less often, while one that has nothing else to do
/// finds them at once.
Network measure_network(const Engine& engine, RankGroup& group);

}  // namespace tandem::api
