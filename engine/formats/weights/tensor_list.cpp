#include "engine/formats/weights/tensor_list.h"

namespace tandem {

TensorList::TensorList(const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string>& aliases) {
  for (const NamedTensor& t : tensors) add(t.name, t.tensor);
  for (const auto& [other, name] : aliases) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end() || tensors_.contains(other)) continue;
    add(other, HostTensor(found->second));
    first_names_[other] = name;
  }
}

void TensorList::add(const std::string& name, const HostTensor& tensor) {
  if (tensors_.emplace(name, tensor).second) names_.push_back(name);
}

}  // namespace tandem
