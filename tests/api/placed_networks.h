// Exported networks under policies, with a slow host and a fast accelerator.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "tandem/tandem.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {

class PlacedNetworks : public ::testing::Test {
 protected:
  PlacedNetworks() {
    write("profile.json", R"({ "tandem_device_profile": 1, "devices": {
  "cpu": { "flops_per_second": 2e9, "bytes_per_second": 4e9, "kernel_overhead_seconds": 1e-7 },
  "gpu": { "flops_per_second": 4e10, "bytes_per_second": 4e10, "kernel_overhead_seconds": 4e-7,
           "link_bytes_per_second": 5e9, "link_latency_seconds": 1e-6 } } })");
  }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  /// The file, or "" where there is none.
  std::string read(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// A network of tests/data/parity.
  api::PolicyOptions options(const std::string& network, const std::string& policy) const {
    const std::string data = source_folder() + "/tests/data/parity/";
    std::ifstream file(data + network + ".json");
    const nlohmann::json fixture = nlohmann::json::parse(file), loss = fixture["loss"];
    api::PolicyOptions options;
    options.model = data + network + "_torchscript.onnx";
    options.bind = {{"batch", fixture["batch"].get<std::int64_t>()}};
    options.overrides = {"optimizer.kind=\"adam\"",
                         "loss.terms=[{name=\"loss\", kind=\"softmax_cross_entropy\", logits=" +
                             loss["logits"].dump() + ", labels=" + loss["labels"].dump() + "}]"};
    options.policy = folder_ / policy;
    options.devices = {"gpu=emulated:0,memory=256MiB"};
    options.profile = folder_ / "profile.json";
    return options;
  }

  TemporaryFolder folder_;
};

}  // namespace tandem::testing
