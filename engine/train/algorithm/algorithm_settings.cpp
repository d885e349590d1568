#include "engine/train/algorithm/algorithm_settings.h"

#include <algorithm>

#include "engine/config/keys/config_value.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

class Refusals {
 public:
  void add(const Where& where, const char* key, const char* reason, const char* fix) {
    Diagnostic& d = problems_.emplace_back(
        at(where, key, "the model's training_info says how it is trained: " + std::string(reason)));
    d.fix = fix;
  }
  template <class Rule>
  void add_first(const std::vector<Rule>& rules, const char* key, const char* reason,
                 const char* fix) {
    if (!rules.empty()) add(rules[0].where, key, reason, fix);
  }
  void end() {
    if (!problems_.empty()) throw Error(ErrorKind::usage, std::move(problems_));
  }

 private:
  std::vector<Diagnostic> problems_;
};

bool is_written(const Where& where) { return !where.file.empty(); }

}  // namespace

void check_algorithm_settings(const TrainingRequest& request, const Graph& forward) {
  const RunConfig& config = *request.config;
  const Where file{config.file};
  const char* forward_alone = "leave this key out, or train the model without its training_info";
  Refusals refusals;
  if (is_written(config.optimizer.where)) {
    refusals.add(config.optimizer.where, "optimizer", "its updates are nodes of the algorithm",
                 forward_alone);
  }
  refusals.add_first(config.loss.terms, "loss.terms", "its loss is a value of the graph",
                     "leave them out; loss.output chooses the value that is logged");
  refusals.add_first(config.parameters.freeze, "parameters.freeze",
                     "its bindings choose the parameters", forward_alone);
  refusals.add_first(config.parameters.shape, "parameters.shape",
                     "its states have the shapes of the file", forward_alone);
  refusals.add_first(config.parameters.storage, "parameters.storage",
                     "its nodes read whole parameters", forward_alone);
  refusals.add_first(config.parameters.fixed_rows, "parameters.fixed_rows",
                     "its nodes write whole parameters", forward_alone);
  refusals.add_first(config.parameters.head, "parameters.head",
                     "its nodes have the shapes of the file", forward_alone);
  refusals.add_first(config.parameters.lora, "parameters.lora",
                     "its gradients are those of the file's parameters", forward_alone);
  if (config.distillation.has_teacher()) {
    refusals.add(config.distillation.where, "distillation", "its loss is a value of the graph",
                 forward_alone);
  }
  if (config.precision.scales_loss()) {
    refusals.add(file, "precision.compute", "its gradients have no scale, as float16 needs it",
                 "set precision.compute = \"bfloat16\", or leave it out");
  }
  if (request.kind != MicroBatchKind::whole) {
    refusals.add(file, "micro_batch", "a step is one run of its graph", "leave this key out");
  }
  if (std::any_of(forward.states.begin(), forward.states.end(),
                  [](const State& state) { return state.derived.is<CachedRows>(); })) {
    refusals.add({config.policy}, "cache", "its nodes read whole tables",
                 "leave caches out of the policy");
  }
  refusals.end();
}

void require_optimizer(const RunConfig& config) {
  if (config.name.empty() || is_written(config.optimizer.where)) return;
  Diagnostic d = at({config.file}, "optimizer", "this key is missing");
  d.expected = "table";
  d.fix = "add [optimizer] with its kind; only models with ONNX's training_info bring their own";
  throw Error(ErrorKind::usage, std::move(d));
}

}  // namespace tandem
