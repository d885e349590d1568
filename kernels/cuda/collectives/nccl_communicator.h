// A communicator over NCCL: one GPU for each rank.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "engine/ranks/communicator.h"
#include "engine/ranks/rendezvous.h"
#include "kernels/cuda/libraries/libraries.h"
#include "kernels/cuda/runtime/runtime.h"

namespace tandem::cuda {

struct NcclOptions {
  std::string device = "cuda:0";  // its name, for errors
  int gpu = 0;                    // its number
  /// Time for NCCL to start, and to make connections when an operation is the first of its kind.
  std::chrono::milliseconds start_limit{120000};
  /// From when an operation is enqueued, or the one before it was seen done, until it is done. Work
  /// before it on its stream counts.
  std::chrono::milliseconds operation_limit{600000};
};

/// All ranks call this; either all get a communicator or all throw Error{runtime}, which names the
/// ranks that could not start or did not come. Operations are enqueued on streams of the CUDA
/// device of that GPU, captured ones too: each is launched as often and in the same order on all
/// ranks. NCCL adds no int16 and uint16 and has no mean of integers.
std::unique_ptr<Communicator> make_nccl_communicator(const NcclOptions& options,
                                                     std::shared_ptr<Rendezvous> rendezvous,
                                                     std::shared_ptr<Runtime> runtime,
                                                     std::shared_ptr<Libraries> libraries);

}  // namespace tandem::cuda
