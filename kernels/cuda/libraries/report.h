// What the CUDA family reports on a machine, by the runtime and the libraries that are given.
#pragma once

#include <functional>
#include <string>

#include "kernels/cuda/libraries/libraries.h"
#include "kernels/cuda/libraries/shared_library.h"
#include "kernels/cuda/runtime/runtime.h"

namespace tandem::cuda {

/// Driver and GPUs; takes no memory of a GPU.
DeviceReport report_gpus(Runtime& runtime);
/// The whole report. Leaves the calling thread at another GPU.
DeviceReport report_all(Runtime& runtime, Libraries& libraries);

/// What `look` reports, where the driver's library is at `path` ("": nowhere). A file that must not
/// be opened is named without looking (the libraries open it, too), one in which the runtime finds
/// no driver afterwards.
DeviceReport with_driver_at(const std::string& path, const std::function<DeviceReport()>& look);

/// Adds to `fix` what TANDEM_CUDA_LIBRARIES names and is no folder.
void name_missing_folders(DeviceReport& report, const LibraryPlaces& places);

/// Whether a GPU of this compute capability runs code of `architectures`, written as CMake does but
/// for the commas: "80-real,90" has machine code for 8.x and 9.x GPUs, and what the driver
/// translates for newer ones. True where the text does not say ("native").
bool runs_on(const std::string& architectures, int major, int minor);

}  // namespace tandem::cuda
