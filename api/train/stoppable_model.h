// A model whose run the user can stop before each of its programs.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "engine/train/programs/run_model.h"

namespace tandem::api {

class StoppableModel final : public RunModel {
 public:
  /// `check_stop` throws where the user wants to stop.
  StoppableModel(std::shared_ptr<RunModel> model, std::function<void()> check_stop)
      : model_(std::move(model)), check_stop_(std::move(check_stop)) {}

  Graph forward(const ForwardKey& key) override {
    check_stop_();
    return model_->forward(key);
  }
  Placement place(const Graph& graph) override { return model_->place(graph); }
  std::shared_ptr<const TrainingAlgorithm> algorithm(const ForwardKey& key) override {
    return model_->algorithm(key);
  }
  LoadingParts loading_parts() override { return model_->loading_parts(); }

 private:
  std::shared_ptr<RunModel> model_;
  std::function<void()> check_stop_;
};

}  // namespace tandem::api
