// A policy as a value of the public library: from rules, from text, from a file.
#include <utility>

#include "api/output_file.h"
#include "engine/graph/error.h"
#include "placement/policy.h"
#include "placement/report/rule_data.h"
#include "tandem/policy.h"

namespace tandem::api {
inline namespace v1 {

struct Policy::Impl {
  std::string name, text;
  std::vector<Rule> rules;

  static std::shared_ptr<const Impl> read(const std::string& text, const std::string& name) {
    auto impl = std::make_shared<Impl>();
    impl->name = name;
    impl->text = text;
    for (const PolicyRule& rule : parse_policy(text, name).rules)
      impl->rules.push_back(rule_data(rule));
    return impl;
  }
};

namespace {

/// The text of a policy.toml with these rules.
std::string text_of(const std::vector<Rule>& rules) {
  std::string text = "policy = 1\n";
  if (rules.empty()) return text;
  std::vector<Diagnostic> problems;
  text += "rules = [\n";
  for (const Rule& rule : rules) {
    try {
      text += "  " + to_toml(rule_of(rule)) + ",\n";
    } catch (const Error& error) {  // a selector that cannot be read
      const std::vector<Diagnostic>& found = error.diagnostics();
      problems.insert(problems.end(), found.begin(), found.end());
    }
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  return text + "]\n";
}

}  // namespace

Policy::Policy() : impl_(Impl::read(text_of({}), "policy.toml")) {}

Policy Policy::of(const std::vector<Rule>& rules) { return parse(text_of(rules)); }

Policy Policy::open(const std::string& path) { return parse(read_policy_text(path), path); }

Policy Policy::parse(const std::string& text, const std::string& name) {
  Policy policy;
  policy.impl_ = Impl::read(text, name);
  return policy;
}

const std::vector<Rule>& Policy::rules() const& { return impl_->rules; }
const std::string& Policy::text() const& { return impl_->text; }
const std::string& Policy::name() const& { return impl_->name; }

void Policy::save(const std::string& path) const { write_output(path, text(), path, "policy"); }

}  // namespace v1
}  // namespace tandem::api
