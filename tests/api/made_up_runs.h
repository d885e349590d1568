// Run directories that no training has written.
#pragma once

#include <string>

#include "engine/formats/files.h"

namespace tandem::testing {

struct MadeUpRun {
  std::string metrics =
      "{\"step\":1,\"loss\":2.5,\"lr\":0.01,\"wall\":1.0,\"samples_per_second\":100}\n"
      "{\"step\":50,\"loss\":0.5,\"lr\":0.01,\"wall\":4.0,\"samples_per_second\":900}\n"
      "{\"phase\":\"eval\",\"step\":50,\"loss\":0.625,\"accuracy\":0.75,\"wall\":4.5}\n"
      "{\"step\":100,\"loss\":0.25,\"lr\":0.005,\"wall\":8.0,\"samples_per_second\":950}\n"
      "{\"phase\":\"eval\",\"step\":100,\"loss\":0.375,\"accuracy\":0.875,\"wall\":8.5}\n";
  std::string config =
      "model = \"/models/small net.onnx\"\nmade_up = 1\nbatch_size = 32\n[optimizer]\nkind = "
      "\"adam\"\n"
      "lr = 0.01\n[eval]\nbest = \"accuracy\"\nmetrics = [ \"accuracy\" ]\n";
  std::string summary, log, policy = "policy = 1\n";

  /// Files with no content are left out.
  void write(const std::string& path) const {
    make_directories(path);
    const auto put = [&](const char* name, const std::string& content) {
      if (!content.empty()) write_file(path + "/" + name, content);
    };
    put("metrics.jsonl", metrics);
    put("train.resolved.toml", config);
    put("summary.json", summary);
    put("train.log", log);
    put("policy.toml", policy);
  }
};

}  // namespace tandem::testing
