// What a run has measured, from the files in its directory: times of operators, a trace, curves.
#pragma once

#include <string>

#include "api/commands/page/model_tree.h"

namespace tandem::api {

class MeasuredRun {
 public:
  /// `run`: a run directory, "" for none; `trace`: a file of `tandem train --trace`, "" for
  /// trace.json in the directory. Throws Error{usage} where there is no such run.
  MeasuredRun(std::string run, std::string trace);

  bool is_there() const { return !run_.empty(); }
  /// Times of the last logged step, by operator and by item, and the last traced step.
  PageJson measured(const ModelTree& tree, const PolicyItems& items, const Graph& graph) const;
  /// How far the run is, and its curves.
  PageJson live() const;

 private:
  void check() const;

  std::string run_, trace_;
};

}  // namespace tandem::api
