// train.toml: values, defaults, overrides. What it refuses: tests/expected/config/refused.txt.
#include "engine/config/run_config.h"

#include "engine/config/keys/config_names.h"
#include "engine/optimizers/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/config/keys/config_check.h"
#include "engine/config/keys/config_header.h"
#include "engine/config/keys/config_keys.h"
#include "engine/data/functions/field_function.h"
#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "engine/losses/loss_weights.h"
#include "tests/harness/folders.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

const char* const minimal = R"(model = "m.onnx"
epochs = 2
[optimizer]
kind = "sgd"
)";

RunConfig parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return parse_run_config(text, "/folder/train.toml", overrides);
}

std::vector<Diagnostic> errors_of(const std::string& text,
                                  const std::vector<std::string>& overrides = {}) {
  try {
    parse(text, overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.diagnostics();
  }
  return {};
}

const char* const full = R"toml(# everything at once
model  = { file = "net.onnx", bind = { sequence = 128 }, batch_norm = "inference" }
policy = "policy.toml"
device = "cpu"
batch_size  = 16
micro_batch = 4
epochs = 1.5
steps = 1000
max_time = "2h"
seed = 7
threads = 2
name = "wide"
run_dir = "out/run"

[parameters]
freeze = [ { at = "conv*.**", until = "1 epoch" }, { at = "fc1" } ]
load   = [ { from = "pre.safetensors", at = "mlp.**", missing = "keep" } ]
init   = [ { at = "wide:weight", kind = "normal", std = 0.01 } ]

[loss]
terms = [
  { name = "ce", kind = "softmax_cross_entropy", logits = "logits", labels = "label", weight = 0.5, ignore_index = -100, class_weights = [ 1, 2.5 ], label_smoothing = 0.1 },
  { kind = "mse", predictions = "y", targets = "t", reduction = "sum" },
  { kind = "binary_cross_entropy", logits = "z", labels = "b", pos_weight = 3 },
]

[optimizer]
kind = "adam"
lr   = 3.5e-4
betas = [ 0.8, 0.99 ]
epsilon = 1e-6
epsilon_form = "onnx"
bias_correction = false
groups = [
  { at = "**:bias", weight_decay = 0.0 },
  { at = "head.**", kind = "sgd", lr = 0.05, momentum = 0.9, nesterov = true },
]
schedule  = { kind = "cosine", warmup = "100 steps", final = 1e-5 }
clip_norm = 1.0

[precision]
compute = "bfloat16"
keep_float32 = ["**.norm.**"]
tf32 = true

[data]
kind = "idx"
root = "${TANDEM_TEST_ROOT:-mnist}"
workers = 3
drop_last = true
[data.train]
files = { images = "images.gz", labels = [ "labels_{0..1}.gz" ] }
shuffle = "buffer 5000"
[data.eval]
files = { images = "/abs/i.gz", labels = "l.gz" }
[data.fields]
image = { from = "images", as = [ "scale(1/255)", "normalize([0.1, 0.2], [0.3, 0.4])" ], augment = [ "random_crop(28, padding=2)", "random_flip" ] }
label = "labels"

[eval]
every = "1000 steps"
metrics = [ "accuracy", "loss" ]
best = "accuracy"
patience = 5
[checkpoint]
every = "30 min"
keep = 2
[log]
every = "50 steps"
)toml";

TEST(RunConfig, SeparatorsAreNamedOrWritten) {
  const auto with = [](const std::string& separator) {
    return std::vector<std::string>{
        "data={kind='csv', header=true, train={files='t.csv'}, "
        "fields={x='x'}, separator=\"" +
        separator + "\"}"};
  };
  const std::pair<const char*, Separator> all[] = {
      {"|", Separator::bar},         {"bar", Separator::bar},
      {"\\t", Separator::tab},       {"tab", Separator::tab},
      {",", Separator::comma},       {"comma", Separator::comma},
      {";", Separator::semicolon},   {"semicolon", Separator::semicolon},
      {"auto", Separator::automatic}};
  for (const auto& [text, wanted] : all)
    EXPECT_EQ(std::get<CsvTable>(parse(minimal, with(text)).data->kind).separator, wanted) << text;
  const std::vector<Diagnostic> errors = errors_of(minimal, with("x"));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].expected,
            "auto, ,, ;, tab, bar; also \"|\" for bar, \"\\t\" for tab, \"comma\" for ,, "
            "\"semicolon\" for ;");
}

