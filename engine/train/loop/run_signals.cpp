#include "engine/train/loop/run_signals.h"

namespace tandem {

StepSignals RunSignals::own() const {
  StepSignals own;
  if (place_.ranks == 1) return own;
  if (place_.rank == 0) own = calendar_->signals();
  own.interrupted = is_asked_to_stop();
  return own;
}

StepSignals RunSignals::now() const { return place_.ranks > 1 ? agreed_ : calendar_->signals(); }

bool RunSignals::is_interrupted() {
  if (!interrupted_) interrupted_ = place_.ranks > 1 ? agreed_.interrupted : is_asked_to_stop();
  return interrupted_;
}

}  // namespace tandem
