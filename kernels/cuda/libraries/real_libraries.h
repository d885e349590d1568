// The libraries of this machine, found in given places.
#pragma once

#include <memory>

#include "kernels/cuda/libraries/libraries.h"
#include "kernels/cuda/libraries/shared_library.h"

namespace tandem::cuda {

/// `make_real_libraries` looks in `library_places()`.
std::shared_ptr<Libraries> make_libraries(LibraryPlaces places);

}  // namespace tandem::cuda
