// Samples that a C program gives to a Trainer.
#pragma once

#include <memory>

#include "tandem/c.h"
#include "tandem/data_source.h"

namespace tandem::c_library {

/// A DataSource over the functions of a TandemDataSource.
class ProgramSource final : public api::DataSource {
 public:
  /// Throws Error{usage} with everything that is wrong.
  ProgramSource(const TandemDataSource* source, const char* name);
  /// Calls `release` where `own` was called.
  ~ProgramSource() override;
  /// The samples are the library's from now on.
  void own() { is_owned_ = true; }

  std::vector<api::DataField> fields() const override { return fields_; }
  std::int64_t samples() const override { return source_.samples; }
  void fill(std::size_t field, std::span<const std::int64_t> indices, void* to) const override;
  std::string identity() const override { return identity_; }

 private:
  TandemDataSource source_;
  std::vector<api::DataField> fields_;
  std::string identity_;
  bool is_owned_ = false;
};

/// Null where there is none.
std::shared_ptr<ProgramSource> program_source(const TandemDataSource* source, const char* name);

}  // namespace tandem::c_library
