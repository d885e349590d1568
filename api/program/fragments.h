// Results as fragments of HTML, which notebooks show in place of their texts.
#pragma once

#include <string>

#include "tandem/plan.h"
#include "tandem/policy.h"
#include "tandem/trained.h"
#include "tandem/trainer.h"

namespace tandem::api {

// Each is one <div> with the report's tables and their style. Names cannot become markup.

std::string plan_html(const Plan& plan);
std::string explanation_html(const Explanation& explanation);
/// `found`: what `policy_auto` returned.
std::string found_policy_html(const Report& found);
std::string evaluation_html(const EvaluationReport& evaluation);
std::string metric_table_html(const MetricTable& table);
std::string train_result_html(const TrainResult& result);

}  // namespace tandem::api
