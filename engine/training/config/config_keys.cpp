#include "engine/training/config/config_keys.h"

#include <algorithm>
#include <deque>
#include <stdexcept>

#include "engine/training/config/config_names.h"
#include "engine/training/config/loss_keys.h"
#include "engine/training/config/optimizer_keys.h"
#include "engine/training/metrics.h"

namespace tandem {
namespace {

constexpr unsigned boolean = boolean_value, integer = integer_value, number = number_value,
                   string = string_value, path = path_value, duration = duration_value,
                   selector = selector_value, table = table_value, list = list_value;

// clang-format off: one key a line.
// Parents before children; the resolved file and the page of keys have this order.
// path, type, default, allowed, later, help, low, high
constexpr KeyInfo table_of_keys[] = {
    {"model", path | table, "required", "", "", "the ONNX file, or a table with the keys below"},
    {"model.file", path, "required", "", "", "the ONNX file"},
    {"model.bind", table, "{}", "", "",
     "extents of free dimensions by name; the batch follows from batch_size"},
    {"model.bind.*", integer, "", "", "", "extent of this dimension", 1},
    {"model.batch_norm", string, "\"train\"", "train|inference", "",
     "BatchNormalization in inference form: train it, or keep its statistics fixed"},
    {"policy", path, "", "", "", "the policy file: where things run and live"},
    {"device", string, "\"auto\"", "auto|cpu|gpu", "",
     "where everything runs that no policy places; auto: the GPU if the plan fits"},
    {"batch_size", integer, "32", "", "", "samples per optimizer step, over all processes", 1,
     1 << 30},
    {"micro_batch", integer, "(batch_size)", "", "",
     "samples that one pass of the graph takes; divides batch_size, the quotient is accumulation",
     1},
    {"epochs", number, "", "", "",
     "passes through the training data, above 0; the first of epochs, steps and max_time ends the "
     "run",
     0},
    {"steps", integer, "", "", "", "optimizer steps", 1},
    {"max_time", duration, "", "", "", "wall-clock time of the run, like \"2h\""},
    {"seed", integer, "1", "", "", "of shuffling, augmentation, dropout and initial values", 0},
    {"threads", integer, "0", "", "", "compute threads; 0: all usable cores", 0, 4096},
    {"name", string, "(the file's name, or its folder's for train.toml)", "", "",
     "of the run: its directory is runs/NAME-0001, numbered up"},
    {"run_dir", path, "", "", "", "exactly this run directory"},

    {"parameters", table, "", "", "",
     "which parameters train, and what they start from; the last rule that covers a parameter "
     "wins"},
    {"parameters.freeze", list, "[]", "", "", "parameters that do not train"},
    {"parameters.freeze[]", table, "", "", "", "one rule"},
    {"parameters.freeze[].at", selector, "required", "", "", "which parameters"},
    {"parameters.freeze[].until", duration, "(the whole run)", "", "", "train them after this"},
    {"parameters.load", list, "[]", "", "", "values from other files"},
    {"parameters.load[]", table, "", "", "", "one rule"},
    {"parameters.load[].from", path, "required", "", "",
     "a .safetensors or .npz file with the parameters' names"},
    {"parameters.load[].at", selector, "\"**\"", "", "", "which parameters"},
    {"parameters.load[].missing", string, "\"error\"", "error|keep", "",
     "a covered parameter that the file lacks: an error, or it keeps its value"},
    {"parameters.init", list, "[]", "", "", "new initial values"},
    {"parameters.init[]", table, "", "", "", "one rule"},
    {"parameters.init[].at", selector, "required", "", "", "which parameters"},
    {"parameters.init[].kind", string, "required", joined_names<init_kinds>, "",
     "the distribution"},
    {"parameters.init[].mean", number, "0.0", "", "", "of normal"},
    {"parameters.init[].std", number, "1.0", "", "", "of normal", 0},
    {"parameters.init[].low", number, "0.0", "", "", "of uniform"},
    {"parameters.init[].high", number, "1.0", "", "", "of uniform"},
    {"parameters.init[].value", number, "0.0", "", "", "of constant"},
    {"parameters.head", list, "", "", "*", "a new last layer"},
    {"parameters.shape", list, "[]", "", "",
     "tables that the file holds a placeholder of: rows that they get at import, where only "
     "look-ups (Gather along axis 0) read them"},
    {"parameters.shape[]", table, "", "", "", "one rule"},
    {"parameters.shape[].at", selector, "required", "", "", "which parameters"},
    {"parameters.shape[].rows", integer | string, "required", "", "",
     "extent of axis 0, or \"vocabulary(FIELD)\"; without an init rule they start at zero", 1},
    {"parameters.storage", list, "[]", "", "",
     "how tables that only look-ups read are kept between steps; files hold float32 all the same"},
    {"parameters.storage[]", table, "", "", "", "one rule"},
    {"parameters.storage[].at", selector, "required", "", "", "which parameters"},
    {"parameters.storage[].kind", string, "required", joined_names<storage_kinds>, "",
     "split_bfloat16: look-ups read, and links carry, the value rounded to bfloat16; updates of "
     "rows work on the whole float32"},

    {"loss", table, "", "", "", "the loss; left out where the graph ends in a scalar loss"},
    {"loss.output", string, "", "", "",
     "which output of the graph is the loss, where terms are left out and it has several outputs"},
    {"loss.terms", list, "[]", "", "", "the loss is the weighted sum of these"},
    {"loss.terms[]", table, "", "", "", "one term"},
    {"loss.terms[].name", string, "(the kind)", "", "",
     "its name in metrics and selectors"},  // loss_keys() follow

    {"optimizer", table, "required", "", "", "how parameters are updated; formulas as in PyTorch"},
    // optimizer_keys() follow
    {"optimizer.groups", list, "[]", "", "",
     "other options for some parameters; the last group that covers one takes it"},
    {"optimizer.groups[]", table, "", "", "",
     "a selector and the options that differ, kind included"},
    {"optimizer.groups[].at", selector, "required", "", "", "which parameters"},
    // group_keys() follow
    {"optimizer.schedule", table, "", "", "",
     "the learning rate over the run; groups follow in proportion"},
    {"optimizer.schedule.kind", string, "required", joined_names<schedule_kinds>, "",
     "the shape after the warm-up"},
    {"optimizer.schedule.warmup", duration, "", "", "", "linear rise from 0"},
    {"optimizer.schedule.final", number, "0.0", "", "",
     "learning rate at the end of the run (cosine, linear)", 0},
    {"optimizer.schedule.step_size", duration, "", "", "", "how long one stair lasts (step)"},
    {"optimizer.schedule.gamma", number, "0.1", "", "", "factor from stair to stair (step)", 0},
    {"optimizer.clip_norm", number, "", "", "",
     "the gradient of all parameters together is scaled down to this norm", 1e-30},

    {"precision", table, "", "", "", "element types of the computation"},
    {"precision.compute", string, "\"float32\"", "float32|bfloat16|float16", "",
     "of products and convolutions, on devices that are fast with it; masters, moments, statistics "
     "and losses stay float32"},
    {"precision.loss_scale", string | number, "\"dynamic\"", "dynamic", "",
     "gradients are those of the loss times this (float16). dynamic: from 65536 on, halved where a "
     "gradient is not finite, which leaves that step out",
     1e-6, 1e30},
    {"precision.growth_interval", integer, "2000", "", "",
     "steps without such a gradient until a dynamic scale doubles", 1},
    {"precision.keep_float32", list, "[]", "", "", "operators that stay float32 there, too"},
    {"precision.keep_float32[]", selector, "", "", "", "which operators"},
    {"precision.tf32", boolean, "false", "", "",
     "float32 products and convolutions on a card of NVIDIA's read their operands with 10 bits of "
     "mantissa instead of 23, and add in float32; other devices compute as without it"},

    {"data", table, "", "", "", "what is trained on"},
    {"data.kind", string, "required", joined_names<data_kinds>, "images|tokens|webdataset",
     "the files' format"},
    {"data.root", path, "(the folder of this file)", "", "",
     "folder that file names are relative to"},
    {"data.columns", list, "(the first row names them)", "", "",
     "names of the columns, in order (csv, tsv)"},
    {"data.columns[]", string, "", "", "", "a name; {1..13} and {a,b} stand for several"},
    {"data.header", boolean, "(true without data.columns)", "", "",
     "the first row of every file names the columns (csv, tsv)"},
    {"data.on_bad", string, "\"error\"", joined_names<bad_row_choices>, "",
     "a row that cannot be read: an error, or it is left out and counted (csv, tsv)"},
    {"data.cache", path, "(runs/data beside this file)", "", "",
     "folder of prepared tables (csv, tsv)"},
    {"data.train", table, "required", "", "", "the training data"},
    {"data.train.files", path | list | table, "required", "", "",
     "files in order; a table of array = file for single arrays (idx, .npy)"},
    {"data.train.files[]", path, "", "", "", "a file; {0..9} and {a,b} stand for several"},
    {"data.train.files.*", path | list, "", "", "", "the file or files of this array"},
    {"data.train.files.*[]", path, "", "", "", "a file"},
    {"data.train.shuffle", string, "\"full\"", "", "",
     "\"full\", \"none\" or \"buffer N\": a new order every epoch"},
    {"data.eval", table, "", "", "", "the held-out data"},
    {"data.eval.files", path | list | table, "", "", "", "as data.train.files"},
    {"data.eval.files[]", path, "", "", "", "a file; {0..9} and {a,b} stand for several"},
    {"data.eval.files.*", path | list, "", "", "", "the file or files of this array"},
    {"data.eval.files.*[]", path, "", "", "", "a file"},
    {"data.eval.fraction", number, "", "", "",
     "hold out this part of the training data instead, chosen by the seed", 0, 1},
    {"data.fields", table, "(every array under its own name)", "", "",
     "inputs of the graph and of the loss"},
    {"data.fields.*", string | table, "", "", "",
     "an array's name, or a table with the keys below"},
    {"data.fields.*.from", string | list, "required", "", "",
     "the array it is made of; or the column, or columns that make an axis"},
    {"data.fields.*.from[]", string, "", "", "", "a column; {1..13} and {a,b} stand for several"},
    {"data.fields.*.as", list, "[]", "", "", "functions, in order"},
    {"data.fields.*.as[]", string, "", "", "",
     "scale(1/255), normalize(mean, std), flatten, reshape(…), resize(h, w), one_hot(n), float32, "
     "int64, log1p, bucketize(1, 10, …); of columns also missing(-1), split(\"|\", max=8), "
     "hash(n), "
     "vocabulary(min_count=10, name=\"ids\")"},
    {"data.fields.*.augment", list, "[]", "", "",
     "random functions, in training only; before `as`, but after a reshape or resize that it "
     "starts with"},
    {"data.fields.*.augment[]", string, "", "", "",
     "random_crop(size, padding=n), random_flip, resize(h, w)"},
    {"data.fields.*.out_of_range", string, "\"error\"", joined_names<out_of_range_choices>, "",
     "an id that is no row of the table it looks up: an error, or zeros without a gradient"},
    {"data.workers", integer, "1", "", "", "threads that read ahead of the step", 1, 256},
    {"data.drop_last", boolean, "false", "", "",
     "leave out the partial batch at the end of an epoch"},

    {"eval", table, "", "", "", "evaluation on the held-out data; always after the last step too"},
    {"eval.every", duration, "(after the last step only)", "", "", "how often"},
    {"eval.metrics", list, "[]", "", "", "what is measured"},
    {"eval.metrics[]", string, "", joined_names<metric_kinds>, "", "a metric"},
    {"eval.best", string, "", "", "", "the metric whose best checkpoint is kept as `best`"},
    {"eval.patience", integer, "0", "", "",
     "stop after so many evaluations without a better `best`; 0: never", 0},
    {"checkpoint", table, "", "", "",
     "checkpoints; always after the last step and on an interrupt too"},
    {"checkpoint.every", duration, "\"30 min\"", "", "", "how often"},
    {"checkpoint.keep", integer, "3", "", "",
     "how many of the newest are kept, besides the best; 0: all", 0},
    {"checkpoint.shard_mib", integer, "1024", "", "",
     "larger tensors go into files of about so many MiB, by ranges of rows", 1, 1 << 20},
    {"log", table, "", "", "", "metrics.jsonl and the lines on the terminal"},
    {"log.every", duration, "\"100 steps\"", "", "", "how often"},
    {"log.also", list, "", "", "*", "other formats of the metrics"},
};

// clang-format on

// Words that other programs use for keys of this one.
constexpr std::pair<std::string_view, std::string_view> other_words[] = {
    {"learning_rate", "lr"},    {"batch", "batch_size"},    {"num_workers", "workers"},
    {"optim", "optimizer"},     {"max_steps", "steps"},     {"num_epochs", "epochs"},
    {"max_epochs", "epochs"},   {"grad_clip", "clip_norm"}, {"max_grad_norm", "clip_norm"},
    {"dataset", "data"},        {"validation", "eval"},     {"max_norm", "clip_norm"},
    {"param_groups", "groups"}, {"scheduler", "schedule"},  {"type", "kind"},
    {"warmup_steps", "warmup"}, {"loss_fn", "loss"},        {"onnx", "model"}};

constexpr std::string_view page_head =
    "# The keys of train.toml\n\n"
    "Written by `tandem config keys --markdown` from the table that also checks the file; do not "
    "edit. `tandem config explain KEY` shows one key.\n\n"
    "- Paths are relative to the file; those given on the command line, to the current folder "
    "where "
    "they exist there.\n"
    "- `${VAR}` and `${VAR:-default}` work inside strings; `$${` stands for `${`.\n"
    "- A duration is a string: `\"500 steps\"`, `\"1 epoch\"`, `\"30 min\"`, `\"2 h\"`.\n"
    "- Every key can be set on the command line: `optimizer.lr=0.01`, "
    "`optimizer.groups.0.lr=0.1`. The value is TOML, else a bare string.\n"
    "- `[]` stands for the items of a list, `*` for any name.\n"
    "- \"later\" marks what this version knows by name and refuses.\n";

std::vector<KeyInfo> all_keys() {
  std::vector<KeyInfo> keys;
  const auto append = [&](const std::vector<KeyInfo>& more) {
    keys.insert(keys.end(), more.begin(), more.end());
  };
  for (const KeyInfo& key : table_of_keys) {
    keys.push_back(key);
    if (key.path == "loss.terms[].name") append(loss_keys());
    if (key.path == "optimizer") append(optimizer_keys());
    if (key.path == "optimizer.groups[].at") append(group_keys());
  }
  return keys;
}

// One step of a path; "[]" is a step of its own.
std::vector<std::string_view> steps_of(std::string_view text) {
  std::vector<std::string_view> steps;
  while (!text.empty()) {
    const std::size_t dot = text.find('.');
    std::string_view part = text.substr(0, dot);
    const bool is_list = part.ends_with("[]");
    if (is_list) part.remove_suffix(2);
    if (!part.empty()) steps.push_back(part);
    if (is_list) steps.push_back("[]");
    text = dot == std::string_view::npos ? "" : text.substr(dot + 1);
  }
  return steps;
}

}  // namespace

const KeyTable& train_keys() {
  static const std::vector<KeyInfo> keys = all_keys();
  static const KeyTable table{"train.toml", keys, other_words, page_head, "The run"};
  return table;
}

const KeyInfo* KeyTable::find(std::string_view wanted) const {
  const auto steps = steps_of(wanted);
  const KeyInfo* best = nullptr;
  for (const KeyInfo& key : keys) {
    if (key.path == wanted) return &key;
    const auto pattern = steps_of(key.path);
    if (pattern.size() != steps.size()) continue;
    bool fits = true;
    for (std::size_t i = 0; fits && i < steps.size(); ++i) {
      const bool index = steps[i].find_first_not_of("0123456789") == std::string_view::npos;
      fits = pattern[i] == steps[i] || pattern[i] == "*" || (pattern[i] == "[]" && index);
    }
    if (fits && !best) best = &key;
  }
  return best;
}

std::string type_text(unsigned type) {
  constexpr std::pair<unsigned, std::string_view> names[] = {
      {boolean, "true or false"}, {integer, "integer"}, {number, "number"},
      {string, "string"},         {path, "path"},       {duration, "duration"},
      {selector, "selector"},     {table, "table"},     {list, "list"}};
  std::string text;
  for (const auto& [bit, name] : names) {
    if (type & bit) text += (text.empty() ? "" : " or ") + std::string(name);
  }
  return text;
}

}  // namespace tandem
