// The state behind a page: a model, the policy under edit, its plan; and the answers about them.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/commands/page/edited_policy.h"
#include "api/commands/page/measured_run.h"
#include "api/commands/page/model_tree.h"
#include "api/commands/page/placement_search.h"
#include "api/commands/page/planned_policy.h"
#include "api/program/page.h"

namespace tandem::api {

/// Several threads may call it at the same time.
class PageSession {
 public:
  /// Throws Error{usage} where the model or the configuration cannot be read; a policy that is
  /// wrong is shown.
  explicit PageSession(const PageOptions& options);

  PageJson model();
  PageJson state();
  std::string plan();
  PageJson timeline();
  PageJson file();
  PageJson measured();
  PageJson live();
  PageJson match(const PageJson& body);
  std::string explain(const PageJson& body);
  PageJson edit(const PageJson& body);
  PageJson undo(const PageJson& body);
  PageJson redo(const PageJson& body);
  PageJson save(const PageJson& body);
  PageJson reload(const PageJson& body);
  PageJson search();
  PageJson start_search(const PageJson& body);
  PageJson stop_search(const PageJson& body);

 private:
  using Change = std::function<void()>;

  PageJson change(const PageJson& body, const Change& how);
  PageJson devices();
  void check_writable() const;
  void check_right() const;
  void take_text(bool may_be_wrong);

  const PageOptions options_;
  std::mutex mutex_;  // for all that follows but the search
  EditedPolicy text_;
  PlannedPolicy planned_;
  ModelTree tree_;
  MeasuredRun run_;
  PageJson state_;  // the last answer, whose revision says whether it still holds
  PlacementSearch search_;
};

}  // namespace tandem::api
