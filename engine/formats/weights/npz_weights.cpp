// Weights of an .npz archive: arrays are unpacked one by one, and converted on the way.
#include "engine/formats/arrays/npz_file.h"
#include "engine/formats/weights/weights_file.h"

namespace tandem {
namespace {

class NpzWeights final : public WeightsFile {
 public:
  explicit NpzWeights(const std::string& path) : file_(path) {}
  std::vector<std::string> names() const override { return file_.names(); }
  TensorType type(const std::string& name) const override { return file_.type(name); }
  HostTensor read(const std::string& name, DType as) const override { return file_.read(name, as); }

 private:
  NpzFile file_;
};

std::unique_ptr<WeightsFile> open_npz_weights(const std::string& path) {
  return std::make_unique<NpzWeights>(path);
}

}  // namespace

WeightsFormat npz_weights() { return {"NumPy", ".npz", open_npz_weights}; }

}  // namespace tandem
