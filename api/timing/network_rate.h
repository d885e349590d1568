// What lies between the ranks of a run, measured by the operations that trainings use.
#pragma once

#include "api/model/engine.h"
#include "engine/ranks/rank_group.h"
#include "placement/report/network.h"

namespace tandem::api {

/// All ranks call it. The rate is that of an all-reduce of 32 MiB by the cost model's formula,
/// 2 (n - 1) / n of its bytes in each direction; the latency an n-th part of the time that one of 4
/// bytes takes in its 2 (n - 1) messages.
Network measure_network(const Engine& engine, RankGroup& group);

}  // namespace tandem::api
