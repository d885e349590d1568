#include "placement/device_use.h"

#include <charconv>

namespace tandem {
namespace {

constexpr int largest_number = 63;
constexpr std::string_view gpu = "cuda:", own_gpu = "cuda:local",
                           emulated = "emulated:", gpu_name = "gpu";

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::optional<int> device_number(std::string_view text) {
  const bool padded = text.size() > 1 && text.front() == '0';
  if (!is_digits(text) || padded) return std::nullopt;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number > largest_number) return std::nullopt;
  return number;
}

bool is_device_use(std::string_view text) {
  if (text == "cpu" || text == own_gpu) return true;
  for (const std::string_view prefix : {gpu, emulated}) {
    if (text.starts_with(prefix) && device_number(text.substr(prefix.size()))) return true;
  }
  return false;
}

std::string builtin_use(std::string_view name) {
  if (name == "cpu") return "cpu";
  if (name == gpu_name) return std::string(own_gpu);
  if (name.starts_with(gpu_name)) {
    const std::string_view number = name.substr(gpu_name.size());
    return device_number(number) ? std::string(gpu) + std::string(number) : "";
  }
  return name.starts_with(emulated) && is_device_use(name) ? std::string(name) : "";
}

std::string builtin_name(std::string_view use) {
  if (!use.starts_with(gpu) || !is_device_use(use)) return "";
  const std::string number(use == own_gpu ? "" : use.substr(gpu.size()));
  return std::string(gpu_name) + number;
}

std::optional<WrongNumber> wrong_number(std::string_view text,
                                        std::span<const std::string_view> prefixes) {
  for (const std::string_view prefix : prefixes) {
    if (!text.starts_with(prefix)) continue;
    std::string_view number = text.substr(prefix.size());
    if (device_number(number)) continue;
    const bool negative = number.starts_with('-');
    if (!is_digits(negative ? number.substr(1) : number)) continue;
    WrongNumber wrong{.prefix = std::string(prefix), .mended = ""};
    while (number.size() > 1 && number.front() == '0') number.remove_prefix(1);
    if (device_number(number)) wrong.mended = wrong.prefix + std::string(number);
    return wrong;
  }
  return std::nullopt;
}

}  // namespace tandem
