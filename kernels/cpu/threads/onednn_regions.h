// oneDNN's parallel regions on the threads of ThreadTeam.
#pragma once

namespace tandem {

/// How many threads oneDNN uses on the calling thread until the object goes; oneDNN asks when a
/// primitive is made and when it runs.
///
/// oneDNN's library is built with OpenMP, whose waiting threads spin for milliseconds. It calls ten
/// functions of libgomp; the first OneDnnTeam of the process points it to functions over ThreadTeam
/// instead (replace_library_calls). libgomp itself, and whatever else in the process uses it, stays
/// as it is. Where this is not possible, oneDNN keeps libgomp's threads, and their number is set
/// there.
class OneDnnTeam {
 public:
  explicit OneDnnTeam(int threads);
  ~OneDnnTeam();
  OneDnnTeam(const OneDnnTeam&) = delete;
  OneDnnTeam& operator=(const OneDnnTeam&) = delete;

  /// Whether oneDNN's regions run on ThreadTeam in this process.
  static bool has_own_threads();

 private:
  int before_;
};

}  // namespace tandem
