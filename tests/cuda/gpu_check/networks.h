// Small networks with twenty batches, for whole trainings on the card and on the host.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/graph/host_tensor.h"
#include "tandem/tandem.h"

namespace tandem::gpu_check {

struct Network {
  std::string name, model;
  std::int64_t batch = 0;
  std::vector<std::string> settings;        // optimizer and loss, keys of train.toml
  std::vector<std::string> plain_settings;  // the same with plain SGD
  std::map<std::string, HostTensor> feeds;  // of all steps, samples on axis 0

  std::map<std::string, HostTensor> batch_of(int step) const;
};

/// MLP, convolutions with batch normalisation, LeNet-5, encoder, GPT: exported fixtures of the
/// tests; and the small Wide & Deep.
/// `fixtures`: the folder that holds tests/data/parity and models/wide_deep.
std::vector<Network> check_networks(const std::string& fixtures);

/// The text of a policy with these rules; `gpu` is what `use` says.
std::string policy_text(const std::string& use, const std::vector<std::string>& rules);
/// Writes it and returns its path.
std::string write_policy(const std::string& folder, const std::string& name,
                         const std::string& text);

/// The losses of that many steps through the public library. `policy`: a file; "": all on the host.
std::vector<double> session_losses(const Network& network, const std::vector<std::string>& settings,
                                   const std::string& policy, int steps);

/// The largest |a - b| / |b| of the first `count`; infinity where one is not finite or missing.
double worst_difference(const std::vector<double>& a, const std::vector<double>& b,
                        std::size_t count);

}  // namespace tandem::gpu_check
