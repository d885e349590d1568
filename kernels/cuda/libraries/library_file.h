// Checks of a library's file without the loader, which waits at a pipe for ever and ends the
// program at a file that was cut short.
#pragma once

#include <string>

namespace tandem::cuda {

/// Why the loader must not be given this file: "it is a folder"; "" where it is a file of a
/// library's form and length, or of a form of which the loader says what is wrong.
std::string file_problem(const std::string& path);

/// The file that the loader takes for a name ("libcuda.so.1"): of LD_LIBRARY_PATH, its cache, the
/// system's folders. "" where it finds none. Subfolders for kinds of processors are not looked at.
std::string loader_file(const std::string& name);

}  // namespace tandem::cuda
