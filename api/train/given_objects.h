// Objects that a program gives to a Trainer or a Session in place of files.
#pragma once

#include <optional>
#include <string>

#include "tandem/model.h"
#include "tandem/policy.h"
#include "tandem/session_config.h"
#include "tandem/train_config.h"
#include "tandem/trainer.h"

namespace tandem::api {

/// Throws Error{usage} with the options that mean nothing without another one.
void refuse_unused(const TrainOptions& options);

/// The text of a policy; none without one.
std::optional<std::string> text_of(const std::optional<Policy>& policy);

/// The policy that is no file, if it is one.
std::optional<Policy> policy_of(const SessionConfig& config);

/// The configuration with the model's file and options. `source`: what messages name in place of a
/// file. Throws Error{usage} with everything that both set differently, and for options that only
/// an inspection honours.
TrainConfig with_model(TrainConfig config, const Model& model, const std::string& source);
SessionConfig with_model(SessionConfig config, const Model& model, const std::string& source);

}  // namespace tandem::api
