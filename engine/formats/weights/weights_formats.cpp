// Chooses among the formats of the list weights_formats.inl by the ending of a path.
#include <algorithm>
#include <cctype>

#include "engine/formats/weights/weights_file.h"
#include "engine/graph/error.h"

namespace tandem {
#define TANDEM_WEIGHTS_FORMAT(name) WeightsFormat name##_weights();
#include "engine/formats/weights/weights_formats.inl"

namespace {

const std::vector<WeightsFormat>& all_formats() {
  static const std::vector<WeightsFormat> list{
#define TANDEM_WEIGHTS_FORMAT(name) name##_weights(),
#include "engine/formats/weights/weights_formats.inl"
      WeightsFormat{"ONNX", ".onnx"},
      WeightsFormat{"run", ""},  // a run directory, or one of its checkpoints
  };
  return list;
}

/// The ending of the path among "a|b"; "": none.
std::string_view ending_of(std::string_view path, std::string_view endings) {
  while (!endings.empty()) {
    const std::size_t bar = std::min(endings.find('|'), endings.size());
    const std::string_view ending = endings.substr(0, bar);
    if (path.ends_with(ending)) return ending;
    endings.remove_prefix(std::min(bar + 1, endings.size()));
  }
  return "";
}

/// "runs/lr0.1" is a folder, "weights.h5" is not.
bool has_ending_of_letters(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::size_t dot = name.rfind('.');
  return dot != std::string_view::npos && dot > 0 && dot + 1 < name.size() &&
         std::isalpha(static_cast<unsigned char>(name[dot + 1])) != 0;
}

}  // namespace

std::optional<HostTensor> WeightsFile::pages(const std::string&) const { return std::nullopt; }
std::string WeightsFile::first_name(const std::string& name) const { return name; }
std::vector<std::string> WeightsFile::notes() const { return {}; }

const WeightsFormat* weights_format_of(std::string_view path) {
  const bool is_folder = !has_ending_of_letters(path);
  for (const WeightsFormat& format : all_formats()) {
    if (format.endings.empty() ? is_folder : !ending_of(path, format.endings).empty())
      return &format;
  }
  return nullptr;
}

std::string known_weights() {
  std::string text;
  for (const WeightsFormat& format : all_formats()) {
    if (format.endings.empty()) continue;
    text += (text.empty() ? "" : ", ") + std::string(format.endings);
  }
  for (std::size_t bar = 0; (bar = text.find('|', bar)) != std::string::npos;)
    text.replace(bar, 1, ", ");
  return text + ", or a run directory";
}

std::unique_ptr<WeightsFile> open_weights(const std::string& path, const WeightsOpener& opener) {
  const WeightsFormat* format = weights_format_of(path);
  if (format != nullptr && format->open != nullptr) return format->open(path);
  if (format != nullptr && opener) return opener(*format, path);
  throw Error(ErrorKind::usage, Diagnostic{.message = "weights of this kind are not loaded here",
                                           .file = path,
                                           .expected = "a name that ends in " + known_weights()});
}

}  // namespace tandem
