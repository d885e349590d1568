// The public C++ library; train_config.h, session_config.h and data_source.h have what programs give it as values.
#pragma once

#include "tandem/error.h"    // Error with Diagnostics: the one exception type
#include "tandem/model.h"    // Model: what is in an ONNX file; inspect: its stages
#include "tandem/plan.h"     // Plan: memory, copies, time and remedies of a step; policy_diff
#include "tandem/policy.h"   // Policy of Rules; policy_check, policy_explain, policy_auto
#include "tandem/session.h"  // Session: steps on Tensors that the caller feeds
#include "tandem/trained.h"  // evaluate_run, predict_run, export_run, verify_export: a trained run
#include "tandem/trainer.h"  // Trainer: a whole run with callbacks

namespace tandem::api::inline v1 {

/// Version of the library, "0.1.0".
std::string version();

}  // namespace tandem::api::inline v1
