// Files of weights: tensors by name, of whatever format.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/host_tensor.h"

namespace tandem {

/// An open file: nothing but names and types is read before it is asked for.
class WeightsFile {
 public:
  virtual ~WeightsFile() = default;

  /// In the file's order, each once.
  virtual std::vector<std::string> names() const = 0;
  /// The type of an existing tensor. Throws Error{data} where it is broken.
  virtual TensorType type(const std::string& name) const = 0;
  /// Row-major; may be the pages of the file. Throws Error{data} where it is broken,
  /// Error{does_not_fit} where it takes more memory than there is.
  virtual HostTensor read(const std::string& name, DType as) const = 0;
  /// The tensor as pages of the file, where the file has exactly its bytes: reading a part of it
  /// loads only that part.
  virtual std::optional<HostTensor> pages(const std::string& name) const;
  /// The first name of a tensor. Tied weights are one tensor under several names; all other tensors
  /// have only their own.
  virtual std::string first_name(const std::string& name) const;
  /// For people: where the tensors were found, what was skipped.
  virtual std::vector<std::string> notes() const;
};

/// A format, recognised by the endings of file names.
struct WeightsFormat {
  std::string_view name;     // "PyTorch"
  std::string_view endings;  // ".pt|.pth|.bin"; "": folders
  /// Null: a WeightsOpener opens this format.
  std::unique_ptr<WeightsFile> (*open)(const std::string& path) = nullptr;
};

/// The format by only the name: one without an ending of letters is a folder. Null: none.
const WeightsFormat* weights_format_of(std::string_view path);
/// ".safetensors, .npz, ..., or a run directory"
std::string known_weights();

/// Opens formats that the engine does not know itself.
using WeightsOpener = std::function<std::unique_ptr<WeightsFile>(const WeightsFormat& format,
                                                                 const std::string& path)>;

/// Throws Error{usage} where the format is not known, else what opening it throws.
std::unique_ptr<WeightsFile> open_weights(const std::string& path,
                                          const WeightsOpener& opener = {});

}  // namespace tandem
