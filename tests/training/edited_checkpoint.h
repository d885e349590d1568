// A checkpoint whose JSON is changed and whose sizes and hashes are corrected: damage that no hash
// shows. For tests and the fuzzer.
#pragma once

#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/formats/files.h"

namespace tandem::testing {

class EditedCheckpoint {
 public:
  using Json = nlohmann::ordered_json;

  explicit EditedCheckpoint(const std::string& folder) {
    for (const std::string& name : list_directory(folder)) {
      std::string text = read_file(folder + "/" + name);
      Part& part = parts_[name];
      if (name.ends_with(".safetensors")) {
        std::uint64_t bytes;
        std::memcpy(&bytes, text.data(), 8);
        part.data = text.substr(8 + bytes);
        text = text.substr(8, bytes);
      }
      part.json = Json::parse(text);
    }
  }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& [name, part] : parts_) names.push_back(name);
    return names;
  }
  Json& json(const std::string& file) { return parts_.at(file).json; }

  /// Places of all values below the document, in its order.
  static std::vector<Json::json_pointer> places(const Json& json) {
    std::vector<Json::json_pointer> found;
    add_places(json, Json::json_pointer(), found);
    return found;
  }
  static void remove(Json& json, const Json::json_pointer& place) {
    Json& parent = json[place.parent_pointer()];
    if (parent.is_array()) {
      parent.erase(std::stoul(place.back()));
    } else {
      parent.erase(place.back());
    }
  }

  /// Writes all files into `to`, which is emptied first. The manifest gets their sizes and hashes;
  /// with `as_it_is` it stays unchanged.
  void write(const std::string& to, bool as_it_is = false) const {
    std::filesystem::remove_all(to);
    std::filesystem::create_directories(to);
    Json manifest = parts_.at("manifest.json").json;
    for (const auto& [name, part] : parts_) {
      if (name == "manifest.json") continue;
      const std::string whole = text_of(name, part);
      write_plain(to + "/" + name, whole);
      const bool listed = manifest.is_object() && manifest.contains("files") &&
                          manifest["files"].is_object() && manifest["files"].contains(name) &&
                          manifest["files"][name].is_object();
      if (!listed || as_it_is) continue;
      manifest["files"][name]["bytes"] = whole.size();
      manifest["files"][name]["sha256"] = sha256(whole.data(), whole.size());
    }
    write_plain(to + "/manifest.json", dumped(manifest));
  }

 private:
  struct Part {
    Json json;
    std::string data;  // what follows the header
  };

  static std::string dumped(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  static std::string text_of(const std::string& name, const Part& part) {
    std::string text = dumped(part.json);
    if (!name.ends_with(".safetensors")) return text;
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const std::uint64_t bytes = text.size();
    return std::string(reinterpret_cast<const char*>(&bytes), 8) + text + part.data;
  }
  // Without syncing, which takes most of the time.
  static void write_plain(const std::string& path, const std::string& text) {
    OutputFile file(path);
    file.write(text);
  }
  static void add_places(const Json& json, const Json::json_pointer& at,
                         std::vector<Json::json_pointer>& found) {
    if (!json.is_structured()) return;
    for (const auto& [key, value] : json.items()) {
      const Json::json_pointer place = json.is_array() ? at / std::stoul(key) : at / key;
      found.push_back(place);
      add_places(value, place, found);
    }
  }

  std::map<std::string, Part> parts_;
};

/// Values that no program writes there, and removal, for which the JSON value `discarded` stands
/// here.
inline std::vector<std::pair<std::string, EditedCheckpoint::Json>> hostile_values() {
  using Json = EditedCheckpoint::Json;
  return {{"null", nullptr},
          {"minus_one", -1},
          {"lowest", std::numeric_limits<std::int64_t>::min()},
          {"two_to_62", std::uint64_t{1} << 62},
          {"two_to_63", std::uint64_t{1} << 63},
          {"two_to_64_less_one", ~std::uint64_t{0}},
          {"huge", 1e300},
          {"half", 0.5},
          {"minus_zero", -0.0},
          {"zero", 0},
          {"word", "x"},
          {"empty_text", ""},
          {"nul_text", std::string("a\0b", 3)},
          {"list", Json::array()},
          {"object", Json::object()},
          {"true", true},
          {"removed", Json(Json::value_t::discarded)}};
}

/// Values close to this one.
inline std::vector<std::pair<std::string, EditedCheckpoint::Json>> near_values(
    const EditedCheckpoint::Json& value) {
  if (value.is_boolean()) return {{"the_other", !value.get<bool>()}};
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    return {{"one_more", number + 1}, {"one_less", number - 1}, {"twice", 2 * number}};
  }
  if (value.is_number()) return {{"a_bit_more", value.get<double>() * 1.001}};
  return {};
}

}  // namespace tandem::testing
