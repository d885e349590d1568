// Small networks with twenty batches, for whole trainings on the GPU and on the host.
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
  std::vector<std::string> plain_settings;  // like `settings`, but with plain SGD
  std::map<std::string, HostTensor> feeds;  // for all steps, samples on axis 0

  std::map<std::string, HostTensor> batch_of(int step) const;
};

/// The networks that the tests export (MLP, convolutions with batch normalisation, LeNet-5,
/// encoder, GPT) and the small Wide & Deep. `fixtures`: the folder that holds tests/data/parity and
/// models/wide_deep.
std::vector<Network> check_networks(const std::string& fixtures);

/// The text of a policy with these rules; its device `gpu` has this `use`.
std::string policy_text(const std::string& use, const std::vector<std::string>& rules);
/// Writes the policy and returns its path.
std::string write_policy(const std::string& folder, const std::string& name,
                         const std::string& text);

/// The losses of that many steps through the public library. `policy`: a file; "": all on the host.
std::vector<double> session_losses(const Network& network, const std::vector<std::string>& settings,
                                   const std::string& policy, int steps);

/// How far the losses of two runs that round differently may differ, relative to `loss`.
///
/// Let each step's gradient be off by eta |g| in norm, eta = 1e-5 as `parity` allows an operator.
/// If a step changes weights by du more, the loss changes by g du at most, to first order.
/// SGD: |du| = lr / (1 - momentum) eta |g|, hence g du <= lr / (1 - momentum) eta |g|^2.
/// Adam: u = lr m / sqrt(v) does not grow with g, so that du_i <= 2 lr |dg_i| / |g_i|: gradients
/// that are nothing but rounding move weights as far as others do. g du <= 2 lr |dg|_1
/// <= 2 lr sqrt(n) eta |g|, for n weights.
/// The loss after k steps contains k such changes, and is itself off by eta.
struct RunsBeside {
  double rate = 0;
  double momentum = 0;
  bool adaptive = false;     // the optimizer is like Adam
  double parameters = 0;     // how many weights
  double gradient_norm = 0;  // norm of the first step's gradient
  double loss = 1;
  int steps = 0;  // steps before the last loss
};
double limit_of_losses(const RunsBeside& runs);

/// The largest |a - b| / |b| of the first `count`; infinity if one is missing or not finite.
double worst_difference(const std::vector<double>& a, const std::vector<double>& b,
                        std::size_t count);

}  // namespace tandem::gpu_check
