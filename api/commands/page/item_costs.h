// What the operators and parameters of a model take in a planned step: times and bytes.
#pragma once

#include <string>
#include <vector>

#include "placement/match.h"
#include "placement/report/planned_step.h"

namespace tandem::api {

struct OperatorCost {
  double forward = 0, backward = 0;  // seconds of kernels in a step, by the cost model
  std::size_t kept = 0;              // bytes of results that are held from forward to backward
  std::string kernel;                // the longest one of forward; "": it has none
};

struct ParameterCost {
  double update = 0;       // seconds of kernels in a step
  std::size_t states = 0;  // bytes of its optimizer states
};

struct ItemCosts {
  std::vector<OperatorCost> operators;    // as in PolicyItems
  std::vector<ParameterCost> parameters;  // as in PolicyItems
};

/// The time of a kernel that computes several of them is divided equally.
ItemCosts item_costs(const PlannedStep& step, const Graph& forward, const PolicyItems& items);

}  // namespace tandem::api
