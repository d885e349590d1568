// The keys of eval.metrics.
#pragma once

#include <vector>

#include "engine/config/report_config.h"

namespace tandem {

void visit_metrics(KeyVisitor& v, std::vector<MetricConfig>& metrics);

}  // namespace tandem
