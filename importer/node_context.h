// One ONNX node while it is taken apart into operators of the engine: its operands, attributes and
// results.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "importer/session.h"

namespace tandem::importer {

class NodeContext {
 public:
  NodeContext(Session& session, Scope& scope, const onnx::NodeProto& node, int version,
              std::string path);

  const onnx::NodeProto& node() const { return node_; }
  int version() const { return version_; }  // version of the operator set
  Session& session() { return session_; }
  Scope& scope() const { return scope_; }
  const std::string& path() const { return path_; }

  // Operands
  std::size_t input_count() const { return static_cast<std::size_t>(node_.input_size()); }
  bool has(std::size_t i) const;
  const Term& operand(std::size_t i) const;  // throws where it is absent
  const Term& in(std::size_t i) const;       // throws where it is no tensor, too
  const Term& sequence(std::size_t i) const;
  std::vector<Term> inputs() const;  // all, absent ones empty
  bool in_stages() const { return session_.options.stage != nullptr; }
  /// In an import by stages: throws a request that these be known, unless they are or nothing can
  /// name them.
  void want(const std::vector<Term>& terms) const;
  /// `count` tensors that `make` makes of operands, whose extents depend on these: constants where
  /// all operands are known; in an import by stages what the stage before has made, or a request
  /// for it. Else `reason` refuses the node.
  std::vector<Term> chosen(const std::vector<Term>& operands, std::size_t count,
                           const StageRequest::Make& make, const char* reason) const;
  const Shape& shape(std::size_t i) const { return in(i).type.shape; }
  std::int64_t rank(std::size_t i) const { return static_cast<std::int64_t>(shape(i).size()); }
  DType dtype(std::size_t i) const { return in(i).type.dtype; }

  // Operands that must be known before the run
  const HostTensor& static_tensor(std::size_t i, const char* role) const;
  Ints static_integers(std::size_t i, const char* role) const;
  std::int64_t static_integer(std::size_t i, const char* role) const;
  double static_number(std::size_t i, const char* role) const;

  // Attributes, with ONNX's default
  bool has_attribute(const char* name) const { return attribute(name) != nullptr; }
  std::int64_t integer(const char* name, std::int64_t missing) const;
  std::int64_t integer(const char* name) const;
  bool flag(const char* name, bool missing) const;  // 0 or 1 in the file
  double number(const char* name, double missing) const;
  std::string text(const char* name, const std::string& missing) const;
  Ints integers(const char* name, Ints missing) const;
  std::optional<Ints> integers(const char* name) const;
  std::vector<float> numbers(const char* name) const;             // empty where absent
  std::size_t count(const char* name) const;                      // texts in a list; 0 where absent
  const onnx::AttributeProto* attribute(const char* name) const;  // null where absent

  /// What the node has and no code has read yet: "input 3", "attribute 'scale'"; "" if nothing.
  std::string unread() const;

  // Making nodes
  std::vector<Term> make_all(std::string_view op, const std::vector<Term>& inputs,
                             const Attributes& attributes = {});
  Term make(std::string_view op, const std::vector<Term>& inputs,
            const Attributes& attributes = {}) {
    return make_all(op, inputs, attributes)[0];
  }
  Term constant(HostTensor tensor) const { return session_.constant(std::move(tensor)); }
  Term scalar(double value, DType dtype) const;
  Term filled(double value, TensorType type) const;
  /// x itself where it has that type; 8-bit floats are rounded as ONNX's Cast does by default.
  Term cast(const Term& x, DType dtype);
  /// The 16-bit storage types to float32; 8-bit floats stay, for what computes to refuse.
  Term widen(const Term& x);
  Term reshape(const Term& x, Shape shape);         // x itself where it has that shape
  Term expand(const Term& x, const Shape& shape);   // x itself where it has that shape
  Term transpose(const Term& x, const Ints& perm);  // x itself where nothing moves

  // Results
  std::size_t output_count() const { return static_cast<std::size_t>(node_.output_size()); }
  bool wants(std::size_t i) const;
  void out(std::size_t i, Term term);

  /// A non-negative axis below `rank`.
  std::int64_t axis(std::int64_t value, std::int64_t rank) const;
  /// Sorted, non-negative and distinct.
  Ints axes(Ints values, std::int64_t rank) const;

  [[noreturn]] void fail(std::string message, std::string expected = "", std::string got = "",
                         std::string fix = "") const;
  /// This form of the operator is not offered: a problem of kind "unsupported_operator".
  [[noreturn]] void unsupported(std::string reason, std::string fix = "") const;

 private:
  Session& session_;
  Scope& scope_;
  const onnx::NodeProto& node_;
  int version_;
  std::string path_;
  mutable std::set<std::size_t> read_inputs_;
  mutable std::set<std::string> read_attributes_;
};

/// Thrown in imports by stages where a value has to be known; the walk makes a request of it.
class Unknown : public Error {
 public:
  Unknown(StageRequest wanted, std::vector<Term> read)
      : Error(ErrorKind::usage,
              Diagnostic{.message = wanted.op + ": data decides an extent", .path = wanted.path}),
        request(std::move(wanted)),
        terms(std::move(read)) {}

  StageRequest request;
  std::vector<Term> terms;  // the terms that the node reads
};

/// Thrown by `unsupported`; the walk makes a Problem of it.
class Unsupported : public Error {
 public:
  using Error::Error;
};

}  // namespace tandem::importer
