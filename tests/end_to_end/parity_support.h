// The fixtures of the comparison with PyTorch: small exported networks, twenty batches, losses.
#pragma once

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/formats/arrays/npy.h"
#include "engine/graph/host_tensor.h"
#include "tandem/tandem.h"
#include "tests/harness/folders.h"

namespace tandem::testing {

using Json = nlohmann::json;

/// The path ends with a slash.
inline std::string parity_folder() { return source_folder() + "/tests/data/parity/"; }

inline Json read_fixture(const std::string& network, const std::string& folder = parity_folder()) {
  std::ifstream file(folder + network + ".json");
  return Json::parse(file);
}

/// `count` rows from row `begin` on.
inline api::Tensor array_of(const HostTensor& tensor, std::int64_t begin, std::int64_t count) {
  Shape shape = tensor.shape();
  shape[0] = count;
  const std::size_t row = tensor.bytes() / static_cast<std::size_t>(tensor.shape()[0]);
  const auto* from = static_cast<const std::byte*>(tensor.data()) + begin * row;
  const std::span<const std::byte> bytes(from, static_cast<std::size_t>(count) * row);
  return api::Tensor::copy_of_bytes(tensor.dtype(), std::move(shape), bytes);
}

/// All 20 batches in the type of the model's inputs.
inline std::map<std::string, HostTensor> read_feeds(const Json& fixture,
                                                    const std::string& folder = parity_folder()) {
  std::map<std::string, HostTensor> feeds;
  for (const NamedTensor& stored : read_npz(folder + fixture["batches"].get<std::string>())) {
    const Json& feed = fixture["feeds"][stored.name];
    HostTensor tensor = stored.tensor.converted(*dtype_from_name(feed["dtype"].get<std::string>()));
    if (feed.contains("scale")) {
      for (float& x : tensor.as<float>())
        x = x * feed["scale"].get<float>() + feed["offset"].get<float>();
    }
    feeds[stored.name] = tensor;
  }
  return feeds;
}

/// Optimizer and loss as keys of train.toml.
inline std::vector<std::string> settings_of(const Json& optimizer, const Json& fixture,
                                            bool own_loss) {
  std::vector<std::string> settings;
  for (const auto& [key, value] : optimizer.items()) {
    if (key == "name" || key == "losses" || key == "float64_difference" || key == "final") continue;
    settings.push_back("optimizer." + key + "=" + value.dump());
  }
  if (!own_loss) {
    const Json& loss = fixture["loss"];
    settings.push_back("loss.terms=[{name=\"loss\", kind=\"softmax_cross_entropy\", logits=" +
                       loss["logits"].dump() + ", labels=" + loss["labels"].dump() + "}]");
  }
  return settings;
}

}  // namespace tandem::testing
