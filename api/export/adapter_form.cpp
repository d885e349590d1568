#include "api/export/adapter_form.h"

#include "engine/graph/error.h"

namespace tandem::api {
namespace {

constexpr const char* unknown_choice = "export does not know this choice";

[[noreturn]] void refuse_choice(const char* option, std::string message, std::string expected,
                                std::string got, std::string fix = "") {
  throw Error(ErrorKind::usage, Diagnostic{.message = std::move(message),
                                           .path = option,
                                           .expected = std::move(expected),
                                           .got = std::move(got),
                                           .fix = std::move(fix)});
}

[[noreturn]] void refuse_ending(std::string expected, const std::string& to, std::string fix) {
  refuse_choice("--to", "this name does not fit the other options", std::move(expected), to,
                std::move(fix));
}

void check_inputs(const ExportForm& form, const std::string& to) {
  if (!to.ends_with(".onnx"))
    refuse_ending("a name that ends in .onnx, since a model has inputs", to,
                  "leave --lora inputs out; it is for the model that an .onnx_adapter belongs to");
  if (form.fp16)
    refuse_choice("--fp16", "inputs for adapters have the element type of the adapters",
                  "--lora inputs without --fp16", "both", "leave --fp16 out");
}

}  // namespace

AdapterForm adapter_form(const ExportSettings& settings, const std::string& to) {
  const auto& [lora, format] = settings.adapters;
  if (lora != "merged" && lora != "separate" && lora != "inputs")
    refuse_choice("--lora", unknown_choice, "merged, separate or inputs", lora);
  if (!format.empty() && format != "peft" && format != "onnx-adapter")
    refuse_choice("--format", unknown_choice,
                  "peft or onnx-adapter, or left out: then the end of the file name decides",
                  format);
  const bool is_adapter_file = to.ends_with(".onnx_adapter");
  if (format == "peft" && (to.ends_with(".onnx") || to.ends_with(".npz") || is_adapter_file))
    refuse_ending("a folder, or a name that ends in .safetensors", to,
                  "leave --format peft out to write whole weights");
  if (format == "onnx-adapter" && !is_adapter_file)
    refuse_ending("a name that ends in .onnx_adapter", to, "--to NAME.onnx_adapter");
  if (format == "peft") return AdapterForm::peft;
  if (is_adapter_file) return AdapterForm::onnx_adapter;
  if (lora == "inputs") check_inputs(settings.form, to);
  if (lora == "inputs") return AdapterForm::inputs;
  return lora == "separate" ? AdapterForm::separate : AdapterForm::merged;
}

}  // namespace tandem::api