TEST(RunConfig, ReadsEveryKey) {
  ::unsetenv("TANDEM_TEST_ROOT");
  const RunConfig c = parse(full);
  EXPECT_EQ(c.model.file, "/folder/net.onnx");
  EXPECT_EQ(c.model.bind.at("sequence"), 128);
  EXPECT_EQ(c.model.batch_norm.at(0).mode, "inference");
  EXPECT_EQ(c.policy, "/folder/policy.toml");
  EXPECT_EQ(c.device, "cpu");
  EXPECT_EQ(c.batch_size, 16);
  EXPECT_EQ(c.micro_batch_size(), 4);
  EXPECT_EQ(c.epochs, 1.5);
  EXPECT_EQ(c.steps, 1000);
  EXPECT_EQ(c.max_seconds, 7200);
  EXPECT_EQ(c.seed, 7u);
  EXPECT_EQ(c.precision.compute, DType::bfloat16);
  ASSERT_EQ(c.precision.keep_float32.size(), 1u);
  EXPECT_EQ(c.precision.keep_float32[0].at, "**.norm.**");
  EXPECT_TRUE(c.precision.tf32);
  EXPECT_EQ(c.run_dir, "/folder/out/run");
  ASSERT_EQ(c.parameters.freeze.size(), 2u);
  EXPECT_EQ(c.parameters.freeze[0].until, (Duration{1, Duration::Unit::epochs}));
  EXPECT_FALSE(c.parameters.load[0].missing_is_error);
  EXPECT_EQ(c.parameters.init[0].kind, InitKind(NormalInit{0, 0.01}));
  ASSERT_EQ(c.loss.terms.size(), 3u);
  EXPECT_EQ(class_options(c.loss.terms[0]).ignore_index, -100);
  EXPECT_EQ(class_options(c.loss.terms[0]).class_weights, (std::vector<double>{1, 2.5}));
  EXPECT_EQ(c.loss.terms[1].name, "mse");
  EXPECT_EQ(c.loss.terms[1].values, std::vector<std::string>{"y"});
  EXPECT_EQ(c.loss.terms[1].labels, "t");
  EXPECT_EQ(c.loss.terms[1].reduction, LossReduction::sum);
  EXPECT_EQ(c.loss.terms[2].options.as<PositiveOptions>().pos_weight, std::vector<double>{3});
  EXPECT_EQ(c.optimizer.base.number("beta1"), 0.8);
  EXPECT_EQ(c.optimizer.base.number("eps"), 1e-6);
  EXPECT_EQ(c.optimizer.base.text("epsilon_form"), "onnx");
  ASSERT_EQ(c.optimizer.groups.size(), 2u);
  EXPECT_EQ(c.optimizer.groups[0].options.lr, 3.5e-4);
  EXPECT_EQ(c.optimizer.groups[0].options.number("beta2"), 0.99);
  EXPECT_EQ(c.optimizer.groups[1].options.name(), "sgd");
  EXPECT_TRUE(c.optimizer.groups[1].options.flag("nesterov"));
  EXPECT_EQ(c.optimizer.schedule.kind, (decltype(c.optimizer.schedule.kind)(CosineSchedule{1e-5})));
  EXPECT_EQ(c.optimizer.schedule.warmup, (Duration{100, Duration::Unit::steps}));
  EXPECT_EQ(c.optimizer.clip_norm, 1.0);
  ASSERT_TRUE(c.data);
  EXPECT_EQ(c.data->train.files[0].paths[0], "/folder/mnist/images.gz");
  EXPECT_EQ(c.data->train.files[1].paths,
            (std::vector<std::string>{"/folder/mnist/labels_0.gz", "/folder/mnist/labels_1.gz"}));
  EXPECT_EQ(c.data->eval.files[0].paths[0], "/abs/i.gz");
  EXPECT_EQ(c.data->shuffle.buffer, 5000);
  ASSERT_EQ(c.data->fields.size(), 2u);
  EXPECT_EQ(c.data->fields[0].name, "image");
  EXPECT_EQ(c.data->fields[0].as[0].function->decides_ids(), "scale(0.00392156862745098)");
  EXPECT_THAT(c.data->fields[0].as[1].function->decides_ids(), HasSubstr("; 0.3, 0.4)"));
  EXPECT_EQ(c.data->fields[0].augment[0].kind->name, "random_crop");
  EXPECT_EQ(c.data->fields[1].from, "labels");
  EXPECT_EQ(c.eval.best, "accuracy");
  EXPECT_EQ(c.checkpoint.every, (Duration{1800, Duration::Unit::seconds}));
  EXPECT_EQ(c.log.every, (Duration{50, Duration::Unit::steps}));
}

