// The options that a kind of loss or metric has besides the keys of all kinds, as one value.
#pragma once

#include <concepts>
#include <memory>
#include <utility>
#include <vector>

#include "engine/config/keys/config_keys.h"

namespace tandem {

class KeyVisitor;  // engine/config/keys/key_visitor.h

/// A struct of members with their defaults. Its visit declares a key for each of them.
struct KindOptions {
  virtual ~KindOptions() = default;
  virtual void visit(KeyVisitor& v) = 0;
};

/// The options of any kind. A copy has options of its own.
class AnyOptions {
 public:
  AnyOptions() = default;  // for a kind without options
  template <std::derived_from<KindOptions> Options>
  AnyOptions(Options options)
      : held_(std::make_shared<Options>(std::move(options))),
        copy_([](const KindOptions& from) -> std::shared_ptr<KindOptions> {
          return std::make_shared<Options>(static_cast<const Options&>(from));
        }) {}
  AnyOptions(const AnyOptions& other)
      : held_(other.held_ ? other.copy_(*other.held_) : nullptr), copy_(other.copy_) {}
  AnyOptions(AnyOptions&&) = default;
  AnyOptions& operator=(AnyOptions other) {
    held_ = std::move(other.held_);
    copy_ = other.copy_;
    return *this;
  }
  ~AnyOptions() = default;

  /// Null where they are not of this type.
  template <std::derived_from<KindOptions> Options>
  Options* find() {
    return dynamic_cast<Options*>(held_.get());
  }
  template <std::derived_from<KindOptions> Options>
  const Options* find() const {
    return dynamic_cast<const Options*>(held_.get());
  }
  /// As the options of that kind. Throws std::bad_cast where they belong to another one.
  template <std::derived_from<KindOptions> Options>
  const Options& as() const {
    return dynamic_cast<const Options&>(*held_);
  }

  void visit(KeyVisitor& v) {
    if (held_) held_->visit(v);
  }
  /// The rows of their keys, with these values as the defaults.
  std::vector<KeyInfo> keys() const;
  /// Whether both are written alike.
  bool operator==(const AnyOptions& other) const;

 private:
  std::shared_ptr<KindOptions> held_;
  std::shared_ptr<KindOptions> (*copy_)(const KindOptions&) = nullptr;
};

}  // namespace tandem
