// The fixtures of the comparison with PyTorch: small exported networks, twenty batches, losses.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/graph/host_tensor.h"
#include "tandem/tandem.h"

namespace tandem::testing {

using Json = nlohmann::json;

std::string parity_folder();  // with its last slash
Json read_fixture(const std::string& network);
/// Rows `begin` and following.
api::Array array_of(const HostTensor& tensor, std::int64_t begin, std::int64_t count);
/// All 20 batches in the type that the model takes.
std::map<std::string, HostTensor> read_feeds(const Json& fixture);
/// Optimizer and loss as keys of train.toml.
std::vector<std::string> settings_of(const Json& optimizer, const Json& fixture, bool own_loss);

}  // namespace tandem::testing
