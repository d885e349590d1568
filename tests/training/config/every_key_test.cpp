// Every key of train.toml: set to another value, written and read again; with a wrong type, out of
// its range, with an unknown word; and misspelt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "engine/config/keys/config_check.h"
#include "engine/config/keys/config_keys.h"
#include "engine/config/run_config.h"
#include "engine/graph/error.h"
#include "engine/losses/loss.h"
#include "engine/metrics/metric.h"

namespace tandem {
namespace {

using Settings = std::vector<std::string>;
using ::testing::HasSubstr;

RunConfig parse_settings(const Settings& settings) {
  return parse_run_config("model = \"m.onnx\"\nsteps = 4\noptimizer = { kind = \"sgd\" }\n",
                          "/folder/train.toml", settings);
}

std::optional<RunConfig> try_parse(Settings settings, const std::string& more) {
  settings.push_back(more);
  try {
    return parse_settings(settings);
  } catch (const Error&) {
    return std::nullopt;
  }
}

const KeyInfo& key_at(std::string_view path) { return *train_keys().find(path); }

/// Configurations: for each key there is one in which it means something.
std::vector<Settings> surroundings() {
  std::vector<Settings> all{
      {},
      {"precision.compute=float16"},
      {"model={file='m.onnx', batch_norm=[{at='a', mode='train'}], random=[{at='a', "
       "mode='train'}]}"},
      {"optimizer.momentum=0.5", "optimizer.groups=[{at='a'}]"},
      {"data={kind='npz', train={files={x='a'}}, eval={fraction=0.5}}"},
      {"data={kind='csv', columns=['x'], train={files=['a']}, fields={x='x'}}"},
      {"data={kind='csv', columns=['x'], train={sources=[{files=['a']}]}, fields={x='x'}}"},
      {"data={kind='npz', train={sources=[{files={x='a'}}]}, eval={fraction=0.5}}"},
      {"data={kind='csv', columns=['x'], train={files=['a'], sampler={kind='weighted', "
       "field='x'}}, buckets={field='x', lengths=[2, 4], dimension='s'}, fields={x='x'}}"},
      {"parameters={freeze=[{at='a'}], load=[{from='a.npz'}], shape=[{at='a', rows=3}], "
       "storage=[{at='a', kind='float32'}], fixed_rows=[{at='a', rows=[0]}], head=[{classes=3}], "
       "lora=[{at='a'}]}"},
      {"loss.terms=[{kind='mse', predictions='x', targets='y'}]",
       "distillation={teacher='t.onnx', at={x='y'}}"},
      {"loss.terms=[{kind='mse', predictions='x', targets='teacher.y'}]",
       "distillation={teacher='t.onnx'}"}};
  all.push_back({"optimizer.ema={decay=0.5}", "optimizer.swa={start='3 steps'}",
                 "optimizer.lookahead={k=3}"});
  all.push_back({"optimizer.ema={decay=0.999}", "optimizer.lookahead={k=5}"});  // the defaults
  all.push_back({"log.also=['tensorboard']", "log.histograms=['a']"});
  for (const std::string& kind : words_of(key_at("parameters.init[].kind").allowed))
    all.push_back({"parameters.init=[{at='a', kind='" + kind + "'}]"});
  for (const std::string& kind : words_of(key_at("optimizer.kind").allowed))
    all.push_back({"optimizer.kind=" + kind, "optimizer.groups=[{at='a'}]"});
  for (const std::string& kind : words_of(key_at("optimizer.schedule.kind").allowed)) {
    const std::map<std::string, std::string> needed{{"step", ", step_size='3 steps'"},
                                                    {"exponential", ", period='3 steps'"},
                                                    {"cosine_restarts", ", period='3 steps'"},
                                                    {"multistep", ", milestones=['3 steps']"}};
    const auto found = needed.find(kind);
    const std::string keys = "kind='" + kind + "'" + (found == needed.end() ? "" : found->second);
    const std::string groups = "optimizer.groups=[{at='a', schedule={" + keys + "}}]";
    all.push_back({"optimizer.schedule={" + keys + "}", groups, "eval.every='1 epoch'"});
    if (kind == "plateau") {
      all.back().push_back("eval.metrics=['mse']");
      continue;
    }
    const std::string parts = "schedule={parts=[{" + keys + "}]}";
    all.push_back({"optimizer." + parts, "optimizer.groups=[{at='a', " + parts + "}]"});
  }
  for (const LossKind& kind : all_losses()) {
    std::string term = "{kind='" + std::string(kind.name) + "'";
    for (const LossValue& value : kind.values) term += ", " + std::string(value.key) + "='x'";
    if (!kind.labels.key.empty()) term += ", " + std::string(kind.labels.key) + "='y'";
    all.push_back({"loss.terms=[" + term + "}]"});
  }
  for (const MetricKind& kind : all_metrics()) {
    const std::string group = kind.group == nullptr ? "" : "group='x', ";
    all.push_back({"eval.metrics=[{" + group + "kind='" + std::string(kind.name) + "'}]"});
  }
  all.push_back({"data={kind='program', train={}, eval={fraction=0.5}}"});
  all.push_back(
      {"data={kind='chat', length=8, tokenizer='t.json', template={user='{content}', "
       "assistant='{content}'}, train={files='a'}, fields={x='tokens'}}"});
  for (const std::string& kind : words_of(key_at("data.kind").allowed)) {
    if (kind == "program") continue;  // has neither files nor fields
    const std::string files = kind == "idx" ? "{x='a.gz'}" : "'a'";
    const std::map<std::string, std::string> arrays{{"cifar", "images"},  {"images", "images"},
                                                    {"tokens", "tokens"}, {"text", "tokens"},
                                                    {"chat", "tokens"},   {"lines", "line"}};
    const std::map<std::string, std::string> needed{
        {"tokens", ", length=8, document_end=0"},
        {"text", ", length=8, document_end=0, tokenizer='bytes'"},
        {"chat", ", length=8, tokenizer='t.json', template={name='chatml'}"}};
    const auto array = arrays.find(kind), keys = needed.find(kind);
    const std::string name = array == arrays.end() ? "x" : array->second;
    all.push_back({"data={kind='" + kind + "'" + (keys == needed.end() ? "" : keys->second) +
                       ", train={files=" + files + "}, fields={x='" + name + "'}}",
                   "data.eval.files=" + files, "eval={metrics=['loss', 'mse'], best='loss'}"});
  }
  return all;
}

/// "a.b[].*.c" with the first item and a name.
std::string concrete(std::string_view pattern) {
  std::string path;
  for (const char c : pattern) path += c == '*' ? "x" : std::string(1, c);
  for (std::size_t at = 0; (at = path.find("[]")) != std::string::npos;) path.replace(at, 2, ".0");
  return path;
}

/// Values as TOML, at least one of which fits and is not the default.
std::vector<std::string> values_for(const KeyInfo& key) {
  std::vector<std::string> values;
  const double low = std::max(key.low, 0.0), high = std::min(key.high, low + 10);
  if (key.type & boolean_value) values.insert(values.end(), {"true", "false"});
  if (key.type & (integer_value | number_value))
    for (const int above : {1, 2, 8})
      values.push_back(std::to_string(std::llround(std::ceil(low)) + above));
  if (key.type & number_value) values.push_back(toml_number(low + (high - low) * 0.25));
  if (key.type & number_value) values.push_back(toml_number(key.low * 0.5));
  for (const std::string& word : words_of(key.allowed)) values.push_back("'" + word + "'");
  if (key.type & duration_value) values.insert(values.end(), {"'7 steps'", "'3 h'"});
  if (key.type & (selector_value | path_value))
    values.insert(values.end(), {"'z.**'", "'z.safetensors'"});
  if ((key.type & string_value) && key.allowed.empty())
    values.insert(values.end(), {"'z'", "'mse'", "'flatten'", "'random_flip'", "'buffer 7'",
                                 "'vocabulary(z)'", "'{content}z'", "'llama3'"});
  if (key.type & list_value)
    values.insert(values.end(),
                  {"['7 steps']", "[0.25, 0.75]", "[1, 2]", "[1, 2, 3]", "['z', 'w']", "['mse']",
                   "['flatten']", "['random_flip']", "['x', 'z']", "[['z', 'w']]", "['csv']"});
  return values;
}

bool has_keys(const KeyInfo& key) {
  const std::string path(key.path);
  return std::any_of(train_keys().keys.begin(), train_keys().keys.end(), [&](const KeyInfo& k) {
    return k.path.starts_with(path + ".") ||
           ((key.type & list_value) != 0 && k.path.starts_with(path + "[]."));
  });
}

TEST(EveryKey, IsWrittenAsItIsReadAndChangesSomething) {
  const std::vector<Settings> everywhere = surroundings();
  std::vector<RunConfig> plain;
  std::vector<std::string> plain_texts;
  for (const Settings& settings : everywhere) {
    plain.push_back(parse_settings(settings));
    plain_texts.push_back(to_toml(plain.back()));
  }
  int keys = 0;
  for (const KeyInfo& key : train_keys().keys) {
    const bool has_own_value = (key.type & (path_value | string_value)) != 0 || !has_keys(key);
    const bool is_item = key.path.ends_with("[]");  // set with its list
    if (is_item || !has_own_value) continue;
    bool is_set = false;
    for (std::size_t i = 0; i < everywhere.size() && !is_set; ++i) {
      for (const std::string& value : values_for(key)) {
        const std::string setting = concrete(key.path) + "=" + value;
        const auto changed = try_parse(everywhere[i], setting);
        if (!changed || *changed == plain[i]) continue;
        const std::string text = to_toml(*changed);
        EXPECT_NE(text, plain_texts[i]) << setting;
        EXPECT_EQ(parse_run_config(text, "/other/train.resolved.toml"), *changed) << setting << "\n"
                                                                                  << text;
        is_set = true;
        break;
      }
    }
    EXPECT_TRUE(is_set) << key.path << ": no value that this test knows changes it anywhere";
    ++keys;
  }
  EXPECT_GT(keys, 130);
}

/// A file of one key: its text, and the columns of key and value.
struct OneKey {
  std::string text, path;
  int key_column = 0, value_column = 0;
};

OneKey file_of(std::string_view pattern, const std::string& value) {
  OneKey file{.path = concrete(pattern)};
  std::string after;
  bool is_item = false, is_first = true;
  std::string_view rest = file.path;
  while (!rest.empty()) {
    const std::size_t dot = rest.find('.');
    const std::string_view name = rest.substr(0, dot);
    is_item = name == "0";
    if (is_item) {
      file.text += "[ ";
      after.insert(0, " ]");
    } else {
      file.text += is_first ? "" : "{ ";
      after.insert(0, is_first ? "" : " }");
      file.key_column = static_cast<int>(file.text.size()) + 1;
      file.text += std::string(name) + " = ";
    }
    is_first = false;
    rest = dot == std::string_view::npos ? "" : rest.substr(dot + 1);
  }
  file.value_column = static_cast<int>(file.text.size()) + 1;
  file.text += value + after + "\n";
  return file;
}

/// The message about the key itself, or that there is none.
std::string message_of(const OneKey& file, int column) {
  try {
    parse_run_config(file.text, "/folder/train.toml");
  } catch (const Error& error) {
    for (const Diagnostic& d : error.diagnostics()) {
      if (d.path == file.path && d.line == 1 && d.column == column) return to_string(d);
    }
    return std::string("no message of ") + file.path + " at " + std::to_string(column) + " in " +
           error.what();
  }
  return "no error";
}

TEST(EveryKey, RefusesOtherTypes) {
  const std::pair<unsigned, const char*> values[] = {
      {boolean_value, "true"},
      {integer_value | number_value, "7"},
      {number_value, "0.5"},
      {string_value | path_value | duration_value | selector_value, "\"text\""},
      {table_value, "{ }"},
      {list_value, "[ ]"},
      {0, "2020-01-01"}};
  for (const KeyInfo& key : train_keys().keys) {
    for (const auto& [types, value] : values) {
      if ((key.type & types) != 0) continue;
      const OneKey file = file_of(key.path, value);
      EXPECT_THAT(message_of(file, file.value_column), HasSubstr("wrong type")) << file.text;
    }
  }
}

TEST(EveryKey, RefusesWhatIsOutOfItsRange) {
  int bounds = 0;
  for (const KeyInfo& key : train_keys().keys) {
    if ((key.type & (integer_value | number_value)) == 0) continue;
    std::vector<double> numbers;
    if (key.low > -1e300) numbers.push_back(key.low - 1);
    if (key.high < 1e300) numbers.push_back(key.high + std::max(1.0, key.high / 1e6));
    for (const double number : numbers) {
      const bool whole = (key.type & integer_value) != 0;
      const OneKey file =
          file_of(key.path, whole ? std::to_string(std::llround(number)) : toml_number(number));
      const std::string message = message_of(file, file.value_column);
      EXPECT_THAT(message, HasSubstr("out of range")) << file.text;
      EXPECT_THAT(message, HasSubstr(range_text(key.type, key.low, key.high))) << file.text;
      ++bounds;
    }
    if (key.type & number_value) {
      const OneKey file = file_of(key.path, "nan");
      EXPECT_THAT(message_of(file, file.value_column), HasSubstr("out of range")) << file.text;
    }
  }
  EXPECT_GT(bounds, 60);
}

TEST(EveryKey, RefusesWordsThatItDoesNotKnow) {
  for (const KeyInfo& key : train_keys().keys) {
    if (key.allowed.empty()) continue;
    const std::string first = words_of(key.allowed)[0];
    const OneKey misspelt = file_of(key.path, "\"" + first + "x\"");
    const std::string message = message_of(misspelt, misspelt.value_column);
    EXPECT_THAT(message, HasSubstr("unknown value")) << misspelt.text;
    EXPECT_THAT(message, HasSubstr(listed(key.allowed))) << misspelt.text;
    if (first.size() > 3) {
      EXPECT_THAT(message, HasSubstr("did you mean \"")) << misspelt.text;
    }
  }
}

TEST(EveryKey, IsSuggestedWhereItIsMisspelt) {
  for (const KeyInfo& key : train_keys().keys) {
    const std::string_view name = key.path.substr(key.path.rfind('.') + 1);
    const std::size_t dot = key.path.rfind('.');
    const bool is_free = dot != std::string_view::npos &&
                         train_keys().find(std::string(key.path.substr(0, dot)) + ".x") != nullptr;
    if (name.ends_with("[]") || name == "*" || is_free) continue;
    const OneKey file = file_of(std::string(key.path) + "x", "1");
    const std::string message = message_of(file, file.key_column);
    EXPECT_THAT(message, HasSubstr("unknown key")) << file.text;
    const std::string path = concrete(key.path);
    if (name.size() > 3) {  // it, or another that is as near
      EXPECT_THAT(message, HasSubstr("did you mean `" + path.substr(0, path.size() - 1)))
          << file.text;
    }
  }
}

TEST(EveryKey, HasAHelpAndADefaultThatItMayBe) {
  const std::vector<Settings> everywhere = surroundings();
  for (const KeyInfo& key : train_keys().keys) {
    EXPECT_FALSE(key.help.empty()) << key.path;
    if (key.fallback.empty() || key.fallback == "required" || key.fallback.starts_with('('))
      continue;
    // In some surroundings setting the default changes nothing.
    const std::string setting = concrete(key.path) + "=" + std::string(key.fallback);
    EXPECT_TRUE(std::any_of(everywhere.begin(), everywhere.end(), [&](const Settings& settings) {
      const auto said = try_parse(settings, setting);
      return said && *said == parse_settings(settings);
    })) << setting;
  }
}

}  // namespace
}  // namespace tandem
