#include "engine/training/data/id_functions.h"

#include <vector>

#include <fmt/format.h>

#include "engine/graph/error.h"
#include "engine/training/config/config_value.h"

namespace tandem {
namespace {

/// Numbers are written alike however they were in the file: 1/4 as 0.25.
std::string functions_of(const FieldConfig& field) {
  std::string all, up_to_ids;
  for (const Transform& function : field.as) {
    std::string text;
    switch (function.kind) {
      case TransformKind::log1p:
        text = "log1p";
        break;
      case TransformKind::split:
        if (function.pad == 0) text = "split(..., pad=0)";  // keeps an id from the values
        break;
      case TransformKind::bucketize:
        text = fmt::format("bucketize({})", fmt::join(function.bounds, ", "));
        break;
      case TransformKind::hash:
        text = fmt::format("hash({})", function.count);
        break;
      case TransformKind::scale:
        text = fmt::format("scale({})", function.factor);
        break;
      case TransformKind::normalize:
        text = fmt::format("normalize({}; {})", fmt::join(function.mean, ", "),
                           fmt::join(function.std, ", "));
        break;
      case TransformKind::cast:
        text = name_of(function.dtype);
        break;
      case TransformKind::flatten:
      case TransformKind::reshape:
      case TransformKind::one_hot:
      case TransformKind::resize:
      case TransformKind::random_crop:
      case TransformKind::random_flip:
      case TransformKind::missing:
      case TransformKind::vocabulary:  // its file is compared
        break;
    }
    if (text.empty()) continue;
    all += (all.empty() ? "" : ", ") + text;
    const bool gives_ids =
        function.kind == TransformKind::bucketize || function.kind == TransformKind::hash;
    if (gives_ids) up_to_ids = all;
  }
  return up_to_ids;
}

std::string shown(const std::string& functions) {
  return functions.empty() ? "neither hash nor bucketize" : functions;
}

}  // namespace

std::map<std::string, std::string> id_functions(const DataConfig& config) {
  std::map<std::string, std::string> functions;
  for (const FieldConfig& field : config.fields) functions[field.name] = functions_of(field);
  return functions;
}

void refuse_other_functions(const std::map<std::string, std::string>& before,
                            const RunConfig& config, const std::string& who,
                            const std::string& other_fix) {
  if (!config.data) return;
  std::vector<Diagnostic> problems;
  for (const FieldConfig& field : config.data->fields) {
    const auto then = before.find(field.name);
    const std::string now = functions_of(field);
    if (then == before.end() || then->second == now) continue;
    Diagnostic d = at(field.where, "data.fields." + field.name,
                      "the " + who +
                          " was trained with other functions of this field: ids would mean other "
                          "rows");
    d.expected = shown(then->second);
    d.got = shown(now);
    d.fix = (then->second.empty() ? "leave " + now + " out" : "write " + then->second) + ", or " +
            other_fix;
    problems.push_back(std::move(d));
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

}  // namespace tandem
