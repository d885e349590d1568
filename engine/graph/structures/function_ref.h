// A function that a caller lends for the time of a call.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace tandem {

template <class Signature>
class FunctionRef;

/// Refers to a callable object, which has to outlive it: for parameters, as `std::function` is for
/// members. Costs two pointers.
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  FunctionRef() = default;  // not callable
  /// An empty std::function gives one that is not callable.
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
           std::is_invocable_r_v<Result, F&, Arguments...>) FunctionRef(F&& f) {
    if constexpr (requires { f == nullptr; }) {
      if (f == nullptr) return;
    }
    object_ = const_cast<void*>(static_cast<const void*>(std::addressof(f)));
    call_ = [](void* object, Arguments... arguments) -> Result {
      return (*static_cast<std::remove_reference_t<F>*>(object))(
          std::forward<Arguments>(arguments)...);
    };
  }

  Result operator()(Arguments... arguments) const {
    return call_(object_, std::forward<Arguments>(arguments)...);
  }
  explicit operator bool() const { return call_ != nullptr; }

 private:
  void* object_ = nullptr;
  Result (*call_)(void*, Arguments...) = nullptr;
};

}  // namespace tandem
