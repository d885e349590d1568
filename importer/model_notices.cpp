#include "importer/model_notices.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/graph/text.h"
#include "engine/operators/packed/packing.h"
#include "importer/paths.h"
#include "importer/weights/constant_weights.h"

namespace tandem {
namespace {

/// "a, b, c and 4 more"
std::string some_of(const std::vector<std::string>& texts) {
  constexpr std::size_t shown = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(texts.size(), shown); ++i)
    text += (i == 0 ? "" : ", ") + texts[i];
  if (texts.size() > shown) text += fmt::format(" and {} more", texts.size() - shown);
  return text;
}

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

/// `[ { at = "a", mode = "b" }, … ]`
std::string rules_of(const std::vector<std::string>& names, const std::string& mode) {
  std::string text;
  for (const std::string& name : names) {
    text += fmt::format("{}{{ at = {}{} }}", text.empty() ? "" : ", ", quoted(name),
                        mode.empty() ? "" : ", mode = " + quoted(mode));
  }
  return "[ " + text + " ]";
}

const char* plural(std::size_t count, const char* one, const char* many) {
  return count == 1 ? one : many;
}

void add_randomness(const ImportResult& model, std::vector<ModelNotice>& notices) {
  ModelNotice on{"random_on"}, off{"random_off"};
  std::map<std::string, std::vector<std::string>> kinds;
  std::vector<std::string> shown;
  for (const RandomUse& use : model.randomness) {
    if (use.is_on) {
      if (use.by_rule) continue;
      on.names.push_back(use.path);
      shown.push_back(fmt::format("{} ({})", use.path, use.op));
    } else {
      off.names.push_back(use.path);
      kinds[use.kind.empty() ? "by model.random" : use.kind].push_back(use.path);
    }
  }
  if (!on.names.empty()) {
    const std::size_t count = on.names.size();
    on.is_warning = true;
    on.text = fmt::format(
        "{} {} random numbers in evaluation, prediction and the exported file as in training: {}",
        count, plural(count, "operator draws", "operators draw"), some_of(shown));
    on.fix = fmt::format(
        "model.random = {} leaves {} out there (the mean replaces {}), mode = \"always\" says that "
        "it is meant",
        rules_of(on.names, "train"), plural(count, "it", "them"), plural(count, "it", "them"));
    notices.push_back(std::move(on));
  }
  if (off.names.empty()) return;
  std::vector<std::string> parts;
  for (const auto& [kind, paths] : kinds)
    parts.push_back(fmt::format("{}: {}", kind, some_of(paths)));
  const std::size_t count = off.names.size();
  off.text = fmt::format(
      "{} random {} only in training, and {} off in evaluation, prediction and the exported file: "
      "{}",
      count, plural(count, "operator is", "operators are"), plural(count, "is", "are"),
      joined(parts, "; "));
  off.fix = fmt::format("model.random = \"always\" keeps {} on", plural(count, "it", "them"));
  notices.push_back(std::move(off));
}

void add_buffers(const ImportResult& model,
                 const std::function<bool(const ParameterSummary&)>& is_settled,
                 std::vector<ModelNotice>& notices) {
  ModelNotice sure{"buffers"}, doubtful{"possible_buffers"};
  std::vector<std::string> sure_shown, doubtful_shown;
  constexpr std::string_view head = "recognised as a buffer: ";
  for (const ParameterSummary& p : model.summary.parameters) {
    if (p.is_recognised_buffer && !p.trainable && p.reason.starts_with(head)) {
      sure.names.push_back(p.path);
      sure_shown.push_back(fmt::format("{} ({})", p.path, p.reason.substr(head.size())));
    } else if (p.trainable && !p.doubt.empty() && !(is_settled && is_settled(p))) {
      doubtful.names.push_back(p.path);
      doubtful_shown.push_back(fmt::format("{} ({})", p.path, p.doubt));
    }
  }
  if (!sure.names.empty()) {
    const std::size_t count = sure.names.size();
    std::vector<std::string> names;
    for (const std::string& name : sure.names) names.push_back(quoted(name));
    sure.text = fmt::format("{} {} recognised as {} and {} not train: {}", count,
                            plural(count, "tensor was", "tensors were"),
                            plural(count, "a buffer", "buffers"), plural(count, "does", "do"),
                            some_of(sure_shown));
    sure.fix = fmt::format("parameters.train = [ {} ] trains {} nevertheless", joined(names, ", "),
                           plural(count, "it", "them"));
    notices.push_back(std::move(sure));
  }
  if (doubtful.names.empty()) return;
  const std::size_t count = doubtful.names.size();
  doubtful.text = fmt::format("{} {} and may be {} that the model never trained: {}", count,
                              plural(count, "tensor trains", "tensors train"),
                              plural(count, "a buffer", "buffers"), some_of(doubtful_shown));
  doubtful.fix = fmt::format("if so, parameters.freeze = {}", rules_of(doubtful.names, ""));
  notices.push_back(std::move(doubtful));
}

// Tools that write weights as Constant nodes keep some of their names; PyTorch's exporters have
// Constant nodes of names that they make up, for what is no parameter.
void add_constant_weights(const ImportResult& model, std::vector<ModelNotice>& notices) {
  ModelNotice notice{"constant_weights"};
  std::vector<std::string> selectors;
  bool any_is_named = false;
  for (const ParameterSummary& p : model.summary.parameters) {
    if (!p.is_recognised_buffer || p.reason != importer::constant_weight_reason) continue;
    any_is_named = any_is_named || !importer::is_generated_name(p.name);
    notice.names.push_back(p.path);
    selectors.push_back(quoted(p.path));
  }
  if (!any_is_named) return;
  const std::size_t count = notice.names.size();
  notice.is_warning = true;
  notice.text =
      fmt::format("{} {} in the place of a weight {} in a Constant node and {} not train: {}",
                  count, plural(count, "tensor", "tensors"), plural(count, "is", "are"),
                  plural(count, "does", "do"), some_of(notice.names));
  notice.fix = fmt::format("parameters.train = [ {} ] trains {}", joined(selectors, ", "),
                           plural(count, "it", "them"));
  notices.push_back(std::move(notice));
}

/// Exporters wire an input away where the model does not use it, or where one tensor was given for
/// several inputs.
void add_unread_inputs(const ImportResult& model, std::vector<ModelNotice>& notices) {
  if (!model.stage.requests.empty()) return;
  const auto readers = readers_of(model.graph);
  ModelNotice notice{"unread_inputs"};
  for (const NamedValue& input : model.graph.inputs) {
    const bool is_output =
        std::any_of(model.graph.outputs.begin(), model.graph.outputs.end(),
                    [&](const NamedValue& output) { return output.value == input.value; });
    if (!is_output && readers[static_cast<std::size_t>(input.value.index)].empty())
      notice.names.push_back(input.name);
  }
  if (notice.names.empty()) return;
  const std::size_t count = notice.names.size();
  notice.is_warning = true;
  notice.text = fmt::format("{} {} no output: {}: whatever {} fed, results are the same", count,
                            plural(count, "input reaches", "inputs reach"), some_of(notice.names),
                            plural(count, "it is", "they are"));
  notice.fix = "if the model should use " + std::string(plural(count, "it", "them")) +
               ", export it again with a tensor of its own for each input";
  notices.push_back(std::move(notice));
}

void add_batch_norms(const ImportResult& model, std::vector<ModelNotice>& notices) {
  std::vector<std::string> training, inference;
  bool differs = false;
  for (const BatchNormUse& use : model.batch_norms) {
    (use.file_trains ? training : inference).push_back(use.path);
    differs = differs || use.trains != use.file_trains;
  }
  if (training.empty() || inference.empty() || !differs) return;
  ModelNotice notice{"batch_norm_modes"};
  notice.names = inference;
  notice.text = fmt::format(
      "the file has BatchNormalization in training ({}) and in inference ({}), and the "
      "configuration says otherwise for some of them",
      some_of(training), some_of(inference));
  notice.fix = "model.batch_norm = \"file\" does for each what the file says";
  notice.is_warning = true;
  notices.push_back(std::move(notice));
}

std::string with_commas(std::int64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

/// Whether a gradient of the outputs comes to each value: it passes neither whole numbers nor
/// StopGradient.
std::vector<bool> reached_by_gradients(const Graph& graph) {
  std::vector<bool> reached(graph.values.size());
  const auto reach = [&](ValueId value) {
    if (value && is_float(graph.type(value).dtype)) reached[value.index] = true;
  };
  for (const NamedValue& output : graph.outputs) reach(output.value);
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {  // readers come after what they read
    const Node& node = graph.nodes[n];
    const bool is_reached =
        std::any_of(node.outputs.begin(), node.outputs.end(),
                    [&](ValueId output) { return output && reached[output.index]; });
    if (!is_reached || node.op->name == std::string_view("StopGradient")) continue;
    for (const ValueId input : node.inputs) reach(input);
  }
  return reached;
}

void add_quantized(const ImportResult& model, std::vector<ModelNotice>& notices) {
  constexpr double small_part = 0.05;
  const QuantizedWeights& quantized = model.quantized;
  if (quantized.numbers == 0) return;
  ModelNotice notice{"quantized"};
  const std::vector<bool> reached = reached_by_gradients(model.graph);
  std::int64_t cut_off = 0;  // before whole numbers
  for (const State& state : model.graph.states) {
    if (state.kind != StateKind::parameter || !state.trainable) continue;
    (reached[state.initial.index] ? notice.trained : cut_off) += state.start.type().elements();
  }
  notice.all = notice.trained + cut_off + quantized.numbers;
  const double part = static_cast<double>(notice.trained) / static_cast<double>(notice.all);
  notice.is_warning = part < small_part;
  notice.text = fmt::format(
      "{}{} of {} weights train ({:.2g} %): {}{} are whole numbers ({}) that {} {}, and no step "
      "changes those",
      notice.is_warning ? "only " : "", with_commas(notice.trained), with_commas(notice.all),
      100 * part, cut_off == 0 ? "the other " : "", with_commas(quantized.numbers), quantized.types,
      joined(quantized.operators), plural(quantized.operators.size(), "reads", "read"));
  if (cut_off > 0)
    notice.text +=
        fmt::format("; {} more lie before such operators, through which no gradient passes",
                    with_commas(cut_off));
  const bool any_packed =
      std::any_of(model.graph.states.begin(), model.graph.states.end(), is_packed);
  notice.fix = any_packed ? "parameters.lora trains adapters next to them"
                          : "train the float model that it was made of, and quantize the result";
  notices.insert(notices.begin(), std::move(notice));
}

}  // namespace

std::vector<ModelNotice> model_notices(
    const ImportResult& model, const std::function<bool(const ParameterSummary&)>& is_settled) {
  std::vector<ModelNotice> notices;
  add_randomness(model, notices);
  add_buffers(model, is_settled, notices);
  add_constant_weights(model, notices);
  add_unread_inputs(model, notices);
  add_batch_norms(model, notices);
  add_quantized(model, notices);
  return notices;
}

std::string in_one_line(const ModelNotice& notice) {
  return notice.fix.empty() ? notice.text : notice.text + "; " + notice.fix;
}

}  // namespace tandem
