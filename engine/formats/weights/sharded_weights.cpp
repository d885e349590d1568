// Weights in several files, as Hugging Face's libraries write large models: a JSON file next to
// them says which tensor is in which one (model.safetensors.index.json,
// pytorch_model.bin.index.json).
#include <algorithm>
#include <map>

#include "engine/formats/json_file.h"
#include "engine/formats/weights/weights_file.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

class ShardedWeights final : public WeightsFile {
 public:
  explicit ShardedWeights(const std::string& path) {
    const JsonFile index(path);
    const JsonItem map = index.root().at("weight_map");
    std::map<std::string, std::vector<std::string>> wanted;  // names by shard
    for (const auto& [name, file] : map.object()) wanted[shard_name(file)].push_back(name);
    const std::string folder = path.substr(0, path.rfind('/') + 1);
    for (const auto& [file, names] : wanted) {
      shards_.push_back(open_weights(folder + file));
      std::vector<std::string> held = shards_.back()->names();
      std::sort(held.begin(), held.end());
      for (const std::string& name : names) {
        if (!std::binary_search(held.begin(), held.end(), name)) {
          Diagnostic d;
          d.message = "the shard " + file + " lacks a tensor that the index says it has";
          d.file = path;
          d.path = name;
          d.fix = "download index and shards of one model again";
          throw Error(ErrorKind::data, std::move(d));
        }
        shard_of_[name] = shards_.back().get();
        names_.push_back(name);
      }
    }
  }

  std::vector<std::string> names() const override { return names_; }
  TensorType type(const std::string& name) const override { return of(name).type(name); }
  HostTensor read(const std::string& name, DType as) const override {
    return of(name).read(name, as);
  }
  std::optional<HostTensor> pages(const std::string& name) const override {
    return of(name).pages(name);
  }
  std::string first_name(const std::string& name) const override {
    return of(name).first_name(name);
  }
  std::vector<std::string> notes() const override {
    return {std::to_string(names_.size()) + " tensors in " + std::to_string(shards_.size()) +
            " files"};
  }

 private:
  /// The name of a file next to the index, of a format that holds tensors itself.
  static std::string shard_name(const JsonItem& item) {
    const std::string file = item.text();
    const bool is_known = file.ends_with(".safetensors") || file.ends_with(".bin");
    if (file.find('/') != std::string::npos || file.starts_with(".") || !is_known) {
      item.refuse("not the name of a shard",
                  "a .safetensors or .bin file in the folder of the index");
    }
    return file;
  }
  const WeightsFile& of(const std::string& name) const { return *shard_of_.at(name); }

  std::vector<std::unique_ptr<WeightsFile>> shards_;
  std::map<std::string, const WeightsFile*> shard_of_;
  std::vector<std::string> names_;
};

std::unique_ptr<WeightsFile> open_sharded_weights(const std::string& path) {
  return std::make_unique<ShardedWeights>(path);
}

}  // namespace

WeightsFormat sharded_weights() { return {"index of shards", ".index.json", open_sharded_weights}; }

}  // namespace tandem
