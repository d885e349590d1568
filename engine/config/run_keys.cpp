// The keys of train.toml outside of its sections, and the order of these.
#include <algorithm>

#include "engine/config/keys/key_visitor.h"
#include "engine/device/device_family.h"
#include "engine/graph/text.h"
#include "engine/logs/log_members.h"
#include "engine/metrics/metric.h"

namespace tandem {
namespace {

/// "auto|cpu|gpu"
std::string_view device_words() {
  static const std::string words = [] {
    std::string all = "auto|cpu";
    for (const DeviceFamily& family : device_families()) {
      if (!family.name.empty()) all.append("|").append(family.name);
    }
    return all;
  }();
  return words;
}

/// Seconds, as a duration.
KeyForm time_limit(std::optional<double>& member) {
  return {duration_value,
          [&](const Found& found) {
            const auto duration = parse_duration(found.value.text);
            if (duration->unit == Duration::Unit::seconds)
              member = duration->value;
            else
              found.report("not a time", "\"30 min\" or \"2 h\"", describe(found.value),
                           "`epochs` and `steps` count the others");
          },
          [&] {
            if (!member) return std::string();
            return toml_string(to_string(Duration{*member, Duration::Unit::seconds}));
          }};
}

constexpr double most_samples = 1 << 30;  // in a batch

/// A number, "auto", or the numbers to choose from.
KeyForm batch_size(RunConfig& c) {
  return {integer_value | string_value | list_value,
          [&](const Found& found) {
            c.batch_choice = {};
            if (found.value.kind == ConfigValue::Kind::integer) {
              c.batch_size = found.value.integer;
              return;
            }
            c.batch_choice.is_open = true;
            if (found.value.kind != ConfigValue::Kind::list) return;
            for (const ConfigValue& item : found.value.items) {
              if (item.kind == ConfigValue::Kind::integer)
                c.batch_choice.sizes.push_back(item.integer);
            }
            if (found.value.items.empty())
              found.report("nothing to choose from", "[ 32, 64, 128 ]", "[ ]");
          },
          [&] {
            if (!c.batch_choice.is_open) return std::to_string(c.batch_size);
            if (c.batch_choice.sizes.empty()) return toml_string("auto");
            std::vector<std::string> sizes;
            for (const std::int64_t size : c.batch_choice.sizes)
              sizes.push_back(std::to_string(size));
            return toml_list(sizes);
          }};
}

/// A metric that a schedule depends on has to be measured repeatedly.
void check_plateau(const TableReader& schedule, const PlateauSchedule& plateau,
                   const RunConfig& c) {
  const auto report = [&](const char* key, std::string message, std::string expected,
                          std::string got, std::string fix) {
    const ConfigValue* const value = schedule.find(key);
    schedule.report(value ? value->where : schedule.where(), key, std::move(message),
                    std::move(expected), std::move(got), std::move(fix));
  };
  const std::string& metric = plateau.metric;
  const MetricConfig* const found = c.eval.find(metric);
  if (metric != "loss" && found == nullptr)
    report("metric", "not one of the metrics", joined(c.eval.metrics, ", ", &MetricConfig::name),
           metric,
           std::string("add it: eval.metrics = [ ") + (c.eval.metrics.empty() ? "" : "…, ") + "\"" +
               metric + "\" ]");
  if (found != nullptr && !is_one_number(*found))
    report("metric", "this metric is more than one number", "a metric that is one number", metric,
           "choose another one, or leave out its `by`");
  else if (found != nullptr && found->kind->better == Better::neither)
    report("metric", "this metric is best near 1, not at an end",
           "a metric that is better the larger or the smaller it is", metric,
           "choose another one, such as log_loss");
  if (!c.eval.every)
    report("kind", "plateau needs evaluations during the training", "", "",
           "eval.every = \"1 epoch\"");
}

/// `owner`: the table that has it.
void check_schedule(const TableReader& owner, const ScheduleConfig& shape, bool has_length,
                    const RunConfig& c) {
  const ConfigValue* const found = owner.valid("schedule");
  if (found == nullptr) return;
  if (shape.needs_length() && !has_length) {
    const auto name_of = [](const auto& kind) { return std::string(kind.name); };
    const std::string name = shape.parts.empty() ? std::visit(name_of, shape.kind)
                                                 : std::visit(name_of, shape.parts.back().kind);
    owner.report(found->where, shape.parts.empty() ? "schedule.kind" : "schedule",
                 name + " needs the length of the run", "epochs or steps");
  }
  if (shape.plateau() != nullptr) check_plateau(owner.table("schedule"), *shape.plateau(), c);
}

/// Lines of metrics.jsonl and tables have both side by side, where the loss has several terms.
void refuse_shared_names(const TableReader& root, const RunConfig& c) {
  if (c.loss.terms.size() < 2) return;
  for (const LossTerm& term : c.loss.terms) {
    const MetricConfig* const metric = c.eval.find(logged_term(term.name));
    if (metric == nullptr) continue;
    root.report(metric->where, "eval.metrics", "a metric and a term of the loss have the same name",
                "different names in metrics.jsonl", term.name, "give one of them another `name`");
  }
}

/// The name becomes the name of a folder, followed by a number, and is shown to people.
void check_name(const TableReader& root, const RunConfig& c) {
  constexpr std::size_t most_bytes = 200;
  const std::string& text = c.name;
  const ConfigValue* name = root.find("name");
  const auto refuse = [&](const char* message, std::string expected, std::string got) {
    root.report(name ? name->where : Where{c.file}, "name", message, std::move(expected),
                std::move(got));
  };
  const bool has_slash = text.find('/') != std::string::npos;
  const bool has_control =
      name != nullptr && std::any_of(text.begin(), text.end(), [](unsigned char byte) {
        return byte < 0x20 || byte == 0x7f;
      });
  if (text.empty() || has_slash || has_control)
    refuse("not the name of a folder", "letters and digits, without / and control characters",
           toml_string(text));
  else if (name != nullptr && text.size() > most_bytes)
    refuse("too long for the name of a folder",
           "at most " + std::to_string(most_bytes) + " bytes, a number follows",
           std::to_string(text.size()));
}

/// What keys of several sections, or all of them, make together.
void check_run(const TableReader& root, const RunConfig& c) {
  if (c.micro_batch > 0 && c.batch_choice.is_open) {
    root.report(root.find("batch_size")->where, "batch_size",
                "memory is that of a micro-batch, whose size is set: every batch fits", "a number",
                "", "leave micro_batch out, or set the number");
  } else if (c.micro_batch > 0 && c.batch_size % c.micro_batch != 0) {
    root.report(root.find("micro_batch")->where, "micro_batch", "does not divide batch_size",
                "a divisor of " + std::to_string(c.batch_size), std::to_string(c.micro_batch));
  }
  if (c.epochs && *c.epochs <= 0) {
    root.report(root.find("epochs")->where, "epochs", "out of range", "above 0",
                toml_number(*c.epochs));
  }
  const bool has_length = root.find("epochs") || root.find("steps");
  if (!has_length && !root.find("max_time")) {
    root.report({c.file, 1, 1}, "", "nothing says when the run ends", "epochs, steps or max_time",
                "", "write `epochs = 10`");
  }
  check_name(root, c);
  // Without max_time either, it is an error of its own.
  const bool may_need_length = has_length || !root.find("max_time");
  const TableReader optimizer = root.table("optimizer");
  check_schedule(optimizer, c.optimizer.schedule, may_need_length, c);
  const std::vector<TableReader> groups = optimizer.tables("groups");
  for (std::size_t i = 0; i < groups.size() && i < c.optimizer.groups.size(); ++i) {
    if (const auto& own = c.optimizer.groups[i].schedule)
      check_schedule(groups[i], *own, may_need_length, c);
  }
  const bool has_averages = c.optimizer.ema || c.optimizer.swa || c.optimizer.lookahead;
  for (const FreezeRule& rule : c.parameters.freeze) {
    if (!rule.from || !has_averages) continue;
    root.report(rule.where, "parameters.freeze.from",
                "the average of a parameter would stop when the parameter stops training", "", "",
                "leave out from, or optimizer.ema, swa and lookahead");
  }
  if (c.data && c.model.bind.contains(c.data->buckets.dimension)) {
    root.report(c.data->buckets.where, "data.buckets.dimension",
                "model.bind gives this dimension a length of its own", "",
                c.data->buckets.dimension, "take it out of model.bind");
  }
  refuse_shared_names(root, c);
  const TableReader eval = root.table("eval");
  const bool has_weights =
      c.eval.weights == Weights::trained ||
      (c.eval.weights == Weights::ema ? c.optimizer.ema.has_value() : c.optimizer.swa.has_value());
  if (!has_weights) {
    const std::string name(choice_name(c.eval.weights));
    eval.report(eval.find("weights")->where, "weights", "there are no such weights", "", name,
                "set optimizer." + name);
  }
  const bool may_have_held_out = !c.data || c.data->is_of_program() ||
                                 !c.data->eval.files.empty() || c.data->eval_fraction != 0;
  if (eval.exists() && !may_have_held_out && !root.table("data").find("eval")) {
    eval.report(eval.where(), "", "there is no data to evaluate on", "", "",
                "data.eval.fraction = 0.1 holds a tenth of the samples out");
  }
}

}  // namespace

void visit(KeyVisitor& v, RunConfig& c) {
  v.section("model", c.model, or_only("file", path_value), required, on_one_line,
            "the ONNX file, or a table with the keys below");
  v.key("policy", path(c.policy), may_be_empty,
        "the policy file: where things run and live; \"\" on the command line: none");
  v.when_read([&](const TableReader& table) {
    if (const ConfigValue* policy = table.find("policy")) c.policy_where = policy->where;
  });
  v.key("device", c.device, one_of(device_words()),
        "where everything runs that no policy places; auto: the cpu");
  v.key("batch_size", batch_size(c), between(1, most_samples), one_of("auto"),
        parts("[]", integer_value, between(1, most_samples), "a size to choose"),
        "samples per optimizer step, over all processes; auto: the largest power of two whose "
        "memory plan fits the devices, a list: the largest of these that does");
  v.key("micro_batch", c.micro_batch, at_least(1), by_default("(batch_size)"),
        written_if(c.micro_batch > 0),
        "samples of one micro-batch, one run of the graph; divides batch_size, the quotient is "
        "accumulation");
  v.key("epochs", c.epochs, at_least(0),
        "passes through the training data, above 0; the first of epochs, steps and max_time ends "
        "the run");
  v.key("steps", c.steps, at_least(1), "optimizer steps");
  v.key("max_time", time_limit(c.max_seconds), "wall-clock time of the run, like \"2h\"");
  v.key("seed", c.seed, at_least(0),
        "seed of the random numbers for shuffling, augmentation, dropout and initial values");
  v.key("threads", c.threads, between(0, 4096),
        "compute threads; 0: all usable cores, at most OMP_NUM_THREADS where that is set");
  v.key("name", c.name, by_default("(the file's name, or its folder's for train.toml)"),
        "name of the run: its directory is runs/NAME-0001, the next one runs/NAME-0002");
  v.key("run_dir", path(c.run_dir), "exactly this run directory");
  v.section(
      "parameters", c.parameters,
      "which parameters train, and what they start from; of rules in one list the last one that "
      "covers a parameter counts, and load comes after init");
  v.section("loss", c.loss, "the loss; left out where the graph ends in a scalar loss");
  v.section("distillation", c.distillation, written_if(c.distillation.has_teacher()),
            "a trained model that this one learns from, in addition to its labels");
  const bool has_optimizer = !c.optimizer.where.file.empty() || !(c.optimizer == OptimizerConfig{});
  v.section("optimizer", c.optimizer, written_if(has_optimizer),
            "how parameters are updated; formulas as in PyTorch. Left out where the model has "
            "training_info");
  v.section("precision", c.precision, "element types of the computation");
  v.table(
      "data", [&c](KeyVisitor& inside) { visit(inside, c.data ? *c.data : c.data.emplace()); },
      written_if(c.data.has_value()), "what is trained on");
  v.section("eval", c.eval, written_if(!(c.eval == EvalConfig{})),
            "evaluation on the held-out data; always after the last step too");
  v.section("checkpoint", c.checkpoint,
            "checkpoints; always after the last step and on an interrupt too");
  v.section("log", c.log, "metrics.jsonl and the lines on the terminal");
  v.when_read([&](const TableReader& root) {
    if (c.distillation.has_teacher())
      add_distillation_terms(root.table("distillation"), c.distillation, c.loss);
    else
      refuse_absent_teacher(c.loss, root);
    check_run(root, c);
  });
}

}  // namespace tandem
