// Where a PyTorch model has the tensors of a file, as PEFT names modules and their tensors.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/formats/named_tensor.h"
#include "engine/graph/parameter_names.h"
#include "tandem/tandem.h"

namespace tandem::api {

/// "blocks.0.fc1" and "weight".
struct PeftPlace {
  std::string module, role;
  bool by_name = true;  // the tensor's own name says so, else the operator that reads it
};

constexpr const char* without_peft = "export with --lora merged or separate";

[[noreturn]] void refuse_peft(const std::string& path, std::string message, std::string expected,
                              std::string got, std::string fix);

/// From the tensor's own name, else from the modules of the operators that read it.
std::vector<PeftPlace> possible_places(const std::string& name, const TensorType& type,
                                       const std::vector<ParameterReader>& readers);
/// The only one. Throws Error{usage} where there is none, or where several modules read the tensor.
PeftPlace peft_place(const std::string& name, const TensorType& type,
                     const std::vector<ParameterReader>& readers);

/// Throws Error{usage} where no module of this path is called with the weight, so that an adapter
/// in its place would do nothing: its parent computes with the weight itself
/// (MultiheadAttention.out_proj), or it has modules of its own. `scopes`: of all tensors that have
/// names.
void expect_called(const PeftPlace& place, const std::string& name,
                   const std::vector<ParameterReader>& readers,
                   const std::set<std::string>& scopes);

/// The tensor as the module has it, where the file has it under a made-up name: folded into another
/// form.
HostTensor as_module_has_it(const NamedTensor& tensor, const PeftPlace& place, const Graph& graph);

/// [columns, rows] float32 of a matrix [rows, columns].
HostTensor turned_matrix(const HostTensor& matrix);

/// Names of the base that PEFT adapts: without --strip, behind --add.
class PeftNames {
 public:
  explicit PeftNames(const ExportNames& names) : names_(names) {}

  PeftPlace renamed(PeftPlace place, const std::string& tensor);
  /// The exported name of a module; "" where --strip leaves nothing of it.
  std::string renamed_module(const std::string& module) const;
  /// A prefix that nothing has would leave names that no module of the base has.
  void check_strip(const std::set<std::string>& modules) const;
  /// What is to be said where modules of the file lack the prefix: it is a part of the base itself
  /// then, and no wrapper around it. "" for nothing.
  std::string strip_warning(const std::set<std::string>& modules) const;

 private:
  std::string renamed_name(std::string name, bool& has_prefix) const;

  const ExportNames& names_;
  bool stripped_ = false;
};

}  // namespace tandem::api
