// PyTorch's threads next to those of the library: whichever computes has the cores.
#pragma once

namespace tandem::python {

/// While it lives the main thread computes with the library. PyTorch's threads, which libgomp lets
/// spin for 3 to 10 ms after their last operation, then sleep; afterwards those of the library do.
/// Nothing happens in other threads, where PyTorch is not loaded, where it has one thread, or where
/// its OpenMP is another one than libgomp.
class WithCores {
 public:
  WithCores();
  ~WithCores();
  WithCores(const WithCores&) = delete;
  WithCores& operator=(const WithCores&) = delete;

 private:
  bool has_other_threads_ = false;
};

/// To be called once, when the module is loaded.
void watch_forks();

/// Off, both leave each other's threads alone: for measurements.
void set_core_sharing(bool is_on);

}  // namespace tandem::python
