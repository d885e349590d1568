// Weights that are tensors in memory, or pages of files.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/formats/named_tensor.h"
#include "engine/formats/weights/weights_file.h"

namespace tandem {

class TensorList final : public WeightsFile {
 public:
  /// `aliases`: other names of tensors, {"head.weight", "token.weight"}. The first tensor of a name
  /// counts.
  TensorList(const std::vector<NamedTensor>& tensors,
             const std::map<std::string, std::string>& aliases);

  std::vector<std::string> names() const override { return names_; }
  TensorType type(const std::string& name) const override { return tensors_.at(name).type(); }
  HostTensor read(const std::string& name, DType as) const override {
    return tensors_.at(name).converted(as);
  }
  std::optional<HostTensor> pages(const std::string& name) const override {
    return tensors_.at(name);
  }
  std::string first_name(const std::string& name) const override {
    const auto found = first_names_.find(name);
    return found == first_names_.end() ? name : found->second;
  }
  std::vector<std::string> notes() const override { return notes_; }
  void set_notes(std::vector<std::string> notes) { notes_ = std::move(notes); }

 private:
  void add(const std::string& name, const HostTensor& tensor);

  std::vector<std::string> names_, notes_;
  std::map<std::string, HostTensor> tensors_;
  std::map<std::string, std::string> first_names_;  // by the other names of tied tensors
};

}  // namespace tandem