TEST(RunConfig, CheckpointsAreWrittenEveryHalfHourUnlessTheFileSaysOtherwise) {
  const Duration half_an_hour{1800, Duration::Unit::seconds};
  EXPECT_EQ(parse(minimal).checkpoint.every, half_an_hour);
  EXPECT_EQ(parse(to_toml(parse(minimal))).checkpoint.every, half_an_hour);
  EXPECT_EQ(parse(minimal, {"checkpoint.every=5 steps"}).checkpoint.every,
            (Duration{5, Duration::Unit::steps}));
}

TEST(RunConfig, TheResolvedFileReadsBackEqual) {
  for (const std::string text : {full, minimal}) {
    const RunConfig config = parse(text);
    const std::string resolved = to_toml(config);
    const RunConfig again = parse_run_config(resolved, "/elsewhere/runs/x/train.resolved.toml");
    EXPECT_EQ(again, config) << resolved;
    EXPECT_EQ(to_toml(again), resolved);
  }
}

TEST(RunConfig, OddTextsSurviveTheResolvedFile) {
  RunConfig config = parse(minimal, {"name=a\"b\\c"});
  config.model.bind["odd name.x"] = 3;
  config.loss.terms.push_back(
      {.name = "${HOME} $${x} \t$", .kind = find_loss("mse"), .values = {"a"}, .labels = "ü"});
  EXPECT_EQ(parse(to_toml(config)), config) << to_toml(config);
}

// The defaults in the table of keys are those of the structs.
TEST(RunConfig, TheTableOfKeysTellsTheTruthAboutDefaults) {
  const RunConfig plain = parse(minimal);
  for (const KeyInfo& key : config_keys()) {
    if (key.fallback.empty() || key.fallback == "required" || key.fallback.starts_with('('))
      continue;
    if (key.path.find_first_of("[*") != std::string_view::npos) continue;
    const std::string_view top = key.path.substr(0, key.path.find('.'));
    const auto is_in = [&](const char* table) { return key.path.starts_with(table); };
    if (top == "data" || is_in("optimizer.schedule.")) continue;
    if (is_in("distillation.")) continue;  // only where there is a teacher
    if (is_in("optimizer.ema.") || is_in("optimizer.swa.") || is_in("optimizer.lookahead."))
      continue;  // only where one of their keys is set
    // A kind refuses the options of others: take the first kind that knows this one.
    std::string_view known = all_optimizers().front().name;
    for (auto optimizer = all_optimizers().rbegin(); optimizer != all_optimizers().rend();
         ++optimizer) {
      for (const OptimizerSetting& setting : optimizer->settings) {
        const std::string_view name = key.path.substr(key.path.find('.') + 1);
        if (setting.info.key == name || setting.info.list == name) known = optimizer->name;
      }
    }
    std::vector<std::string> kind = {"optimizer.kind=" + std::string(known)};
    if (key.path == "precision.loss_scale" || key.path == "precision.growth_interval")
      kind.push_back("precision.compute=float16");  // others refuse them
    std::vector<std::string> with = kind;
    with.push_back(std::string(key.path) + "=" + std::string(key.fallback));
    EXPECT_EQ(parse(minimal, with), parse(minimal, kind)) << key.path;
  }
  EXPECT_EQ(parse(minimal, {"optimizer.kind=adamw"}).optimizer.base.number("weight_decay"), 0.01);
  EXPECT_EQ(parse(minimal, {"optimizer.kind=adagrad"}).optimizer.base.number("eps"), 1e-10);
  EXPECT_EQ(parse(minimal, {"optimizer.kind=ftrl"}).optimizer.base.number("initial_accumulator"),
            0.1);
  EXPECT_EQ(parse(minimal, {"optimizer.kind=lamb"}).optimizer.base.number("eps"), 1e-6);
  EXPECT_EQ(plain.optimizer.base, OptimizerOptions("sgd"));
  EXPECT_EQ(plain.name, "folder");
  EXPECT_EQ(parse_run_config(minimal, "/folder/mnist.toml").name, "mnist");
}

TEST(RunConfig, OptionsOfLamb) {
  const std::string text = "model = 'm.onnx'\nsteps = 1\n[optimizer]\nkind = 'lamb'\n";
  const RunConfig given = parse(text +
                                "weight_decay = 0.01\nbetas = [0.8, 0.95]\nepsilon = 1e-3\n"
                                "bias_correction = false\nalways_adapt = false\ntrust_clip = 10\n");
  const OptimizerOptions& o = given.optimizer.base;
  EXPECT_EQ(o.number("weight_decay"), 0.01);
  EXPECT_EQ(o.number("beta1"), 0.8);
  EXPECT_EQ(o.number("beta2"), 0.95);
  EXPECT_EQ(o.number("eps"), 1e-3);
  EXPECT_FALSE(o.flag("bias_correction"));
  EXPECT_FALSE(o.flag("always_adapt"));
  EXPECT_EQ(o.number("trust_clip"), 10);
  EXPECT_EQ(parse(to_toml(given)), given) << to_toml(given);
}

