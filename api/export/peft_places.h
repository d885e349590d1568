// Finds the place of a tensor in the PyTorch model: the module and the role that PEFT knows it by.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/formats/named_tensor.h"
#include "engine/graph/parameter_names.h"
#include "tandem/tandem.h"

namespace tandem::api {

/// A place such as "blocks.0.fc1" and "weight".
struct PeftPlace {
  std::string module, role;
  bool by_name = true;  // by the tensor's own name, else by the operator that reads it
};

constexpr const char* without_peft = "export with --lora merged or separate";

[[noreturn]] void refuse_peft(const std::string& path, std::string message, std::string expected,
                              std::string got, std::string fix);

/// By the tensor's own name, else by the modules of the operators that read it.
std::vector<PeftPlace> possible_places(const std::string& name, const TensorType& type,
                                       const std::vector<ParameterReader>& readers);
/// The only possible place. Throws Error{usage} where there is none, or where several modules read
/// the tensor.
PeftPlace peft_place(const std::string& name, const TensorType& type,
                     const std::vector<ParameterReader>& readers);

/// Throws Error{usage} where no module at this path is called with the weight, so that an adapter
/// there would have no effect: its parent computes with the weight itself
/// (MultiheadAttention.out_proj), or it has submodules. `scopes`: those of all tensors that have
/// names.
void expect_called(const PeftPlace& place, const std::string& name,
                   const std::vector<ParameterReader>& readers,
                   const std::set<std::string>& scopes);

/// Whether a product reads the weight as [in, out], where a module has [out, in].
bool is_in_first(const Graph& graph, const State& state);

/// The tensor as the module holds it, where the file has it under a made-up name because it was
/// folded into another form.
HostTensor as_module_has_it(const NamedTensor& tensor, const PeftPlace& place, const Graph& graph);

/// Names of the base model that PEFT adapts: without the prefix of --strip, with that of --add.
class PeftNames {
 public:
  explicit PeftNames(const ExportNames& names) : names_(names) {}

  PeftPlace renamed(PeftPlace place, const std::string& tensor);
  /// The exported name of a module; "" where --strip removes all of it.
  std::string renamed_module(const std::string& module) const;
  /// Refuses a --strip that no name begins with: the exported names would match no module of the
  /// base.
  void check_strip(const std::set<std::string>& modules) const;
  /// The warning where modules of the file lack the prefix: it is then a part of the base itself
  /// and no wrapper around it. "" for none.
  std::string strip_warning(const std::set<std::string>& modules) const;

 private:
  std::string renamed_name(std::string name, bool& has_prefix) const;

  const ExportNames& names_;
  bool stripped_ = false;
};

}  // namespace tandem::api
