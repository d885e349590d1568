// The output of a stage of the GPU check, for tests of the stages.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/cuda/gpu_check/report.h"

namespace tandem::gpu_check {

/// The output of a stage.
struct Said {
  int code = -1;
  std::vector<Json> lines;
  Json verdict;

  const Json* find(const std::string& check) const {
    for (const Json& line : lines) {
      if (line.contains("check") && line["check"].get<std::string>().find(check) == 0) return &line;
    }
    return nullptr;
  }
};

template <class Stage>
Said said_by(Stage stage, const std::string& after = "") {
  Said said;
  Report report("stage", true,
                [&](const std::string& line) { said.lines.push_back(Json::parse(line)); });
  report.start_after(after);
  try {
    stage(report);
  } catch (const Stopped&) {
  }
  said.code = report.finish();
  said.verdict = said.lines.back();
  return said;
}

}  // namespace tandem::gpu_check