TEST(RunConfig, OverridesReachEverything) {
  const std::string text = full;
  const RunConfig c = parse(
      text, {"optimizer.lr=0.01", "optimizer.groups.0.lr=0.1", "name=2024",
             "data.fields.label.as.0=int64", "optimizer.groups.2={at='x', lr=1}",
             "model.bind.batch=8", "eval.every=1 epoch", "seed=9", "data.fields.image.augment=[]"});
  EXPECT_EQ(c.optimizer.base.lr, 0.01);
  EXPECT_EQ(c.optimizer.groups[0].options.lr, 0.1);
  EXPECT_EQ(c.optimizer.groups[2].options.lr, 1);
  EXPECT_EQ(c.name, "2024");
  EXPECT_EQ(c.data->fields[1].from, "labels");
  EXPECT_EQ(c.data->fields[1].as[0].function->decides_ids(), "int64");
  EXPECT_TRUE(c.data->fields[0].augment.empty());
  EXPECT_EQ(c.model.bind.at("batch"), 8);
  EXPECT_EQ(c.eval.every, (Duration{1, Duration::Unit::epochs}));
  EXPECT_EQ(parse(minimal, {"model.bind.batch=8"}).model.file, "/folder/m.onnx");
}

TEST(RunConfig, NamesThatTomlQuotesAreReadAgain) {
  EXPECT_EQ(toml_key("sequence_2-B"), "sequence_2-B");
  const std::pair<const char*, const char*> quoted[] = {{"", R"("")"},
                                                        {"a.b", R"("a.b")"},
                                                        {"two words", R"("two words")"},
                                                        {"a = \"b\"", R"("a = \"b\"")"},
                                                        {R"(a\b)", R"("a\\b")"},
                                                        {"é", R"("é")"},
                                                        {"${x}", R"("${x}")"}};
  for (const auto& [name, key] : quoted) {
    EXPECT_EQ(toml_key(name), key);
    const std::string text = std::string("model = { file = 'm.onnx', bind = { ") + key +
                             " = 5 } }\nsteps = 1\n[optimizer]\nkind = 'sgd'\n";
    EXPECT_EQ(parse(text).model.bind, (std::map<std::string, std::int64_t>{{name, 5}})) << key;
    EXPECT_EQ(parse(minimal, {std::string("model.bind.") + key + "=7"}).model.bind,
              (std::map<std::string, std::int64_t>{{name, 7}}))
        << key;
  }
}

// As when a float16 run is evaluated or trained in float32 from its resolved file.
TEST(RunConfig, AnOverrideRulesOutKeysOfTheFile) {
  const std::string half = std::string(minimal) + "[precision]\ncompute = 'float16'\n";
  for (const std::string keys : {"", "loss_scale = 1024\n", "growth_interval = 5\n"}) {
    const std::string resolved = to_toml(parse(half + keys));
    for (const std::string other : {"precision.compute=float32", "precision.compute=bfloat16"}) {
      const RunConfig wide = parse(resolved, {other});
      EXPECT_EQ(wide.precision, parse(minimal, {other}).precision) << keys;
      EXPECT_EQ(parse(to_toml(wide)).precision, wide.precision) << keys;
    }
    EXPECT_EQ(parse(resolved, {"precision.loss_scale=128"}).precision,
              parse(half, {"precision.loss_scale=128"}).precision);
  }
}

TEST(RunConfig, EnvironmentVariables) {
  ::setenv("TANDEM_TEST_ROOT", "/data", 1);
  EXPECT_EQ(parse(full).data->train.files[0].paths[0], "/data/images.gz");
  ::unsetenv("TANDEM_TEST_ROOT");
}

TEST(RunConfig, Durations) {
  EXPECT_EQ((Duration{2.5, Duration::Unit::epochs}.steps(10)), 25);
  EXPECT_EQ((Duration{0.001, Duration::Unit::epochs}.steps(10)), 1);
  EXPECT_EQ((Duration{500, Duration::Unit::steps}.steps(10)), 500);
  EXPECT_EQ(to_string(Duration{1, Duration::Unit::epochs}), "1 epoch");
  EXPECT_EQ(to_string(Duration{1.5, Duration::Unit::epochs}), "1.5 epochs");
}

