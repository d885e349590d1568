// What a device name of a policy means on this machine: the `devices` table and `--device`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/keys/config_reader.h"

namespace tandem {

/// Unset parts keep the default, or what a binding of lower precedence says.
struct DeviceBinding {
  /// One key as it was written.
  struct Said {
    std::string key, text;
    Where where;
  };

  std::string name;  // as rules use it
  std::string use;   // "cpu", "cuda:local", "cuda:N", "emulated:N"; "" = as the name says
  std::optional<std::uint64_t> memory_bytes;  // limit
  std::optional<double> memory_fraction;      // limit as a part of what the device has
  std::optional<double> bandwidth;            // bytes per second of an emulated device's link
  std::optional<double> latency;              // seconds of an emulated device's link
  std::optional<int> threads;                 // compute threads of the cpu; 0: its physical cores
  Where where;
  std::vector<Said> said = {};  // one for each key that a file or an argument sets
  bool faulty = false;          // an error was reported for one of its keys

  /// `key` is one of `binding_keys`.
  bool sets(std::string_view key) const;
  bool agrees(std::string_view key, const DeviceBinding& other) const;
  /// Takes over one part that `other` sets.
  void take(std::string_view key, const DeviceBinding& other);
  /// Takes over what `other` sets.
  void overlay(const DeviceBinding& other);
  const Where& where_of(std::string_view key) const;
  std::string text_of(std::string_view key) const;
};

/// The keys of the table of one device: "use", "memory", ...
const std::vector<std::string>& binding_keys();

/// One `--device` argument: "gpu=emulated:0,memory=2GiB,bandwidth=25GB/s,latency=10us". `number`
/// (from 1) is the line in messages. Problems are appended to `errors`.
DeviceBinding parse_device_argument(const std::string& text, int number,
                                    std::vector<Diagnostic>& errors);
/// All `--device` arguments. Throws one Error{usage}.
std::vector<DeviceBinding> parse_device_arguments(const std::vector<std::string>& arguments);

/// The `devices` table of a checked policy.
std::vector<DeviceBinding> read_device_table(const TableReader& root);

}  // namespace tandem
