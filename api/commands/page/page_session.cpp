#include "api/commands/page/page_session.h"

#include <filesystem>

#include "api/commands/page/attribute_keys.h"
#include "api/commands/page/page_edits.h"
#include "api/commands/page/placed_items.h"
#include "api/commands/page/request_body.h"
#include "api/commands/page/step_memory.h"
#include "api/commands/page/step_times.h"
#include "engine/formats/paths.h"
#include "placement/auto/arguments.h"
#include "placement/auto/auto_case.h"
#include "placement/quantities.h"
#include "placement/report/json.h"

namespace tandem::api {
namespace {

PageJson parsed(const std::string& json) {
  return json.empty() ? PageJson() : PageJson::parse(json);
}

/// The path of the policy, and the text to begin with where it does not exist.
std::string policy_path(const PageOptions& options) {
  if (!options.policy.policy.empty()) return normal_path(options.policy.policy);
  PolicyCase of(options.policy, {.policy = true, .data = false});
  if (of.config().policy.empty()) {
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "policy page: which file?",
                           .expected = "a policy file as argument, or policy = in the "
                                       "configuration"});
  }
  return normal_path(of.config().policy);
}

PolicyOptions with_path(PolicyOptions options, const std::string& path) {
  options.policy = path;
  return options;
}

std::string model_name(PolicyCase& of) {
  return std::filesystem::path(of.config().model.file).stem().string();
}

}  // namespace

PageSession::PageSession(const PageOptions& options)
    : options_(options),
      text_(policy_path(options), new_policy(options.policy.devices)),
      planned_(with_path(options.policy, text_.path()), text_.text()),
      tree_(planned_.graph(), planned_.items(), model_name(planned_.of())),
      run_(options.run, options.trace) {
  planned_.keep_as_saved();
}

PageJson PageSession::devices() {
  PageJson list = PageJson::array();
  for (const BoundDevice& device : planned_.devices()) {
    PageJson& json = list.emplace_back(PageJson{{"name", device.name}, {"use", device.use}});
    if (device.limit) json["limit"] = *device.limit;
  }
  return list;
}

PageJson PageSession::model() {
  const std::lock_guard lock(mutex_);
  const RunConfig& config = planned_.of().config();
  const PageJson names = devices();
  return {{"config", config.file},
          {"model", config.model.file},
          {"version", version()},
          {"read_only", options_.read_only},
          {"ranks", options_.policy.ranks},
          {"has_run", run_.is_there()},
          {"batch", config.micro_batch_size()},
          {"devices", names},
          {"attributes", attributes_json(names)},
          {"items", tree_.json(planned_.graph(), planned_.items())}};
}

PageJson PageSession::state() {
  const std::lock_guard lock(mutex_);
  if (!state_.is_null() && state_["revision"] == text_.revision()) return state_;
  PageJson problems = PageJson::array(), warnings = PageJson::array(), notes = PageJson::array();
  for (const Diagnostic& d : planned_.problems()) problems.push_back(diagnostic_json(d));
  const bool is_right = planned_.is_right();
  PageJson plan, placement, memory;
  bool is_pending = false;
  if (is_right) {
    const ResolvedPolicy& resolved = planned_.of().resolved();
    for (const Diagnostic& d : resolved.warnings) warnings.push_back(diagnostic_json(d));
    for (const std::string& note : planned_.plan().notes) notes.push_back(note);
    is_pending = !planned_.plan().fits && !planned_.has_remedies();
    plan = parsed(is_pending ? planned_.plan().json : planned_.plan_with_remedies().json);
    placement = placed_items(tree_, planned_);
    memory = memory_over_step(planned_.step(), resolved);
  }
  const std::string name = std::filesystem::path(text_.path()).filename().string();
  state_ = {{"revision", text_.revision()},
            {"ok", is_right},
            {"problems", problems},
            {"file",
             {{"path", text_.path()},
              {"name", name},
              {"exists", text_.exists()},
              {"saved", text_.is_saved()},
              {"changed_on_disk", text_.has_changed(text_.on_disk())}}},
            {"text", text_.text()},
            {"undo", text_.undo_steps()},
            {"redo", text_.redo_steps()},
            {"last_edit", text_.last_edit()},
            {"difference", difference_json(text_.saved(), text_.text())},
            {"devices", devices()},
            {"rules", rules_of(planned_)},
            {"warnings", warnings},
            {"placement", placement},
            {"plan", plan},
            {"remedies_pending", is_pending},
            {"compared", parsed(planned_.compared())},
            {"memory", memory},
            {"notes", notes}};
  return state_;
}

void PageSession::check_right() const {
  if (!planned_.is_right())
    throw PageError{422, "refused", "the policy is wrong: correct the file, then reload it",
                    planned_.problems()};
}

void PageSession::check_writable() const {
  if (options_.read_only) throw PageError{403, "read_only", "this page only shows a run"};
}

std::string PageSession::plan() {
  const std::lock_guard lock(mutex_);
  check_right();
  state_ = nullptr;  // it has the remedies from now on
  return planned_.plan_with_remedies().json;
}

PageJson PageSession::timeline() {
  const std::lock_guard lock(mutex_);
  check_right();
  PageJson json{{"revision", text_.revision()}};
  json.update(timeline_of(planned_.step(), planned_.of().resolved()));
  return json;
}

PageJson PageSession::file() {
  const std::lock_guard lock(mutex_);
  const PolicyOnDisk disk = text_.on_disk();
  return {{"revision", text_.revision()},
          {"exists", disk.exists},
          {"sha256", disk.sha256},
          {"changed_on_disk", text_.has_changed(disk)}};
}