TEST(RunConfig, TheModelsInTheRepositoryAreValid) {
  const RunConfig digits = read_run_config(source_folder() + "/models/digits/train.toml");
  EXPECT_EQ(digits.name, "digits");
  EXPECT_THROW(read_run_config("/no/such/train.toml"), Error);
}

TEST(RunConfigErrors, AKeyOfEndlessPartsIsNotParsed) {
  std::string key = "a";
  for (int i = 0; i < 100000; ++i) key += ".a";
  const auto errors = errors_of("epochs = 1\n" + key + " = 1\n");
  ASSERT_FALSE(errors.empty());
  EXPECT_EQ(errors[0].line, 2);
  EXPECT_THAT(errors[0].message, HasSubstr("more than 1000 dots"));
}

TEST(ConfigKeys, FunctionsStandInTheHelpAndTheGuide) {
  std::string help;
  for (const char* key : {"data.fields.*.as[]", "data.fields.*.augment[]"}) {
    for (const KeyInfo& info : train_keys().keys) {
      if (info.path == key) help += std::string(info.help) + "\n";
    }
  }
  const std::string guide = read_file(source_folder() + "/docs/guide/field_functions.md");
  for (const FieldFunctionKind& kind : all_field_functions()) {
    const std::string name(kind.words.empty() ? kind.name
                                              : kind.form.substr(0, kind.form.find(',')));
    EXPECT_THAT(help, HasSubstr(std::string(kind.form)));
    EXPECT_THAT(guide, ::testing::ContainsRegex("\n[|] [^|]*`" + name + "[`(]"));
  }
}

// TANDEM_CONFIG_PAGE=docs/train_toml.md writes the page instead.
TEST(ConfigKeys, ThePageInDocsIsCurrent) {
  if (const char* page = std::getenv("TANDEM_CONFIG_PAGE"))
    write_file(page, config_keys_markdown());
  EXPECT_EQ(read_file(source_folder() + "/docs/train_toml.md"), config_keys_markdown());
}

// TANDEM_CONFIG_SCHEMA=docs/schema/train.schema.json writes the schema instead.
TEST(ConfigKeys, TheSchemaInDocsIsCurrent) {
  if (const char* file = std::getenv("TANDEM_CONFIG_SCHEMA"))
    write_file(file, config_json_schema());
  EXPECT_EQ(read_file(source_folder() + "/docs/schema/train.schema.json"), config_json_schema());
}

TEST(ConfigKeys, TheSchemaSuggestsAndStillAllowsOtherTexts) {
  const auto schema =
      nlohmann::json::parse(config_json_schema(train_keys(), {{"at", {"fc1:weight", "**"}}}));
  const auto& frozen = schema["properties"]["parameters"]["properties"]["freeze"]["items"];
  EXPECT_EQ(frozen["properties"]["at"]["anyOf"].dump(),
            R"([{"enum":["fc1:weight","**"],"type":"string"},{"type":"string"}])");
  EXPECT_FALSE(frozen["properties"]["until"].contains("anyOf"));
}

// TANDEM_CONFIG_HEADER=include/tandem/train_config.h and TANDEM_CONFIG_MEMBERS=... write them
// instead.
TEST(ConfigKeys, TheStructsOfTheLibraryAreCurrent) {
  if (const char* header = std::getenv("TANDEM_CONFIG_HEADER")) write_file(header, config_header());
  if (const char* members = std::getenv("TANDEM_CONFIG_MEMBERS"))
    write_file(members, config_members());
  EXPECT_EQ(read_file(source_folder() + "/include/tandem/train_config.h"), config_header());
  EXPECT_EQ(read_file(source_folder() + "/api/train/train_config_members.inl"), config_members());
}

TEST(ConfigKeys, TextsComeFromTheTable) {
  EXPECT_THAT(config_keys_text(), HasSubstr("optimizer.groups[].lr"));
  EXPECT_THAT(explain_config_key("optimizer.lr"), HasSubstr("default: 0.001"));
  EXPECT_THAT(explain_config_key("optimizer.groups.0.lr"), HasSubstr("optimizer.groups[].lr"));
  EXPECT_THAT(explain_config_key("data.fields.image.as"), HasSubstr("functions"));
  EXPECT_THROW(explain_config_key("optimizer.rl"), Error);
  EXPECT_THAT(config_json_schema(), HasSubstr("\"additionalProperties\": false"));
  EXPECT_THAT(config_keys_markdown(),
              HasSubstr("| `batch_size` | integer or string or list | `32` |"));
  for (const KeyInfo& key : config_keys()) EXPECT_FALSE(key.help.empty()) << key.path;
}

}  // namespace
}  // namespace tandem
