// An observer of a training made of functions.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/train/loop/training_observer.h"

namespace tandem::testing {

struct Hooks {
  std::function<void(const TrainingProgress&)> on_progress;
  std::function<void(const std::string&)> on_message;
  std::function<bool()> stop_requested;

  /// An observer that calls copies of them.
  std::shared_ptr<TrainingObserver> observer() const {
    struct Caller final : TrainingObserver {
      explicit Caller(const Hooks& h) : hooks(h) {}
      void progress(const TrainingProgress& progress) override {
        if (hooks.on_progress) hooks.on_progress(progress);
      }
      void message(const std::string& text) override {
        if (hooks.on_message) hooks.on_message(text);
      }
      bool is_asked_to_stop() override { return hooks.stop_requested && hooks.stop_requested(); }
      Hooks hooks;
    };
    return std::make_shared<Caller>(*this);
  }
};

}  // namespace tandem::testing