PageJson PageSession::measured() {
  const std::lock_guard lock(mutex_);
  return run_.measured(tree_, planned_.items(), planned_.graph());
}

PageJson PageSession::live() { return run_.live(); }

PageJson PageSession::match(const PageJson& json) {
  const RequestBody body(json, {"at", "op", "min", "after", "before"});
  PolicyRule rule;
  rule.at = Selector(body.text("at"));
  if (body.has("op")) rule.op = body.text("op");
  if (body.has("min")) rule.min = parse_size(body.text("min"));
  if (body.has("min") && !rule.min) bad_request("min: a size such as 64MiB is expected");
  if (body.has("after")) rule.after = Selector(body.text("after"));
  if (body.has("before")) rule.before = Selector(body.text("before"));
  const std::lock_guard lock(mutex_);
  const RuleMatcher matcher(planned_.graph(), planned_.items());
  const RuleMatches matches = matcher.match(rule);
  PageJson operators = PageJson::array(), parameters = PageJson::array();
  for (const int item : matches.operators) operators.push_back(tree_.of_operator(item));
  for (const int item : matches.parameters) parameters.push_back(tree_.of_parameter(item));
  const ItemCounts counts = counts_of(planned_.graph(), planned_.items(), matches);
  PageJson nearest;
  if (!matches.any()) {
    std::vector<std::string> names;
    for (const TreeItem& item : tree_.items()) names.push_back(item.path);
    const std::string near = nearest_selector(body.text("at"), names);
    if (!near.empty()) nearest = near;
  }
  return {{"operators", operators},
          {"parameters", parameters},
          {"counts", counts_json(counts)},
          {"text", counts_text(counts)},
          {"nearest", nearest}};
}

std::string PageSession::explain(const PageJson& json) {
  const RequestBody body(json, {"item", "name"});
  const std::lock_guard lock(mutex_);
  check_right();
  std::string name;
  if (body.has("item")) {
    const int item = body.integer("item");
    if (item < 0 || static_cast<std::size_t>(item) >= tree_.items().size())
      bad_request("item: there is no such item");
    const TreeItem& chosen = tree_.items()[static_cast<std::size_t>(item)];
    name = chosen.kind == TreeItem::Kind::module ? chosen.at : chosen.path;
  } else {
    name = body.text("name");
  }
  return policy_explain(planned_.of(), planned_.step(), name).json;
}

PageJson PageSession::change(const PageJson& json, const Change& how) {
  check_writable();
  {
    const std::lock_guard lock(mutex_);
    text_.check_revision(RequestBody(json, {"revision", "place", "rule", "add", "proposed", "over"})
                             .integer("revision"));
    how();
  }
  return state();
}

void PageSession::take_text(bool may_be_wrong) {
  if (may_be_wrong)
    planned_.take(text_.text());
  else
    planned_.set(text_.text());
}

PageJson PageSession::edit(const PageJson& body) {
  return change(body, [&] {
    check_right();
    const auto [text, what] = edited_text(text_, body, tree_, planned_, search_.proposal());
    planned_.set(text);  // throws where it cannot be placed so
    text_.set(text, what);
  });
}

PageJson PageSession::undo(const PageJson& body) {
  return change(body, [&] {
    text_.undo();
    take_text(true);
  });
}

PageJson PageSession::redo(const PageJson& body) {
  return change(body, [&] {
    text_.redo();
    take_text(true);
  });
}

PageJson PageSession::reload(const PageJson& body) {
  return change(body, [&] {
    text_.reload();
    take_text(true);
    planned_.keep_as_saved();
  });
}

PageJson PageSession::save(const PageJson& json) {
  return change(json, [&] {
    const RequestBody body(json, {"revision", "over"});
    const std::string over = body.has("over") ? body.text("over") : "";
    text_.save(body.has("over") ? &over : nullptr);
    planned_.keep_as_saved();
  });
}

PageJson PageSession::search() {
  const std::lock_guard lock(mutex_);
  PageJson json = search_.json();
  if (json["result"].is_null()) return json;
  // What is missing from the present text: it changes while rules are taken over.
  PageJson changes = PageJson::array();
  const std::optional<ProposedRules> proposal = search_.proposal();
  if (proposal && planned_.is_right()) {
    for (const RuleChange& change : changes_to(*proposal, text_.text(), text_.path()))
      changes.push_back({{"kind", change.kind == RuleChange::Kind::add ? "add" : "remove"},
                         {"list", change.list},
                         {"rule", change.rule},
                         {"comment", change.comment},
                         {"line", change.line}});
  }
  json["result"]["changes"] = std::move(changes);
  json["result"]["current"] = text_.revision();
  return json;
}

PageJson PageSession::start_search(const PageJson& json) {
  check_writable();
  const RequestBody body(json, {"budgets", "keep_rules", "tries"});
  PolicyAutoOptions automatic = search_options(body);
  const bool keep_rules = !body.has("keep_rules") || body.flag("keep_rules");
  const std::lock_guard lock(mutex_);
  check_right();
  if (keep_rules && options_.policy.ranks <= 1 && !pinning_rules(planned_.of().resolved()).empty())
    throw PageError{422, "all_placed", "the rules place everything: nothing is left to search"};
  PolicyOptions options = options_.policy;
  options.made = Policy::parse(text_.text(), text_.path());
  options.policy.clear();
  search_.start(std::move(options), std::move(automatic), keep_rules, text_.revision());
  return search_.json();
}

PageJson PageSession::stop_search(const PageJson& json) {
  check_writable();
  RequestBody(json, {});
  search_.stop();
  return search();
}

}  // namespace tandem::api
